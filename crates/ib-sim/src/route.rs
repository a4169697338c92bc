//! The ways of packets: directed routes, forwarding tables, and back.

use ib_mad::header::MgmtClass;
use ib_mad::id::Lid;
use ib_mad::smp::{MAX_HOPS, Smp};
use ib_mad::{Packet, port::Address};

use crate::fabric::Fabric;
use crate::topo::Peer;
use crate::trace::Loss;

/// Switches that a packet may pass by its LID before it goes in circles.
const MAX_SWITCHES: u32 = 64;

/// Where a packet ends, and how far that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Way {
    /// The node, and the port by which it comes in; 0 where it comes from a switch itself.
    pub(crate) to: Peer,
    /// Cables on the way.
    pub(crate) hops: u32,
}

impl Fabric {
    /// The way of a packet that a program at `from` sends. Fills in the return path.
    pub(crate) fn way_out(&self, from: Peer, packet: &mut Packet) -> Result<Way, Loss> {
        let header = packet.header();
        if header.mgmt_class != MgmtClass::SUBN_DR {
            return self.by_lid(from, packet.address.lid);
        }
        if header.method.is_response() {
            return self.directed_back(from, packet.smp());
        }
        let lid = packet.address.lid;
        self.directed_out(from, lid, bytemuck::must_cast_mut(&mut packet.mad))
    }

    /// The way of an answer from a node to the program at `home`.
    pub(crate) fn way_back(&self, at: Peer, home: Peer, packet: &mut Packet) -> Result<Way, Loss> {
        if packet.header().mgmt_class == MgmtClass::SUBN_DR {
            let way = self.directed_back(at, packet.smp())?;
            let arrived = way.to.node == home.node;
            packet.address = Address::DIRECTED;
            return if arrived { Ok(way) } else { Err(Loss::Route) };
        }
        let asked = packet.address.lid;
        packet.address.lid = if asked == Lid::PERMISSIVE {
            self.lids(at).0
        } else {
            asked
        };
        if at.node == home.node {
            return Ok(Way { to: home, hops: 0 });
        }
        let way = self.by_lid(self.speaking(at), self.lids(home).0)?;
        if way.to.node == home.node {
            Ok(way)
        } else {
            Err(Loss::Route)
        }
    }

    /// The port that a node's agent sends from: port 0 of a switch.
    fn speaking(&self, at: Peer) -> Peer {
        let switch = self.nodes.get(at.node).is_some_and(|n| n.switch.is_some());
        if switch { Peer { port: 0, ..at } } else { at }
    }

    pub(crate) fn is_switch(&self, node: usize) -> bool {
        self.nodes.get(node).is_some_and(|n| n.switch.is_some())
    }

    /// Over the cable at this port.
    fn cross(&self, end: Peer) -> Result<Peer, Loss> {
        let up = |end| self.port(end).is_some_and(|p| p.is_up());
        match self.port(end).and_then(|p| p.peer) {
            Some(far) if end.port != 0 && up(end) && up(far) => Ok(far),
            _ => Err(Loss::LinkDown(end)),
        }
    }

    /// A directed route (IBTA 14.2.2), after a part by LID where DrSLID is not permissive. One that
    /// ends with a part by LID is not simulated: nothing sends such.
    fn directed_out(&self, from: Peer, lid: Lid, smp: &mut Smp) -> Result<Way, Loss> {
        let [pointer, count] = smp.header.class_specific.get().to_be_bytes();
        let ends_by_lid = smp.dr_dlid != Lid::PERMISSIVE;
        if pointer != 0 || count > MAX_HOPS || smp.header.status.get() & 0x8000 != 0 || ends_by_lid
        {
            return Err(Loss::Route);
        }
        let mut way = Way { to: from, hops: 0 };
        if smp.dr_slid != Lid::PERMISSIVE {
            way = self.by_lid(from, lid)?;
        }
        for hop in 1..=usize::from(count) {
            let port = smp.initial_path.get(hop).copied().unwrap_or(0);
            let switch = self.is_switch(way.to.node);
            // A CA sends by the port that the program sits at, and passes nothing on.
            if !switch && (hop > 1 || port != way.to.port) {
                return Err(Loss::Route);
            }
            way.to = self.cross(Peer {
                node: way.to.node,
                port,
            })?;
            way.hops += 1;
            if let Some(entry) = smp.return_path.get_mut(hop) {
                *entry = way.to.port;
            }
        }
        Ok(way)
    }

    /// The way back of an answer, by the return path.
    fn directed_back(&self, at: Peer, smp: &Smp) -> Result<Way, Loss> {
        let [_, count] = smp.header.class_specific.get().to_be_bytes();
        let mut way = Way { to: at, hops: 0 };
        for hop in (1..=usize::from(count)).rev() {
            let port = smp.return_path.get(hop).copied().ok_or(Loss::Route)?;
            if hop < usize::from(count) && !self.is_switch(way.to.node) {
                return Err(Loss::Route);
            }
            way.to = self.cross(Peer {
                node: way.to.node,
                port,
            })?;
            way.hops += 1;
        }
        if smp.dr_slid != Lid::PERMISSIVE {
            let rest = self.by_lid(self.speaking(way.to), smp.dr_slid)?;
            way = Way {
                to: rest.to,
                hops: way.hops + rest.hops,
            };
        }
        Ok(way)
    }

    /// The way by forwarding tables.
    pub(crate) fn by_lid(&self, from: Peer, lid: Lid) -> Result<Way, Loss> {
        let mut way = Way { to: from, hops: 0 };
        let owns = |at: Peer| {
            self.port(self.speaking(at))
                .is_some_and(|p| p.has_lid(lid.get()))
        };
        if owns(from) {
            return Ok(way);
        }
        let no_entry = |node| Loss::NoEntry { node, lid };
        if !self.is_switch(from.node) {
            way = Way {
                to: self.cross(from)?,
                hops: 1,
            };
        }
        for _ in 0..MAX_SWITCHES {
            if owns(way.to) {
                return Ok(way);
            }
            let switch = self
                .nodes
                .get(way.to.node)
                .and_then(|n| n.switch.as_ref())
                .ok_or_else(|| no_entry(way.to.node))?;
            let out = switch
                .lft
                .get(usize::from(lid.get()))
                .copied()
                .unwrap_or(0xff);
            if out == 0xff || lid.get() > switch.info.linear_fdb_top.get() {
                return Err(no_entry(way.to.node));
            }
            if out == 0 {
                return Ok(way);
            }
            way = Way {
                to: self.cross(Peer {
                    node: way.to.node,
                    port: out,
                })?,
                hops: way.hops + 1,
            };
        }
        Err(Loss::Circle)
    }
}
