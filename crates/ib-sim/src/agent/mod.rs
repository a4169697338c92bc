//! The agents that answer for a node.

pub(crate) mod pma;
pub(crate) mod port_info;
pub(crate) mod sma;

use std::collections::BTreeMap;

use ib_mad::Time;
use ib_mad::smp::{MlnxExtPortInfo, NodeDescription, NodeInfo, Notice, PortInfo, SwitchInfo};

use crate::fault::NodeFault;
use crate::topo::{Peer, Speeds, Widths};

/// One port as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    /// What it answers, but for the local port number.
    pub(crate) info: PortInfo,
    /// FDR10.
    pub(crate) vendor: MlnxExtPortInfo,
    pub(crate) guid: u64,
    pub(crate) peer: Option<Peer>,
    pub(crate) widths: Widths,
    pub(crate) speeds: Speeds,
    pub(crate) counters: pma::Counters,
    /// Set to Disabled by a subnet manager: stays down until set to Polling.
    pub(crate) disabled: bool,
}

impl Port {
    /// Does a packet pass?
    pub(crate) fn is_up(&self) -> bool {
        self.info.is_link_up()
    }

    /// Is this one of its LIDs?
    pub(crate) fn has_lid(&self, lid: u16) -> bool {
        let base = self.info.lid.get();
        base != 0 && lid >= base && lid - base < 1 << self.info.mkey_lmc.lmc()
    }
}

/// What only a switch has.
#[derive(Debug, Clone)]
pub(crate) struct Switch {
    pub(crate) info: SwitchInfo,
    /// Out-ports by LID, as far as blocks were written; 0xff: none.
    pub(crate) lft: Vec<u8>,
}

/// One node as it is now.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) info: NodeInfo,
    pub(crate) description: NodeDescription,
    pub(crate) switch: Option<Box<Switch>>,
    /// Where its ports stand among all: number 0 first, which a CA does not use.
    pub(crate) first_port: usize,
    pub(crate) ports: u8,
    /// Blocks of partition, SL, arbitration and multicast tables that were written, by attribute
    /// and modifier.
    pub(crate) tables: BTreeMap<(u16, u32), [u8; 64]>,
    /// Its agent works at something until then.
    pub(crate) busy_until: Time,
    /// Requests that its agent has answered.
    pub(crate) answered: u64,
    /// A trap that nobody has acknowledged yet.
    pub(crate) trap: Option<Told>,
    pub(crate) fault: NodeFault,
}

/// A trap that is repeated until it is repressed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    pub(crate) notice: Notice,
    pub(crate) tid: u64,
    pub(crate) times: u8,
}

/// What an answer changes beyond its own node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The link goes down and trains again.
    Bounce(u8),
    /// The link goes down and stays so.
    Disable(u8),
    /// The port may come up again.
    Enable(u8),
}

/// What an agent makes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// An answer, with this status.
    Answer(u16),
    /// No answer: the M_Key is wrong.
    WrongKey,
    /// Not for an agent, but for a program.
    Forward,
    /// Taken, and not answered.
    Taken,
}
