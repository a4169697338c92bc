//! Which of several managers rules (IBTA 14.4).

use std::collections::BTreeMap;

use ib_mad::Time;
use ib_mad::header::Method;
use ib_mad::id::{Guid, Lid};
use ib_mad::smp::{DrPath, PriorityState, SmControl, SmInfo, SmState, Smp};
use ib_mad::{Packet, header::MgmtClass};
use rdma_wire::{Be32, Be64};

use super::Event;
use super::engine::{Ask, Sm, Stage};

/// Another manager.
#[derive(Clone, Copy, Debug)]
struct Other {
    info: SmInfo,
    path: DrPath,
    port: u32,
}

/// The other managers.
#[derive(Debug)]
pub(super) struct Others {
    known: BTreeMap<Guid, Other>,
    /// Whom we wait for as a standby.
    master: Option<(Guid, DrPath)>,
    failures: u8,
    pub(super) next_poll: Time,
    /// Somebody hands over to us, and is to be told when it is done.
    hand_over_from: Option<Guid>,
}

impl Default for Others {
    fn default() -> Self {
        Self {
            known: BTreeMap::new(),
            master: None,
            failures: 0,
            next_poll: Time::FAR,
            hand_over_from: None,
        }
    }
}

impl Others {
    pub(super) fn master_path(&self) -> Option<DrPath> {
        self.master.map(|(_, path)| path)
    }

    pub(super) fn forget(&mut self, guid: Guid) {
        self.known.remove(&guid);
    }
}

impl Sm {
    /// What we say of ourselves.
    #[must_use]
    pub fn own_info(&self) -> SmInfo {
        let guid = self.topology.nodes.first().and_then(|node| {
            let number = if node.is_switch() {
                0
            } else {
                self.topology.local_port
            };
            self.topology.port_of(node, number).map(|it| it.guid)
        });
        SmInfo {
            guid: guid.unwrap_or_default(),
            sm_key: Be64::new(self.config.sm_key),
            act_count: Be32::new(self.act_count),
            priority_state: PriorityState::new()
                .with_priority(self.config.priority.min(15))
                .with_state(self.state.get()),
        }
    }

    /// Asks the managers at all ports that say to have one, or at those that are new.
    pub(super) fn ask_managers(&mut self, all: bool) {
        if self.config.ignore_others {
            return;
        }
        if all {
            self.others.known.clear();
        }
        let own = self.own_info().guid;
        let mut asks = Vec::new();
        for (at, port) in (0_u32..).zip(&self.topology.ports) {
            let manages = port.info.is_some_and(|it| it.capability_mask.sm());
            if manages && port.guid != own && (all || !self.others.known.contains_key(&port.guid)) {
                asks.push(Ask::Manager(at));
            }
        }
        self.asks.extend(asks);
    }

    /// A light sweep asks those that are known.
    pub(super) fn ask_known_managers(&mut self) {
        let ports: Vec<u32> = self.others.known.values().map(|it| it.port).collect();
        self.asks.extend(ports.into_iter().map(Ask::Manager));
    }

    pub(super) fn on_manager(&mut self, port: u32, info: &SmInfo) {
        let Some(path) = self.path_to(port) else {
            return;
        };
        let guid = info.guid;
        if guid == self.own_info().guid {
            return;
        }
        let other = Other {
            info: *info,
            path,
            port,
        };
        let old = self.others.known.insert(guid, other);
        let same = old.is_some_and(|it| it.info.priority_state == info.priority_state);
        if !same {
            self.events.push_back(Event::Other {
                guid,
                priority: info.priority(),
                state: info.state(),
            });
        }
    }

    /// After a walk: do we rule?
    pub(super) fn decide(&mut self, now: Time) {
        self.stage = Stage::Idle;
        if self.state == SmState::NOT_ACTIVE {
            return;
        }
        let own = self.own_info();
        if self.state == SmState::MASTER {
            if !self.settle_managers(now) {
                self.prepare(now);
            }
            return;
        }
        let handed_over = self.others.hand_over_from.is_some();
        let ruling = self.others.known.values().find(|it| {
            it.info.state() == SmState::MASTER && !(handed_over && own.outranks(&it.info))
        });
        let above = self
            .others
            .known
            .values()
            .filter(|it| it.info.state() != SmState::NOT_ACTIVE && it.info.outranks(&own))
            .max_by(|a, b| {
                if a.info.outranks(&b.info) {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Less
                }
            });
        match ruling.or(above).copied() {
            Some(other) => self.stand_by(now, &other),
            None => {
                self.set_state(SmState::MASTER);
                self.prepare(now);
            }
        }
    }

    fn set_state(&mut self, state: SmState) {
        if self.state != state {
            self.state = state;
            self.events.push_back(Event::State(state));
        }
    }

    fn stand_by(&mut self, now: Time, other: &Other) {
        self.asks.clear();
        self.rounds.clear();
        self.dirty.clear();
        self.full_wanted = false;
        self.was_up = false;
        self.stage = Stage::Idle;
        self.others.hand_over_from = None;
        self.others.master = Some((other.info.guid, other.path));
        self.others.failures = 0;
        self.others.next_poll = now + self.config.poll;
        self.set_state(SmState::STANDBY);
    }

    /// A master has asked the others: is there one that is to rule instead?
    pub(super) fn settle_managers(&mut self, _now: Time) -> bool {
        if self.state != SmState::MASTER || self.config.ignore_others {
            return false;
        }
        let own = self.own_info();
        let heir = self.others.known.values().find(|it| {
            let state = it.info.state();
            (state == SmState::STANDBY || state == SmState::MASTER) && it.info.outranks(&own)
        });
        let guid = heir.map(|it| it.info.guid);
        self.asks.extend(guid.map(Ask::HandOver));
        guid.is_some()
    }

    pub(super) fn hand_over_request(&self, guid: Guid) -> Option<Smp> {
        let other = self.others.known.get(&guid)?;
        let modifier = u32::from(SmControl::HANDOVER.get());
        Some(Smp::set(&other.path, modifier, &self.own_info()))
    }

    pub(super) fn on_handed_over(&mut self, now: Time, guid: Guid) {
        let Some(other) = self.others.known.get(&guid).copied() else {
            return;
        };
        self.events.push_back(Event::HandedOver { to: guid });
        self.stand_by(now, &other);
    }

    pub(super) fn acknowledge(&mut self) {
        if self.state == SmState::MASTER && self.others.hand_over_from.is_some() {
            self.asks.push_back(Ask::Acknowledge);
        }
    }

    pub(super) fn acknowledge_request(&self) -> Option<Smp> {
        let other = self.others.known.get(&self.others.hand_over_from?)?;
        let modifier = u32::from(SmControl::ACKNOWLEDGE.get());
        Some(Smp::set(&other.path, modifier, &self.own_info()))
    }

    pub(super) fn on_acknowledged(&mut self) {
        self.others.hand_over_from = None;
    }

    pub(super) fn on_poll(&mut self, now: Time, info: &SmInfo) {
        if self.state != SmState::STANDBY {
            return;
        }
        let same = self
            .others
            .master
            .is_some_and(|(guid, _)| guid == info.guid);
        // One that has just been handed over to is still finding out what there is.
        if same && (info.state() == SmState::MASTER || info.state() == SmState::DISCOVERING) {
            self.others.failures = 0;
        } else {
            self.on_poll_failed(now);
        }
    }

    pub(super) fn on_poll_failed(&mut self, _now: Time) {
        if self.state != SmState::STANDBY {
            return;
        }
        self.others.failures = self.others.failures.saturating_add(1);
        if self.others.failures >= self.config.poll_failures.max(1) {
            let failures = self.others.failures;
            self.events.push_back(Event::MasterLost { failures });
            self.others.failures = 0;
            self.discover();
        }
    }

    /// Begins anew.
    fn discover(&mut self) {
        self.set_state(SmState::DISCOVERING);
        self.others.master = None;
        self.others.next_poll = Time::FAR;
        self.full_wanted = true;
        self.hold_until = Time::ZERO;
    }

    /// Somebody asks for, or sets, SMInfo.
    pub(super) fn on_sm_info_request(&mut self, now: Time, packet: &Packet) {
        let smp = packet.smp();
        let control = u8::try_from(smp.header.attribute_modifier.get()).map(SmControl::new);
        let before = self.state;
        if smp.header.method == Method::SET {
            let from = smp.attribute::<SmInfo>().guid;
            match (control.unwrap_or(SmControl::new(0)), self.state) {
                (SmControl::HANDOVER, SmState::STANDBY) => {
                    self.discover();
                    self.others.hand_over_from = Some(from);
                }
                (SmControl::HANDOVER, SmState::MASTER) => self.full_wanted = true,
                (SmControl::DISABLE, SmState::STANDBY) => self.set_state(SmState::NOT_ACTIVE),
                (SmControl::STANDBY, SmState::NOT_ACTIVE) => {
                    self.set_state(SmState::STANDBY);
                    self.others.next_poll = now + self.config.poll;
                }
                (SmControl::DISCOVER, SmState::STANDBY) => self.discover(),
                _ => {}
            }
        }
        let mut info = self.own_info();
        if before == SmState::STANDBY && self.state == SmState::DISCOVERING {
            // The one that hands over wants to hear that it was understood, from a standby.
            info.priority_state.set_state(before.get());
        }
        let answer = smp.answer(&info);
        let directed = smp.header.mgmt_class == MgmtClass::SUBN_DR;
        let to = if directed {
            Lid::PERMISSIVE
        } else {
            packet.address.lid
        };
        self.post(&answer, to);
    }
}
