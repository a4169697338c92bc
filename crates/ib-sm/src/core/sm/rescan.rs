//! Looking again at what has changed, and only at that.

use std::collections::BTreeSet;

use ib_mad::Time;
use ib_mad::id::Guid;
use ib_mad::smp::{NodeInfo, PortInfo, PortState, SwitchInfo};

use crate::core::discovery::Discovered;
use crate::core::topology::{Node, PortIndex};

use super::engine::{Ask, Sm, Stage};
use super::model::{self, Spot};
use super::{Event, Reason};

/// What a rescan has found so far.
#[derive(Debug, Default)]
pub(super) struct Rescan {
    /// Cables that lead to ports that are known.
    cables: Vec<(Spot, Spot)>,
    /// Ports behind which something is that is not known.
    unknown: Vec<Spot>,
    /// Ports that have been looked at.
    looked: BTreeSet<u32>,
    /// Nodes that are to be looked at when the ways there are known: nearest first, since the way to
    /// one may lead by what is broken at another.
    waiting: BTreeSet<Guid>,
    /// Ports at the other end of cables that are no more, for the same reason.
    later: BTreeSet<Spot>,
    /// Switches that a light sweep could not reach.
    missed: BTreeSet<Guid>,
    /// The cables are not what they were.
    changed: bool,
}

impl Sm {
    pub(super) fn begin_rescan(&mut self, now: Time) {
        let dirty = std::mem::take(&mut self.dirty);
        let switches = dirty.len();
        self.start_work(now, Reason::Change { switches });
        let missed = std::mem::take(&mut self.rescan.missed);
        self.rescan = Rescan {
            missed,
            ..Rescan::default()
        };
        self.rescan.waiting = dirty;
        self.stage = Stage::Rescan;
        self.look_nearest();
    }

    /// Looks at those of the waiting that are nearest; at the single ports when nobody waits.
    /// Whether there is anything to look at.
    fn look_nearest(&mut self) -> bool {
        let waiting = std::mem::take(&mut self.rescan.waiting);
        let far = |sm: &Self, guid: Guid| {
            let node = sm.topology.node(sm.topology.find(guid)?)?;
            Some(node.path.hops())
        };
        let nearest = waiting.iter().filter_map(|&it| far(self, it)).min();
        for guid in waiting {
            if far(self, guid) != nearest {
                self.rescan.waiting.insert(guid);
                continue;
            }
            let Some(index) = self.topology.find(guid) else {
                continue;
            };
            let is_switch = self.topology.node(index).is_some_and(Node::is_switch);
            if is_switch {
                self.asks.push_back(Ask::Switch(index.0));
            } else {
                self.look_at_end(index.0);
            }
        }
        if self.asks.is_empty() {
            for spot in std::mem::take(&mut self.rescan.later) {
                if let Some(port) = self.port_at(spot) {
                    self.look(port, None);
                }
            }
        }
        !self.asks.is_empty()
    }

    fn look_at_end(&mut self, node: u32) {
        let Some(node) = self.node(node) else { return };
        let first = node.first_port;
        let count = u32::from(node.port_count);
        for port in first..first + count {
            self.look(port, None);
        }
    }

    fn look(&mut self, port: u32, via: Option<u32>) {
        if self.rescan.looked.insert(port) {
            self.asks.push_back(Ask::Look { port, via });
        }
    }

    fn port_at(&self, spot: Spot) -> Option<u32> {
        let node = self.topology.node(self.topology.find(spot.0)?)?;
        let port = self.topology.port_of(node, spot.1)?;
        Some(self.topology.index_of(node, port)?.0)
    }

    pub(super) fn on_switch(&mut self, node: u32, info: &SwitchInfo) {
        self.note_switch(node, info);
        self.asks.push_back(Ask::Clear(node));
    }

    /// Takes over what a switch says; one that was started anew has forgotten its tables.
    fn note_switch(&mut self, node: u32, info: &SwitchInfo) {
        let top = self.tables.as_ref().map(crate::routing::Tables::top_lid);
        let Some(it) = self.topology.nodes.get_mut(node as usize) else {
            return;
        };
        it.switch = Some(*info);
        let guid = it.guid();
        let first = it.first_port;
        if top.is_some_and(|it| it != info.linear_fdb_top.get())
            && self.held.remove(&guid).is_some()
        {
            self.events.push_back(Event::Forgot { switch: guid });
            // Then its own port has lost its LID, too.
            if self.stage == Stage::Rescan {
                self.look(first, None);
            }
        }
    }

    pub(super) fn on_clear(&mut self, node: u32, info: &SwitchInfo) {
        let Some(it) = self.topology.nodes.get_mut(node as usize) else {
            return;
        };
        it.switch = Some(*info);
        let (first, count) = (it.first_port, u32::from(it.port_count));
        // Port 0 has no link, but a LID, and has none where the switch was started anew: also where
        // that was between the two requests to it.
        // What was seen before the note was cleared may have changed without a new one.
        for port in first..first + count {
            self.rescan.looked.remove(&port);
            self.look(port, None);
        }
    }

    pub(super) fn on_switch_failed(&mut self, node: u32, status: Option<u16>) {
        let guid = self.node(node).map(Node::guid).unwrap_or_default();
        self.tell_failure(guid, "asking a switch", status);
        if self.stage == Stage::Light && self.rescan.missed.insert(guid) {
            // The way to it may be what is broken: those on the way know.
            let way = self.on_the_way(node);
            self.dirty.extend(way);
            return;
        }
        // They do not: only a walk tells.
        self.full_wanted = true;
    }

    /// The switches by which a node is reached, but for itself.
    fn on_the_way(&self, node: u32) -> Vec<Guid> {
        let mut way = Vec::new();
        let Some(path) = self.node(node).map(|it| it.path) else {
            return way;
        };
        let mut at = self.topology.local();
        for &port in path.ports() {
            let Some(node) = at else { break };
            if node.is_switch() {
                way.push(node.guid());
            }
            let port = self.topology.port_of(node, port);
            at = port.and_then(|it| self.topology.peer_of(it)).map(|it| it.0);
        }
        way
    }

    pub(super) fn on_look(&mut self, port: u32, info: &PortInfo) {
        let Some(it) = self.topology.ports.get_mut(port as usize) else {
            return;
        };
        let old = it.info.replace(*info);
        let peer = it.peer;
        let number = it.number;
        let node = it.node;
        let is_switch = self.topology.node(node).is_some_and(Node::is_switch);
        if number == 0 && is_switch {
            self.check_lid(port, info);
            return;
        }
        let was_more = old.is_some_and(|it| it.state() > PortState::INIT);
        if !info.is_link_up() {
            if let Some(peer) = peer {
                self.cut(port);
                let far = self.topology.port(peer).map(|it| it.node);
                let is_switch = far
                    .and_then(|it| self.topology.node(it))
                    .is_some_and(Node::is_switch);
                if let Some(spot) = self.spot(peer.0)
                    && is_switch
                    && !self.rescan.looked.contains(&peer.0)
                {
                    self.rescan.later.insert(spot);
                }
            }
            return;
        }
        let fresh = info.state() == PortState::INIT && was_more;
        if fresh && let Some(own) = self.own_port(port) {
            self.look(own, None);
        }
        if is_switch && (peer.is_none() || fresh) {
            self.asks.push_back(Ask::Behind(port));
        }
    }

    /// A switch that has not the LID that it was given has not its tables either.
    fn check_lid(&mut self, port: u32, info: &PortInfo) {
        let given = self.port_lids.get(port as usize).copied().unwrap_or(0);
        let Some((guid, _)) = self.spot(port).filter(|_| given != info.lid.get()) else {
            return;
        };
        if self.held.remove(&guid).is_some() {
            self.events.push_back(Event::Forgot { switch: guid });
            self.rescan.waiting.insert(guid);
        }
    }

    /// The port 0 of the switch that a port belongs to.
    fn own_port(&self, port: u32) -> Option<u32> {
        let node = self.topology.node(self.port(port)?.node)?;
        node.is_switch().then_some(node.first_port)
    }

    /// The cable at a port is no more.
    fn cut(&mut self, port: u32) {
        self.rescan.changed = true;
        let peer = self
            .topology
            .ports
            .get_mut(port as usize)
            .and_then(|it| it.peer.take());
        if let Some(far) = peer.and_then(|it| self.topology.ports.get_mut(it.get())) {
            far.peer = None;
        }
    }

    fn plug(&mut self, a: u32, b: u32) {
        for (near, far) in [(a, b), (b, a)] {
            if let Some(it) = self.topology.ports.get_mut(near as usize) {
                it.peer = Some(PortIndex(far));
            }
        }
    }

    pub(super) fn on_look_failed(&mut self, port: u32, status: Option<u16>) {
        let guid = self.spot(port).map(|it| it.0).unwrap_or_default();
        self.tell_failure(guid, "asking for a port's state", status);
        self.full_wanted = true;
    }

    pub(super) fn on_behind(&mut self, port: u32, info: &NodeInfo) {
        let Some(near) = self.spot(port) else { return };
        if self.stage == Stage::Light {
            let node = self
                .topology
                .find(near.0)
                .and_then(|it| self.topology.node(it));
            if node.is_some_and(Node::is_switch) {
                self.dirty.insert(near.0);
            } else {
                self.full_wanted = true;
            }
            return;
        }
        let far = (info.node_guid, info.local_port);
        let at = self.port_at(far);
        let before = self.port(port).and_then(|it| it.peer).map(|it| it.0);
        if before.is_some() && before == at {
            // The same cable, which had been down. What its other end was set to is gone.
            if let Some(at) = at {
                self.rescan.looked.remove(&at);
                self.look(at, None);
                if let Some(own) = self.own_port(at) {
                    self.look(own, None);
                }
            }
            return;
        }
        if before.is_some() {
            self.cut(port);
        }
        self.rescan.changed = true;
        match at {
            Some(at) => {
                // At once, so that the other end's answer does not ask who is behind it again.
                self.cut(at);
                self.plug(port, at);
                self.rescan.cables.push((near, far));
                let known = self.topology.find(info.node_guid);
                let is_switch = known
                    .and_then(|it| self.topology.node(it))
                    .is_some_and(Node::is_switch);
                self.rescan.looked.remove(&at);
                self.look(at, if is_switch { None } else { Some(port) });
                if let Some(own) = self.own_port(at) {
                    self.look(own, None);
                }
            }
            None => self.rescan.unknown.push(near),
        }
    }

    pub(super) fn on_behind_failed(&mut self, port: u32) {
        if self.stage == Stage::Light {
            return;
        }
        if self.port(port).is_some_and(|it| it.peer.is_some()) {
            self.cut(port);
        }
    }

    /// All has been asked.
    pub(super) fn rescanned(&mut self, now: Time) {
        if self.full_wanted {
            // It came to something that only a walk can tell. That begins at once.
            self.stage = Stage::Idle;
            return;
        }
        if std::mem::take(&mut self.rescan.changed) {
            let cables = std::mem::take(&mut self.rescan.cables);
            self.rebuild(None, &cables);
        }
        if self.look_nearest() {
            return;
        }
        while let Some(near) = self.rescan.unknown.pop() {
            let Some(port) = self.port_at(near) else {
                continue;
            };
            let Some(it) = self.port(port).filter(|it| it.peer.is_none()) else {
                continue;
            };
            let path = self.topology.node(it.node).map(|it| it.path);
            let Some(path) = path.and_then(|it| it.extended(it_number(near)).ok()) else {
                continue;
            };
            let known = self.topology.by_guid.keys().copied().collect();
            self.start_walk(Some(near), path, known);
            return;
        }
        self.found(now, false);
    }

    fn rebuild(
        &mut self,
        found: Option<&crate::core::topology::Topology>,
        cables: &[(Spot, Spot)],
    ) {
        // Places change.
        let looked: Vec<Spot> = self
            .rescan
            .looked
            .iter()
            .filter_map(|&it| self.spot(it))
            .collect();
        self.topology = model::rebuild(&self.topology, found, cables);
        self.rescan.looked = looked
            .into_iter()
            .filter_map(|it| self.port_at(it))
            .collect();
        let by_guid = &self.topology.by_guid;
        self.held.retain(|guid, _| by_guid.contains_key(guid));
    }

    /// What is behind a cable has been walked.
    pub(super) fn walked_beyond(&mut self, now: Time, near: Spot, found: Option<Discovered>) {
        self.stage = Stage::Rescan;
        // Where nobody answers, the next light sweep asks again.
        let Some(found) = found else { return };
        self.note_gaps(now, &found.warnings);
        for warning in found.warnings {
            self.events.push_back(Event::Warning(warning));
        }
        let mut found = found.topology;
        let Some(far) = found.nodes.first().map(|it| (it.guid(), found.local_port)) else {
            return;
        };
        let others: Vec<(Spot, Spot)> =
            boundary_cables(&found, |guid| self.topology.by_guid.contains_key(&guid));
        // Nodes that are known are only there as where the walk ended.
        let mut cables = others;
        cables.push((near, far));
        forget_known(&mut found, |guid| self.topology.by_guid.contains_key(&guid));
        self.rebuild(Some(&found), &cables);
        // The known ends have not been looked at since their cable came.
        for &(a, b) in &cables {
            for spot in [a, b] {
                let stale = self.port_at(spot).filter(|&it| {
                    let info = self.port(it).and_then(|it| it.info);
                    info.is_none_or(|it| !it.is_link_up() || it.state() > PortState::INIT)
                });
                if let Some(port) = stale {
                    self.look(port, None);
                }
            }
        }
        let _ = now;
    }

    pub(super) fn begin_light(&mut self, now: Time) {
        self.next_light = self.config.light_sweep.map_or(Time::FAR, |it| now + it);
        self.stage = Stage::Light;
        for index in 0..u32::try_from(self.topology.nodes.len()).unwrap_or(0) {
            if self.node(index).is_some_and(Node::is_switch) {
                self.asks.push_back(Ask::Check(index));
            }
        }
        // Whoever was silent may answer now, and tells nobody.
        for (at, port) in (0_u32..).zip(&self.topology.ports) {
            let up = port.number > 0 && port.info.is_some_and(|it| it.is_link_up());
            let is_switch = self.topology.node(port.node).is_some_and(Node::is_switch);
            let is_local = port.node.get() == 0 && port.number == self.topology.local_port;
            if up && (is_switch || is_local) && port.peer.is_none() {
                self.asks.push_back(Ask::Behind(at));
            }
        }
        self.ask_known_managers();
    }

    pub(super) fn on_check(&mut self, node: u32, info: &SwitchInfo) {
        let guid = self.node(node).map(Node::guid).unwrap_or_default();
        self.rescan.missed.remove(&guid);
        let top = self
            .tables
            .as_ref()
            .map_or(0, crate::routing::Tables::top_lid);
        if info.life.port_state_change() || info.linear_fdb_top.get() != top {
            self.dirty.insert(guid);
        }
    }

    pub(super) fn light_done(&mut self, now: Time) {
        self.stage = Stage::Idle;
        self.settle_managers(now);
    }
}

const fn it_number(spot: Spot) -> u8 {
    spot.1
}

/// The cables between nodes that a walk found and nodes that were known before.
fn boundary_cables(
    found: &crate::core::topology::Topology,
    is_known: impl Fn(Guid) -> bool,
) -> Vec<(Spot, Spot)> {
    let spot = |node: &Node, number: u8| (node.guid(), number);
    found
        .ports
        .iter()
        .filter_map(|port| {
            let node = found.node(port.node)?;
            let (far_node, far) = found.peer_of(port)?;
            (is_known(node.guid()) && !is_known(far_node.guid()))
                .then(|| (spot(node, port.number), spot(far_node, far.number)))
        })
        .collect()
}

/// Drops what a walk says of nodes that were known: only their ports that are new are of use.
fn forget_known(found: &mut crate::core::topology::Topology, is_known: impl Fn(Guid) -> bool) {
    let known: BTreeSet<u32> = (0_u32..)
        .zip(&found.nodes)
        .filter(|(_, node)| node.is_switch() && is_known(node.guid()))
        .map(|(index, _)| index)
        .collect();
    for port in &mut found.ports {
        if known.contains(&port.node.0) {
            port.info = None;
        }
    }
}
