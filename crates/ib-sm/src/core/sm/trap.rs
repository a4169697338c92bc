//! What agents tell unasked.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::header::{AttributeId, Method, MgmtClass};
use ib_mad::id::Guid;
use ib_mad::smp::{LocalChangeDetails, Notice, PortDetails, SmState, Smp, TrapNumber};
use ib_mad::{Packet, Time};
use rdma_wire::Be16;

use super::Event;
use super::engine::{Ask, Sm};
use super::plan::Step;

/// The same trap is heeded so often within [`WINDOW`].
const HEEDED: u32 = 10;
/// Somebody that repeats it so often may be silenced.
const BABBLE: u32 = 250;
const WINDOW: Duration = Duration::from_secs(5);
/// Traps that are told apart; more than that are not from a healthy fabric.
const MOST: usize = 4096;

/// How often which trap has come.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    seen: BTreeMap<(u16, u16, u8), (Time, u32)>,
}

impl Tracker {
    /// How often it has come within the window, this time too.
    fn count(&mut self, now: Time, key: (u16, u16, u8)) -> u32 {
        if self.seen.len() >= MOST && !self.seen.contains_key(&key) {
            self.seen.retain(|_, (since, _)| now.since(*since) < WINDOW);
            if self.seen.len() >= MOST {
                return HEEDED + 1;
            }
        }
        let entry = self.seen.entry(key).or_insert((now, 0));
        if now.since(entry.0) >= WINDOW {
            *entry = (now, 0);
        }
        entry.1 = entry.1.saturating_add(1);
        entry.1
    }
}

impl Sm {
    /// Takes a packet that is no answer.
    pub(super) fn handle_request(&mut self, now: Time, packet: &Packet) {
        let header = packet.header();
        let class = header.mgmt_class;
        if class != MgmtClass::SUBN_DR && class != MgmtClass::SUBN_LID {
            return;
        }
        match (header.method, header.attribute_id) {
            (Method::GET | Method::SET, AttributeId::SM_INFO) => {
                self.on_sm_info_request(now, packet);
            }
            (Method::TRAP, AttributeId::NOTICE) => self.on_trap(now, packet),
            _ => {}
        }
    }

    fn on_trap(&mut self, now: Time, packet: &Packet) {
        if self.state != SmState::MASTER {
            return;
        }
        let smp = packet.smp();
        let notice: Notice = *smp.attribute();
        self.repress(packet, smp);
        if !notice.kind.generic() {
            return;
        }
        let (lid, port) = match notice.trap {
            TrapNumber::LINK_INTEGRITY | TrapNumber::BUFFER_OVERRUN | TrapNumber::FLOW_CONTROL => {
                let details: &PortDetails = notice.details();
                (details.lid.get(), details.port)
            }
            TrapNumber::LOCAL_CHANGES | TrapNumber::SYSTEM_IMAGE_GUID => {
                (notice.details::<LocalChangeDetails>().lid.get(), 0)
            }
            _ => (notice.issuer.get(), 0),
        };
        // One that told before it had a LID.
        let lid = if lid == 0 { notice.issuer.get() } else { lid };
        let count = self.traps.count(now, (lid, notice.trap.get(), port));
        let node = self.node_of_lid(lid);
        if count <= HEEDED {
            self.events.push_back(Event::Trap {
                trap: notice.trap,
                lid,
                node,
                port,
            });
        }
        if count == HEEDED + 1 || count == BABBLE {
            let trap = notice.trap;
            self.events.push_back(Event::Babbling { lid, trap, port });
            let at = node.and_then(|guid| self.place_of(guid, port));
            if count == BABBLE
                && self.config.disable_babbling
                && let Some(at) = at
            {
                self.asks.push_back(Ask::Step(Step::Disable(at)));
            }
        }
        if count > HEEDED {
            return;
        }
        let Some(guid) = node else {
            // Somebody whose LID we have not given, or do not know any more.
            self.want_full(now);
            return;
        };
        match notice.trap {
            TrapNumber::LINK_STATE | TrapNumber::LOCAL_CHANGES | TrapNumber::SYSTEM_IMAGE_GUID => {
                self.want_look(now, guid);
            }
            TrapNumber::LINK_INTEGRITY | TrapNumber::BUFFER_OVERRUN | TrapNumber::FLOW_CONTROL
                // It is not once that a cable fails, it goes on failing.
                if count == HEEDED && self.avoid.insert((guid, port)) =>
            {
                self.events
                    .push_back(Event::Unhealthy { switch: guid, port });
                self.want_look(now, guid);
            }
            _ => {}
        }
    }

    fn want_look(&mut self, now: Time, guid: Guid) {
        if self.dirty.is_empty() {
            self.hold_until = self.hold_until.max(now + self.config.settle);
        }
        self.dirty.insert(guid);
    }

    fn want_full(&mut self, now: Time) {
        if !self.full_wanted {
            self.full_wanted = true;
            self.hold_until = self.hold_until.max(now + self.config.settle);
        }
    }

    fn node_of_lid(&self, lid: u16) -> Option<Guid> {
        use crate::routing::Owner;
        match self.routed.fabric.owner(lid)? {
            Owner::Switch(switch) => Some(self.routed.fabric.switches().get(switch as usize)?.guid),
            Owner::End(end) => Some(self.routed.fabric.ends().get(end as usize)?.node_guid),
        }
    }

    fn place_of(&self, guid: Guid, number: u8) -> Option<u32> {
        let node = self.topology.node(self.topology.find(guid)?)?;
        let port = self.topology.port_of(node, number)?;
        Some(self.topology.index_of(node, port)?.0)
    }

    /// Tells the agent that its trap has been heard.
    fn repress(&mut self, packet: &Packet, smp: &Smp) {
        let mut answer = *smp;
        answer.header.method = Method::TRAP_REPRESS;
        answer.header.status = Be16::ZERO;
        self.post(&answer, packet.address.lid);
    }
}
