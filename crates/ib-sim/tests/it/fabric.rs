//! The fabric, seen by the SMPs that it answers.

use std::time::Duration;

use ib_mad::client::ClientConfig;
use ib_mad::header::{AttributeId, Method, MgmtClass};
use ib_mad::id::Lid;
use ib_mad::port::Address;
use ib_mad::smp::{DrPath, GuidInfo, NodeInfo, PhysState, PortInfo, PortState, Smp, SwitchInfo};
use ib_mad::{MadPort, Packet};
use ib_sim::topo::file::read;
use ib_sim::topo::{Peer, Spec, Topology};
use ib_sim::{Config, Fabric, SharedFabric, SimPort};
use rdma_wire::{Be16, Be64};

use super::ibsim::facts;
use super::testdata;
use super::walk::walk;

pub(crate) fn build(spec: &str) -> Topology {
    spec.parse::<Spec>()
        .unwrap_or_else(|e| panic!("{e}"))
        .build()
        .unwrap_or_else(|e| panic!("{spec}: {e}"))
}

pub(crate) fn shared(topology: Topology, config: Config) -> SharedFabric {
    SharedFabric::new(Fabric::new(topology, config).unwrap())
}

/// One request and its answer.
pub(crate) fn exchange(port: &mut SimPort, smp: &Smp) -> Option<Smp> {
    port.send(&Packet::directed(smp, Duration::from_millis(1)))
        .unwrap();
    port.receive(Duration::from_secs(1))
        .unwrap()
        .map(|p| *p.smp())
}

pub(crate) fn get(
    port: &mut SimPort,
    path: &str,
    attribute: AttributeId,
    modifier: u32,
) -> Option<Smp> {
    exchange(
        port,
        &Smp::get(&path.parse::<DrPath>().unwrap(), attribute, modifier),
    )
}

fn set(
    port: &mut SimPort,
    path: &str,
    attribute: AttributeId,
    modifier: u32,
    fill: impl FnOnce(&mut Smp),
) -> Smp {
    let mut smp = Smp::get(&path.parse::<DrPath>().unwrap(), attribute, modifier);
    smp.header.method = Method::SET;
    fill(&mut smp);
    exchange(port, &smp).unwrap()
}

fn port_info(port: &mut SimPort, path: &str, number: u32) -> PortInfo {
    *get(port, path, AttributeId::PORT_INFO, number)
        .unwrap()
        .attribute()
}

#[test]
fn a_walk_finds_what_the_topology_has() {
    for spec in [
        "fat-tree:108",
        "fat-tree:k=8,levels=3,pods=4,cores=2,speed=FDR",
        "torus:3x3x3,hosts=2,links=2,speed=NDR,width=2x",
        "dragonfly:p=2,speed=XDR,width=12x",
        "random:switches=20,hosts=100,seed=1,speed=FDR10",
        "ring:switches=8,hosts=2,speed=DDR,width=1x",
        "ring:switches=3,hosts=1,speed=SDR,width=8x",
        "switch:hosts=254,speed=HDR",
        "back-to-back,speed=QDR".split(',').next().unwrap(),
    ] {
        let topology = build(spec);
        let fabric = shared(topology.clone(), Config::default());
        let mut port = fabric.attach("host-0").unwrap();
        let found = walk(&mut port, ClientConfig::default());
        assert_eq!(found.failed, [], "{spec}");
        let (found, want) = (found.facts(), facts(&topology));
        assert_eq!(found.len(), want.len(), "{spec}");
        for (found, want) in found.iter().zip(&want) {
            assert_eq!(found, want, "{spec}");
        }
        assert_eq!(fabric.lock().pending(), 0);
    }
}

#[test]
fn a_walk_finds_what_real_dumps_have() {
    for file in [
        "topograph_example.out",
        "ibtopotool_1.topo",
        "ibtopotool_2.topo",
        "ibtopotool_3.topo",
        "ibtopotool_4.topo",
    ] {
        let Some(path) = testdata("a_walk_finds_what_real_dumps_have", file) else {
            return;
        };
        let topology = read(file, &std::fs::read(path).unwrap()).unwrap().topology;
        let fabric = shared(topology.clone(), Config::default());
        // Every dump's first node is a switch: the walk starts at its port 0.
        let first = topology.node(0).unwrap().id.clone();
        let mut port = fabric.attach(&first).unwrap();
        assert_eq!(port.local().port, 0);
        let found = walk(&mut port, ClientConfig::default());
        assert_eq!(found.failed, [], "{file}");
        assert_eq!(found.facts(), facts(&topology), "{file}");
    }
}

#[test]
fn node_info_tells_the_port_it_was_asked_through() {
    let fabric = shared(build("ring:switches=3,hosts=1"), Config::default());
    let mut port = fabric.attach("host-1").unwrap();
    let own: NodeInfo = *get(&mut port, "0", AttributeId::NODE_INFO, 0)
        .unwrap()
        .attribute();
    assert_eq!(
        (own.local_port, own.num_ports, own.partition_cap.get()),
        (1, 1, 64)
    );
    assert_eq!(own.port_guid.get(), own.node_guid.get() + 1);
    let reply = get(&mut port, "0,1,2", AttributeId::NODE_INFO, 0).unwrap();
    assert_eq!(
        reply.header.class_specific,
        Be16::new(0x0002),
        "hop pointer 0, hop count 2"
    );
    assert_eq!(
        reply.header.status.get(),
        0x8000,
        "the direction, and no error"
    );
    assert_eq!(reply.return_path[..3], [0, 1, 2]);
    let there: NodeInfo = *reply.attribute();
    assert_eq!((there.local_port, there.port_guid), (2, there.node_guid));
}

#[test]
fn what_cannot_be_asked_is_refused_or_lost() {
    let fabric = shared(build("ring:switches=3,hosts=1"), Config::default());
    let mut port = fabric.attach("host-0").unwrap();
    for (path, attribute, modifier, status) in [
        ("0", AttributeId::SWITCH_INFO, 0, 3 << 2),
        ("0", AttributeId::LINEAR_FORWARDING, 0, 3 << 2),
        ("0", AttributeId::new(0x7777), 0, 3 << 2),
        ("0", AttributeId::PORT_INFO, 2, 7 << 2),
        ("0,1", AttributeId::PORT_INFO, 37, 7 << 2),
        ("0,1", AttributeId::PORT_INFO, 255, 7 << 2),
        ("0,1", AttributeId::PORT_INFO, 0x8000_0001, 0),
        ("0,1", AttributeId::LINEAR_FORWARDING, 768, 7 << 2),
        (
            "0,1",
            AttributeId::MULTICAST_FORWARDING,
            0x3000_0000,
            7 << 2,
        ),
        ("0,1", AttributeId::PKEY_TABLE, 37 << 16, 7 << 2),
        ("0,1", AttributeId::PKEY_TABLE, 36 << 16 | 1, 0),
        ("0", AttributeId::PKEY_TABLE, 2, 7 << 2),
        ("0", AttributeId::GUID_INFO, 4, 7 << 2),
        ("0", AttributeId::VL_ARBITRATION, 0, 7 << 2),
    ] {
        let reply = get(&mut port, path, attribute, modifier).unwrap();
        assert_eq!(
            reply.status().get(),
            status,
            "{path} {attribute} {modifier:#x}"
        );
    }
    // Routes that are none: an empty port, through a CA, a CA's wrong port, port 0.
    for path in ["0,1,5", "0,1,1,1", "0,2", "0,1,0"] {
        assert!(
            get(&mut port, path, AttributeId::NODE_INFO, 0).is_none(),
            "{path}"
        );
    }
    let mut smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, 0);
    smp.header.class_version = 3;
    assert_eq!(exchange(&mut port, &smp).unwrap().status().get(), 1 << 2);
    smp.header.class_version = 1;
    smp.header.method = Method::GET_TABLE;
    assert_eq!(exchange(&mut port, &smp).unwrap().status().get(), 2 << 2);
    // A hop count beyond the path's room, and a pointer that is not at the start.
    for specific in [64, 0x0101, 0xffff] {
        let mut smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, 0);
        smp.header.class_specific = Be16::new(specific);
        assert!(exchange(&mut port, &smp).is_none());
    }
}

#[test]
fn a_port_is_armed_and_activated_step_by_step() {
    let fabric = shared(build("switch:hosts=2"), Config::default());
    let mut port = fabric.attach("host-0").unwrap();
    let before = port_info(&mut port, "0", 0);
    assert_eq!(
        (before.state(), before.phys_state()),
        (PortState::INIT, PhysState::LINK_UP)
    );
    let to = |port: &mut SimPort, state: PortState, lid: u16| {
        set(port, "0", AttributeId::PORT_INFO, 1, |smp| {
            let mut info = before;
            info.lid = Lid::new(lid);
            info.master_sm_lid = Lid::new(9);
            info.state.set_port_state(state.get());
            info.phys.set_phys_state(0);
            smp.set_attribute(&info);
        })
    };
    assert_eq!(
        to(&mut port, PortState::ACTIVE, 3).status().get(),
        7 << 2,
        "not from Init"
    );
    assert_eq!(port.local().lid, Lid::RESERVED);
    assert_eq!(to(&mut port, PortState::ARMED, 3).status().get(), 0);
    let reply = to(&mut port, PortState::ACTIVE, 3);
    let info: &PortInfo = reply.attribute();
    assert_eq!(
        (info.state(), info.lid.get(), info.master_sm_lid.get()),
        (PortState::ACTIVE, 3, 9)
    );
    assert_eq!((port.local().lid.get(), port.local().sm_lid.get()), (3, 9));
    assert_eq!(to(&mut port, PortState::NO_CHANGE, 4).status().get(), 0);
    assert_eq!(port_info(&mut port, "0", 0).state(), PortState::ACTIVE);
    // Down: the link trains again, on both ends, and the switch says so.
    assert_eq!(to(&mut port, PortState::DOWN, 4).status().get(), 0);
    assert_eq!(port_info(&mut port, "0", 0).state(), PortState::INIT);
    let switch: SwitchInfo = *get(&mut port, "0,1", AttributeId::SWITCH_INFO, 0)
        .unwrap()
        .attribute();
    assert!(switch.life.port_state_change());
    let reply = set(&mut port, "0,1", AttributeId::SWITCH_INFO, 0, |smp| {
        smp.set_attribute(&switch);
    });
    assert!(!reply.attribute::<SwitchInfo>().life.port_state_change());
}

#[test]
fn a_disabled_port_comes_up_when_it_is_told_to() {
    let fabric = shared(build("switch:hosts=3"), Config::default());
    let mut port = fabric.attach("host-0").unwrap();
    let phys = |port: &mut SimPort, state: PhysState, width: u8| {
        set(port, "0,1", AttributeId::PORT_INFO, 2, |smp| {
            let mut info = PortInfo {
                link_width_enabled: width,
                ..bytemuck::Zeroable::zeroed()
            };
            info.phys.set_phys_state(state.get());
            smp.set_attribute(&info);
        })
    };
    phys(&mut port, PhysState::DISABLED, 1);
    assert!(get(&mut port, "0,1,2", AttributeId::NODE_INFO, 0).is_none());
    assert_eq!(
        port_info(&mut port, "0,1", 2).phys_state(),
        PhysState::DISABLED
    );
    phys(&mut port, PhysState::POLLING, 0);
    let info = port_info(&mut port, "0,1,2", 0);
    assert_eq!(
        (info.is_link_up(), info.width().lanes()),
        (true, Some(1)),
        "what was enabled holds from the training on"
    );
}

#[test]
fn tables_keep_what_is_written() {
    let fabric = shared(build("ring:switches=3,hosts=1"), Config::default());
    let mut port = fabric.attach("host-0").unwrap();
    for (path, attribute, modifier, first) in [
        ("0", AttributeId::PKEY_TABLE, 0, [0xff, 0xff, 0, 0]),
        ("0", AttributeId::PKEY_TABLE, 1, [0, 0, 0, 0]),
        ("0,1", AttributeId::PKEY_TABLE, 3 << 16, [0xff, 0xff, 0, 0]),
        (
            "0,1",
            AttributeId::SL_TO_VL,
            0x0103,
            [0x01, 0x23, 0x45, 0x67],
        ),
        (
            "0,1",
            AttributeId::VL_ARBITRATION,
            1 << 16 | 2,
            [0, 0, 1, 4],
        ),
        (
            "0,1",
            AttributeId::VL_ARBITRATION,
            3 << 16 | 2,
            [0, 4, 1, 0],
        ),
        ("0,1", AttributeId::LINEAR_FORWARDING, 767, [0xff; 4]),
        (
            "0,1",
            AttributeId::MULTICAST_FORWARDING,
            0x2000_001f,
            [0; 4],
        ),
    ] {
        let before = get(&mut port, path, attribute, modifier).unwrap();
        assert_eq!(
            (before.status().get(), &before.data[..4]),
            (0, first.as_slice()),
            "{attribute} {modifier:#x}"
        );
        let reply = set(&mut port, path, attribute, modifier, |smp| {
            smp.data = [7; 64];
        });
        assert_eq!(reply.status().get(), 0);
        assert_eq!(
            get(&mut port, path, attribute, modifier).unwrap().data,
            [7; 64],
            "{attribute} {modifier:#x}"
        );
    }
    let guids: GuidInfo = *get(&mut port, "0", AttributeId::GUID_INFO, 0)
        .unwrap()
        .attribute();
    assert_eq!(Some(guids.0[0]), port.local().port_guid);
}

/// Gives the fabric LIDs 1 to 3 for host-0, host-1 and the switch, and the way to each.
fn by_lid(fabric: &SharedFabric) -> SimPort {
    let mut port = fabric.attach("host-0").unwrap();
    for (path, lid) in [("0", 1), ("0,1,2", 2), ("0,1", 3)] {
        let mut info = port_info(&mut port, path, 0);
        info.lid = Lid::new(lid);
        info.state.set_port_state(0);
        assert_eq!(
            set(&mut port, path, AttributeId::PORT_INFO, 0, |smp| smp
                .set_attribute(&info))
            .status()
            .get(),
            0
        );
    }
    set(&mut port, "0,1", AttributeId::LINEAR_FORWARDING, 0, |smp| {
        smp.data[1..4].copy_from_slice(&[1, 2, 0]);
    });
    let mut info: SwitchInfo = *get(&mut port, "0,1", AttributeId::SWITCH_INFO, 0)
        .unwrap()
        .attribute();
    info.linear_fdb_top = Be16::new(3);
    set(&mut port, "0,1", AttributeId::SWITCH_INFO, 0, |smp| {
        smp.set_attribute(&info);
    });
    port
}

#[test]
fn smps_are_routed_by_lid_once_there_are_tables() {
    let fabric = shared(build("switch:hosts=2"), Config::default());
    let mut port = by_lid(&fabric);
    let ask = |port: &mut SimPort, lid: u16| {
        let mut smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, 0);
        smp.header.mgmt_class = MgmtClass::SUBN_LID;
        let mut packet = Packet::directed(&smp, Duration::from_millis(1));
        packet.address = Address {
            lid: Lid::new(lid),
            ..Address::DIRECTED
        };
        port.send(&packet).unwrap();
        port.receive(Duration::from_millis(1)).unwrap()
    };
    for (lid, ports, local_port) in [(1, 1, 1), (2, 1, 1), (3, 36, 1)] {
        let reply = ask(&mut port, lid).unwrap();
        let info: &NodeInfo = reply.smp().attribute();
        assert_eq!(
            (info.num_ports, info.local_port),
            (ports, local_port),
            "LID {lid}"
        );
        assert_eq!(
            (reply.header().status.get(), reply.address.lid.get()),
            (0, lid)
        );
    }
    assert!(ask(&mut port, 4).is_none(), "beyond LinearFDBTop");
    // A directed route that starts at a LID: from the switch out of its port 2.
    let mut smp = Smp::get(
        &DrPath::from_ports(&[2]).unwrap(),
        AttributeId::NODE_INFO,
        0,
    );
    smp.dr_slid = Lid::new(1);
    let mut packet = Packet::directed(&smp, Duration::from_millis(1));
    packet.address.lid = Lid::new(3);
    port.send(&packet).unwrap();
    let reply = port.receive(Duration::from_millis(1)).unwrap().unwrap();
    let want = fabric.lock().topology().node(1).unwrap().guid;
    assert_eq!(reply.smp().attribute::<NodeInfo>().node_guid.get(), want);
}

#[test]
fn a_foreign_m_key_is_kept_out() {
    let fabric = shared(build("switch:hosts=2"), Config::default());
    let mut port = fabric.attach("host-0").unwrap();
    let lock = |port: &mut SimPort, protect: u8, key: u64| {
        let mut info = port_info(port, "0,1,2", 0);
        info.m_key = Be64::new(0x55);
        info.mkey_lmc.set_protect(protect);
        info.state.set_port_state(0);
        let mut smp = Smp::get(&"0,1,2".parse().unwrap(), AttributeId::PORT_INFO, 0);
        smp.header.method = Method::SET;
        smp.m_key = Be64::new(key);
        smp.set_attribute(&info);
        exchange(port, &smp)
    };
    assert!(lock(&mut port, 1, 0).is_some());
    assert_eq!(
        port_info(&mut port, "0,1,2", 0).m_key.get(),
        0,
        "the key is not told"
    );
    assert!(
        lock(&mut port, 1, 0x56).is_none(),
        "no answer to a wrong key"
    );
    assert!(lock(&mut port, 2, 0x55).is_some());
    assert!(
        get(&mut port, "0,1,2", AttributeId::NODE_INFO, 0).is_none(),
        "not even a Get"
    );
    let mut smp = Smp::get(&"0,1,2".parse().unwrap(), AttributeId::PORT_INFO, 0);
    smp.m_key = Be64::new(0x55);
    let info: PortInfo = *exchange(&mut port, &smp).unwrap().attribute();
    assert_eq!((info.m_key.get(), info.m_key_violations.get()), (0x55, 2));
}

#[test]
fn programs_at_two_ports_talk_to_each_other() {
    let fabric = shared(build("switch:hosts=2"), Config::default());
    let (mut a, mut b) = (
        fabric.attach("host-0").unwrap(),
        fabric.attach("host-1 mlx5_0").unwrap(),
    );
    let request = Smp::get(&"0,1,2".parse().unwrap(), AttributeId::SM_INFO, 0);
    let mut packet = Packet::directed(&request, Duration::from_millis(1));
    packet.header_mut().tid = Be64::new(0x1234);
    a.send(&packet).unwrap();
    let mut asked = b.receive(Duration::from_millis(1)).unwrap().unwrap();
    let mut smp = *asked.smp();
    smp.header.method = Method::GET_RESP;
    smp.header.status = Be16::new(0x8000);
    smp.data[0] = 0x77;
    asked.mad = smp.to_bytes();
    b.send(&asked).unwrap();
    let answer = a.receive(Duration::from_millis(1)).unwrap().unwrap();
    assert_eq!(
        (answer.smp().data[0], answer.header().tid.get()),
        (0x77, 0x1234)
    );
    // Nobody sits at the switch.
    a.send(&Packet::directed(
        &Smp::get(&"0,1".parse().unwrap(), AttributeId::SM_INFO, 0),
        Duration::ZERO,
    ))
    .unwrap();
    assert!(a.receive(Duration::from_millis(1)).unwrap().is_none());
}

#[test]
fn attaching_says_what_is_missing() {
    let fabric = shared(build("switch:hosts=2"), Config::default());
    assert_eq!(
        fabric.attach("nobody").unwrap_err().to_string(),
        "there is no node \"nobody\""
    );
    assert_eq!(
        fabric.attach("host-0[2]").unwrap_err().to_string(),
        "\"host-0\" has no port 2 to plug a cable into, only 1 to 1"
    );
    assert_eq!(fabric.attach("switch").unwrap().local().port, 0);
    assert_eq!(fabric.attach_first().unwrap().local().device, "host-0");
    assert_eq!(
        fabric
            .attach_at(Peer { node: 9, port: 1 })
            .unwrap_err()
            .to_string(),
        "there is no node number 9"
    );
    let empty = shared(Topology::new(), Config::default());
    assert!(empty.attach_first().is_err());
}
