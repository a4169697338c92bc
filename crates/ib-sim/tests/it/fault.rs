//! What goes wrong on purpose, and that it goes wrong the same way every time.

use std::time::Duration;

use ib_mad::client::ClientConfig;
use ib_mad::header::AttributeId;
use ib_mad::smp::NodeInfo;
use ib_mad::{MadPort, Packet, Time};
use ib_sim::topo::Peer;
use ib_sim::trace::{Happening, Loss};
use ib_sim::{Config, Faults, Flap, NodeFault};

use super::fabric::{build, get, shared};
use super::ibsim::facts;
use super::walk::{Walk, walk};

fn faulty(faults: Faults, seed: u64) -> Config {
    Config {
        seed,
        faults,
        ..Config::default()
    }
}

/// A client that gives up late: 20 attempts of half a millisecond.
fn patient() -> ClientConfig {
    ClientConfig {
        timeout: Duration::from_micros(500),
        retries: 19,
        window: 8,
        ..ClientConfig::default()
    }
}

fn chances() -> Faults {
    Faults {
        loss: 100_000,
        duplication: 100_000,
        reordering: 200_000,
        delay: Duration::from_micros(300),
        ..Faults::default()
    }
}

fn run(spec: &str, config: Config) -> (Walk, Vec<String>) {
    let fabric = shared(build(spec), config);
    fabric.lock().start_trace();
    let mut port = fabric.attach("host-0").unwrap();
    let found = walk(&mut port, patient());
    let trace = fabric
        .lock()
        .take_trace()
        .iter()
        .map(ToString::to_string)
        .collect();
    (found, trace)
}

#[test]
fn a_patient_walk_gets_through_a_bad_fabric() {
    let spec = "fat-tree:k=8,levels=2";
    let (found, trace) = run(spec, faulty(chances(), 3));
    assert_eq!(found.failed, []);
    assert_eq!(found.facts(), facts(&build(spec)));
    assert!(
        found.stats.retried > 20 && found.stats.stray > 20,
        "{:?}",
        found.stats
    );
    let lost = trace
        .iter()
        .filter(|line| line.ends_with("lost by chance"))
        .count();
    let sent = trace.iter().filter(|line| line.ends_with("sent")).count();
    // A tenth of all ways: some 19 % of the round trips.
    assert!(
        lost * 100 / sent > 12 && lost * 100 / sent < 26,
        "{lost} of {sent}"
    );
}

#[test]
fn the_seed_decides_every_byte() {
    let trace = |seed| run("random:switches=6,hosts=12,seed=2", faulty(chances(), seed)).1;
    let first = trace(7);
    assert!(first.len() > 1000);
    assert_eq!(first, trace(7));
    assert_ne!(first, trace(8));
}

#[test]
fn a_trace_reads_as_what_happened() {
    let (_, trace) = run("back-to-back", Config::default());
    assert_eq!(
        trace[..6],
        [
            "0.000000 s #0 Get NodeInfo 0x0 by 0 tid 0x20000: sent",
            "0.000000 s #0 Get NodeInfo 0x0 by 0 tid 0x20000: reached node 0 port 1",
            "0.000010 s #0 GetResp NodeInfo 0x0 by 0 tid 0x20000: delivered",
            "0.000010 s #0 Get NodeDescription 0x0 by 0 tid 0x30000: sent",
            "0.000010 s #0 Get PortInfo 0x1 by 0 tid 0x20001: sent",
            "0.000010 s #0 Get NodeDescription 0x0 by 0 tid 0x30000: reached node 0 port 1",
        ]
    );
}

#[test]
fn a_node_falls_silent() {
    let topology = build("switch:hosts=3");
    let switch = topology.find("switch").unwrap();
    let mut faults = Faults::default();
    faults.nodes.insert(
        switch,
        NodeFault {
            silent_after: Some(5),
            ..NodeFault::default()
        },
    );
    let fabric = shared(topology, faulty(faults, 1));
    let mut port = fabric.attach("host-0").unwrap();
    let answered = (0..10)
        .filter(|_| get(&mut port, "0,1", AttributeId::NODE_INFO, 0).is_some())
        .count();
    assert_eq!(answered, 5);
    // It still passes on what is for others.
    assert!(get(&mut port, "0,1,2", AttributeId::NODE_INFO, 0).is_some());
    fabric.lock().set_node_fault(switch, NodeFault::default());
    assert!(get(&mut port, "0,1", AttributeId::NODE_INFO, 0).is_some());
}

#[test]
fn a_node_lies() {
    let topology = build("switch:hosts=3");
    let switch = topology.find("switch").unwrap();
    let mut faults = Faults::default();
    faults.nodes.insert(
        switch,
        NodeFault {
            port_count: Some(255),
            local_port_offset: 7,
            ..NodeFault::default()
        },
    );
    let fabric = shared(topology, faulty(faults, 1));
    let mut port = fabric.attach("host-2").unwrap();
    let info: NodeInfo = *get(&mut port, "0,1", AttributeId::NODE_INFO, 0)
        .unwrap()
        .attribute();
    assert_eq!((info.num_ports, info.local_port), (255, 10));
    // The ports that it does not have are refused, and the walk ends.
    let found = walk(&mut port, patient());
    assert_eq!(found.failed.len(), 255 - 36);
}

#[test]
fn a_slow_node_holds_up_only_those_who_ask_it() {
    let topology = build("switch:hosts=3");
    let slow = topology.find("host-1").unwrap();
    let mut faults = Faults::default();
    faults.nodes.insert(
        slow,
        NodeFault {
            service: Some(Duration::from_millis(20)),
            ..NodeFault::default()
        },
    );
    let fabric = shared(topology, faulty(faults, 1));
    let mut port = fabric.attach("host-0").unwrap();
    let mut time = |path: &str| {
        let start = port.now();
        assert!(get(&mut port, path, AttributeId::NODE_INFO, 0).is_some());
        port.now().since(start)
    };
    assert_eq!(time("0,1,3"), Duration::from_micros(14));
    assert_eq!(time("0,1,2"), Duration::from_micros(20_004));
}

#[test]
fn an_agent_answers_one_request_after_the_other() {
    let fabric = shared(build("back-to-back"), Config::default());
    let mut port = fabric.attach("host-0").unwrap();
    let smp = ib_mad::smp::Smp::get(&"0,1".parse().unwrap(), AttributeId::NODE_INFO, 0);
    for _ in 0..5 {
        port.send(&Packet::directed(&smp, Duration::from_millis(1)))
            .unwrap();
    }
    let mut times = Vec::new();
    while port.receive(Duration::from_millis(1)).unwrap().is_some() {
        times.push(port.now().as_micros());
    }
    assert_eq!(times, [12, 22, 32, 42, 52]);
}

#[test]
fn a_cable_flaps() {
    let topology = build("switch:hosts=2");
    let end = Peer {
        node: topology.find("host-1").unwrap(),
        port: 1,
    };
    let flap = Flap {
        end,
        at: Time::from_micros(1000),
        down: Duration::from_micros(500),
        up: Some(Duration::from_micros(2000)),
    };
    let fabric = shared(
        topology,
        faulty(
            Faults {
                flaps: vec![flap],
                ..Faults::default()
            },
            1,
        ),
    );
    fabric.lock().start_trace();
    let up = |micros| {
        let mut fabric = fabric.lock();
        fabric.advance(Time::from_micros(micros));
        fabric.is_link_up(end)
    };
    assert_eq!(
        [999, 1001, 1499, 1501, 3499, 3501, 4001].map(up),
        [true, false, false, true, true, false, true]
    );
    let mut port = fabric.attach("host-0").unwrap();
    fabric.lock().set_link(end, false);
    assert!(get(&mut port, "0,1,2", AttributeId::NODE_INFO, 0).is_none());
    let trace = fabric.lock().take_trace();
    let lost = trace.iter().find_map(|e| match e.happening {
        Happening::Lost(loss) => Some(loss),
        _ => None,
    });
    assert_eq!(lost, Some(Loss::LinkDown(Peer { node: 2, port: 2 })));
}

#[test]
fn corrupt_packets_never_panic() {
    let faults = Faults {
        corruption: 700_000,
        ..chances()
    };
    for seed in 0..20 {
        let fabric = shared(
            build("ring:switches=4,hosts=2"),
            faulty(faults.clone(), seed),
        );
        let mut port = fabric.attach("host-0").unwrap();
        for attribute in [
            0x10, 0x11, 0x12, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1b, 0x20, 0xff90,
        ] {
            for path in ["0", "0,1", "0,1,3", "0,1,3,1"] {
                let _ = get(&mut port, path, AttributeId::new(attribute), 1);
            }
        }
    }
}
