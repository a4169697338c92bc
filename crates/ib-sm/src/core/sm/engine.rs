//! The state machine: what is asked, and what comes next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_mad::client::{Client, Event as Answer};
use ib_mad::header::AttributeId;
use ib_mad::id::{Guid, Lid};
use ib_mad::smp::{DrPath, NodeInfo, PortInfo, SmState, Smp, SwitchInfo};
use ib_mad::{Packet, Time};
use rdma_wire::Be64;

use crate::core::discovery::{Discovery, Warning, WarningKind};
use crate::core::topology::{Node, Port, PortIndex, Topology};
use crate::routing::{BLOCK, Engine, NO_PORT, Tables};

use super::decide::Others;
use super::lid::LidMap;
use super::model::{Routed, Spot};
use super::plan::Step;
use super::rescan::Rescan;
use super::trap::Tracker;
use super::{Config, Event, Reason, Work};

/// What a request was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Who manages there? By port.
    Manager(u32),
    /// Is the master alive?
    Poll,
    /// Take over. By GUID.
    HandOver(Guid),
    /// We have taken over.
    Acknowledge,
    /// A light sweep: has anything changed? By node.
    Check(u32),
    /// A rescan: what does the switch say? By node.
    Switch(u32),
    /// A rescan: the change is noted. By node.
    Clear(u32),
    /// A rescan: how is the port? Reached by the port `via`, or as usual.
    Look { port: u32, via: Option<u32> },
    /// A rescan: who is behind the port?
    Behind(u32),
    /// What does the switch hold?
    Read { node: u32, block: u16 },
    /// A write.
    Step(Step),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Idle,
    Walk,
    Managers,
    Light,
    Rescan,
    Read,
    Write,
    Activate,
}

/// What a switch is known to hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    pub lft: Vec<u8>,
    /// By block: `lft` is what the switch holds.
    pub known: Vec<bool>,
}

impl Held {
    pub(super) fn is_known(&self, block: u16) -> bool {
        self.known.get(usize::from(block)).copied().unwrap_or(false)
    }

    /// What stands in a block; no ways where that is not known.
    pub(super) fn block(&self, block: u16) -> [u8; BLOCK] {
        let mut entries = [NO_PORT; BLOCK];
        let from = usize::from(block) * BLOCK;
        let row = self.lft.get(from..from + BLOCK).unwrap_or(&[]);
        if self.is_known(block) {
            for (to, from) in entries.iter_mut().zip(row) {
                *to = *from;
            }
        }
        entries
    }

    pub(super) fn set(&mut self, block: u16, entries: &[u8; BLOCK]) {
        let from = usize::from(block) * BLOCK;
        if self.lft.len() < from + BLOCK {
            self.lft.resize(from + BLOCK, NO_PORT);
            self.known.resize(usize::from(block) + 1, false);
        }
        if let Some(row) = self.lft.get_mut(from..from + BLOCK) {
            row.copy_from_slice(entries);
        }
        if let Some(known) = self.known.get_mut(usize::from(block)) {
            *known = true;
        }
    }

    pub(super) fn forget(&mut self, block: u16) {
        if let Some(known) = self.known.get_mut(usize::from(block)) {
            *known = false;
        }
    }
}

/// The subnet manager. See the [module](super).
pub struct Sm {
    pub(super) config: Config,
    pub(super) router: &'static dyn Engine,
    pub(super) client: Client<Ask>,
    pub(super) walk: Option<Box<Discovery>>,
    /// The cable that the walk goes beyond; none: a walk of everything.
    pub(super) walk_from: Option<Spot>,
    walks: u16,
    pub(super) stage: Stage,
    pub(super) state: SmState,
    pub(super) topology: Topology,
    pub(super) lids: LidMap,
    /// Base LIDs by port.
    pub(super) port_lids: Vec<u16>,
    pub(super) routed: Routed,
    pub(super) tables: Option<Tables>,
    pub(super) held: BTreeMap<Guid, Held>,
    pub(super) avoid: BTreeSet<Spot>,
    /// Settings that a port does not take: what it was sent last.
    pub(super) settled: BTreeMap<Spot, PortInfo>,
    /// Requests of this stage that have not been sent.
    pub(super) asks: VecDeque<Ask>,
    pub(super) rounds: VecDeque<Vec<Step>>,
    pub(super) rescan: Rescan,
    pub(super) others: Others,
    pub(super) traps: Tracker,
    /// Switches to be looked at.
    pub(super) dirty: BTreeSet<Guid>,
    pub(super) full_wanted: bool,
    /// Nothing is begun before.
    pub(super) hold_until: Time,
    pub(super) next_light: Time,
    pub(super) next_full: Time,
    /// Failures of whole sweeps in a row.
    pub(super) setbacks: u8,
    pub(super) outbox: VecDeque<Packet>,
    pub(super) events: VecDeque<Event>,
    pub(super) work: Work,
    pub(super) began: Time,
    sent_before: u64,
    pub(super) sent: u64,
    pub(super) act_count: u32,
    pub(super) was_up: bool,
    /// Walks in a row in which somebody did not tell all of itself.
    pub(super) gaps: u8,
    /// When that is asked for again, by another walk.
    pub(super) gaps_again: Time,
}

impl core::fmt::Debug for Sm {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sm")
            .field("state", &self.state)
            .field("stage", &self.stage)
            .field("nodes", &self.topology.nodes.len())
            .finish_non_exhaustive()
    }
}

const NO_WORK: Work = Work {
    reason: Reason::Full,
    nodes: 0,
    switches: 0,
    top_lid: 0,
    sent: 0,
    ports: 0,
    read: 0,
    blocks: 0,
    scrubbed: 0,
    activated: 0,
    failed: 0,
    looking: core::time::Duration::ZERO,
    total: core::time::Duration::ZERO,
};

impl Sm {
    /// A manager that begins with a full sweep. `lids` is what an earlier one remembered.
    #[must_use]
    pub fn new(config: Config, router: &'static dyn Engine, lids: LidMap) -> Self {
        Self {
            client: Client::new(config.client()),
            router,
            walk: None,
            walk_from: None,
            walks: 0,
            stage: Stage::Idle,
            state: SmState::DISCOVERING,
            topology: empty(),
            lids,
            port_lids: Vec::new(),
            routed: Routed::default(),
            tables: None,
            held: BTreeMap::new(),
            avoid: BTreeSet::new(),
            settled: BTreeMap::new(),
            asks: VecDeque::new(),
            rounds: VecDeque::new(),
            rescan: Rescan::default(),
            others: Others::default(),
            traps: Tracker::default(),
            dirty: BTreeSet::new(),
            full_wanted: true,
            hold_until: Time::ZERO,
            next_light: Time::FAR,
            next_full: Time::FAR,
            setbacks: 0,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
            work: NO_WORK,
            began: Time::ZERO,
            sent_before: 0,
            sent: 0,
            act_count: 0,
            was_up: false,
            gaps: 0,
            gaps_again: Time::FAR,
            config,
        }
    }

    /// Master, standby, discovering or not active.
    #[must_use]
    pub const fn state(&self) -> SmState {
        self.state
    }

    /// The fabric as it is known.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// What is to be remembered.
    #[must_use]
    pub const fn lids(&self) -> &LidMap {
        &self.lids
    }

    /// The tables that are, or are being, written, with the fabric that they are for.
    #[must_use]
    pub fn tables(&self) -> Option<(&crate::routing::Fabric, &Tables)> {
        Some((&self.routed.fabric, self.tables.as_ref()?))
    }

    /// What a port's base LID is or will be.
    #[must_use]
    pub fn lid_of(&self, port: PortIndex) -> u16 {
        self.port_lids.get(port.get()).copied().unwrap_or(0)
    }

    /// Packets sent so far.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether nothing is being done and nothing waits to be.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
            && !self.full_wanted
            && self.dirty.is_empty()
            && self.outbox.is_empty()
            && self.client.is_idle()
    }

    /// Whether the subnet has been brought up, and nothing has to be done.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.was_up && self.state == SmState::MASTER && self.is_idle()
    }

    /// Looks at everything anew, and reads back what switches hold instead of trusting what was
    /// written.
    pub fn sweep(&mut self) {
        self.full_wanted = true;
        self.held.clear();
    }

    /// Changes the priority. Other managers are told when they ask.
    pub fn set_priority(&mut self, priority: u8) {
        self.config.priority = priority.min(15);
    }

    /// What has happened. Call until it gives none.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes a packet that came in.
    pub fn handle_mad(&mut self, now: Time, packet: &Packet) {
        let is_request = packet.delivery == ib_mad::port::Delivery::Received
            && !packet.header().method.is_response();
        if is_request {
            self.handle_request(now, packet);
        } else if let Some(walk) = &mut self.walk {
            walk.handle_mad(now, packet);
        } else {
            self.client.handle_mad(now, packet);
        }
        self.pump(now);
    }

    /// Call when [`poll_timeout`](Self::poll_timeout) has come, and once in the beginning.
    pub fn handle_timeout(&mut self, now: Time) {
        if let Some(walk) = &mut self.walk {
            walk.handle_timeout(now);
        }
        self.client.handle_timeout(now);
        self.pump(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let walk = self.walk.as_ref().and_then(|it| it.poll_timeout());
        let client = self.client.poll_timeout();
        let own = if self.stage == Stage::Idle {
            let begin = if self.full_wanted || !self.dirty.is_empty() {
                self.hold_until
            } else {
                Time::FAR
            };
            let next = match self.state {
                SmState::MASTER => {
                    let sweep = self.next_light.min(self.next_full);
                    begin.min(sweep).min(self.gaps_again)
                }
                SmState::STANDBY => self.others.next_poll,
                SmState::DISCOVERING => begin,
                _ => Time::FAR,
            };
            Some(next).filter(|it| *it != Time::FAR)
        } else {
            None
        };
        [walk, client, own].into_iter().flatten().min()
    }

    /// The next packet to be sent. Call until it gives none; then poll events, wait for a packet or
    /// for [`poll_timeout`](Self::poll_timeout), and hand it over.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        let packet = self.next_packet(now);
        if packet.is_some() {
            self.sent += 1;
            self.act_count = self.act_count.wrapping_add(1);
        }
        packet
    }

    fn next_packet(&mut self, now: Time) -> Option<Packet> {
        if let Some(packet) = self.outbox.pop_front() {
            return Some(packet);
        }
        if let Some(walk) = &mut self.walk {
            return walk.poll_transmit(now);
        }
        loop {
            if let Some(packet) = self.client.poll_transmit(now) {
                return Some(packet);
            }
            if self.client.in_flight() >= self.client.config().window {
                return None;
            }
            let ask = self.asks.pop_front()?;
            if let Some(smp) = self.request(&ask) {
                let smp = smp.with_m_key(self.config.ports.m_key);
                self.client
                    .submit(ask, Packet::directed(&smp, self.config.timeout));
            } else if self.asks.is_empty() && self.client.is_idle() {
                // All that was left had become needless.
                self.pump(now);
            }
        }
    }

    pub(super) fn node(&self, node: u32) -> Option<&Node> {
        self.topology.nodes.get(node as usize)
    }

    pub(super) fn port(&self, port: u32) -> Option<&Port> {
        self.topology.ports.get(port as usize)
    }

    pub(super) fn spot(&self, port: u32) -> Option<Spot> {
        let port = self.port(port)?;
        Some((self.topology.node(port.node)?.guid(), port.number))
    }

    /// The way to the agent of a port.
    pub(super) fn path_to(&self, port: u32) -> Option<DrPath> {
        let it = self.port(port)?;
        let node = self.topology.node(it.node)?;
        let is_local = it.node.get() == 0 && it.number == self.topology.local_port;
        if node.is_switch() || is_local {
            return Some(node.path);
        }
        let (near, out) = self.topology.peer_of(it)?;
        near.path.extended(out.number).ok()
    }

    fn request(&self, ask: &Ask) -> Option<Smp> {
        let get = |path: &DrPath, attribute, modifier| Some(Smp::get(path, attribute, modifier));
        match *ask {
            Ask::Manager(port) => get(&self.path_to(port)?, AttributeId::SM_INFO, 0),
            Ask::Poll => get(&self.others.master_path()?, AttributeId::SM_INFO, 0),
            Ask::HandOver(guid) => self.hand_over_request(guid),
            Ask::Acknowledge => self.acknowledge_request(),
            Ask::Check(node) | Ask::Switch(node) => {
                get(&self.node(node)?.path, AttributeId::SWITCH_INFO, 0)
            }
            Ask::Clear(node) => {
                let node = self.node(node)?;
                let mut info = node.switch?;
                info.life.set_port_state_change(true);
                Some(Smp::set(&node.path, 0, &info))
            }
            Ask::Look { port, via } => {
                let path = match via {
                    None => self.path_to(port)?,
                    Some(via) => {
                        let via = self.port(via)?;
                        let node = self.topology.node(via.node)?;
                        node.path.extended(via.number).ok()?
                    }
                };
                let number = self.port(port)?.number;
                get(&path, AttributeId::PORT_INFO, u32::from(number))
            }
            Ask::Behind(port) => {
                let port = self.port(port)?;
                let path = self.topology.node(port.node)?.path;
                get(&path.extended(port.number).ok()?, AttributeId::NODE_INFO, 0)
            }
            Ask::Read { node, block } => get(
                &self.node(node)?.path,
                AttributeId::LINEAR_FORWARDING,
                u32::from(block),
            ),
            Ask::Step(ref step) => self.step_request(step),
        }
    }

    /// Goes on as far as possible.
    pub(super) fn pump(&mut self, now: Time) {
        // Every turn either ends or begins a stage; a bound, should that ever be wrong.
        for _ in 0..64 {
            self.digest(now);
            let is_over = match &self.walk {
                Some(walk) => walk.is_done(),
                None => self.asks.is_empty() && self.client.is_idle(),
            };
            if !is_over {
                return;
            }
            let before = self.stage;
            self.advance(now);
            if self.stage == before && before == Stage::Idle {
                return;
            }
        }
    }

    fn advance(&mut self, now: Time) {
        match self.stage {
            Stage::Idle => self.begin(now),
            Stage::Walk => self.walked(now),
            Stage::Managers => self.decide(now),
            Stage::Light => self.light_done(now),
            Stage::Rescan => self.rescanned(now),
            Stage::Read => self.plan(now),
            Stage::Write => self.next_round(now),
            Stage::Activate => self.finish(now),
        }
    }

    /// Nothing is being done: is there something to do?
    fn begin(&mut self, now: Time) {
        match self.state {
            SmState::MASTER => {
                if now >= self.next_full {
                    self.sweep();
                }
                if now >= self.gaps_again {
                    self.gaps_again = Time::FAR;
                    self.full_wanted = true;
                }
                let wanted = self.full_wanted || !self.dirty.is_empty();
                if wanted && now >= self.hold_until {
                    if self.full_wanted {
                        self.begin_full(now);
                    } else {
                        self.begin_rescan(now);
                    }
                } else if now >= self.next_light {
                    self.begin_light(now);
                }
            }
            SmState::DISCOVERING if self.full_wanted && now >= self.hold_until => {
                self.begin_full(now);
            }
            SmState::STANDBY if now >= self.others.next_poll => {
                self.others.next_poll = now + self.config.poll;
                self.asks.push_back(Ask::Poll);
            }
            _ => {}
        }
    }

    pub(super) fn start_work(&mut self, now: Time, reason: Reason) {
        self.work = Work { reason, ..NO_WORK };
        self.began = now;
        self.sent_before = self.sent;
        self.events.push_back(Event::Sweep(reason));
    }

    fn begin_full(&mut self, now: Time) {
        self.full_wanted = false;
        self.dirty.clear();
        self.start_work(now, Reason::Full);
        self.start_walk(None, DrPath::LOCAL, BTreeSet::new());
    }

    pub(super) fn start_walk(
        &mut self,
        from: Option<Spot>,
        start: DrPath,
        boundary: BTreeSet<Guid>,
    ) {
        self.walks = self.walks.wrapping_add(0x100) & 0x7f00;
        let config = self.config.walk(self.walks);
        self.walk_from = from;
        self.walk = Some(Box::new(Discovery::beyond(config, start, boundary)));
        self.stage = Stage::Walk;
    }

    fn walked(&mut self, now: Time) {
        let Some(walk) = self.walk.take() else {
            self.stage = Stage::Idle;
            return;
        };
        let found = walk.finish();
        if let Some(from) = self.walk_from.take() {
            self.walked_beyond(now, from, found.ok());
            return;
        }
        let Ok(found) = found else {
            self.events.push_back(Event::LocalSilent);
            self.set_back(now);
            return;
        };
        self.gaps_again = Time::FAR;
        if !self.note_gaps(now, &found.warnings) {
            self.gaps = 0;
        }
        for warning in found.warnings {
            self.events.push_back(Event::Warning(warning));
        }
        if !found.complete {
            self.full_wanted = true;
        }
        self.topology = super::model::rebuild(&found.topology, None, &[]);
        self.check_held();
        self.found(now, true);
    }

    /// Whether somebody in a walk did not tell all of itself. Then there is another walk, later and
    /// later.
    pub(super) fn note_gaps(&mut self, now: Time, warnings: &[Warning]) -> bool {
        let gap = |it: &Warning| matches!(it.kind, WarningKind::NoAnswer { .. });
        let found = warnings.iter().any(gap);
        if let Some(every) = self.config.light_sweep.filter(|_| found) {
            self.gaps_again = now + every * (1 << self.gaps.min(6));
            self.gaps = self.gaps.saturating_add(1);
        }
        found
    }

    /// What switches say of themselves may show that they forgot what was written.
    fn check_held(&mut self) {
        let Some(tables) = &self.tables else {
            self.held.clear();
            return;
        };
        let top = tables.top_lid();
        let held = &mut self.held;
        let mut present = BTreeSet::new();
        for node in self.topology.nodes.iter().filter(|it| it.is_switch()) {
            present.insert(node.guid());
            // The LID goes with the tables; see also the rescan.
            let zero = self.topology.ports_of(node).first();
            let own = zero.and_then(|it| it.info);
            let given = zero
                .and_then(|it| self.lids.get(it.guid))
                .map_or(0, |it| it.0);
            let same = node.switch.is_some_and(|it| it.linear_fdb_top.get() == top)
                && own.is_none_or(|it| it.lid.get() == given);
            if !same && held.remove(&node.guid()).is_some() {
                self.events.push_back(Event::Forgot {
                    switch: node.guid(),
                });
            }
        }
        held.retain(|guid, _| present.contains(guid));
    }

    /// It is known what there is: who manages?
    pub(super) fn found(&mut self, now: Time, all: bool) {
        self.work.looking = now.since(self.began);
        let switches = self.topology.nodes.iter().filter(|it| it.is_switch());
        self.events.push_back(Event::Found {
            nodes: self.topology.nodes.len(),
            switches: switches.count(),
            ports: self.topology.ports.len(),
        });
        self.ask_managers(all);
        self.stage = Stage::Managers;
    }

    /// A sweep came to nothing: wait, and try again.
    pub(super) fn set_back(&mut self, now: Time) {
        self.asks.clear();
        self.rounds.clear();
        self.stage = Stage::Idle;
        self.full_wanted = true;
        let wait = self.config.again * (1 << self.setbacks.min(6));
        self.setbacks = self.setbacks.saturating_add(1);
        self.hold_until = now + wait;
    }

    pub(super) fn finish(&mut self, now: Time) {
        self.stage = Stage::Idle;
        self.work.nodes = self.topology.nodes.len();
        self.work.switches = self.routed.nodes.len();
        self.work.top_lid = self.tables.as_ref().map_or(0, Tables::top_lid);
        self.work.sent = self.sent - self.sent_before;
        self.work.total = now.since(self.began);
        let light = self.config.light_sweep.map_or(Time::FAR, |it| now + it);
        // Somebody who tells again and again must not keep the others from being asked.
        self.next_light = match self.work.reason {
            Reason::Full => light,
            Reason::Change { .. } => light.min(self.next_light),
        };
        if self.work.reason == Reason::Full {
            self.next_full = self.config.full_sweep.map_or(Time::FAR, |it| now + it);
        }
        if self.work.failed > 0 {
            // What failed is found by looking again.
            self.set_back(now);
        } else {
            self.setbacks = 0;
            self.was_up = true;
            self.events.push_back(Event::Up(self.work));
        }
        self.acknowledge();
    }

    fn digest(&mut self, now: Time) {
        while let Some(answer) = self.client.poll_event() {
            match answer {
                Answer::Response { token, mad, .. } => {
                    let smp = Smp::from_bytes(&mad);
                    let status = smp.status();
                    if status.is_ok() {
                        self.answered(now, token, smp);
                    } else {
                        self.failed(now, &token, Some(status.get()));
                    }
                }
                Answer::Failed { token, .. } => self.failed(now, &token, None),
                _ => {}
            }
        }
    }

    fn answered(&mut self, now: Time, ask: Ask, smp: &Smp) {
        match ask {
            Ask::Manager(port) => self.on_manager(port, smp.attribute()),
            Ask::Poll => self.on_poll(now, smp.attribute()),
            Ask::HandOver(guid) => self.on_handed_over(now, guid),
            Ask::Acknowledge => self.on_acknowledged(),
            Ask::Check(node) => self.on_check(node, smp.attribute()),
            Ask::Switch(node) => self.on_switch(node, smp.attribute()),
            Ask::Clear(node) => self.on_clear(node, smp.attribute::<SwitchInfo>()),
            Ask::Look { port, .. } => self.on_look(port, smp.attribute::<PortInfo>()),
            Ask::Behind(port) => self.on_behind(port, smp.attribute::<NodeInfo>()),
            Ask::Read { node, block } => {
                self.work.read += 1;
                if let Some(guid) = self.node(node).map(Node::guid) {
                    self.held.entry(guid).or_default().set(block, &smp.data);
                }
            }
            Ask::Step(step) => self.on_step(&step, smp),
        }
    }

    fn failed(&mut self, now: Time, ask: &Ask, status: Option<u16>) {
        match *ask {
            // Nobody there, then.
            Ask::Manager(_) => {}
            Ask::Acknowledge => self.on_acknowledged(),
            Ask::Poll => self.on_poll_failed(now),
            Ask::HandOver(guid) => {
                // Then it is ours to rule, as before.
                self.others.forget(guid);
                self.full_wanted = true;
            }
            Ask::Check(node) | Ask::Switch(node) | Ask::Clear(node) => {
                self.on_switch_failed(node, status);
            }
            Ask::Look { port, .. } => self.on_look_failed(port, status),
            Ask::Behind(port) => self.on_behind_failed(port),
            // It is written blindly.
            Ask::Read { node, .. } => {
                let node = self.node(node).map(Node::guid).unwrap_or_default();
                self.tell_failure(node, "reading a forwarding table", status);
            }
            Ask::Step(ref step) => self.on_step_failed(step, status),
        }
    }

    pub(super) fn tell_failure(&mut self, node: Guid, what: &'static str, status: Option<u16>) {
        self.events.push_back(Event::Failed { node, what, status });
    }

    /// Answers a request in the place of the agent, or sends something that nobody answers.
    pub(super) fn post(&mut self, smp: &Smp, to: Lid) {
        let mut packet = Packet::directed(smp, core::time::Duration::ZERO);
        packet.address.lid = to;
        packet.header_mut().tid = Be64::new(smp.header.tid.get());
        self.outbox.push_back(packet);
    }
}

/// Nothing is known yet.
const fn empty() -> Topology {
    Topology {
        nodes: Vec::new(),
        ports: Vec::new(),
        by_guid: BTreeMap::new(),
        local_port: 0,
    }
}
