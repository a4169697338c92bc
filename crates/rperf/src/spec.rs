//! What is measured, and how.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema, clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// A message into a buffer that the peer posted.
    Send,
    /// Into the peer's memory.
    Write,
    /// Out of the peer's memory.
    Read,
    /// Eight bytes of the peer's memory, changed at once.
    Atomic,
}

impl Verb {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Send, Self::Write, Self::Read, Self::Atomic];

    /// The name in commands and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "write",
            Self::Read => "read",
            Self::Atomic => "atomic",
        }
    }
}

/// What is wanted of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema, clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// How much in a time, with many requests on their way.
    #[cfg_attr(feature = "cli", value(name = "bw"))]
    Bandwidth,
    /// How long one takes, with one on its way.
    #[cfg_attr(feature = "cli", value(name = "lat"))]
    Latency,
}

impl Metric {
    /// The name in commands and reports, as in `ib_send_bw`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bandwidth => "bw",
            Self::Latency => "lat",
        }
    }
}

/// What carries the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema, clap::ValueEnum))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Unreliable datagram.
    Ud,
}

impl Transport {
    /// The name in reports, as perftest's `-c` spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Ud => "UD",
        }
    }

    /// Whether it carries that.
    #[must_use]
    pub const fn carries(self, verb: Verb) -> bool {
        match self {
            Self::Rc => true,
            Self::Uc => matches!(verb, Verb::Send | Verb::Write),
            Self::Ud => matches!(verb, Verb::Send),
        }
    }
}

/// When a measurement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// After so many requests of each queue pair.
    Iterations(NonZeroU64),
    /// After a time.
    Duration(Duration),
}

/// One measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Spec {
    /// What a request does.
    pub verb: Verb,
    /// What is wanted of it.
    pub metric: Metric,
    /// What carries it.
    pub transport: Transport,
    /// Bytes of a message.
    pub size: u32,
    /// When it ends.
    pub amount: Amount,
    /// How many queue pairs.
    pub qps: NonZeroU32,
    /// How many requests of a queue pair are on their way at most.
    pub tx_depth: NonZeroU32,
    /// Whether both sides send.
    pub bidirectional: bool,
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, metric) = (self.verb.name(), self.metric.name());
        write!(
            f,
            "{verb} {metric}, {}, {} B",
            self.transport.name(),
            self.size
        )
    }
}
