//! Walking a fabric by directed routes, with many requests in flight.
//!
//! ```text
//!   NodeInfo ──► NodeDescription                                    the local node first
//!      │    └──► SwitchInfo, PortInfo 0 … n   (a switch)
//!      │    └──► PortInfo of its port         (any other node)
//!      │                  │ link up, nothing known behind it
//!      └──────────────────┘ [FDR10 possible: MlnxExtPortInfo first]
//! ```
//!
//! An answer to NodeInfo names the port that the question came in by, so one question tells both
//! ends of a cable; the far end is not asked again unless both questions were on their way at
//! once.
//!
//! Whatever a fabric does, a walk ends: every link is asked at most once from each end, a node
//! that falls silent is left alone after [`Config::give_up_after`] failures in a row, a fabric
//! that falls silent ends the walk, routes end at 63 hops, and nodes at [`Config::max_nodes`].
//! What is kept grows with what has answered, not with what was claimed.

mod engine;
mod fdr10;
mod warning;

use std::time::Duration;

use ib_mad::client::{ClientConfig, ClientStats};

pub use engine::Discovery;
pub use warning::{Warning, WarningKind};

use super::topology::Topology;

/// How a fabric is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Requests in flight at once.
    pub window: u16,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How often a request is repeated after that.
    pub retries: u8,
    /// How many hops from the local node the walk goes; 63 at most.
    pub max_hops: u8,
    /// The most nodes that are kept.
    pub max_nodes: u32,
    /// Failures in a row after which a node is left alone.
    pub give_up_after: u8,
    /// Whether to ask devices that may run at FDR10 whether they do.
    pub ask_fdr10: bool,
    /// The key that the ports may ask for.
    pub m_key: u64,
    /// Where transaction ids start, so that answers to an earlier walk are not taken for ours.
    pub first_tid: u16,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 32,
            timeout: Duration::from_millis(1000),
            retries: 2,
            max_hops: ib_mad::smp::MAX_HOPS,
            // A subnet has 49 151 unicast LIDs.
            max_nodes: 65_536,
            give_up_after: 3,
            ask_fdr10: true,
            m_key: 0,
            first_tid: 0,
        }
    }
}

impl Config {
    const fn client(&self) -> ClientConfig {
        ClientConfig {
            window: self.window,
            timeout: self.timeout,
            retries: self.retries,
            first_tid: self.first_tid,
        }
    }
}

/// What has been found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Discovered {
    /// The fabric.
    pub topology: Topology,
    /// What was wrong with it, in the order in which it was noticed.
    pub warnings: Vec<Warning>,
    /// What was sent and answered.
    pub stats: ClientStats,
    /// Whether the walk came to its end; it did not where the fabric fell silent.
    pub complete: bool,
}

/// What happens during a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Another node was found: so many now, so many answers so far.
    Progress {
        /// Nodes found.
        nodes: usize,
        /// Answers so far.
        answers: u64,
    },
}

/// How a walk ended before it began: the local node did not say who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoStart {
    /// It did not answer, to so many requests.
    Silent {
        /// How often it was asked.
        attempts: u8,
    },
    /// It answered with a status.
    Refused {
        /// The MAD status.
        status: u16,
    },
}
