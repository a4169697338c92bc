//! Fabrics that lie, fall silent or never end. Every walk ends, and says where the trouble is.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::fault::{FaultPlan, FaultPort};
use ib_mad::header::{AttributeId, Method};
use ib_mad::id::Guid;
use ib_mad::port::{LocalPort, MadPort, Packet, PortError};
use ib_mad::smp::{NodeInfo, NodeType, PhysState, PortInfo, Smp};
use ib_mad::{MAD_LEN, Time};
use ib_sim::topo::{Kind, Node, Peer, Topology};
use ib_sim::{Faults, Flap, NodeFault};
use ib_sm::Error;
use ib_sm::core::discovery::{Config, Discovered, WarningKind};
use ib_sm::diag::report::TopologyReport;
use ib_sm::run::driver;
use proptest::prelude::*;

use crate::walk::{fabric, topology, walk};

/// Short times, since the clock is the simulator's and silence is what is tried.
const QUICK: Config = Config {
    window: 8,
    timeout: Duration::from_millis(1),
    retries: 2,
    max_hops: 63,
    max_nodes: 65_536,
    give_up_after: 3,
    ask_fdr10: true,
    m_key: 0,
    first_tid: 0,
};

fn codes(found: &Discovered) -> Vec<&'static str> {
    found.warnings.iter().map(|it| it.kind.code()).collect()
}

/// A port whose answers are changed on their way.
struct Lie<P, F>(P, F);

impl<P: MadPort, F: FnMut(&mut Smp)> MadPort for Lie<P, F> {
    fn local(&self) -> &LocalPort {
        self.0.local()
    }

    fn now(&self) -> Time {
        self.0.now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        self.0.send(packet)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        let packet = self.0.receive(wait)?;
        Ok(packet.map(|mut packet| {
            let mut smp = *packet.smp();
            (self.1)(&mut smp);
            packet.mad = smp.to_bytes();
            packet
        }))
    }
}

fn change<T: ib_mad::smp::Attribute>(smp: &mut Smp, change: impl FnOnce(&mut T)) {
    let mut value = *smp.attribute::<T>();
    change(&mut value);
    smp.set_attribute(&value);
}

#[test]
fn a_node_that_lies_about_its_port_count() {
    for claimed in [0, 1, 255] {
        let topology = topology("switch:hosts=4,ports=8");
        let switch = topology
            .nodes()
            .iter()
            .position(Node::is_switch)
            .expect("a switch");
        let mut faults = Faults::default();
        faults.nodes.insert(
            switch,
            NodeFault {
                port_count: Some(claimed),
                ..NodeFault::default()
            },
        );
        let fabric = fabric(topology, faults);
        let found = walk(&mut fabric.attach_first().expect("a port"), QUICK);
        assert!(found.complete);
        match claimed {
            255 => {
                assert_eq!(codes(&found), ["ports-refused"], "{:?}", found.warnings);
                let warning = &found.warnings[0];
                assert_eq!((warning.name.as_str(), warning.port), ("switch", Some(9)));
                assert_eq!(warning.path.to_string(), "0,1");
                assert!(
                    warning.to_string().contains("says that it has 255 ports"),
                    "{warning}"
                );
                assert_eq!(
                    found.topology.nodes().len(),
                    5,
                    "all that is there was found"
                );
            }
            // Entered by port 1 (the first host's), which is within 1 and beyond 0.
            0 => assert_eq!(codes(&found), ["port-out-of-range"], "{:?}", found.warnings),
            _ => assert!(found.topology.nodes().len() >= 2),
        }
    }
}

#[test]
fn a_port_number_out_of_range() {
    let fabric = fabric(topology("switch:hosts=4,ports=8"), Faults::default());
    let mut port = Lie(fabric.attach_first().expect("a port"), |smp: &mut Smp| {
        if smp.header.attribute_id == AttributeId::NODE_INFO
            && smp.header.class_specific.get() & 0xff == 2
        {
            change::<NodeInfo>(smp, |info| info.local_port = 200);
        }
    });
    let found = walk(&mut port, QUICK);
    assert_eq!(
        codes(&found),
        ["port-out-of-range"; 3],
        "{:?}",
        found.warnings
    );
    assert_eq!(found.warnings[0].name, "switch");
    assert_eq!(found.warnings[0].port, Some(2));
    assert_eq!(found.topology.nodes().len(), 5);
    assert_eq!(found.topology.links().len(), 1);
}

#[test]
fn two_nodes_with_one_guid() {
    let topology = topology("switch:hosts=4,ports=8");
    let guids: Vec<Guid> = topology.hosts().map(|host| Guid::new(host.guid)).collect();
    let (kept, cloned) = (guids[1], guids[2]);
    let fabric = fabric(topology, Faults::default());
    // Alike in all: they claim one port.
    let mut port = Lie(fabric.attach_first().expect("a port"), |smp: &mut Smp| {
        if smp.header.attribute_id == AttributeId::NODE_INFO {
            change::<NodeInfo>(smp, |info| {
                if info.node_guid == cloned {
                    info.node_guid = kept;
                    info.system_image_guid = Guid::ZERO;
                }
                if info.node_guid == kept {
                    info.system_image_guid = Guid::ZERO;
                }
            });
        }
    });
    let found = walk(&mut port, QUICK);
    assert_eq!(codes(&found), ["port-taken-twice"], "{:?}", found.warnings);
    assert!(
        found.warnings[0].to_string().contains(&kept.to_string()),
        "{}",
        found.warnings[0]
    );

    // Different in kind: they are told apart.
    let mut port = Lie(fabric.attach_first().expect("a port"), |smp: &mut Smp| {
        if smp.header.attribute_id == AttributeId::NODE_INFO {
            change::<NodeInfo>(smp, |info| {
                if info.node_guid == cloned {
                    info.node_guid = kept;
                    info.device_id.set(0x1234);
                }
            });
        }
    });
    let found = walk(&mut port, QUICK);
    assert_eq!(codes(&found), ["duplicate-guid"], "{:?}", found.warnings);
    assert_eq!(found.topology.nodes().len(), 5, "both are kept");
    assert!(
        matches!(&found.warnings[0].kind, WarningKind::DuplicateGuid { other } if other.hops() == 2)
    );
}

#[test]
fn nodes_without_a_guid_do_not_multiply() {
    let fabric = fabric(topology("torus:3x3,hosts=1"), Faults::default());
    let mut port = Lie(fabric.attach_first().expect("a port"), |smp: &mut Smp| {
        if smp.header.attribute_id == AttributeId::NODE_INFO
            && smp.header.class_specific.get() & 0xff > 1
        {
            change::<NodeInfo>(smp, |info| info.node_guid = Guid::ZERO);
        }
    });
    let found = walk(&mut port, QUICK);
    assert_eq!(
        found.topology.nodes().len(),
        6,
        "the host, its switch, and what is around that"
    );
    assert!(
        codes(&found).iter().all(|code| *code == "zero-guid"),
        "{:?}",
        found.warnings
    );
}

/// Two switches joined by two cables, and a cable from a switch to itself.
#[test]
fn two_cables_in_a_loop() {
    let mut topology = Topology::new();
    let add = |topology: &mut Topology, kind, name: &str, guid, ports| {
        topology
            .add(Node::new(kind, name, guid, ports))
            .expect("a node")
    };
    let a = add(&mut topology, Kind::Switch, "a", 0x10, 8);
    let b = add(&mut topology, Kind::Switch, "b", 0x20, 8);
    let host = add(&mut topology, Kind::Ca, "host", 0x30, 1);
    for (from, to) in [
        ((a, 1), (b, 1)),
        ((a, 2), (b, 2)),
        ((b, 3), (b, 4)),
        ((host, 1), (a, 3)),
    ] {
        let end = |(node, port)| Peer { node, port };
        topology.connect(end(from), end(to)).expect("a cable");
    }
    let fabric = fabric(topology, Faults::default());
    let found = walk(&mut fabric.attach("host").expect("a port"), QUICK);
    assert!(
        found.complete && found.warnings.is_empty(),
        "{:?}",
        found.warnings
    );
    assert_eq!(
        (found.topology.nodes().len(), found.topology.links().len()),
        (3, 4)
    );
}

#[test]
fn a_node_that_stops_answering() {
    let topology = topology("fat-tree:108");
    let spine = topology
        .nodes()
        .iter()
        .rposition(Node::is_switch)
        .expect("a switch");
    let guid = topology.node(spine).expect("a node").guid;
    let mut faults = Faults::default();
    faults.nodes.insert(
        spine,
        NodeFault {
            silent_after: Some(10),
            ..NodeFault::default()
        },
    );
    let fabric = fabric(topology, faults);
    let mut port = fabric.attach_first().expect("a port");
    let found = walk(&mut port, QUICK);
    assert!(found.complete, "the rest was found");
    assert_eq!(found.topology.nodes().len(), 117);
    let silent: Vec<_> = found
        .warnings
        .iter()
        .filter(|it| it.kind.code() == "node-silent")
        .collect();
    assert_eq!(silent.len(), 1, "{:?}", found.warnings);
    assert_eq!(silent[0].node, Guid::new(guid));
    assert!(
        found
            .warnings
            .iter()
            .all(|it| it.node == Guid::new(guid) || it.kind.code() == "nobody-behind")
    );
    assert!(
        port.now() < Time::from_micros(1_000_000),
        "simulated: {}",
        port.now()
    );
}

#[test]
fn a_link_with_nobody_behind() {
    let topology = topology("switch:hosts=4,ports=8");
    let host = topology
        .nodes()
        .iter()
        .rposition(|node| !node.is_switch())
        .expect("a host");
    let mut faults = Faults::default();
    faults.nodes.insert(
        host,
        NodeFault {
            silent_after: Some(0),
            ..NodeFault::default()
        },
    );
    let fabric = fabric(topology, faults);
    let found = walk(&mut fabric.attach_first().expect("a port"), QUICK);
    assert_eq!(codes(&found), ["nobody-behind"]);
    let warning = &found.warnings[0];
    assert_eq!(
        (
            warning.name.as_str(),
            warning.port,
            warning.path.to_string().as_str()
        ),
        ("switch", Some(4), "0,1")
    );
    assert_eq!(
        warning.kind.to_string(),
        "the link is up, but nobody answers behind it (asked 3 times)"
    );
}

#[test]
fn a_chain_of_more_than_63_hops() {
    let mut topology = Topology::new();
    for index in 0..80_u64 {
        topology
            .add(Node::new(
                Kind::Switch,
                format!("s{index}"),
                0x100 + index,
                4,
            ))
            .expect("a switch");
    }
    for node in 0..79 {
        topology
            .connect(
                Peer { node, port: 2 },
                Peer {
                    node: node + 1,
                    port: 1,
                },
            )
            .expect("a cable");
    }
    let fabric = fabric(topology, Faults::default());
    let found = walk(&mut fabric.attach("s0").expect("a port"), QUICK);
    assert_eq!(found.topology.nodes().len(), 64);
    assert_eq!(codes(&found), ["too-many-hops"]);
    assert_eq!(
        (found.warnings[0].name.as_str(), found.warnings[0].port),
        ("s63", Some(2))
    );
    assert_eq!(found.warnings[0].path.hops(), 63);
}

#[test]
fn cables_that_come_and_go() {
    for seed in 0..8_u64 {
        let topology = topology("fat-tree:k=8,levels=3");
        let ends: Vec<Peer> = topology.links().map(|link| link.a).collect();
        let mut faults = Faults::default();
        for (index, end) in ends.iter().enumerate().filter(|(index, _)| index % 7 == 0) {
            faults.flaps.push(Flap {
                end: *end,
                at: Time::from_micros(100 + seed * 300 + index as u64 * 10),
                down: Duration::from_micros(800),
                up: Some(Duration::from_micros(1500)),
            });
        }
        let fabric = fabric(topology, faults);
        let found = walk(&mut fabric.attach_first().expect("a port"), QUICK);
        let _ = TopologyReport::new("any", &found);
        assert!(found.topology.nodes().len() <= 208);
    }
}

#[test]
fn a_fabric_that_falls_silent_altogether() {
    for answers in [1, 40, 400, 2000] {
        let fabric = fabric(topology("fat-tree:648"), Faults::default());
        let plan = FaultPlan {
            silent_after: Some(answers),
            ..FaultPlan::default()
        };
        let mut port = FaultPort::new(fabric.attach_first().expect("a port"), 1, plan);
        let found = walk(&mut port, QUICK);
        assert!(!found.complete, "after {answers}");
        assert!(
            codes(&found).contains(&"fabric-silent"),
            "after {answers}: {:?}",
            codes(&found)
        );
        assert!(found.stats.answered == answers);
        assert!(
            port.now() < Time::from_micros(200_000),
            "simulated: {}",
            port.now()
        );
    }
}

#[test]
fn a_local_node_that_does_not_answer() {
    let mut faults = Faults::default();
    let topology = topology("back-to-back");
    for node in 0..2 {
        faults.nodes.insert(
            node,
            NodeFault {
                silent_after: Some(0),
                ..NodeFault::default()
            },
        );
    }
    let fabric = fabric(topology, faults);
    let mut port = fabric.attach_first().expect("a port");
    let error = driver::discover(&mut port, QUICK, |_| {}).expect_err("nobody is there");
    assert!(matches!(error, Error::LocalSilent { attempts: 3, .. }));
}

/// Answers every question so that there is always more: a switch of 255 cabled ports behind each.
struct Endless {
    local: LocalPort,
    now: Time,
    answers: VecDeque<Packet>,
    next_guid: u64,
    /// Bytes that are mixed into the answers.
    noise: Vec<u8>,
    at: usize,
}

impl Endless {
    fn new(noise: Vec<u8>) -> Self {
        Self {
            local: LocalPort::new("endless", 1),
            now: Time::ZERO,
            answers: VecDeque::new(),
            next_guid: 1,
            noise,
            at: 0,
        }
    }
}

impl MadPort for Endless {
    fn local(&self) -> &LocalPort {
        &self.local
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        let mut smp = *packet.smp();
        smp.header.method = Method::GET_RESP;
        smp.header.status.set(0x8000);
        match smp.header.attribute_id {
            AttributeId::NODE_INFO => change::<NodeInfo>(&mut smp, |info| {
                info.node_type = NodeType::SWITCH;
                info.num_ports = 255;
                info.local_port = 1;
                info.node_guid = Guid::new(self.next_guid);
                self.next_guid += 1;
            }),
            AttributeId::PORT_INFO => change::<PortInfo>(&mut smp, |info| {
                info.phys.set_phys_state(PhysState::LINK_UP.get());
            }),
            _ => {}
        }
        for byte in smp.data.iter_mut().take(self.noise.len().min(64)) {
            let noise = self.noise[self.at % self.noise.len()];
            self.at += 1;
            // Most bytes stay, so that most answers make sense.
            if noise < 40 {
                *byte = noise.wrapping_mul(37);
            }
        }
        self.answers.push_back(Packet {
            mad: smp.to_bytes(),
            ..*packet
        });
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        let packet = self.answers.pop_front();
        if packet.is_none() {
            self.now = self.now + wait;
        }
        Ok(packet)
    }
}

#[test]
fn a_fabric_without_an_end() {
    let config = Config {
        max_nodes: 300,
        ..QUICK
    };
    let found = walk(&mut Endless::new(Vec::new()), config);
    assert_eq!(found.topology.nodes().len(), 300);
    assert_eq!(codes(&found), ["too-many-nodes"]);
    // 255 ports and port 0 of each, and no more questions than that and the cables took.
    assert!(found.stats.sent < 300 * 600, "{}", found.stats.sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever stands in the answers, the walk ends with a report within its limits.
    #[test]
    fn any_answers_end_in_a_report(noise in proptest::collection::vec(any::<u8>(), 64..512)) {
        let config = Config { max_nodes: 20, ..QUICK };
        if let Ok(found) = driver::discover(&mut Endless::new(noise), config, |_| {}) {
            prop_assert!(found.topology.nodes().len() <= 20);
            let report = TopologyReport::new("any", &found);
            let mut text = String::new();
            let options = ib_sm::diag::ibnetdiscover::Options::default();
            ib_sm::diag::ibnetdiscover::write(&found.topology, &options, &mut text).expect("a string takes all");
            prop_assert!(report.nodes.len() <= 20);
        }
    }

    /// Bytes that answer nothing at all.
    #[test]
    fn bytes_from_nowhere_change_nothing(bytes in proptest::collection::vec(any::<u8>(), MAD_LEN)) {
        let fabric = fabric(topology("switch:hosts=2"), Faults::default());
        let mut walk = ib_sm::core::discovery::Discovery::new(QUICK);
        let mut port = fabric.attach_first().expect("a port");
        let mut mad = [0; MAD_LEN];
        mad.copy_from_slice(&bytes);
        while !walk.is_done() {
            walk.handle_timeout(port.now());
            while let Some(packet) = walk.poll_transmit(port.now()) {
                port.send(&packet).expect("it takes packets");
            }
            let mut stray = Packet::received(ib_mad::port::Address::DIRECTED, mad);
            // Not by chance one of ours.
            stray.header_mut().tid.set(u64::MAX);
            walk.handle_mad(port.now(), &stray);
            if let Some(packet) = port.receive(Duration::from_millis(1)).expect("it gives packets") {
                walk.handle_mad(port.now(), &packet);
            }
        }
        let found = walk.finish().expect("the local node answers");
        prop_assert_eq!(found.topology.nodes().len(), 3);
        prop_assert!(found.warnings.is_empty());
    }
}
