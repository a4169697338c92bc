//! What goes wrong in a fabric, by the seed or by plan.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::Time;

use crate::topo::Peer;

/// Everything that is to go wrong. By default nothing does.
///
/// Rates are in packets of a million, and apply to each way of a packet that crosses a cable.
///
/// ```
/// use ib_sim::{Faults, NodeFault};
///
/// let mut faults = Faults { loss: 50_000, ..Faults::default() };
/// faults.nodes.insert(7, NodeFault { silent_after: Some(3), ..NodeFault::default() });
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Packets that vanish.
    pub loss: u32,
    /// Packets that arrive twice.
    pub duplication: u32,
    /// Packets that are held back by up to `delay`, so that others overtake them.
    pub reordering: u32,
    /// Packets of which one bit is turned over.
    pub corruption: u32,
    /// The longest that a packet is held back.
    pub delay: Duration,
    /// What is wrong with single nodes, by their index in the topology.
    pub nodes: BTreeMap<usize, NodeFault>,
    /// Cables that come and go.
    pub flaps: Vec<Flap>,
}

/// What is wrong with one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeFault {
    /// It answers so many requests and then none.
    pub silent_after: Option<u64>,
    /// The number of ports that its NodeInfo tells, whatever it has.
    pub port_count: Option<u8>,
    /// What its NodeInfo's local port number is off by.
    pub local_port_offset: u8,
    /// How long its agent takes for an answer, instead of the usual time.
    pub service: Option<Duration>,
}

/// A cable that comes and goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flap {
    /// One of its ends.
    pub end: Peer,
    /// When it goes down for the first time.
    pub at: Time,
    /// How long it stays down.
    pub down: Duration,
    /// How long it then stays up before it goes down again; `None`: for good.
    pub up: Option<Duration>,
}
