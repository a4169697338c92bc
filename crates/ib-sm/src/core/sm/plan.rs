//! What is to be written, and in which order.

use std::collections::BTreeMap;

use ib_mad::Time;
use ib_mad::id::Guid;
use ib_mad::smp::{LinearForwarding, PortState, SlToVl, Smp, SwitchInfo};

use crate::core::topology::Node;
use crate::routing::{BLOCK, NO_PORT, Sl2Vl, Tables};

use super::engine::{Ask, Held, Sm, Stage};
use super::lid::Claim;
use super::model::routed;
use super::order::{self, BlockWrite};
use super::setup::{self, Situation};
use super::{Event, fallback::Fallback};

/// LIDs of a block of a forwarding table.
const BLOCK_LIDS: u16 = 64;
const _: () = assert!(BLOCK_LIDS as usize == BLOCK);

/// Setbacks in a row after which what can be written is written, in whatever order is left: one
/// switch that never answers must not keep all others from being routed.
const PATIENCE: u8 = 3;

/// A write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A port's settings, by port.
    Port(u32),
    /// A link of a port goes to ACTIVE, by port.
    Activate(u32),
    /// A port is taken out of service, by port.
    Disable(u32),
    /// A block of a switch of the routed fabric becomes what the tables say.
    Block { switch: u32, block: u16 },
    /// It becomes something else for a while.
    Scrub(Box<BlockWrite>),
    /// SwitchInfo of a node.
    Switch(u32),
    /// A map of service levels.
    SlToVl { switch: u32, input: u8, output: u8 },
}

impl Sm {
    /// LIDs and tables; then blocks are read that switches hold and nobody here knows.
    pub(super) fn prepare(&mut self, now: Time) {
        self.assign();
        let avoid = std::mem::take(&mut self.avoid);
        let built = routed(
            &self.topology,
            &self.port_lids,
            self.config.ports.lmc,
            &avoid,
        );
        self.avoid = avoid;
        match built {
            Ok(built) => self.routed = built,
            Err(error) => {
                // LIDs are given so that they do not collide; this is a fabric that contradicts
                // itself and may not do so when looked at again.
                tracing::warn!(%error, "the fabric cannot be routed");
                self.work.failed += 1;
                self.set_back(now);
                return;
            }
        }
        let fabric = &self.routed.fabric;
        let options = &self.config.routing;
        let mut tables = match self.router.route(fabric, options) {
            Ok(tables) => tables,
            Err(error) => {
                use crate::routing::Engine as _;
                let mut tables = Fallback
                    .route(fabric, options)
                    .unwrap_or_else(|_| Tables::empty(fabric));
                tables.account.notes.push(error.to_string());
                tables
            }
        };
        if tables.top_lid() < fabric.top_lid() {
            // Nobody relies on it, but a table that ends early would be written as one.
            tables
                .account
                .notes
                .push("the tables end before the last LID".to_owned());
        }
        self.tables = Some(tables);
        self.ask_unknown_blocks();
        self.stage = Stage::Read;
    }

    fn assign(&mut self) {
        let mut claims = Vec::new();
        let mut places = Vec::new();
        for node in &self.topology.nodes {
            let own = self.topology.ports_of(node);
            for (at, port) in own.iter().enumerate() {
                if node.is_switch() && port.number != 0 {
                    continue;
                }
                let info = port.info;
                claims.push(Claim {
                    guid: port.guid,
                    lmc: if node.is_switch() {
                        0
                    } else {
                        self.config.ports.lmc
                    },
                    current: info.map_or(0, |it| it.lid.get()),
                });
                places.push(node.first_port as usize + at);
            }
        }
        let before = self.lids.clone();
        let given = self.lids.assign(&claims);
        self.port_lids = vec![0; self.topology.ports.len()];
        for ((place, claim), lid) in places.into_iter().zip(&claims).zip(given) {
            if let Some(slot) = self.port_lids.get_mut(place) {
                *slot = lid;
            }
            if lid == 0 {
                let guid = claim.guid;
                self.events.push_back(if self.lids.get(guid).is_some() {
                    Event::DuplicateGuid { guid }
                } else {
                    Event::NoLid { guid }
                });
            }
        }
        if self.lids != before {
            let ports = self.lids.len();
            self.events.push_back(Event::Lids { ports });
        }
    }

    /// Whether packets may be on their way through a switch.
    fn is_live(&self, node: &Node) -> bool {
        self.topology
            .ports_of(node)
            .iter()
            .any(|it| it.number > 0 && it.info.is_some_and(|it| it.state() == PortState::ACTIVE))
    }

    fn ask_unknown_blocks(&mut self) {
        let Some(tables) = &self.tables else { return };
        let last = tables.top_lid() / BLOCK_LIDS;
        let mut asks = Vec::new();
        for &index in &self.routed.nodes {
            let Some(node) = self.topology.node(index) else {
                continue;
            };
            // Where it does not say, all may be in use.
            let top = node.switch.map_or(u16::MAX, |it| it.linear_fdb_top.get());
            if top == 0 || !self.is_live(node) {
                continue;
            }
            let held = self.held.get(&node.guid());
            for block in 0..=last.min(top / BLOCK_LIDS) {
                if !held.is_some_and(|it| it.is_known(block)) {
                    asks.push(Ask::Read {
                        node: index.0,
                        block,
                    });
                }
            }
        }
        self.asks.extend(asks);
    }

    /// What is not as it is to be, as rounds.
    pub(super) fn plan(&mut self, now: Time) {
        let Some(tables) = &self.tables else {
            self.stage = Stage::Idle;
            return;
        };
        let mut first: Vec<Step> = Vec::new();
        for at in 0..u32::try_from(self.topology.ports.len()).unwrap_or(0) {
            if self.wanted_port(at).is_some() {
                first.push(Step::Port(at));
            }
        }
        self.plan_levels(tables, &mut first);
        let last = tables.top_lid() / BLOCK_LIDS;
        // Blocks that nobody can be using, and those that some packet may be on its way by.
        let mut changed: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
        let mut blocks = 0;
        let mut unknown = 0;
        let none = Held::default();
        for (switch, index) in (0_u32..).zip(&self.routed.nodes) {
            let Some(node) = self.topology.node(*index) else {
                continue;
            };
            let held = self.held.get(&node.guid()).unwrap_or(&none);
            let row = tables.lft(switch);
            let top = node.switch.map_or(u16::MAX, |it| it.linear_fdb_top.get());
            let live = top != 0 && self.is_live(node);
            let is_used = |block: u16| live && block <= top / BLOCK_LIDS;
            for (block, want) in (0..=last).zip(row.chunks(BLOCK)) {
                if !held.is_known(block) && is_used(block) && self.setbacks < PATIENCE {
                    // It could not be read, so nothing is known about the order either.
                    unknown += 1;
                } else if !held.is_known(block) {
                    first.push(Step::Block { switch, block });
                    blocks += 1;
                } else if held.block(block) != want {
                    changed.entry(block).or_default().push(switch);
                    blocks += 1;
                }
            }
        }
        let guids: Vec<Guid> = self
            .routed
            .nodes
            .iter()
            .map(|it| self.guid_of(*it))
            .collect();
        let held = &self.held;
        let have = |switch: u32, block: u16| {
            let guid = guids.get(switch as usize);
            guid.and_then(|it| held.get(it))
                .map_or([NO_PORT; BLOCK], |it| it.block(block))
        };
        let ordered = order::rounds(&self.routed.fabric, tables, &changed, have);
        let mut rounds: Vec<Vec<Step>> = vec![first];
        for round in ordered {
            let steps = round.into_iter().map(|write| {
                let from = usize::from(write.block) * BLOCK;
                let row = tables.lft(write.switch).get(from..from + BLOCK);
                if row.is_some_and(|it| it == write.entries) {
                    Step::Block {
                        switch: write.switch,
                        block: write.block,
                    }
                } else {
                    Step::Scrub(Box::new(write))
                }
            });
            rounds.push(steps.collect());
        }
        let switches = self.routed.nodes.iter().map(|it| it.0);
        rounds.push(
            switches
                .filter(|&it| self.wanted_switch(it).is_some())
                .map(Step::Switch)
                .collect(),
        );
        let account = &tables.account;
        self.events.push_back(Event::Routed {
            engine: account.engine.clone(),
            shape: account.shape.clone(),
            vls: account.vls,
            notes: account.notes.clone(),
            blocks,
            rounds: rounds.iter().filter(|it| !it.is_empty()).count(),
        });
        self.rounds = rounds.into();
        self.work.failed += unknown;
        self.stage = Stage::Write;
        let _ = now;
    }

    fn guid_of(&self, index: crate::core::topology::NodeIndex) -> Guid {
        self.topology
            .node(index)
            .map(Node::guid)
            .unwrap_or_default()
    }

    /// Maps of service levels, where tables use more than one.
    fn plan_levels(&self, tables: &Tables, steps: &mut Vec<Step>) {
        if tables.account.sls <= 1 && tables.sl2vl == Sl2Vl::zero() {
            return;
        }
        for (switch, it) in (0_u32..).zip(self.routed.fabric.switches()) {
            let cabled = |port: u8| port == 0 || self.routed.fabric.port(switch, port).is_some();
            for input in (0..=it.ports).filter(|&it| cabled(it)) {
                for output in (1..=it.ports).filter(|&it| cabled(it)) {
                    steps.push(Step::SlToVl {
                        switch,
                        input,
                        output,
                    });
                }
            }
        }
    }

    fn situation(&self, port: u32) -> Option<Situation> {
        let it = self.port(port)?;
        let node = self.topology.node(it.node)?;
        let far = self.topology.peer_of(it);
        let local = self.topology.nodes.first()?;
        // A switch is managed by its port 0.
        let local_port = if local.is_switch() {
            0
        } else {
            self.topology.local_port
        };
        let at = self.topology.ports_of(local);
        let at = at.iter().position(|it| it.number == local_port)?;
        let sm_lid = self.port_lids.get(local.first_port as usize + at).copied();
        Some(Situation {
            agent: !node.is_switch() || it.number == 0,
            of_switch: node.is_switch(),
            lid: self.port_lids.get(port as usize).copied().unwrap_or(0),
            sm_lid: sm_lid.unwrap_or(0),
            far: far.and_then(|(_, port)| port.info),
            far_is_end: far.is_some_and(|(node, _)| !node.is_switch()),
        })
    }

    fn wanted_port(&self, port: u32) -> Option<ib_mad::smp::PortInfo> {
        let it = self.port(port)?;
        let have = it.info?;
        let situation = self.situation(port)?;
        if situation.agent && situation.lid == 0 {
            return None;
        }
        if !situation.agent && situation.far.is_none() {
            return None;
        }
        if it.number != 0 && !have.is_link_up() {
            return None;
        }
        let wanted = setup::wanted(&have, situation, &self.config.ports)?;
        let settled = self.spot(port).and_then(|it| self.settled.get(&it));
        (settled != Some(&wanted)).then_some(wanted)
    }

    fn wanted_switch(&self, node: u32) -> Option<SwitchInfo> {
        let have = self.node(node)?.switch?;
        let mut want = have;
        want.linear_fdb_top = self.tables.as_ref()?.top_lid().into();
        want.life.set_life_time(self.config.ports.packet_life);
        // The note of a change is left, and cleared by a rescan before it looks: what changed since
        // the walk looked would be lost otherwise.
        if want == have {
            return None;
        }
        want.life.set_port_state_change(false);
        Some(want)
    }

    /// The port may become ACTIVE: both ends are ready.
    fn is_ready(&self, port: u32) -> bool {
        let armed =
            |it: Option<ib_mad::smp::PortInfo>| it.is_some_and(|it| it.state() >= PortState::ARMED);
        self.port(port).is_some_and(|it| {
            it.number != 0
                && it.info.is_some_and(|it| it.state() == PortState::ARMED)
                && self
                    .topology
                    .peer_of(it)
                    .is_some_and(|(_, far)| armed(far.info))
        })
    }

    pub(super) fn next_round(&mut self, now: Time) {
        if self.work.failed > 0 && !self.rounds.is_empty() && self.setbacks < PATIENCE {
            // The order would no longer keep packets from going in circles.
            self.set_back(now);
            return;
        }
        while let Some(round) = self.rounds.pop_front() {
            if !round.is_empty() {
                self.asks.extend(round.into_iter().map(Ask::Step));
                return;
            }
        }
        let ports = 0..u32::try_from(self.topology.ports.len()).unwrap_or(0);
        let ready = ports.filter(|&it| self.is_ready(it));
        let steps: Vec<Ask> = ready.map(|it| Ask::Step(Step::Activate(it))).collect();
        self.asks.extend(steps);
        self.stage = Stage::Activate;
    }

    pub(super) fn step_request(&self, step: &Step) -> Option<Smp> {
        match *step {
            Step::Port(port) => {
                let info = self.wanted_port(port)?;
                let number = self.port(port)?.number;
                Some(Smp::set(&self.path_to(port)?, number.into(), &info))
            }
            Step::Activate(port) => {
                let it = self.port(port)?;
                let info = setup::activate(&it.info?);
                Some(Smp::set(&self.path_to(port)?, it.number.into(), &info))
            }
            Step::Disable(port) => {
                let it = self.port(port)?;
                let info = setup::disable(&it.info?);
                Some(Smp::set(&self.path_to(port)?, it.number.into(), &info))
            }
            Step::Block { switch, block } => {
                let mut entries = [NO_PORT; BLOCK];
                let from = usize::from(block) * BLOCK;
                let row = self.tables.as_ref()?.lft(switch).get(from..from + BLOCK)?;
                entries.copy_from_slice(row);
                self.block_request(switch, block, entries)
            }
            Step::Scrub(ref write) => self.block_request(write.switch, write.block, write.entries),
            Step::Switch(node) => {
                let info = self.wanted_switch(node)?;
                Some(Smp::set(&self.node(node)?.path, 0, &info))
            }
            Step::SlToVl {
                switch,
                input,
                output,
            } => {
                let index = self.routed.nodes.get(switch as usize)?;
                let map = self.tables.as_ref()?.sl2vl.map(switch, input, output);
                let modifier = SlToVl::modifier(input, output);
                let path = self.topology.node(*index)?.path;
                Some(Smp::set(&path, modifier, &SlToVl::new(map)))
            }
        }
    }

    fn block_request(&self, switch: u32, block: u16, entries: [u8; BLOCK]) -> Option<Smp> {
        let index = self.routed.nodes.get(switch as usize)?;
        let path = self.topology.node(*index)?.path;
        Some(Smp::set(&path, block.into(), &LinearForwarding(entries)))
    }

    pub(super) fn on_step(&mut self, step: &Step, smp: &Smp) {
        match *step {
            Step::Port(port) | Step::Activate(port) | Step::Disable(port) => {
                if let Some(it) = self.topology.ports.get_mut(port as usize) {
                    let mut info: ib_mad::smp::PortInfo = *smp.attribute();
                    // A request to register again is answered by the bit that was sent.
                    info.subnet_timeout.set_client_reregister(false);
                    it.info = Some(info);
                }
                if matches!(step, Step::Port(_))
                    && let Some(more) = self.wanted_port(port)
                    && let Some(spot) = self.spot(port)
                {
                    // Some devices do not keep all that they are sent. Once is enough.
                    self.settled.insert(spot, more);
                }
                match step {
                    Step::Activate(_) => self.work.activated += 1,
                    _ => self.work.ports += 1,
                }
            }
            Step::Block { switch, block } => {
                let from = usize::from(block) * BLOCK;
                let row = self
                    .tables
                    .as_ref()
                    .and_then(|it| it.lft(switch).get(from..from + BLOCK));
                let same = row.is_some_and(|it| it == smp.data);
                self.work.blocks += 1;
                self.wrote(switch, block, &smp.data, same);
            }
            Step::Scrub(ref write) => {
                self.work.blocks += 1;
                self.work.scrubbed += 1;
                let same = smp.data == write.entries;
                self.wrote(write.switch, write.block, &smp.data, same);
            }
            Step::Switch(node) => {
                if let Some(node) = self.topology.nodes.get_mut(node as usize) {
                    node.switch = Some(*smp.attribute());
                }
            }
            Step::SlToVl { .. } => {}
        }
    }

    fn wrote(&mut self, switch: u32, block: u16, entries: &[u8; BLOCK], same: bool) {
        let Some(index) = self.routed.nodes.get(switch as usize).copied() else {
            return;
        };
        let guid = self.guid_of(index);
        self.held.entry(guid).or_default().set(block, entries);
        if !same {
            self.work.failed += 1;
            self.events.push_back(Event::Forgot { switch: guid });
        }
    }

    pub(super) fn on_step_failed(&mut self, step: &Step, status: Option<u16>) {
        self.work.failed += 1;
        let (node, what) = match *step {
            Step::Port(port) => (self.spot(port), "setting up a port"),
            Step::Activate(port) => (self.spot(port), "making a link active"),
            Step::Disable(port) => (self.spot(port), "disabling a port"),
            Step::Block { switch, block } => {
                let guid = self.forget_block(switch, block);
                (Some((guid, 0)), "writing a forwarding table")
            }
            Step::Scrub(ref write) => {
                let guid = self.forget_block(write.switch, write.block);
                (Some((guid, 0)), "writing a forwarding table")
            }
            Step::Switch(node) => (
                self.node(node).map(|it| (it.guid(), 0)),
                "writing SwitchInfo",
            ),
            Step::SlToVl { switch, .. } => {
                let index = self.routed.nodes.get(switch as usize);
                let guid = index.map(|it| self.guid_of(*it));
                // Where a device has no such table, one lane is what it has.
                self.work.failed -= u64::from(status.is_some());
                (guid.map(|it| (it, 0)), "writing a map of service levels")
            }
        };
        let guid = node.map(|it| it.0).unwrap_or_default();
        // Where it was started anew meanwhile, what had been written before is gone.
        self.held.remove(&guid);
        self.tell_failure(guid, what, status);
    }

    fn forget_block(&mut self, switch: u32, block: u16) -> Guid {
        let index = self.routed.nodes.get(switch as usize).copied();
        let guid = index.map(|it| self.guid_of(it)).unwrap_or_default();
        if let Some(held) = self.held.get_mut(&guid) {
            held.forget(block);
        }
        guid
    }
}
