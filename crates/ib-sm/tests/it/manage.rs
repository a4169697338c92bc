//! The subnet manager on simulated fabrics: bring-up, one cable, several managers, and faults by
//! seed. All times are simulated.
#![expect(clippy::print_stderr, reason = "figures, and what a seed did")]

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::smp::{PortState, SmState};
use ib_mad::{MadPort, Time};
use ib_sim::topo::Peer;
use ib_sim::{Config as SimConfig, Fabric, Faults, NodeFault, Rng, SharedFabric, SimPort};
use ib_sm::core::sm::{Config, Event, Fallback, LidMap, Reason, Sm, Work};

use crate::walk::topology;

/// A manager and where it sits.
struct Manager {
    port: SimPort,
    sm: Sm,
    events: Vec<Event>,
}

impl Manager {
    fn last_work(&self) -> Option<Work> {
        self.events.iter().rev().find_map(|it| match it {
            Event::Up(work) => Some(*work),
            _ => None,
        })
    }
}

struct World {
    fabric: SharedFabric,
    managers: Vec<Manager>,
    changes: u64,
    /// How often the tables were looked through for circles.
    looks: u64,
}

fn config() -> Config {
    Config {
        timeout: Duration::from_millis(20),
        light_sweep: Some(Duration::from_secs(1)),
        poll: Duration::from_millis(500),
        poll_failures: 2,
        again: Duration::from_millis(100),
        ..Config::default()
    }
}

impl World {
    fn new(spec: &str, sim: SimConfig) -> Self {
        let fabric = Fabric::new(topology(spec), sim).expect("a fabric");
        Self {
            fabric: SharedFabric::new(fabric),
            managers: Vec::new(),
            changes: 0,
            looks: 0,
        }
    }

    fn manage(&mut self, node: &str, config: Config, lids: LidMap) {
        let mut port = self.fabric.attach(node).expect("a port");
        port.announce_sm(true).expect("announced");
        self.managers.push(Manager {
            port,
            sm: Sm::new(config, &Fallback, lids),
            events: Vec::new(),
        });
    }

    fn now(&self) -> Time {
        self.fabric.lock().now()
    }

    /// Lets time pass until `until` says so, `limit` at most; whether it said so.
    fn run(&mut self, limit: Duration, until: impl Fn(&[Manager]) -> bool) -> bool {
        let end = self.now() + limit;
        loop {
            let now = self.now();
            let mut next = end;
            for it in &mut self.managers {
                while let Some(packet) = it.port.collect() {
                    it.sm.handle_mad(now, &packet);
                }
                it.sm.handle_timeout(now);
                while let Some(packet) = it.sm.poll_transmit(now) {
                    it.port.send(&packet).expect("a simulated port takes it");
                }
                while let Some(event) = it.sm.poll_event() {
                    if std::env::var_os("IB_SM_EVENTS").is_some() {
                        eprintln!("    {now}: {event:?}");
                    }
                    it.events.push(event);
                }
                next = next.min(it.sm.poll_timeout().unwrap_or(end));
            }
            if until(&self.managers) {
                return true;
            }
            if now >= end {
                return false;
            }
            let mut fabric = self.fabric.lock();
            match fabric.next_event() {
                Some(time) if time <= next => {
                    fabric.step();
                }
                // A deadline that has passed must not hold the clock.
                _ => fabric.advance(next.max(now + Duration::from_micros(1))),
            }
            let changed =
                std::mem::replace(&mut self.changes, fabric.changes()) != fabric.changes();
            if changed {
                no_circles(&fabric);
                self.looks += 1;
            }
        }
    }

    fn up(&mut self) {
        let is_up = |all: &[Manager]| all.iter().any(|it| it.sm.is_up());
        let came_up = self.run(Duration::from_secs(60), is_up);
        let told: Vec<_> = self
            .managers
            .iter()
            .map(|it| it.events.iter().rev().take(12).collect::<Vec<_>>())
            .collect();
        assert!(came_up, "no manager came up: {told:#?}");
    }
}

/// Where data goes on from a switch to a LID: out of an ACTIVE port, into one that receives.
fn next_hop(fabric: &Fabric, node: usize, lid: u16) -> Option<Peer> {
    let (table, top) = fabric.forwarding(node)?;
    let out = *table.get(usize::from(lid)).filter(|_| lid <= top)?;
    if out == 0 || out == 0xff {
        return None;
    }
    let near = Peer { node, port: out };
    let far = fabric.far_end(near)?;
    let flows = fabric.port_info(near)?.state() == PortState::ACTIVE
        && fabric.port_info(far)?.state() >= PortState::ARMED;
    flows.then_some(far)
}

/// Everybody's LIDs, and the node that has each.
fn lids(fabric: &Fabric) -> BTreeMap<u16, usize> {
    let mut all = BTreeMap::new();
    for (node, it) in fabric.topology().nodes().iter().enumerate() {
        let numbers = if it.is_switch() {
            0..=0
        } else {
            1..=it.port_count
        };
        for port in numbers {
            let lid = fabric
                .port_info(Peer { node, port })
                .map_or(0, |it| it.lid.get());
            if lid != 0 {
                all.insert(lid, node);
            }
        }
    }
    all
}

/// No packet to any LID goes in a circle, from wherever it starts.
fn no_circles(fabric: &Fabric) {
    let nodes = fabric.topology().nodes();
    let switches: Vec<usize> = (0..nodes.len())
        .filter(|&it| nodes[it].is_switch())
        .collect();
    let mut turn = vec![0_u32; nodes.len()];
    let mut now = 0;
    for lid in lids(fabric).into_keys() {
        let begin = now;
        for &start in &switches {
            now += 1;
            let mut at = start;
            while turn[at] <= begin {
                turn[at] = now;
                match next_hop(fabric, at, lid) {
                    Some(far) => at = far.node,
                    None => break,
                }
                assert!(
                    turn[at] != now,
                    "at {}: packets to LID {lid} go in a circle through {}",
                    fabric.now(),
                    nodes[at].id
                );
            }
        }
    }
}

/// What a switch does with a LID, for people.
fn entry(fabric: &Fabric, node: usize, lid: u16) -> String {
    let out = fabric
        .forwarding(node)
        .and_then(|(table, _)| table.get(usize::from(lid)).copied());
    let near = Peer {
        node,
        port: out.unwrap_or(0),
    };
    let state = |end| fabric.port_info(end).map(|it| it.state());
    let far = fabric.far_end(near);
    format!(
        "entry {out:?}, {:?}, far {far:?} {:?}",
        state(near),
        far.and_then(state)
    )
}

/// Everybody that a cable leads to reaches everybody: how many pairs.
fn all_reach(fabric: &Fabric, from: usize) -> usize {
    let nodes = fabric.topology().nodes();
    let mut seen = vec![false; nodes.len()];
    let mut queue = vec![from];
    seen[from] = true;
    while let Some(node) = queue.pop() {
        for port in 1..=nodes[node].port_count {
            if let Some(far) = fabric.far_end(Peer { node, port })
                && (nodes[node].is_switch() || node == from)
                && !std::mem::replace(&mut seen[far.node], true)
            {
                queue.push(far.node);
            }
        }
    }
    let mut pairs = 0;
    for (lid, owner) in lids(fabric).into_iter().filter(|it| seen[it.1]) {
        for start in (0..nodes.len()).filter(|&it| seen[it] && nodes[it].is_switch()) {
            let mut at = start;
            for _ in 0..64 {
                if at == owner {
                    break;
                }
                at = match next_hop(fabric, at, lid) {
                    Some(far) => far.node,
                    None => panic!(
                        "{}: no way on to LID {lid} of {}: {}",
                        nodes[at].id,
                        nodes[owner].id,
                        entry(fabric, at, lid)
                    ),
                };
            }
            assert_eq!(at, owner, "LID {lid}");
            pairs += 1;
        }
    }
    assert!(pairs > 0, "nobody has a LID");
    pairs
}

/// A new manager that knows the same LIDs finds nothing to write.
fn equals_from_scratch(world: &mut World, node: &str) {
    let lids = world.managers[0].sm.lids().clone();
    world.managers.clear();
    world.manage(node, config(), lids);
    world.up();
    let work = world.managers[0].last_work().expect("it came up");
    assert_eq!(
        (work.blocks, work.activated, work.failed),
        (0, 0, 0),
        "{work:?}"
    );
    assert_eq!(work.reason, Reason::Full);
}

#[test]
fn fabrics_of_all_kinds_come_up() {
    for spec in [
        "fat-tree:108",
        "fat-tree:648",
        "torus:4x4x4,hosts=2",
        "dragonfly:p=2",
        "random:switches=30,hosts=30,seed=3",
        "switch:hosts=3",
        "ring:switches=6",
        "back-to-back",
    ] {
        if spec.parse::<ib_sim::topo::Spec>().is_err() {
            eprintln!("SKIPPED: {spec}: no such generator");
            continue;
        }
        let mut world = World::new(spec, SimConfig::default());
        world.manage("host-0", config(), LidMap::default());
        world.up();
        let work = world.managers[0].last_work().expect("it is up");
        let start = world.managers[0].port.end().node;
        if world.fabric.lock().topology().switches().count() > 0 {
            all_reach(&world.fabric.lock(), start);
        }
        eprintln!(
            "{spec}: up in {:?} simulated, SMPs {}",
            work.total, work.sent
        );
        equals_from_scratch(&mut world, "host-0");
    }
}

#[test]
fn a_cable_costs_what_it_changes() {
    for (spec, leaf, ports) in [
        ("fat-tree:108", "leaf-0", 36),
        ("fat-tree:648", "leaf-0", 36),
    ] {
        let mut world = World::new(spec, SimConfig::default());
        world.manage("host-0", config(), LidMap::default());
        world.up();
        world.run(Duration::from_secs(3), |_| false);
        let node = world.fabric.lock().topology().find(leaf).expect("a leaf");
        let end = Peer { node, port: ports };
        for up in [false, true] {
            let before = world.managers[0].sm.sent();
            world.fabric.lock().set_link(end, up);
            // Less than to the next light sweep, so that only what the event costs is counted.
            world.run(Duration::from_millis(500), |_| false);
            world.up();
            let work = world.managers[0].last_work().expect("it is up");
            let sent = world.managers[0].sm.sent() - before;
            eprintln!(
                "{spec}, a cable {}: SMPs {sent}, blocks {}, simulated {:?}",
                if up { "back" } else { "down" },
                work.blocks,
                work.total
            );
            assert!(matches!(work.reason, Reason::Change { .. }), "{work:?}");
            assert!(sent < 400, "{sent}");
            all_reach(&world.fabric.lock(), node);
        }
        equals_from_scratch(&mut world, "host-0");
    }
}

#[test]
fn the_highest_priority_rules_and_the_next_follows() {
    let mut world = World::new("fat-tree:108", SimConfig::default());
    for (node, priority) in [("host-0", 3), ("host-20", 5), ("host-40", 4)] {
        let config = Config {
            priority,
            ..config()
        };
        world.manage(node, config, LidMap::default());
    }
    let states = |all: &[Manager]| -> Vec<SmState> { all.iter().map(|it| it.sm.state()).collect() };
    let (master, standby) = (SmState::MASTER, SmState::STANDBY);
    let settled = world.run(Duration::from_secs(60), |all| {
        states(all) == [standby, master, standby] && all[1].sm.is_up()
    });
    assert!(settled, "{:?}", states(&world.managers));
    // The master is killed.
    world.managers.remove(1);
    let settled = world.run(Duration::from_secs(60), |all| {
        states(all) == [standby, master] && all[1].sm.is_up()
    });
    assert!(settled, "{:?}", states(&world.managers));
    // It comes back, and is handed what it had.
    world.manage(
        "host-20",
        Config {
            priority: 5,
            ..config()
        },
        LidMap::default(),
    );
    let settled = world.run(Duration::from_secs(60), |all| {
        states(all) == [standby, standby, master] && all[2].sm.is_up()
    });
    assert!(settled, "{:?}", states(&world.managers));
    all_reach(&world.fabric.lock(), 0);
}

/// One run of the campaign: how many faults were injected.
fn campaign(spec: &str, seed: u64) -> (u32, u64) {
    let mut rng = Rng::new(seed);
    let faults = Faults {
        loss: [0, 2_000, 20_000][rng.index(3)],
        duplication: [0, 10_000][rng.index(2)],
        reordering: [0, 50_000][rng.index(2)],
        delay: Duration::from_micros(300),
        ..Faults::default()
    };
    let sim = SimConfig {
        seed,
        faults,
        ..SimConfig::default()
    };
    let mut world = World::new(spec, sim);
    world.manage("host-0", config(), LidMap::default());
    world.run(Duration::from_micros(rng.below(40_000)), |_| false);
    let cables: Vec<Peer> = {
        let fabric = world.fabric.lock();
        let home = fabric.topology().find("host-0").expect("host-0");
        let links = fabric.topology().links();
        // The cable of the manager itself stays.
        links
            .filter(|it| it.a.node != home && it.b.node != home)
            .map(|it| it.a)
            .collect()
    };
    let switches: Vec<usize> = {
        let fabric = world.fabric.lock();
        let nodes = fabric.topology().nodes();
        (0..nodes.len())
            .filter(|&it| nodes[it].is_switch())
            .collect()
    };
    let mut down = Vec::new();
    let mut injected = 0;
    for _ in 0..6 {
        injected += 1;
        let what = rng.index(6);
        eprintln!("  {}: fault {what}", world.now());
        match what {
            0 | 1 => {
                let end = cables[rng.index(cables.len())];
                world.fabric.lock().set_link(end, false);
                down.push(end);
            }
            2 => {
                let end = down.pop().unwrap_or(cables[0]);
                world.fabric.lock().set_link(end, true);
            }
            3 => {
                let node = switches[rng.index(switches.len())];
                eprintln!("  node {node} starts anew");
                world.fabric.lock().reboot(node);
                // Its cables are all in again.
                down.retain(|it| world.fabric.lock().far_end(*it).is_none());
            }
            4 => {
                // A leaf or spine that says nothing for a while.
                let node = switches[rng.index(switches.len())];
                let silent = NodeFault {
                    silent_after: Some(0),
                    ..NodeFault::default()
                };
                world.fabric.lock().set_node_fault(node, silent);
                world.run(Duration::from_micros(rng.below(3_000_000)), |_| false);
                world
                    .fabric
                    .lock()
                    .set_node_fault(node, NodeFault::default());
            }
            _ => {
                // kill -9, and a start from the file.
                let lids = LidMap::parse(&world.managers[0].sm.lids().to_text()).0;
                world.managers.clear();
                world.manage("host-0", config(), lids);
            }
        }
        world.run(Duration::from_micros(rng.below(60_000)), |_| false);
        if rng.index(3) == 0 {
            world.run(Duration::from_secs(4), |_| false);
            world.up();
            let home = world.managers[0].port.end().node;
            all_reach(&world.fabric.lock(), home);
        }
    }
    for end in down {
        world.fabric.lock().set_link(end, true);
    }
    world.run(Duration::from_secs(5), |_| false);
    world.up();
    let home = world.managers[0].port.end().node;
    all_reach(&world.fabric.lock(), home);
    // Without chance, so that what is compared is the state and not the luck.
    equals_from_scratch(&mut world, "host-0");
    (injected, world.looks)
}

#[test]
fn faults_by_seed_end_in_a_routed_fabric_without_circles_on_the_way() {
    let seeds: u64 = std::env::var("IB_SM_SEEDS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(24);
    let first: u64 = std::env::var("IB_SM_FIRST")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(1);
    let specs = [
        "fat-tree:k=6,levels=2",
        "fat-tree:k=4,levels=3",
        "ring:switches=6",
        "torus:3x3,hosts=1",
        "random:switches=10,hosts=12,seed=5",
    ];
    let specs: Vec<&str> = specs
        .into_iter()
        .filter(|it| {
            it.parse::<ib_sim::topo::Spec>()
                .is_ok_and(|it| it.build().is_ok())
        })
        .collect();
    let (mut faults, mut looks) = (0, 0);
    for seed in first..first + seeds {
        let spec = specs[usize::try_from(seed).unwrap_or(0) % specs.len()];
        eprintln!("seed {seed}: {spec}");
        let (injected, looked) = campaign(spec, seed);
        faults += injected;
        looks += looked;
    }
    eprintln!("{seeds} seeds, {faults} faults, tables looked through {looks} times (simulated)");
}
