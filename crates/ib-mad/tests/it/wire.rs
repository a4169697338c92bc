//! Wire types: captured bytes, round trips, hostile bytes.

use ib_mad::header::{AttributeId, MadHeader, Method, MgmtClass, Status};
use ib_mad::id::{Gid, Guid, Lid, LidKind, PKey};
use ib_mad::smp::{
    DrPath, DrPathError, GuidInfo, LinkSpeed, LinkWidth, MlnxExtPortInfo, NodeDescription,
    NodeInfo, NodeType, PhysState, PortInfo, PortState, Smp, SwitchInfo,
};
use proptest::prelude::*;

macro_rules! captured {
    ($name:literal) => {
        Smp::from_bytes(include_bytes!(concat!("../data/", $name, ".mad")))
    };
}

#[test]
fn captured_answers_read_as_ibsim_meant_them() {
    let smp = captured!("node_info_switch");
    assert_eq!(smp.header.method, Method::GET_RESP);
    assert_eq!(smp.header.mgmt_class, MgmtClass::SUBN_DR);
    assert_eq!(smp.header.status.get(), 0x8000, "the direction bit");
    assert!(smp.status().is_ok());
    let info: &NodeInfo = smp.attribute();
    assert_eq!(info.node_type, NodeType::SWITCH);
    assert_eq!(info.num_ports, 36);
    assert_eq!(info.node_guid, Guid::new(0x0002_c903_00a1_b2c0));
    assert_eq!(info.device_id, 0xcb20);
    assert_eq!(info.vendor_id, 0x2c9);
    assert_eq!(info.local_port, 0);

    let desc: &NodeDescription = captured!("node_desc_switch").attribute();
    assert_eq!(desc.text(), "MF0;leaf1:MSB7700/U1");
    let sw: &SwitchInfo = captured!("switch_info").attribute();
    assert_eq!(sw.linear_fdb_cap, 30_720);
    assert_eq!(sw.multicast_fdb_cap, 1024);
    assert!(sw.flags.enhanced_port0());

    let port0: &PortInfo = captured!("port_info_switch_0").attribute();
    assert_eq!(port0.lid, Lid::new(2));
    assert_eq!(port0.state(), PortState::ACTIVE);
    assert!(port0.capability_mask.extended_speeds());
    let port1: &PortInfo = captured!("port_info_switch_1").attribute();
    assert_eq!(port1.phys_state(), PhysState::LINK_UP);
    assert_eq!(port1.speed(port0, false), LinkSpeed::Edr);
    assert_eq!(port1.width(), LinkWidth::Lanes(4));
    assert_eq!(port1.mtu(), Some(2048));
    let port3: &PortInfo = captured!("port_info_switch_3").attribute();
    assert_eq!(port3.state(), PortState::DOWN);
    assert!(!port3.is_link_up());

    let ca: &NodeInfo = captured!("node_info_ca").attribute();
    assert_eq!(ca.port_guid, Guid::new(0x0002_c903_00d4_e5f1));
    let ca_port: &PortInfo = captured!("port_info_ca").attribute();
    assert_eq!(ca_port.lid, Lid::new(4));
    assert_eq!(ca_port.speed(ca_port, false), LinkSpeed::Edr);
    let guids: &GuidInfo = captured!("guid_info_ca").attribute();
    assert_eq!(guids.0[0], ca.port_guid);
    let ext: &MlnxExtPortInfo = captured!("ext_port_info").attribute();
    assert!(!ext.active.fdr10());
}

#[test]
fn captured_answers_print_by_field() {
    insta::assert_debug_snapshot!(captured!("node_info_switch").attribute::<NodeInfo>());
    insta::assert_debug_snapshot!(captured!("switch_info").attribute::<SwitchInfo>());
    insta::assert_debug_snapshot!(captured!("port_info_switch_0").attribute::<PortInfo>());
    insta::assert_debug_snapshot!(captured!("port_info_ca").attribute::<PortInfo>());
    insta::assert_debug_snapshot!(captured!("ext_port_info").attribute::<MlnxExtPortInfo>());
}

/// Bit offsets and widths of `libibmad/src/fields.c`, written down a second time: every field of
/// PortInfo is set alone and looked for in the bytes.
#[test]
fn port_info_fields_stand_where_libibmad_reads_them() {
    fn bits(info: &PortInfo, offset: usize, width: usize) -> u64 {
        let bytes = bytemuck::bytes_of(info);
        (offset..offset + width).fold(0, |value, bit| {
            (value << 1) | u64::from(bytes[bit / 8] >> (7 - bit % 8) & 1)
        })
    }
    let zero: PortInfo = bytemuck::Zeroable::zeroed();
    let check = |offset, width, set: &dyn Fn(&mut PortInfo, u64)| {
        for value in [1, (1_u64 << (width - 1)) | 1] {
            let mut info = zero;
            set(&mut info, value);
            assert_eq!(bits(&info, offset, width), value, "at bit {offset}");
            let ones: u32 = bytemuck::bytes_of(&info)
                .iter()
                .map(|b| b.count_ones())
                .sum();
            assert_eq!(ones, value.count_ones(), "at bit {offset}");
        }
    };
    macro_rules! fields {
        ($($offset:literal $width:literal $($path:ident).+ = $set:ident as $ty:ty;)*) => {$(
            check($offset, $width, &|info, value| {
                info.$($path).+.$set(<$ty>::try_from(value).expect("it fits"));
            });
        )*};
    }
    check(128, 16, &|i, v| {
        i.lid = Lid::new(u16::try_from(v).expect("it fits"));
    });
    check(144, 16, &|i, v| {
        i.master_sm_lid = Lid::new(u16::try_from(v).expect("it fits"));
    });
    check(224, 8, &|i, v| {
        i.local_port = u8::try_from(v).expect("it fits");
    });
    check(232, 8, &|i, v| {
        i.link_width_enabled = u8::try_from(v).expect("it fits");
    });
    check(248, 8, &|i, v| {
        i.link_width_active = u8::try_from(v).expect("it fits");
    });
    fields! {
        256 4 state = set_speed_supported as u8;
        260 4 state = set_port_state as u8;
        264 4 phys = set_phys_state as u8;
        268 4 phys = set_down_default as u8;
        272 2 mkey_lmc = set_protect as u8;
        277 3 mkey_lmc = set_lmc as u8;
        280 4 link_speed = set_active as u8;
        284 4 link_speed = set_enabled as u8;
        288 4 mtu_smsl = set_neighbor_mtu as u8;
        292 4 mtu_smsl = set_master_sm_sl as u8;
        296 4 vl_cap = set_vl_cap as u8;
        332 4 mtu_cap = set_mtu_cap as u8;
        336 3 stall_life = set_vl_stall_count as u8;
        339 5 stall_life = set_hoq_life as u8;
        344 4 vl_enforce = set_operational_vls as u8;
        352 16 m_key_violations = set as u16;
        384 16 q_key_violations = set as u16;
        411 5 subnet_timeout = set_timeout as u8;
        419 5 resp_time = set_value as u8;
        424 4 error_thresholds = set_local_phy_errors as u8;
        432 16 max_credit_hint = set as u16;
        449 2 ext_speed2 = set_active as u8;
        451 2 ext_speed2 = set_supported as u8;
        453 3 ext_speed2 = set_enabled as u8;
        456 24 link_round_trip_latency = set as u32;
        496 4 ext_speed = set_active as u8;
        500 4 ext_speed = set_supported as u8;
        507 5 ext_speed_enabled = set_enabled as u8;
    }
    let mut info = zero;
    info.capability_mask.set_extended_speeds(true);
    assert_eq!(bits(&info, 160, 32), 0x4000, "IB_PORT_CAP_HAS_EXT_SPEEDS");
    let mut info = zero;
    info.capability_mask.set_cap_mask2(true);
    assert_eq!(bits(&info, 160, 32), 0x8000, "IB_PORT_CAP_HAS_CAP_MASK2");
    let mut info = zero;
    info.capability_mask.set_sm(true);
    assert_eq!(bits(&info, 160, 32), 0x2, "IB_PORT_CAP_IS_SM");
    let mut info = zero;
    info.capability_mask2.set_extended_speeds2(true);
    assert_eq!(
        bits(&info, 480, 16),
        0x0800,
        "IB_PORT_CAP2_IS_EXT_SPEEDS_2_SUPPORTED"
    );
    let mut info = zero;
    info.capability_mask2.set_width_2x(true);
    assert_eq!(
        bits(&info, 480, 16),
        0x0010,
        "IB_PORT_CAP2_IS_LINK_WIDTH_2X_SUPPORTED"
    );
}

#[test]
fn every_speed_is_told_by_its_code() {
    let mut node: PortInfo = bytemuck::Zeroable::zeroed();
    node.capability_mask.set_extended_speeds(true);
    node.capability_mask.set_cap_mask2(true);
    node.capability_mask2.set_extended_speeds2(true);
    for row in LinkSpeed::TABLE {
        let mut port: PortInfo = bytemuck::Zeroable::zeroed();
        port.link_speed.set_active(row.code);
        if row.ext_code >= 32 {
            port.ext_speed2.set_active(row.ext_code >> 5);
        } else {
            port.ext_speed.set_active(row.ext_code);
        }
        let fdr10 = row.speed == LinkSpeed::Fdr10;
        assert_eq!(port.speed(&node, fdr10), row.speed);
        assert_eq!(LinkSpeed::by_name(row.name), Some(row.speed));
    }
    // Without the capability the extended fields mean nothing.
    let mut port: PortInfo = bytemuck::Zeroable::zeroed();
    port.link_speed.set_active(4);
    port.ext_speed.set_active(2);
    assert_eq!(port.speed(&port, false), LinkSpeed::Qdr);
    for (code, name) in [
        (1, "1x"),
        (2, "4x"),
        (4, "8x"),
        (8, "12x"),
        (16, "2x"),
        (3, "??"),
    ] {
        assert_eq!(LinkWidth::of(code).to_string(), name);
        assert_eq!(LinkWidth::of(code).code(), code);
    }
    assert_eq!(LinkSpeed::Hdr.nominal_gbps(LinkWidth::of(16)), Some(100));
    assert_eq!(LinkSpeed::Other(9).to_string(), "???");
}

#[test]
fn identifiers_read_and_print() {
    assert_eq!("0x2c9".parse(), Ok(Guid::new(0x2c9)));
    assert_eq!(
        "0002:c903:00a1:b2c0".parse(),
        Ok(Guid::new(0x0002_c903_00a1_b2c0))
    );
    assert_eq!(Guid::new(0x2c9).to_string(), "0x00000000000002c9");
    for bad in ["", "0x", "xyz", "11223344556677889", "-1", "+1", "1 2"] {
        assert!(bad.parse::<Guid>().is_err(), "{bad:?}");
    }
    assert_eq!(Lid::new(0xbfff).kind(), LidKind::Unicast);
    assert_eq!(Lid::new(0xc000).kind(), LidKind::Multicast);
    assert_eq!(Lid::RESERVED.kind(), LidKind::Reserved);
    assert_eq!(Lid::PERMISSIVE.kind(), LidKind::Permissive);
    let gid = Gid::new(Gid::DEFAULT_PREFIX, Guid::new(0x0002_c903_00a1_b2c1));
    assert_eq!(gid.to_string(), "fe80::2:c903:a1:b2c1");
    assert!(PKey::DEFAULT.is_full());
    assert_eq!(PKey::new(0x7fff).partition(), 0x7fff);
}

#[test]
fn status_says_what_is_wrong() {
    let mut header = captured!("node_info_ca").header;
    assert_eq!(Status::of(&header), Status::OK);
    header.status.set(0x801c);
    assert_eq!(Status::of(&header).get(), 0x1c);
    assert_eq!(
        Status::of(&header).text(),
        "a field of the attribute is not valid"
    );
    header.mgmt_class = MgmtClass::SUBN_LID;
    assert_eq!(
        Status::of(&header).get(),
        0x801c,
        "no direction bit without a directed route"
    );
    assert!(Status::new(1).is_busy());
    assert_eq!(
        Status::new(0xc).to_string(),
        "0x000c (method and attribute not supported together)"
    );
}

#[test]
fn routes_read_print_and_end() {
    let path: DrPath = "0,1,36".parse().expect("a route");
    assert_eq!(path.ports(), [1, 36]);
    assert_eq!(path.to_string(), "0,1,36");
    for bad in ["", "1", "0,", "0,256", "0,x", "0;1"] {
        assert!(
            matches!(bad.parse::<DrPath>(), Err(DrPathError::Text { .. })),
            "{bad:?}"
        );
    }
    let longest = DrPath::from_ports(&[7; 63]).expect("63 hops");
    assert_eq!(longest.extended(1), Err(DrPathError::TooLong));
    assert_eq!(longest.to_string().parse(), Ok(longest));
    assert_eq!("0,1".repeat(40).len(), 120);
    assert!(DrPath::from_ports(&[7; 64]).is_err());
}

#[test]
fn a_name_cannot_steer_a_terminal() {
    let name = NodeDescription::new("a\u{1b}[31mred\u{7}\nü");
    assert_eq!(name.text(), "a [31mred    ");
    assert_eq!(NodeDescription::new(&"x".repeat(100)).text().len(), 64);
}

proptest! {
    #[test]
    fn any_bytes_are_some_mad(bytes in proptest::array::uniform32(any::<u8>()), more in any::<u64>()) {
        let mut mad = [0_u8; 256];
        for (index, byte) in mad.iter_mut().enumerate() {
            *byte = bytes[index % 32] ^ (more >> (index % 64)).to_le_bytes()[0];
        }
        let smp = Smp::from_bytes(&mad);
        let _ = format!("{smp:?} {} {:?}", smp.status(), smp.header);
        let port: &PortInfo = smp.attribute();
        let _ = (port.speed(port, true).to_string(), port.width().to_string(), port.mtu(), port.state());
        let _ = format!("{port:?}");
        let _ = format!("{:?}", smp.attribute::<NodeInfo>());
        let _ = format!("{:?}", smp.attribute::<SwitchInfo>());
        let _ = format!("{:?}", smp.attribute::<GuidInfo>());
        let _ = format!("{:?}", smp.attribute::<MlnxExtPortInfo>());
        let text = smp.attribute::<NodeDescription>().text();
        prop_assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)));
        prop_assert_eq!(smp.to_bytes(), mad);
    }

    #[test]
    fn a_request_comes_back_as_it_was(ports in proptest::collection::vec(any::<u8>(), 0..=63), modifier in any::<u32>(), attribute in any::<u16>()) {
        let path = DrPath::from_ports(&ports).expect("63 hops at most");
        let smp = Smp::get(&path, AttributeId::new(attribute), modifier);
        let bytes = smp.to_bytes();
        let again = Smp::from_bytes(&bytes);
        prop_assert_eq!(again.header.attribute_modifier.get(), modifier);
        prop_assert_eq!(usize::from(again.header.class_specific.get()), ports.len());
        prop_assert_eq!(&again.initial_path[1..=ports.len()], &ports[..]);
        prop_assert_eq!(path.to_string().parse::<DrPath>(), Ok(path));
    }

    #[test]
    fn a_guid_prints_what_it_reads(value in any::<u64>()) {
        let guid = Guid::new(value);
        prop_assert_eq!(guid.to_string().parse::<Guid>(), Ok(guid));
        prop_assert_eq!(format!("{value:x}").parse::<Guid>(), Ok(guid));
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        let _ = text.parse::<Guid>();
        let _ = text.parse::<DrPath>();
    }
}

#[test]
fn a_header_is_24_bytes() {
    assert_eq!(size_of::<MadHeader>(), 24);
}

/// The seeds of the fuzz target `mad`, without a fuzzer.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test may read its seeds")]
fn seeds() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/mad");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let bytes = std::fs::read(entry.expect("a seed").path()).expect("a seed");
        for chunk in bytes.chunks(256) {
            let mut mad = [0; 256];
            mad[..chunk.len()].copy_from_slice(chunk);
            let smp = Smp::from_bytes(&mad);
            let _ = format!("{smp:?} {:?}", smp.attribute::<PortInfo>());
            let _ = DrPath::from_ports(&smp.initial_path);
            count += 1;
        }
    }
    assert!(count >= 9, "{count} MADs");
}
