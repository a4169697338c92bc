//! Walks over simulated fabrics, good and lossy. Times are the simulator's.

use std::time::Duration;

use ib_mad::fault::{FaultPlan, FaultPort};
use ib_mad::{MadPort, Time};
use ib_sim::topo::{Spec, Topology};
use ib_sim::{Config as SimConfig, Fabric, Faults, SharedFabric};
use ib_sm::core::discovery::{Config, Discovered};
use ib_sm::diag::report::{LinkReport, NodeReport, TopologyReport};
use ib_sm::run::driver;

pub(crate) fn topology(spec: &str) -> Topology {
    let spec: Spec = spec.parse().expect("a spec");
    spec.build().expect("a topology")
}

pub(crate) fn fabric(topology: Topology, faults: Faults) -> SharedFabric {
    let config = SimConfig {
        faults,
        ..SimConfig::default()
    };
    SharedFabric::new(Fabric::new(topology, config).expect("a fabric"))
}

pub(crate) fn walk(port: &mut impl MadPort, config: Config) -> Discovered {
    driver::discover(port, config, |_| {}).expect("a walk that ends")
}

/// What must not depend on how the walk went.
fn facts(found: &Discovered) -> (Vec<NodeReport>, Vec<LinkReport>) {
    let report = TopologyReport::new("any", found);
    let nodes = report.nodes.into_iter().map(|node| NodeReport {
        // There may be several ways of the same length.
        path: String::new(),
        ..node
    });
    (nodes.collect(), report.links)
}

#[test]
fn every_node_and_cable_is_found() {
    for spec in [
        "back-to-back",
        "switch:hosts=3",
        "ring:switches=9,hosts=2",
        "fat-tree:108",
        "fat-tree:k=8,levels=3",
        "torus:4x4x3,hosts=2",
        "torus:2x2,hosts=1,links=3",
        "dragonfly:p=2",
        "random:switches=20,hosts=40,seed=5",
    ] {
        let want = topology(spec);
        let fabric = fabric(want.clone(), Faults::default());
        let found = walk(
            &mut fabric.attach_first().expect("a port"),
            Config::default(),
        );
        assert!(
            found.complete && found.warnings.is_empty(),
            "{spec}: {:?}",
            found.warnings
        );
        let topology = &found.topology;
        assert_eq!(topology.nodes().len(), want.nodes().len(), "{spec}");
        assert_eq!(topology.links().len(), want.links().count(), "{spec}");
        for link in want.links() {
            let guid = |end: ib_sim::topo::Peer| want.node(end.node).expect("a node").guid;
            let node = topology.find(guid(link.a).into()).expect("it was found");
            let node = topology.node(node).expect("a node");
            let port = topology.port_of(node, link.a.port).expect("its port");
            let (far, far_port) = topology.peer_of(port).expect("a cable");
            assert_eq!(
                (far.guid().get(), far_port.number),
                (guid(link.b), link.b.port),
                "{spec}"
            );
        }
        assert_eq!(found.stats.retried, 0, "{spec}");
    }
}

#[test]
fn a_cable_is_asked_about_once() {
    let want = topology("fat-tree:108");
    let (nodes, links) = (want.nodes().len(), want.links().count());
    let switches = want.switches().count();
    let ports: usize = want.switches().map(|switch| switch.ports().len() + 1).sum();
    let fabric = fabric(want, Faults::default());
    let config = Config {
        window: 1,
        ..Config::default()
    };
    let found = walk(&mut fabric.attach_first().expect("a port"), config);
    // NodeInfo once for the local node and once for each cable, PortInfo of all ports,
    // NodeDescription of all nodes, SwitchInfo of all switches.
    let least = 1 + links + ports + (nodes - switches) + nodes + switches;
    assert_eq!(found.stats.sent, least as u64);
}

#[test]
fn loss_doubling_and_reordering_change_nothing() {
    for spec in [
        "fat-tree:k=8,levels=3",
        "torus:3x3,hosts=2,links=2",
        "random:switches=12,hosts=9",
    ] {
        let clean = fabric(topology(spec), Faults::default());
        let want = facts(&walk(
            &mut clean.attach_first().expect("a port"),
            Config::default(),
        ));
        for seed in 0..4 {
            let faults = Faults {
                loss: 20_000,
                duplication: 50_000,
                reordering: 200_000,
                delay: Duration::from_micros(300),
                ..Faults::default()
            };
            let sim = SimConfig {
                seed,
                faults,
                ..SimConfig::default()
            };
            let lossy = SharedFabric::new(Fabric::new(topology(spec), sim).expect("a fabric"));
            let config = Config {
                timeout: Duration::from_millis(2),
                retries: 30,
                ..Config::default()
            };
            let found = walk(&mut lossy.attach_first().expect("a port"), config);
            assert!(found.stats.retried > 0, "it was lossy");
            assert!(
                found.warnings.is_empty(),
                "{spec} seed {seed}: {:?}",
                found.warnings
            );
            assert_eq!(facts(&found), want, "{spec} seed {seed}");
        }
    }
}

#[test]
fn a_bad_port_of_our_own_changes_nothing() {
    let clean = fabric(topology("fat-tree:108"), Faults::default());
    let want = facts(&walk(
        &mut clean.attach_first().expect("a port"),
        Config::default(),
    ));
    let plan = FaultPlan {
        drop: 10,
        duplicate: 10,
        delay: 20,
        delay_up_to: Duration::from_millis(3),
        ..FaultPlan::default()
    };
    for seed in 0..4 {
        let mut port = FaultPort::new(clean.attach_first().expect("a port"), seed, plan);
        let config = Config {
            timeout: Duration::from_millis(2),
            retries: 20,
            ..Config::default()
        };
        let found = walk(&mut port, config);
        assert!(port.counts().dropped > 0 && port.counts().delayed > 0);
        assert!(
            found.warnings.is_empty(),
            "seed {seed}: {:?}",
            found.warnings
        );
        assert_eq!(facts(&found), want, "seed {seed}");
    }
}

/// Bits turned over lie about anything. The walk ends all the same.
#[test]
fn damaged_packets_end_in_a_report() {
    for seed in 0..10 {
        let clean = fabric(topology("fat-tree:108"), Faults::default());
        let plan = FaultPlan {
            corrupt: 15,
            ..FaultPlan::default()
        };
        let mut port = FaultPort::new(clean.attach_first().expect("a port"), seed, plan);
        let config = Config {
            timeout: Duration::from_millis(2),
            ..Config::default()
        };
        if let Ok(found) = driver::discover(&mut port, config, |_| {}) {
            assert!(found.topology.nodes().len() < 1000, "seed {seed}");
            let _ = TopologyReport::new("any", &found);
        }
    }
}

#[test]
fn many_in_flight_take_less_time() {
    let took = |window: u16| -> Time {
        let fabric = fabric(topology("fat-tree:108"), Faults::default());
        let mut port = fabric.attach_first().expect("a port");
        walk(
            &mut port,
            Config {
                window,
                ..Config::default()
            },
        );
        port.now()
    };
    let (one, many) = (took(1).as_micros(), took(32).as_micros());
    assert!(
        many * 3 < one,
        "simulated: {one} µs with one in flight, {many} µs with 32"
    );
}

#[test]
fn max_hops_is_kept() {
    let fabric = fabric(topology("ring:switches=20,hosts=0"), Faults::default());
    for (max_hops, nodes) in [(0, 1), (1, 3), (3, 7), (63, 20)] {
        let mut port = fabric.attach_first().expect("a port");
        let found = walk(
            &mut port,
            Config {
                max_hops,
                ..Config::default()
            },
        );
        assert_eq!(found.topology.nodes().len(), nodes, "{max_hops} hops");
        assert!(
            found
                .topology
                .nodes()
                .iter()
                .all(|node| node.path.hops() <= max_hops)
        );
    }
}

#[test]
fn progress_is_told() {
    let fabric = fabric(topology("switch:hosts=5"), Faults::default());
    let mut told = Vec::new();
    let mut port = fabric.attach_first().expect("a port");
    driver::discover(&mut port, Config::default(), |event| told.push(event)).expect("a walk");
    assert!(told.len() >= 2);
}
