//! The walk itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_mad::client::{Client, ClientStats, Event as Answer, Failure};
use ib_mad::header::AttributeId;
use ib_mad::id::Guid;
use ib_mad::port::Packet;
use ib_mad::smp::{
    DrPath, MAX_HOPS, MlnxExtPortInfo, NodeDescription, NodeInfo, NodeType, PortInfo, Smp,
    SwitchInfo,
};
use ib_mad::{MAD_LEN, Time};

use super::fdr10::knows_fdr10;
use super::{Config, Discovered, Event, NoStart, Warning, WarningKind};
use crate::core::topology::{Node, NodeIndex, Port, PortIndex, Topology};

/// A port: a node's place and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    node: u32,
    port: u8,
}

/// A question, small, so that many can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    /// Who is the local node?
    Start,
    /// Is the local node still there? Asked when the last thing that happened was a failure.
    Alive,
    /// Who is behind this port?
    Probe(Place),
    Description(u32),
    Switch(u32),
    Port(Place),
    Fdr10(Place),
}

impl Ask {
    const fn attribute(self) -> AttributeId {
        match self {
            Self::Start | Self::Alive | Self::Probe(_) => AttributeId::NODE_INFO,
            Self::Description(_) => AttributeId::NODE_DESCRIPTION,
            Self::Switch(_) => AttributeId::SWITCH_INFO,
            Self::Port(_) => AttributeId::PORT_INFO,
            Self::Fdr10(_) => AttributeId::MLNX_EXT_PORT_INFO,
        }
    }

    /// The known node that is to answer.
    const fn target(self) -> Option<u32> {
        match self {
            Self::Start | Self::Alive | Self::Probe(_) => None,
            Self::Description(node) | Self::Switch(node) => Some(node),
            Self::Port(place) | Self::Fdr10(place) => Some(place.node),
        }
    }

    const fn port(self) -> Option<u8> {
        match self {
            Self::Probe(place) | Self::Port(place) | Self::Fdr10(place) => Some(place.port),
            _ => None,
        }
    }
}

/// A port of which something is known.
#[derive(Clone, Debug)]
struct Seen {
    number: u8,
    guid: Guid,
    info: Option<PortInfo>,
    fdr10: Option<bool>,
    peer: Option<Place>,
}

/// A node as far as it is known.
#[derive(Clone, Debug)]
struct Found {
    info: NodeInfo,
    description: Option<NodeDescription>,
    switch: Option<SwitchInfo>,
    /// The port by which it was first reached.
    parent: Option<Place>,
    hops: u8,
    /// Nothing behind it is looked at.
    leaf: bool,
    /// In the order of their numbers.
    ports: Vec<Seen>,
    /// Failures in a row.
    failures: u8,
    silent: bool,
    skipped: u32,
    refused: u16,
    first_refused: u8,
    refused_status: u16,
}

/// The walk. See the [module](super) for what it asks and when.
///
/// The driver's loop: drain [`poll_transmit`](Self::poll_transmit) and
/// [`poll_event`](Self::poll_event), end if [`is_done`](Self::is_done), wait for a packet or for
/// [`poll_timeout`](Self::poll_timeout), hand it over.
#[derive(Debug)]
pub struct Discovery {
    config: Config,
    client: Client<Ask>,
    asks: VecDeque<Ask>,
    nodes: Vec<Found>,
    by_guid: BTreeMap<Guid, u32>,
    /// With the node's place, so that its name can be added in the end.
    warnings: Vec<(WarningKind, Place, bool)>,
    local_port: u8,
    /// Where the walk starts.
    start: DrPath,
    /// Nodes behind which nothing is looked at.
    boundary: BTreeSet<Guid>,
    no_start: Option<NoStart>,
    stopped: bool,
    failures_in_a_row: u32,
    too_many: bool,
    /// It has been asked whether the local node is still there.
    checked: bool,
    progress: bool,
}

impl Discovery {
    /// A walk that has not begun.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            client: Client::new(config.client()),
            asks: VecDeque::from([Ask::Start]),
            nodes: Vec::new(),
            by_guid: BTreeMap::new(),
            warnings: Vec::new(),
            local_port: 0,
            start: DrPath::LOCAL,
            boundary: BTreeSet::new(),
            no_start: None,
            stopped: false,
            failures_in_a_row: 0,
            too_many: false,
            checked: false,
            progress: false,
        }
    }

    /// A walk of what is behind a port of a fabric that is known otherwise: it starts at the node at
    /// the end of `start`, and looks at nothing behind the nodes of `boundary`.
    #[must_use]
    pub fn beyond(config: Config, start: DrPath, boundary: BTreeSet<Guid>) -> Self {
        Self {
            start,
            boundary,
            ..Self::new(config)
        }
    }

    /// Whether all has been asked that can be asked.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.stopped || self.no_start.is_some() || (self.asks.is_empty() && self.client.is_idle())
    }

    /// What was sent and answered so far.
    #[must_use]
    pub const fn stats(&self) -> ClientStats {
        self.client.stats()
    }

    /// Takes a packet that came in.
    pub fn handle_mad(&mut self, now: Time, packet: &Packet) {
        self.client.handle_mad(now, packet);
        self.digest();
    }

    /// Call when [`poll_timeout`](Self::poll_timeout) has come.
    pub fn handle_timeout(&mut self, now: Time) {
        self.client.handle_timeout(now);
        self.digest();
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Time> {
        self.client.poll_timeout()
    }

    /// The next packet to be sent. Call until it gives none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        if self.stopped {
            return None;
        }
        loop {
            if let Some(packet) = self.client.poll_transmit(now) {
                return Some(packet);
            }
            if self.client.in_flight() >= self.client.config().window {
                return None;
            }
            let ask = self.asks.pop_front()?;
            if let Some(packet) = self.request(ask) {
                self.client.submit(ask, packet);
            }
        }
    }

    /// What has happened. Call until it gives none.
    pub fn poll_event(&mut self) -> Option<Event> {
        std::mem::take(&mut self.progress).then(|| Event::Progress {
            nodes: self.nodes.len(),
            answers: self.client.stats().answered,
        })
    }

    /// The packet that asks, unless the question has become needless.
    fn request(&mut self, ask: Ask) -> Option<Packet> {
        if let Some(target) = ask.target() {
            let node = self.nodes.get_mut(target as usize)?;
            if node.silent {
                node.skipped += 1;
                return None;
            }
        }
        let (path, modifier) = match ask {
            Ask::Start => (self.start, 0),
            Ask::Alive => (DrPath::LOCAL, 0),
            Ask::Probe(place) => {
                if self.seen(place)?.peer.is_some() {
                    return None;
                }
                (self.path(place.node).extended(place.port).ok()?, 0)
            }
            Ask::Description(node) | Ask::Switch(node) => (self.path(node), 0),
            Ask::Port(place) | Ask::Fdr10(place) => {
                (self.path_to_port(place), u32::from(place.port))
            }
        };
        let smp = Smp::get(&path, ask.attribute(), modifier).with_m_key(self.config.m_key);
        Some(Packet::directed(&smp, self.config.timeout))
    }

    fn seen(&self, place: Place) -> Option<&Seen> {
        let ports = &self.nodes.get(place.node as usize)?.ports;
        let at = ports.binary_search_by_key(&place.port, |seen| seen.number);
        ports.get(at.ok()?)
    }

    /// The port's entry, made if need be.
    fn seen_mut(&mut self, place: Place) -> Option<&mut Seen> {
        let node = self.nodes.get_mut(place.node as usize)?;
        let at = match node
            .ports
            .binary_search_by_key(&place.port, |seen| seen.number)
        {
            Ok(at) => at,
            Err(at) => {
                let seen = Seen {
                    number: place.port,
                    guid: node.info.port_guid,
                    info: None,
                    fdr10: None,
                    peer: None,
                };
                node.ports.insert(at, seen);
                at
            }
        };
        node.ports.get_mut(at)
    }

    /// The way by which a node was first reached.
    fn path(&self, node: u32) -> DrPath {
        let mut ports = [0_u8; MAX_HOPS as usize];
        let Some(found) = self.nodes.get(node as usize) else {
            return DrPath::LOCAL;
        };
        let hops = usize::from(found.hops);
        for (slot, port) in ports.iter_mut().zip(self.start.ports()) {
            *slot = *port;
        }
        let mut next = found.parent;
        for slot in ports.iter_mut().take(hops).rev() {
            let Some(place) = next else { break };
            *slot = place.port;
            next = self
                .nodes
                .get(place.node as usize)
                .and_then(|node| node.parent);
        }
        DrPath::from_ports(ports.get(..hops).unwrap_or_default()).unwrap_or_default()
    }

    /// The way to the agent of a port: a channel adapter has one for each.
    fn path_to_port(&self, place: Place) -> DrPath {
        let is_switch = self
            .nodes
            .get(place.node as usize)
            .is_some_and(|node| node.info.node_type == NodeType::SWITCH);
        let is_local = place.node == 0 && place.port == self.local_port;
        if !is_switch
            && !is_local
            && let Some(peer) = self.seen(place).and_then(|seen| seen.peer)
            && let Ok(path) = self.path(peer.node).extended(peer.port)
        {
            return path;
        }
        self.path(place.node)
    }

    fn digest(&mut self) {
        while let Some(answer) = self.client.poll_event() {
            if self.stopped {
                continue;
            }
            match answer {
                Answer::Response { token, mad, .. } => {
                    self.failures_in_a_row = 0;
                    self.answered(token, &mad);
                }
                Answer::Failed {
                    token,
                    failure,
                    attempts,
                } => self.failed(token, failure, attempts),
                // A trap, or somebody else's business.
                _ => {}
            }
        }
        let is_over = self.asks.is_empty() && self.client.is_idle();
        if is_over && self.failures_in_a_row > 0 && !self.checked && self.no_start.is_none() {
            self.checked = true;
            self.asks.push_back(Ask::Alive);
        }
    }

    fn warn(&mut self, kind: WarningKind, node: u32, port: Option<u8>) {
        let place = Place {
            node,
            port: port.unwrap_or(0),
        };
        self.warnings.push((kind, place, port.is_some()));
    }

    fn answered(&mut self, ask: Ask, mad: &[u8; MAD_LEN]) {
        if let Some(target) = ask.target()
            && let Some(node) = self.nodes.get_mut(target as usize)
        {
            node.failures = 0;
        }
        let smp = Smp::from_bytes(mad);
        let status = smp.status();
        if !status.is_ok() {
            self.refused(ask, status.get());
            return;
        }
        match ask {
            Ask::Start => self.on_node_info(None, smp.attribute()),
            Ask::Alive => {}
            Ask::Probe(place) => self.on_node_info(Some(place), smp.attribute()),
            Ask::Description(node) => {
                if let Some(found) = self.nodes.get_mut(node as usize) {
                    found.description = Some(*smp.attribute());
                }
            }
            Ask::Switch(node) => {
                if let Some(found) = self.nodes.get_mut(node as usize) {
                    found.switch = Some(*smp.attribute());
                }
            }
            Ask::Port(place) => self.on_port_info(place, smp.attribute()),
            Ask::Fdr10(place) => {
                let info: &MlnxExtPortInfo = smp.attribute();
                let active = info.active.fdr10();
                if let Some(seen) = self.seen_mut(place) {
                    seen.fdr10 = Some(active);
                }
                self.look_behind(place);
            }
        }
    }

    fn refused(&mut self, ask: Ask, status: u16) {
        match ask {
            Ask::Start => self.no_start = Some(NoStart::Refused { status }),
            Ask::Alive => {}
            // Many devices know nothing of it.
            Ask::Fdr10(place) => self.look_behind(place),
            Ask::Port(place) => {
                let Some(node) = self.nodes.get_mut(place.node as usize) else {
                    return;
                };
                if node.refused == 0 {
                    node.first_refused = place.port;
                    node.refused_status = status;
                }
                node.refused += 1;
            }
            Ask::Probe(_) | Ask::Description(_) | Ask::Switch(_) => {
                let kind = WarningKind::Refused {
                    attribute: ask.attribute(),
                    status,
                };
                self.warn(kind, about(ask), ask.port());
            }
        }
    }

    fn failed(&mut self, ask: Ask, failure: Failure, attempts: u8) {
        self.failures_in_a_row += 1;
        if ask == Ask::Start {
            self.no_start = Some(NoStart::Silent { attempts });
            return;
        }
        if ask == Ask::Alive {
            self.stop();
            return;
        }
        let attribute = ask.attribute();
        let kind = match (failure, ask) {
            (Failure::NotSent(error), _) => WarningKind::NotSent { attribute, error },
            (_, Ask::Probe(_)) => WarningKind::NobodyBehind { attempts },
            _ => WarningKind::NoAnswer {
                attribute,
                attempts,
            },
        };
        self.warn(kind, about(ask), ask.port());
        if let Some(target) = ask.target()
            && let Some(node) = self.nodes.get_mut(target as usize)
        {
            node.failures = node.failures.saturating_add(1);
            node.silent |= node.failures >= self.config.give_up_after;
        }
        if let Ask::Fdr10(place) = ask {
            self.look_behind(place);
        }
        let enough = u32::from(self.config.window).max(8) * 2;
        if self.failures_in_a_row >= enough {
            self.stop();
        }
    }

    /// Nobody answers any more.
    fn stop(&mut self) {
        let failures = self.failures_in_a_row;
        self.warn(WarningKind::FabricSilent { failures }, 0, None);
        self.stopped = true;
        self.asks.clear();
    }

    /// Somebody said who it is: behind the port `via`, or right here.
    fn on_node_info(&mut self, via: Option<Place>, info: &NodeInfo) {
        let entry = info.local_port;
        if let Some(via) = via
            && let Some(peer) = self.seen(via).and_then(|seen| seen.peer)
        {
            // Both ends had been asked at once. They should agree.
            let known = self
                .nodes
                .get(peer.node as usize)
                .map(|node| node.info.node_guid);
            if known != Some(info.node_guid) || peer.port != entry {
                self.taken_twice(via, peer, info.node_guid, entry);
            }
            return;
        }
        let (node, is_new) = match self.by_guid.get(&info.node_guid) {
            Some(&node) if self.is_same(node, info) => (node, false),
            Some(&other) => {
                let Some(node) = self.add(via, info, true) else {
                    return;
                };
                let other = self.path(other);
                self.warn(WarningKind::DuplicateGuid { other }, node, None);
                (node, true)
            }
            None => {
                let no_guid = info.node_guid.is_zero();
                let Some(node) = self.add(via, info, no_guid) else {
                    return;
                };
                if no_guid {
                    self.warn(WarningKind::ZeroGuid, node, None);
                } else {
                    self.by_guid.insert(info.node_guid, node);
                }
                (node, true)
            }
        };
        let place = Place { node, port: entry };
        let known_port = !is_new && self.seen(place).is_some_and(|seen| seen.info.is_some());
        match via {
            None => {
                self.local_port = entry;
                if let Some(seen) = self.seen_mut(place) {
                    seen.guid = info.port_guid;
                }
            }
            Some(via) => self.connect(via, place, info),
        }
        if is_new {
            self.asks.push_back(Ask::Description(node));
        }
        let is_switch = info.node_type == NodeType::SWITCH;
        let is_leaf = self.nodes.get(node as usize).is_some_and(|node| node.leaf);
        if is_switch && is_new {
            self.asks.push_back(Ask::Switch(node));
            let last = if is_leaf { 0 } else { info.num_ports };
            for port in 0..=last {
                self.asks.push_back(Ask::Port(Place { node, port }));
            }
        }
        if !is_switch && !known_port && self.seen(place).is_some() {
            self.asks.push_back(Ask::Port(place));
        }
    }

    /// Whether a known node may be the one that says this of itself.
    fn is_same(&self, node: u32, info: &NodeInfo) -> bool {
        self.nodes.get(node as usize).is_some_and(|found| {
            let known = &found.info;
            known.node_type == info.node_type
                && known.num_ports == info.num_ports
                && known.system_image_guid == info.system_image_guid
                && known.device_id == info.device_id
                && known.vendor_id == info.vendor_id
        })
    }

    fn add(&mut self, via: Option<Place>, info: &NodeInfo, leaf: bool) -> Option<u32> {
        let limit = self.config.max_nodes;
        let node = u32::try_from(self.nodes.len()).ok()?;
        if node >= limit {
            if !std::mem::replace(&mut self.too_many, true)
                && let Some(via) = via
            {
                self.warn(
                    WarningKind::TooManyNodes { limit },
                    via.node,
                    Some(via.port),
                );
            }
            return None;
        }
        let hops = via
            .and_then(|via| self.nodes.get(via.node as usize))
            .map_or_else(|| self.start.hops(), |parent| parent.hops.saturating_add(1));
        let leaf = leaf || self.boundary.contains(&info.node_guid);
        self.nodes.push(Found {
            info: *info,
            description: None,
            switch: None,
            parent: via,
            hops,
            leaf,
            ports: Vec::new(),
            failures: 0,
            silent: false,
            skipped: 0,
            refused: 0,
            first_refused: 0,
            refused_status: 0,
        });
        self.progress = true;
        if !NodeType::VALUES.contains(&info.node_type) {
            let value = info.node_type.get();
            self.warn(WarningKind::UnknownType { value }, node, None);
        }
        Some(node)
    }

    /// The cable from `via` ends at `place`, as the node there says.
    fn connect(&mut self, via: Place, place: Place, info: &NodeInfo) {
        if place.port == 0 || place.port > info.num_ports {
            let kind = WarningKind::PortOutOfRange {
                claimed: place.port,
                ports: info.num_ports,
            };
            self.warn(kind, via.node, Some(via.port));
            return;
        }
        if let Some(peer) = self.seen(place).and_then(|seen| seen.peer)
            && peer != via
        {
            let guid = info.node_guid;
            self.taken_twice(via, peer, guid, place.port);
            return;
        }
        if let Some(seen) = self.seen_mut(place) {
            seen.peer = Some(via);
            seen.guid = info.port_guid;
        }
        if let Some(seen) = self.seen_mut(via) {
            seen.peer = Some(place);
        }
    }

    fn taken_twice(&mut self, via: Place, peer: Place, behind: Guid, behind_port: u8) {
        let other = self
            .nodes
            .get(peer.node as usize)
            .map(|node| node.info.node_guid);
        let kind = WarningKind::PortTakenTwice {
            behind,
            behind_port,
            other: other.unwrap_or_default(),
            other_port: peer.port,
        };
        self.warn(kind, via.node, Some(via.port));
    }

    fn on_port_info(&mut self, place: Place, info: &PortInfo) {
        if let Some(seen) = self.seen_mut(place) {
            seen.info = Some(*info);
        }
        if !info.is_link_up() {
            return;
        }
        if self.config.ask_fdr10 && self.may_be_fdr10(place, info) {
            self.asks.push_back(Ask::Fdr10(place));
        } else {
            self.look_behind(place);
        }
    }

    /// Whether only a vendor's attribute tells how fast the link is.
    fn may_be_fdr10(&self, place: Place, info: &PortInfo) -> bool {
        if info.link_speed.active() != 4 {
            return false;
        }
        let Some(node) = self.nodes.get(place.node as usize) else {
            return false;
        };
        let speaker = if node.info.node_type == NodeType::SWITCH {
            let zero = Place { port: 0, ..place };
            self.seen(zero).and_then(|seen| seen.info)
        } else {
            Some(*info)
        };
        let ext = speaker.map_or(0, |speaker| info.ext_speed_code(&speaker));
        ext == 0 && knows_fdr10(node.info.vendor_id.get(), node.info.device_id.get())
    }

    /// Asks who is behind a port, if anybody can be and it is not known yet.
    fn look_behind(&mut self, place: Place) {
        let Some(node) = self.nodes.get(place.node as usize) else {
            return;
        };
        // A route leads through switches only, and out of the port that we sit on.
        let leads_on = place.port != 0
            && !node.leaf
            && (node.info.node_type == NodeType::SWITCH
                || (place.node == 0
                    && place.port == self.local_port
                    && self.start == DrPath::LOCAL));
        let hops = node.hops;
        let known = self.seen(place).is_none_or(|seen| seen.peer.is_some());
        if !leads_on || known {
            return;
        }
        if hops >= MAX_HOPS {
            self.warn(WarningKind::TooManyHops, place.node, Some(place.port));
        } else if hops < self.config.max_hops {
            self.asks.push_back(Ask::Probe(place));
        }
    }

    /// What was found.
    ///
    /// # Errors
    /// [`NoStart`] where the local node did not say who it is.
    pub fn finish(mut self) -> Result<Discovered, NoStart> {
        if let Some(no_start) = self.no_start {
            return Err(no_start);
        }
        self.closing_warnings();
        let warnings = std::mem::take(&mut self.warnings);
        let warnings = warnings
            .into_iter()
            .map(|(kind, place, has_port)| self.resolve(kind, place, has_port))
            .collect();
        let complete = self.is_done() && !self.stopped;
        Ok(Discovered {
            warnings,
            stats: self.client.stats(),
            complete,
            topology: self.flatten(),
        })
    }

    fn closing_warnings(&mut self) {
        let mut more = Vec::new();
        for (index, node) in (0_u32..).zip(&self.nodes) {
            if node.silent {
                let skipped = node.skipped;
                more.push((WarningKind::NodeSilent { skipped }, index, None));
            }
            if node.refused > 0 {
                let kind = WarningKind::PortsRefused {
                    claimed: node.info.num_ports,
                    count: node.refused,
                    status: node.refused_status,
                };
                more.push((kind, index, Some(node.first_refused)));
            }
            for seen in &node.ports {
                let place = Place {
                    node: index,
                    port: seen.number,
                };
                let up = seen.info.map(|info| info.is_link_up());
                let Some(peer) = seen.peer else { continue };
                let far = self.seen(peer).and_then(|seen| seen.info);
                let far_up = far.map(|info| info.is_link_up());
                if place < peer && up.is_some() && far_up.is_some() && up != far_up {
                    more.push((WarningKind::OneSided, index, Some(seen.number)));
                }
            }
        }
        for (kind, node, port) in more {
            self.warn(kind, node, port);
        }
    }

    fn resolve(&self, kind: WarningKind, place: Place, has_port: bool) -> Warning {
        let node = self.nodes.get(place.node as usize);
        Warning {
            kind,
            node: node.map(|node| node.info.node_guid).unwrap_or_default(),
            name: node
                .and_then(|node| node.description)
                .map(|description| description.text())
                .unwrap_or_default(),
            path: self.path(place.node),
            port: has_port.then_some(place.port),
        }
    }

    fn flatten(self) -> Topology {
        let mut starts = Vec::with_capacity(self.nodes.len());
        let mut total = 0_u32;
        for node in &self.nodes {
            starts.push(total);
            total += u32::try_from(node.ports.len()).unwrap_or(0);
        }
        let index_of = |place: Place| -> Option<PortIndex> {
            let node = self.nodes.get(place.node as usize)?;
            let at = node
                .ports
                .binary_search_by_key(&place.port, |seen| seen.number);
            let start = starts.get(place.node as usize)?;
            Some(PortIndex(start + u32::try_from(at.ok()?).ok()?))
        };
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut ports = Vec::with_capacity(total as usize);
        for ((index, found), &start) in (0_u32..).zip(&self.nodes).zip(&starts) {
            nodes.push(Node {
                info: found.info,
                description: found.description,
                switch: found.switch,
                path: self.path(index),
                first_port: start,
                port_count: u16::try_from(found.ports.len()).unwrap_or(0),
            });
            ports.extend(found.ports.iter().map(|seen| Port {
                node: NodeIndex(index),
                number: seen.number,
                guid: seen.guid,
                info: seen.info,
                fdr10: seen.fdr10,
                peer: seen.peer.and_then(index_of),
            }));
        }
        Topology {
            nodes,
            ports,
            by_guid: self
                .by_guid
                .iter()
                .map(|(&guid, &node)| (guid, NodeIndex(node)))
                .collect(),
            local_port: self.local_port,
        }
    }
}

/// The node that a warning about a question is about.
const fn about(ask: Ask) -> u32 {
    match ask {
        Ask::Start | Ask::Alive => 0,
        Ask::Probe(place) | Ask::Port(place) | Ask::Fdr10(place) => place.node,
        Ask::Description(node) | Ask::Switch(node) => node,
    }
}
