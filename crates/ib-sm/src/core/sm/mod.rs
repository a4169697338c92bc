//! The subnet manager: finds out who is there, gives LIDs, routes, and keeps all that up.
//!
//! ```text
//!            ┌── full sweep: walk ─┐
//!   idle ────┼── a switch changed: ├─► managers ─► LIDs, routing ─► read back ─► rounds of writes ─► idle
//!     ▲      │   look, walk beyond ┘      │                         (where live)
//!     │      └── light sweep              └─► another one rules: standby, poll it
//!     └───────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! [`Sm`] is a state machine of bytes and time: see [`Sm::poll_transmit`] for the loop that drives
//! it. What it needs to know beyond the fabric is in [`Config`], what it tells is [`Event`].
//!
//! **A change costs what it changes.** A trap or a light sweep names a switch; its ports are read
//! again, and only what is behind a new cable is walked. LIDs are remembered ([`LidMap`]), the
//! fabric is routed anew in memory, and of what comes out only settings and blocks are written that
//! are not as they are to be. [`mod@order`] says why no packet goes in a circle meanwhile.

mod decide;
mod engine;
pub mod fallback;
pub mod lid;
mod model;
pub mod order;
mod plan;
mod rescan;
mod setup;
mod trap;

use std::time::Duration;

use ib_mad::client::ClientConfig;
use ib_mad::id::Guid;
use ib_mad::smp::{SmState, TrapNumber};

pub use engine::Sm;
pub use fallback::Fallback;
pub use lid::{Claim, LidMap, LidMapFault};
pub use setup::PortSettings;

use crate::core::discovery;
use crate::routing;

/// How a subnet is managed. The names in brackets are OpenSM's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// 0 to 15 (`sm_priority`).
    pub priority: u8,
    /// What managers of one subnet share (`sm_key`).
    pub sm_key: u64,
    /// What ports are set to.
    pub ports: PortSettings,
    /// Requests in flight at once (`max_wire_smps`).
    pub window: u16,
    /// How long an answer may take (`transaction_timeout`). Longer than a packet can live in the
    /// fabric: a late copy of a Set must not undo a newer one.
    pub timeout: Duration,
    /// How often a request is repeated after that (`transaction_retries`).
    pub retries: u8,
    /// How often switches are asked whether something changed (`sweep_interval`); never where none.
    pub light_sweep: Option<Duration>,
    /// How often everything is looked at anew, as a check; never where none.
    pub full_sweep: Option<Duration>,
    /// How often a standby asks whether the master is alive (`sminfo_polling_timeout`).
    pub poll: Duration,
    /// After how many failures it takes over (`polling_retry_number`).
    pub poll_failures: u8,
    /// How long more traps are waited for after one.
    pub settle: Duration,
    /// How long to wait before work that failed is done again; doubles up to 64 times that.
    pub again: Duration,
    /// What routing is told.
    pub routing: routing::Options,
    /// Do as if there were no other managers (`ignore_other_sm`).
    pub ignore_others: bool,
    /// Ports that repeat a trap without end are taken out of service (`babbling_port_policy`).
    pub disable_babbling: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            priority: 0,
            sm_key: 1,
            ports: PortSettings::default(),
            window: 64,
            timeout: Duration::from_millis(200),
            retries: 3,
            light_sweep: Some(Duration::from_secs(10)),
            full_sweep: None,
            poll: Duration::from_secs(10),
            poll_failures: 4,
            settle: Duration::from_millis(20),
            again: Duration::from_secs(1),
            routing: routing::Options::default(),
            ignore_others: false,
            disable_babbling: false,
        }
    }
}

impl Config {
    const fn client(&self) -> ClientConfig {
        ClientConfig {
            window: self.window,
            timeout: self.timeout,
            retries: self.retries,
            first_tid: 0x8000,
        }
    }

    fn walk(&self, first_tid: u16) -> discovery::Config {
        discovery::Config {
            window: self.window,
            timeout: self.timeout,
            retries: self.retries,
            ask_fdr10: false,
            m_key: self.ports.m_key,
            first_tid,
            ..discovery::Config::default()
        }
    }
}

/// Why the fabric is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// From scratch.
    Full,
    /// Some switches have told, or were found, to have changed.
    Change {
        /// How many.
        switches: usize,
    },
}

/// What was done from the begin of a sweep until the subnet was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// What it began with.
    pub reason: Reason,
    /// Nodes that there are now.
    pub nodes: usize,
    /// Switches among them.
    pub switches: usize,
    /// LIDs in use at most.
    pub top_lid: u16,
    /// Packets sent, repeats too.
    pub sent: u64,
    /// Settings of ports written.
    pub ports: u64,
    /// Blocks of forwarding tables read back.
    pub read: u64,
    /// Blocks of forwarding tables written.
    pub blocks: u64,
    /// Of those, blocks that were written twice so that no circle came to be.
    pub scrubbed: u64,
    /// Links made active: their ports.
    pub activated: u64,
    /// Writes that failed.
    pub failed: u64,
    /// Time to find out what is there.
    pub looking: Duration,
    /// All of the time, but for what routing took on a clock that stood still.
    pub total: Duration,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The manager is something else now.
    State(SmState),
    /// The fabric is being looked at.
    Sweep(Reason),
    /// It is known what there is.
    Found {
        /// Nodes.
        nodes: usize,
        /// Switches among them.
        switches: usize,
        /// Ports of which something is known.
        ports: usize,
    },
    /// Something is wrong in the fabric.
    Warning(discovery::Warning),
    /// Two ports say that they have the same GUID. The second one gets no LID.
    DuplicateGuid {
        /// The GUID.
        guid: Guid,
    },
    /// There are no LIDs left for a port.
    NoLid {
        /// The port.
        guid: Guid,
    },
    /// LIDs were given that are to be remembered: [`Sm::lids`].
    Lids {
        /// Ports that are remembered.
        ports: usize,
    },
    /// Tables have been computed.
    Routed {
        /// By which engine.
        engine: String,
        /// What the fabric was recognised as.
        shape: String,
        /// Virtual lanes in use.
        vls: u8,
        /// Why the engine that was wanted was not taken; empty where it was.
        notes: Vec<String>,
        /// Blocks that are to be written.
        blocks: usize,
        /// Rounds in which they are written.
        rounds: usize,
    },
    /// Everything is as it is to be.
    Up(Work),
    /// A switch holds other tables than were written: it was started anew, or does not keep them.
    Forgot {
        /// The switch.
        switch: Guid,
    },
    /// A request was given up or refused.
    Failed {
        /// The node that was asked.
        node: Guid,
        /// What for.
        what: &'static str,
        /// The MAD status; none where no answer came.
        status: Option<u16>,
    },
    /// A trap came in.
    Trap {
        /// What has happened.
        trap: TrapNumber,
        /// The LID that tells, as it says.
        lid: u16,
        /// The node that has it; none where that is not known.
        node: Option<Guid>,
        /// The port that it is about; 0 where it is about the node.
        port: u8,
    },
    /// A port repeats a trap without end. It is not heeded any more.
    Babbling {
        /// The LID that tells.
        lid: u16,
        /// The trap.
        trap: TrapNumber,
        /// The port that it is about.
        port: u8,
    },
    /// A cable has too many errors: routing avoids it.
    Unhealthy {
        /// The switch at the end that tells.
        switch: Guid,
        /// Its port.
        port: u8,
    },
    /// Another subnet manager was seen.
    Other {
        /// The port that it sits on.
        guid: Guid,
        /// Its priority.
        priority: u8,
        /// What it is doing.
        state: SmState,
    },
    /// The master that we wait for does not answer, or is none any more.
    MasterLost {
        /// Failures in a row.
        failures: u8,
    },
    /// We hand over to another manager.
    HandedOver {
        /// The port that it sits on.
        to: Guid,
    },
    /// The local port does not answer, so that nothing can be done.
    LocalSilent,
}
