//! What was sent and what became of it, for tests and for people.

use std::fmt;

use ib_mad::header::{MadHeader, MgmtClass};
use ib_mad::id::Lid;
use ib_mad::smp::{DrPath, Smp};
use ib_mad::{Packet, Time};

use crate::topo::Peer;

/// Why a packet did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// By chance.
    Chance,
    /// No cable, or the link is down, at this port.
    LinkDown(Peer),
    /// The directed route leads through a node that is no switch, or has a port of the wrong
    /// node, or more hops than there can be.
    Route,
    /// No forwarding entry leads to the LID from this node.
    NoEntry {
        /// The node.
        node: usize,
        /// The LID.
        lid: Lid,
    },
    /// The forwarding tables send it in circles.
    Circle,
    /// The node has fallen silent.
    Silent(usize),
    /// The M_Key is wrong.
    MKey(usize),
    /// It is for a program, and none is attached there.
    NoProgram(Peer),
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chance => f.write_str("lost by chance"),
            Self::LinkDown(end) => {
                write!(f, "lost: no link at node {} port {}", end.node, end.port)
            }
            Self::Route => f.write_str("lost: the directed route is not one"),
            Self::NoEntry { node, lid } => write!(f, "lost: node {node} has no way to LID {lid}"),
            Self::Circle => f.write_str("lost: it went in circles"),
            Self::Silent(node) => write!(f, "lost: node {node} is silent"),
            Self::MKey(node) => write!(f, "lost: node {node} wants another M_Key"),
            Self::NoProgram(end) => {
                write!(f, "lost: nobody at node {} port {}", end.node, end.port)
            }
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// A program gave it to its port.
    Sent,
    /// An agent has taken it: the node and the port by which it came.
    Reached(Peer),
    /// It was handed to the program.
    Delivered,
    /// It is gone.
    Lost(Loss),
    /// A cable came up (true) or went down.
    Link {
        /// One end.
        end: Peer,
        /// Whether it came up.
        up: bool,
    },
}

/// One line of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub time: Time,
    /// Whose packet: the number of the program's port.
    pub client: u32,
    /// What happened.
    pub happening: Happening,
    /// The packet's common header; zeros where there is no packet.
    pub header: MadHeader,
    /// Directed routes: the way there.
    pub path: DrPath,
}

impl Entry {
    pub(crate) fn of(time: Time, client: u32, happening: Happening, packet: &Packet) -> Self {
        let smp: &Smp = packet.smp();
        let directed = smp.header.mgmt_class == MgmtClass::SUBN_DR;
        let hops = usize::from(smp.header.class_specific.get() & 0xff);
        let ports = smp
            .initial_path
            .get(1..=hops)
            .filter(|_| directed)
            .unwrap_or_default();
        Self {
            time,
            client,
            happening,
            header: smp.header,
            path: DrPath::from_ports(ports).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{} ", self.time, self.client)?;
        if let Happening::Link { end, up } = self.happening {
            let way = if up { "up" } else { "down" };
            return write!(f, "link at node {} port {} is {way}", end.node, end.port);
        }
        let h = &self.header;
        write!(
            f,
            "{} {} {:#x} by {} tid {:#x}: ",
            h.method,
            h.attribute_id,
            h.attribute_modifier.get(),
            self.path,
            h.tid.get()
        )?;
        match self.happening {
            Happening::Sent => f.write_str("sent"),
            Happening::Reached(at) => write!(f, "reached node {} port {}", at.node, at.port),
            Happening::Delivered => f.write_str("delivered"),
            Happening::Lost(loss) => loss.fmt(f),
            Happening::Link { .. } => Ok(()),
        }
    }
}
