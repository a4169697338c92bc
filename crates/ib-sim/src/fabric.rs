//! The fabric: nodes that answer, links that are up or down, and a clock that only moves when
//! somebody waits.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytemuck::Zeroable;
use ib_mad::header::{AttributeId, MadHeader, Method, MgmtClass};
use ib_mad::id::{Guid, Lid};
use ib_mad::port::Delivery;
use ib_mad::smp::{
    DrPath, LocalChangeDetails, NodeDescription, NodeInfo, NodeType, Notice, PortInfo, Smp,
    TrapNumber,
};
use ib_mad::{Packet, Time};
use rdma_wire::{Be16, Be24, Be32, Be64};

use crate::agent::{Effect, Node, Port, Told, Verdict, pma, port_info, sma};
use crate::error::TopologyError;
use crate::fault::Faults;
use crate::queue::Queue;
use crate::rng::Rng;
use crate::topo::{Peer, Speeds, Topology};
use crate::trace::{Entry, Happening, Loss};

/// Ports that a fabric may have: three times those of the largest fat tree of 48-port switches.
pub const MAX_PORTS: usize = 1 << 21;

/// How a fabric behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What decides every chance.
    pub seed: u64,
    /// How long a packet takes over a cable and through the switch behind it.
    pub hop: Duration,
    /// How long an agent takes for an answer. It answers one request after the other.
    pub service: Duration,
    /// What goes wrong.
    pub faults: Faults,
}

impl Default for Config {
    /// 1 µs a hop, 10 µs an answer, and nothing goes wrong.
    fn default() -> Self {
        Self {
            seed: 1,
            hop: Duration::from_micros(1),
            service: Duration::from_micros(10),
            faults: Faults::default(),
        }
    }
}

/// What a fabric has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that programs have sent.
    pub sent: u64,
    /// Requests that agents have answered.
    pub answered: u64,
    /// Packets that were handed to programs.
    pub delivered: u64,
    /// Packets that did not arrive.
    pub lost: u64,
}

/// What is to happen.
#[derive(Debug)]
enum Event {
    /// A packet reaches a node.
    Arrive {
        client: u32,
        at: Peer,
        packet: Packet,
    },
    /// A packet reaches a program.
    Deliver { client: u32, packet: Packet },
    /// A cable goes down or comes up: the index of its flap.
    Flap { index: usize, up: bool },
    /// A node tells what has happened, or tells it again.
    Tell { node: usize },
}

/// A program at a port.
#[derive(Debug)]
struct Client {
    end: Peer,
    inbox: VecDeque<Packet>,
    /// A subnet manager: requests and traps are for it.
    is_sm: bool,
    /// The program has ended.
    gone: bool,
    /// It is told of requests that cannot arrive.
    wants_losses: bool,
}

/// The fabric. See [`SimPort`](crate::SimPort) for how programs attach to it.
#[derive(Debug)]
pub struct Fabric {
    pub(crate) topology: Topology,
    pub(crate) nodes: Vec<Node>,
    pub(crate) ports: Vec<Port>,
    config: Config,
    rng: Rng,
    now: Time,
    queue: Queue<Event>,
    clients: Vec<Client>,
    counts: Counts,
    trace: Option<Vec<Entry>>,
    next_trap: u32,
    /// Goes up whenever a forwarding table, a state of a link or a cable changes.
    changes: u64,
}

/// How often a trap is told at most, and how long an agent waits before it tells it again.
const TRAP_TIMES: u8 = 8;
const TRAP_AGAIN: Duration = Duration::from_millis(500);

impl Fabric {
    /// Brings a topology to life: agents answer, links are in Init, no LFT has an entry.
    ///
    /// # Errors
    /// Where it has more ports than [`MAX_PORTS`].
    pub fn new(topology: Topology, config: Config) -> Result<Self, TopologyError> {
        let total: usize = topology
            .nodes()
            .iter()
            .map(|n| usize::from(n.port_count) + 1)
            .sum();
        if total > MAX_PORTS {
            return Err(TopologyError::TooManyPorts {
                ports: total,
                limit: MAX_PORTS,
            });
        }
        let mut nodes = Vec::with_capacity(topology.nodes().len());
        let mut ports = Vec::with_capacity(total);
        for (index, node) in topology.nodes().iter().enumerate() {
            let fault = config.faults.nodes.get(&index).copied().unwrap_or_default();
            nodes.push(Node {
                info: node_info(node),
                description: NodeDescription::new(&node.description),
                switch: node
                    .is_switch()
                    .then(|| Box::new(sma::switch(node.enhanced_port_zero == Some(true)))),
                first_port: ports.len(),
                ports: node.port_count,
                tables: BTreeMap::new(),
                busy_until: Time::ZERO,
                answered: 0,
                trap: None,
                fault,
            });
            let fastest = node
                .ports()
                .iter()
                .fold(Speeds::SDR, |all, p| all.or(p.speeds));
            ports.extend(
                (0..=node.port_count).map(|number| port_info::initial(node, number, fastest)),
            );
        }
        let rng = Rng::new(config.seed);
        let mut fabric = Self {
            topology,
            nodes,
            ports,
            config,
            rng,
            now: Time::ZERO,
            queue: Queue::new(),
            clients: Vec::new(),
            counts: Counts::default(),
            trace: None,
            next_trap: 0,
            changes: 0,
        };
        let links: Vec<Peer> = fabric.topology.links().map(|link| link.a).collect();
        for end in links {
            fabric.train(end);
        }
        for (index, flap) in fabric.config.faults.flaps.iter().enumerate() {
            fabric.queue.plan(flap.at, Event::Flap { index, up: false });
        }
        Ok(fabric)
    }

    /// What it was made from. Cables that went down since are still in it.
    #[must_use]
    pub const fn topology(&self) -> &Topology {
        &self.topology
    }

    /// The virtual time.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// What it has done so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Keeps a record of everything that happens from now on. It grows without bound.
    pub fn start_trace(&mut self) {
        self.trace.get_or_insert_default();
    }

    /// The record, which starts anew; empty where none was kept.
    pub fn take_trace(&mut self) -> Vec<Entry> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Changes what is wrong with a node from now on.
    pub fn set_node_fault(&mut self, node: usize, fault: crate::fault::NodeFault) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.fault = fault;
        }
    }

    /// Pulls a cable, or puts it back where the topology has it. Both ends lose their link, or
    /// train again; switches note the change.
    pub fn set_link(&mut self, end: Peer, up: bool) {
        let Some(far) = self.port(end).and_then(|p| p.peer) else {
            return;
        };
        if up {
            self.train(end);
        } else {
            for end in [end, far] {
                if let Some(port) = self.port_mut(end) {
                    port_info::down(port);
                    port.counters.link_downed = port.counters.link_downed.saturating_add(1);
                }
                self.note_change(end.node);
            }
        }
        self.note(Entry {
            time: self.now,
            client: 0,
            happening: Happening::Link { end, up },
            header: MadHeader::zeroed(),
            path: DrPath::LOCAL,
        });
    }

    /// Is the link at this port up?
    #[must_use]
    pub fn is_link_up(&self, end: Peer) -> bool {
        self.port(end).is_some_and(Port::is_up)
    }

    /// When the next thing happens by itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.queue.next_time()
    }

    /// How many packets are under way, and things planned.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// Moves the clock to the next event and lets it happen; false where nothing is planned.
    pub fn step(&mut self) -> bool {
        let Some((time, event)) = self.queue.take() else {
            return false;
        };
        self.now = self.now.max(time);
        match event {
            Event::Arrive { client, at, packet } => self.arrive(client, at, packet),
            Event::Deliver { client, packet } => self.deliver(client, packet),
            Event::Flap { index, up } => self.flap(index, up),
            Event::Tell { node } => self.tell(node),
        }
        true
    }

    /// Lets everything happen up to `time`, and sets the clock to it.
    pub fn advance(&mut self, time: Time) {
        while self.next_event().is_some_and(|next| next <= time) {
            self.step();
        }
        self.now = self.now.max(time);
    }

    /// A program attaches to a port, and gets a number.
    pub(crate) fn attach(&mut self, end: Peer) -> Result<u32, TopologyError> {
        let node = self
            .topology
            .node(end.node)
            .ok_or(TopologyError::NoNode { index: end.node })?;
        if !node.has_port(end.port) || (node.is_switch() && end.port != 0) {
            return Err(TopologyError::NoPort {
                id: node.id.clone(),
                port: end.port,
                count: node.port_count,
            });
        }
        self.clients.push(Client {
            end,
            inbox: VecDeque::new(),
            is_sm: false,
            gone: false,
            wants_losses: false,
        });
        Ok(u32::try_from(self.clients.len() - 1).unwrap_or(u32::MAX))
    }

    /// Takes the next packet that has arrived for a program.
    pub(crate) fn collect(&mut self, client: u32) -> Option<Packet> {
        self.client_mut(client)?.inbox.pop_front()
    }

    /// Base LID of a port and of its subnet manager.
    pub(crate) fn lids(&self, end: Peer) -> (Lid, Lid) {
        self.port(end).map_or((Lid::RESERVED, Lid::RESERVED), |p| {
            (p.info.lid, p.info.master_sm_lid)
        })
    }

    /// A program sends a packet.
    pub(crate) fn send(&mut self, client: u32, packet: &Packet) {
        let Some(from) = self
            .clients
            .get(usize::try_from(client).unwrap_or(usize::MAX))
            .map(|c| c.end)
        else {
            return;
        };
        self.counts.sent += 1;
        let mut packet = *packet;
        // As ibsim does: the top of the transaction id says whose request it is.
        if !packet.header().method.is_response() {
            let tid = packet.header().tid.get() & 0x0000_ffff_ffff_ffff | u64::from(client) << 48;
            packet.header_mut().tid = Be64::new(tid);
        }
        self.record(client, Happening::Sent, &packet);
        match self.way_out(from, &mut packet) {
            Ok(way) => {
                let time = self.now + self.config.hop * way.hops;
                self.travel(
                    time,
                    way.hops > 0,
                    packet,
                    |packet| Event::Arrive {
                        client,
                        at: way.to,
                        packet,
                    },
                    client,
                );
            }
            Err(loss) => self.lose(client, loss, &packet),
        }
    }

    /// Plans the arrival of a packet, and what goes wrong under way.
    fn travel(
        &mut self,
        time: Time,
        wire: bool,
        mut packet: Packet,
        event: impl Fn(Packet) -> Event,
        client: u32,
    ) {
        let mut time = time;
        if wire {
            let faults = &self.config.faults;
            if self.rng.chance(faults.loss) {
                return self.lose(client, Loss::Chance, &packet);
            }
            if self.rng.chance(faults.corruption) {
                let (byte, bit) = (self.rng.index(packet.mad.len()), self.rng.index(8));
                if let Some(byte) = packet.mad.get_mut(byte) {
                    *byte ^= 1 << bit;
                }
            }
            if self.rng.chance(faults.reordering) {
                let most = u64::try_from(faults.delay.as_micros()).unwrap_or(u64::MAX);
                time = time + Duration::from_micros(self.rng.below(most.saturating_add(1)));
            }
            if self.rng.chance(faults.duplication) {
                self.queue.plan(time + self.config.hop, event(packet));
            }
        }
        self.queue.plan(time, event(packet));
    }

    /// A packet has reached a node.
    fn arrive(&mut self, client: u32, at: Peer, mut packet: Packet) {
        let Some(node) = self.nodes.get_mut(at.node) else {
            return;
        };
        if node.fault.silent_after.is_some_and(|n| node.answered >= n) {
            return self.lose(client, Loss::Silent(at.node), &packet);
        }
        let mut effect = None;
        let class = packet.header().mgmt_class;
        let set = packet.header().method == Method::SET;
        let verdict = if class == MgmtClass::SUBN_DR || class == MgmtClass::SUBN_LID {
            let (first, count) = (node.first_port, usize::from(node.ports) + 1);
            let ports = self.ports.get_mut(first..first + count).unwrap_or_default();
            let smp: &mut Smp = bytemuck::must_cast_mut(&mut packet.mad);
            sma::answer(node, ports, at.port, smp, &mut effect)
        } else if class == MgmtClass::PERF {
            let (first, count) = (node.first_port, usize::from(node.ports) + 1);
            let ports = self.ports.get_mut(first..first + count).unwrap_or_default();
            pma::answer(ports, at.port, &mut packet.mad)
        } else {
            Verdict::Forward
        };
        match verdict {
            Verdict::WrongKey => self.lose(client, Loss::MKey(at.node), &packet),
            Verdict::Forward => self.forward(client, at, packet),
            Verdict::Taken => {}
            Verdict::Answer(status) => {
                self.record(client, Happening::Reached(at), &packet);
                let service = match self.nodes.get_mut(at.node) {
                    Some(node) => {
                        node.answered += 1;
                        let time = node.fault.service.unwrap_or(self.config.service);
                        node.busy_until = node.busy_until.max(self.now) + time;
                        node.busy_until
                    }
                    None => self.now,
                };
                self.counts.answered += 1;
                if let Some(port) = self.port_mut(at) {
                    port.counters.received += 1;
                    port.counters.sent += 1;
                }
                if set {
                    self.changes += 1;
                }
                self.reply(client, at, packet, status, service);
                if let Some(effect) = effect {
                    self.apply(at.node, effect);
                }
            }
        }
    }

    /// Sends an answer back.
    fn reply(&mut self, client: u32, at: Peer, mut packet: Packet, status: u16, time: Time) {
        let directed = packet.header().mgmt_class == MgmtClass::SUBN_DR;
        let header = packet.header_mut();
        header.method = Method::new(header.method.get() | 0x80);
        if header.method.get() == 0x82 {
            // A Set is answered by a GetResp.
            header.method = Method::GET_RESP;
        }
        header.status = Be16::new(if directed { status | 0x8000 } else { status });
        let Some(home) = self
            .clients
            .get(usize::try_from(client).unwrap_or(usize::MAX))
            .map(|c| c.end)
        else {
            return;
        };
        let way = self.way_back(at, home, &mut packet);
        match way {
            Ok(way) => {
                let time = time + self.config.hop * way.hops;
                self.travel(
                    time,
                    way.hops > 0,
                    packet,
                    |packet| Event::Deliver { client, packet },
                    client,
                );
            }
            Err(loss) => self.lose(client, loss, &packet),
        }
    }

    /// Hands a packet that no agent takes to a program at the node.
    fn forward(&mut self, client: u32, at: Peer, packet: Packet) {
        let number = if packet.header().method.is_response() {
            // The top of the transaction id says whose answer it is.
            u32::try_from(packet.header().tid.get() >> 48)
                .ok()
                .filter(|n| self.client_at(*n, at))
        } else {
            // A subnet manager before others.
            let here = |n: &u32| self.client_at(*n, at);
            let numbers = || (0..).take(self.clients.len());
            let is_sm = |n: &u32| {
                usize::try_from(*n).is_ok_and(|n| self.clients.get(n).is_some_and(|c| c.is_sm))
            };
            numbers()
                .find(|n| is_sm(n) && here(n))
                .or_else(|| numbers().find(here))
        };
        let mut packet = packet;
        let sender = self
            .clients
            .get(usize::try_from(client).unwrap_or(usize::MAX));
        if let Some(sender) = sender.filter(|_| packet.header().mgmt_class != MgmtClass::SUBN_DR) {
            packet.address.lid = self.lids(sender.end).0;
        }
        match number {
            Some(number) => self.deliver(number, packet),
            None => self.lose(client, Loss::NoProgram(at), &packet),
        }
    }

    /// Is this program at this port, or at port 0 of this switch?
    fn client_at(&self, number: u32, at: Peer) -> bool {
        let end = self
            .clients
            .get(usize::try_from(number).unwrap_or(usize::MAX))
            .filter(|c| !c.gone)
            .map(|c| c.end);
        end.is_some_and(|end| end.node == at.node && (end.port == at.port || end.port == 0))
    }

    fn deliver(&mut self, client: u32, packet: Packet) {
        self.counts.delivered += 1;
        self.record(client, Happening::Delivered, &packet);
        if let Some(client) = self.client_mut(client) {
            let mut packet = packet;
            packet.response_time = Duration::ZERO;
            packet.delivery = Delivery::Received;
            client.inbox.push_back(packet);
        }
    }

    /// What an answer changes at the links.
    fn apply(&mut self, node: usize, effect: Effect) {
        match effect {
            Effect::Bounce(port) => {
                let end = Peer { node, port };
                self.set_link(end, false);
                self.set_link(end, true);
            }
            Effect::Disable(port) => {
                let end = Peer { node, port };
                if let Some(port) = self.port_mut(end) {
                    port.disabled = true;
                    port_info::down(port);
                }
                self.set_link(end, false);
            }
            Effect::Enable(port) => {
                let end = Peer { node, port };
                let was = self
                    .port_mut(end)
                    .is_some_and(|p| std::mem::replace(&mut p.disabled, false));
                if was {
                    self.set_link(end, true);
                }
            }
        }
    }

    /// Both ends of a cable agree on a rate and come up in Init.
    fn train(&mut self, end: Peer) {
        let Some(far) = self.port(end).and_then(|p| p.peer) else {
            return;
        };
        let (Some(a), Some(b)) = (self.port(end), self.port(far)) else {
            return;
        };
        let (width, speed) = (
            a.widths.and(b.widths).widest(),
            a.speeds.and(b.speeds).fastest(),
        );
        if a.disabled || b.disabled || width.lanes() == 0 || speed == Speeds::NONE {
            return;
        }
        for end in [end, far] {
            if let Some(port) = self.port_mut(end) {
                port_info::up(port, width, speed);
            }
            self.note_change(end.node);
        }
    }

    /// A switch notes that one of its ports has changed, and tells it.
    fn note_change(&mut self, node: usize) {
        self.changes += 1;
        let Some(switch) = self.nodes.get_mut(node).and_then(|n| n.switch.as_mut()) else {
            return;
        };
        switch.info.life.set_port_state_change(true);
        let own = Peer { node, port: 0 };
        let (lid, _) = self.lids(own);
        let notice = Notice::generic(1, 2, TrapNumber::LINK_STATE, lid, &lid);
        self.plan_trap(node, notice);
    }

    fn plan_trap(&mut self, node: usize, notice: Notice) {
        // Who has no LID has nobody to tell.
        if self.lids(self.voice(node)).0 == Lid::RESERVED {
            return;
        }
        self.next_trap = self.next_trap.wrapping_add(1);
        let tid = u64::from(self.next_trap);
        let at = self.now + self.config.service;
        if let Some(it) = self.nodes.get_mut(node) {
            // One that is still being told covers this as well, but for its number.
            let waiting = it.trap.is_some();
            let times = 0;
            it.trap = Some(Told { notice, tid, times });
            if !waiting {
                self.queue.plan(at, Event::Tell { node });
            }
        }
    }

    /// The port that speaks for a node: port 0 of a switch, the first that is up of another.
    fn voice(&self, node: usize) -> Peer {
        let ports = self.nodes.get(node).map_or(0, |n| n.ports);
        let up = |port: &u8| self.is_link_up(Peer { node, port: *port });
        let port = if self.is_switch(node) {
            0
        } else {
            (1..=ports).find(up).unwrap_or(1)
        };
        Peer { node, port }
    }

    /// Sends the trap that a node has to tell to its subnet manager.
    fn tell(&mut self, node: usize) {
        let Some(it) = self.nodes.get_mut(node) else {
            return;
        };
        let silent = it.fault.silent_after.is_some_and(|n| it.answered >= n);
        let Some(told) = it.trap.as_mut() else { return };
        told.times += 1;
        let told = *told;
        if told.times >= TRAP_TIMES {
            it.trap = None;
        } else {
            self.queue.plan(self.now + TRAP_AGAIN, Event::Tell { node });
        }
        let from = self.voice(node);
        let (lid, sm_lid) = self.lids(from);
        if silent || lid == Lid::RESERVED || sm_lid == Lid::RESERVED {
            return;
        }
        let mut smp = Smp::get(&DrPath::LOCAL, AttributeId::NOTICE, 0);
        smp.header.mgmt_class = MgmtClass::SUBN_LID;
        smp.header.method = Method::TRAP;
        smp.header.class_specific = Be16::ZERO;
        smp.header.tid = Be64::new(told.tid);
        let mut notice = told.notice;
        notice.issuer = lid;
        smp.set_attribute(&notice);
        let mut packet = Packet::directed(&smp, Duration::ZERO);
        packet.address.lid = lid;
        match self.by_lid(from, sm_lid) {
            Ok(way) => {
                let time = self.now + self.config.hop * way.hops;
                let to = way.to;
                let event = move |packet| Event::Arrive {
                    client: u32::MAX,
                    at: to,
                    packet,
                };
                self.travel(time, way.hops > 0, packet, event, u32::MAX);
            }
            Err(loss) => self.lose(u32::MAX, loss, &packet),
        }
    }

    /// A program says that it is a subnet manager, or no longer is.
    pub(crate) fn announce(&mut self, client: u32, on: bool) {
        let Some(it) = self.client_mut(client) else {
            return;
        };
        it.is_sm = on;
        let end = it.end;
        let others = self
            .clients
            .iter()
            .any(|c| c.is_sm && !c.gone && c.end == end);
        let own = if self.is_switch(end.node) {
            Peer { port: 0, ..end }
        } else {
            end
        };
        let Some(port) = self.port_mut(own) else {
            return;
        };
        if port.info.capability_mask.sm() == others {
            return;
        }
        port.info.capability_mask.set_sm(others);
        let details = LocalChangeDetails {
            lid: port.info.lid,
            capability_mask: Be32::from(port.info.capability_mask),
            ..LocalChangeDetails::zeroed()
        };
        let (lid, producer) = (port.info.lid, 1);
        let notice = Notice::generic(4, producer, TrapNumber::LOCAL_CHANGES, lid, &details);
        self.plan_trap(end.node, notice);
    }

    pub(crate) fn return_losses(&mut self, client: u32) {
        if let Some(it) = self.client_mut(client) {
            it.wants_losses = true;
        }
    }

    /// NodeInfo as a port answers it.
    pub(crate) fn node_info(&self, end: Peer) -> Option<NodeInfo> {
        let node = self.nodes.get(end.node)?;
        let mut info = node.info;
        info.local_port = end.port;
        if node.switch.is_none() {
            info.port_guid = Guid::new(self.port(end)?.guid);
        }
        Some(info)
    }

    /// A program has ended. What arrives for it is lost.
    pub(crate) fn detach(&mut self, client: u32) {
        if let Some(it) = self.client_mut(client) {
            it.gone = true;
            it.inbox.clear();
        }
        self.announce(client, false);
    }

    /// A node starts anew: its links go down and train again, and it has forgotten all that was
    /// set.
    pub fn reboot(&mut self, node: usize) {
        let Some(known) = self.topology.node(node).cloned() else {
            return;
        };
        for number in 1..=known.port_count {
            let end = Peer { node, port: number };
            if self.is_link_up(end) {
                self.set_link(end, false);
            }
        }
        let fastest = known
            .ports()
            .iter()
            .fold(Speeds::SDR, |all, p| all.or(p.speeds));
        let Some(it) = self.nodes.get_mut(node) else {
            return;
        };
        if let Some(switch) = it.switch.as_mut() {
            let enhanced = known.enhanced_port_zero == Some(true);
            **switch = sma::switch(enhanced);
        }
        it.tables.clear();
        it.trap = None;
        let first = it.first_port;
        for number in 0..=known.port_count {
            if let Some(port) = self.ports.get_mut(first + usize::from(number)) {
                let mut fresh = port_info::initial(&known, number, fastest);
                // A cable that was moved stays where it is, and LIDs are not in the file of a
                // running fabric.
                fresh.peer = port.peer;
                fresh.info.lid = Lid::RESERVED;
                fresh
                    .info
                    .capability_mask
                    .set_sm(port.info.capability_mask.sm());
                *port = fresh;
            }
        }
        for number in 1..=known.port_count {
            let end = Peer { node, port: number };
            if self.port(end).is_some_and(|p| p.peer.is_some()) {
                self.set_link(end, true);
            }
        }
    }

    /// What a switch's forwarding table holds, and the last LID that counts.
    #[must_use]
    pub fn forwarding(&self, node: usize) -> Option<(&[u8], u16)> {
        let switch = self.nodes.get(node)?.switch.as_ref()?;
        Some((&switch.lft, switch.info.linear_fdb_top.get()))
    }

    /// The state of a port.
    #[must_use]
    pub fn port_info(&self, end: Peer) -> Option<PortInfo> {
        self.port(end).map(|port| port.info)
    }

    /// The other end of a port's cable, plugged in and up.
    #[must_use]
    pub fn far_end(&self, end: Peer) -> Option<Peer> {
        let far = self.port(end)?.peer?;
        (self.is_link_up(end) && self.is_link_up(far)).then_some(far)
    }

    /// A number that changes whenever a Set was answered or a cable changed.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    fn flap(&mut self, index: usize, up: bool) {
        let Some(flap) = self.config.faults.flaps.get(index).copied() else {
            return;
        };
        self.set_link(flap.end, up);
        let next = if up { flap.up } else { Some(flap.down) };
        if let Some(after) = next {
            // At least a microsecond, so that a plan of zeros does not stop the clock.
            self.queue.plan(
                self.now + after.max(Duration::from_micros(1)),
                Event::Flap { index, up: !up },
            );
        }
    }

    fn lose(&mut self, client: u32, loss: Loss, packet: &Packet) {
        self.counts.lost += 1;
        self.record(client, Happening::Lost(loss), packet);
        let method = packet.header().method;
        let asked = method == Method::GET || method == Method::SET || method.is_response();
        let mut back = *packet;
        back.delivery = Delivery::TimedOut;
        // What was sent by another program as an answer is not its to hear of.
        let own = !method.is_response() || u64::from(client) == packet.header().tid.get() >> 48;
        if let Some(it) = self
            .client_mut(client)
            .filter(|it| it.wants_losses && asked && own)
        {
            it.inbox.push_back(back);
        }
    }

    fn record(&mut self, client: u32, happening: Happening, packet: &Packet) {
        if self.trace.is_some() {
            let entry = Entry::of(self.now, client, happening, packet);
            self.note(entry);
        }
    }

    fn note(&mut self, entry: Entry) {
        if let Some(trace) = &mut self.trace {
            trace.push(entry);
        }
    }

    fn client_mut(&mut self, number: u32) -> Option<&mut Client> {
        self.clients.get_mut(usize::try_from(number).ok()?)
    }

    pub(crate) fn port(&self, end: Peer) -> Option<&Port> {
        let node = self.nodes.get(end.node).filter(|n| end.port <= n.ports)?;
        self.ports.get(node.first_port + usize::from(end.port))
    }

    fn port_mut(&mut self, end: Peer) -> Option<&mut Port> {
        let node = self.nodes.get(end.node).filter(|n| end.port <= n.ports)?;
        self.ports.get_mut(node.first_port + usize::from(end.port))
    }
}

/// NodeInfo, but for what depends on the port that is asked through.
fn node_info(node: &crate::topo::Node) -> NodeInfo {
    NodeInfo {
        base_version: 1,
        class_version: 1,
        node_type: NodeType::new(node.kind.node_type()),
        num_ports: node.port_count,
        system_image_guid: Guid::new(node.system_guid),
        node_guid: Guid::new(node.guid),
        port_guid: Guid::new(node.guid),
        partition_cap: Be16::new(sma::partition_cap(node.is_switch())),
        device_id: Be16::new(node.device_id),
        revision: Be32::new(0xa1),
        local_port: 0,
        vendor_id: Be24::new(node.vendor_id),
    }
}
