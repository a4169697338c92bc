//! Net files: what is read, and what is said about a wrong one.

use ib_sim::topo::file::{Options, read, read_with, write};
use ib_sim::topo::{Kind, Peer, Speeds, Widths};

/// ibsim's own example `net.2sw2path`, in short.
const TWO: &str = "# example\nSwitch\t8 \"Switch1\"\n[1]\t\"Hca1\"[1]\n[3]\t\"Switch2\"[3]\n\nSwitch 8 \"Switch2\"\n[3]\t\"Switch1\"[3]\n\nHca\t2 \"Hca1\"\n[1]\t\"Switch1\"[1]\n";

#[test]
fn a_plain_net_file_is_as_ibsim_has_it() {
    let parsed = read("two", TWO.as_bytes()).unwrap();
    assert_eq!(parsed.warnings, []);
    let nodes: Vec<_> = parsed
        .topology
        .nodes()
        .iter()
        .map(|n| (n.kind, n.id.as_str(), n.guid, n.port_count))
        .collect();
    assert_eq!(
        nodes,
        [
            (Kind::Switch, "Switch1", 0x20_0000, 8),
            (Kind::Switch, "Switch2", 0x20_0001, 8),
            (Kind::Ca, "Hca1", 0x10_0000, 2)
        ]
    );
    assert_eq!(parsed.topology.node(2).unwrap().port_guid(1), 0x10_0001);
    let rate = parsed
        .topology
        .active_rate(Peer { node: 0, port: 3 })
        .unwrap();
    assert_eq!(rate, (Widths::X4, Speeds::SDR));
}

#[test]
fn masks_defaults_modules_aliases_and_includes() {
    let main = "width=3\nspeed=7\nextspeed=3\ninclude \"rack\"\nmodule=\"\"\nSwitch 4 \"top\"\n[1] \"rack1@up\"\n[2] \"sub\"[2] w=1 s=1 e=0\n\nSwitch 4 \"sub\"\n[2] \"top\"[2]\n";
    let rack = "module=\"rack1\"\nSwitch 4 \"leaf\"\n@[4] \"up\"\n[1] \"host\"[1]\n\nCa 1 \"host\"\n[1] \"leaf\"[1]\n";
    let mut include = |name: &str| (name == "rack").then(|| rack.as_bytes().to_vec());
    let parsed = read_with(
        "main",
        main.as_bytes(),
        &Options::new().strict(),
        &mut include,
    )
    .unwrap();
    let t = &parsed.topology;
    let at = |id: &str, port| Peer {
        node: t.find_id(id).unwrap(),
        port,
    };
    assert_eq!(
        t.node(t.find_id("top").unwrap())
            .unwrap()
            .port(1)
            .unwrap()
            .peer,
        Some(at("rack1.leaf", 4))
    );
    assert_eq!(t.active_rate(at("top", 1)).unwrap().1, Speeds::EDR);
    assert_eq!(
        t.active_rate(at("top", 2)).unwrap(),
        (Widths::X1, Speeds::SDR)
    );
    assert_eq!(
        t.active_rate(at("rack1.host", 1)).unwrap(),
        (Widths::X4, Speeds::EDR)
    );

    let error = read("main", main.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "main:4: cannot include \"rack\"");
    let mut endless = |_: &str| Some(b"include \"again\"\n".to_vec());
    let error = read_with("main", b"include \"again\"", &Options::new(), &mut endless).unwrap_err();
    assert_eq!(
        error.to_string(),
        "again:1: files include each other more than 9 levels deep"
    );
}

#[test]
fn a_dump_of_any_age_is_read() {
    let dump = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1,1,31 Attr 0x11:0) bad status 110; Connection timed out
#
# Topology file: generated on Mon Jul 25 11:30:26 2016
#
# Max of 3 hops discovered
Chassis 1 (guid 0x2c90000000001)

vendid=0x2c9
devid=0xcb20
sysimgguid=0xe41d2d030003e470\t\t# Chassis 1 ('x') slot 2
switchguid=0xe41d2d030003e470(e41d2d030003e470)\t\t# Chassis 1 slot 2
Switch\t36 \"S-e41d2d030003e470\"\t\t# \"a \"quoted\" # name\" enhanced port 0 lid 268 lmc 2
[1][ext 4]\t\"H-1\"[2][ext 7](2c903003421b2) \t\t# \"host \"x\" lid 9 1xSDR\" lid 3 4xFDR10 s=4 w=2 v=4
[2] \"R-5\"[1](6) # \"router\" lid 4 12xQDR
[3]\t\"S-none\"[1]\t\t# \"gone\" lid 9 4xEDR
vendid=0x2c9
devid=0x1003
sysimgguid=0x2c903003421b3
caguid=0x2c903003421b0
Ca 2 \"H-1\" # host x HCA-1
[2](2c903003421b2) \"S-e41d2d030003e470\"[1][ext 4] # lid 3 lmc 1 \"Switch\" lid 268 4xFDR10
rtguid=0x5
Rt 1 \"R-5\"\t\t# \"router\"
[1](6) \"S-e41d2d030003e470\"[2]\t\t# lid 4 lmc 0 \"Switch\" lid 268 12x???
";
    let parsed = read("old.dump", dump.as_bytes()).unwrap();
    let t = &parsed.topology;
    let sw = t.node(0).unwrap();
    assert_eq!(sw.description, "a \"quoted\" # name");
    assert_eq!(
        (
            sw.enhanced_port_zero,
            sw.port(0).unwrap().lid,
            sw.port(0).unwrap().lmc
        ),
        (Some(true), 268, 2)
    );
    let host = t.node(1).unwrap();
    assert_eq!(
        (host.guid, host.system_guid, host.vendor_id, host.device_id),
        (0x0002_c903_0034_21b0, 0x0002_c903_0034_21b3, 0x2c9, 0x1003)
    );
    assert_eq!(
        (
            host.port(2).unwrap().lid,
            host.port(2).unwrap().lmc,
            host.port(2).unwrap().guid
        ),
        (3, 1, None)
    );
    let router = t.node(2).unwrap();
    assert_eq!((router.kind, router.port_guid(1)), (Kind::Router, 6));
    assert_eq!(
        t.active_rate(Peer { node: 0, port: 1 }).unwrap().1,
        Speeds::FDR10
    );
    assert_eq!(host.description, "host x HCA-1");
    let warnings: Vec<String> = parsed.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "old.dump:24: no rate known by the name \"12x???\"",
            "old.dump:15: S-e41d2d030003e470[3] leads to \"S-none\", which the file does not have; left unplugged",
        ]
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, want, hint) in [
        ("", "f:1: no Switch, Ca or Rt line in the whole file", true),
        (
            "Switch 300 \"a\"",
            "f:1: a number of ports \"300\" is not from 1 to 254",
            false,
        ),
        (
            "Switch \"a\"",
            "f:1: a number of ports expected at \"\\\"a\\\"\"",
            false,
        ),
        (
            "Switch 8 a",
            "f:1: a node's id in quotes expected at \"a\"",
            false,
        ),
        (
            "Switch 8 \"a#b\"",
            "f:1: \"a#b\" is not a node id: 1 to 64 bytes without quotes, '#' and '@'",
            false,
        ),
        (
            "Switch 8 \"a\"\nSwitch 8 \"a\"",
            "f:2: there are two nodes with the id \"a\"",
            true,
        ),
        (
            "switchguid=0x1\nSwitch 8 \"a\"\nswitchguid=0x1\nSwitch 8 \"b\"",
            "f:4: nodes \"a\" and \"b\" have the same GUID 0x0000000000000001",
            true,
        ),
        (
            "Switch 8 \"a\"\n[9] \"b\"[1]",
            "f:2: port 9 of \"a\", which has ports 1 to 8",
            true,
        ),
        (
            "Switch 8 \"a\"\n[0] \"b\"[1]",
            "f:2: port 0 of \"a\", which holds no cable",
            true,
        ),
        (
            "Switch 8 \"a\"\n[1] b[1]",
            "f:2: the peer's id in quotes expected at \"b[1]\"",
            false,
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[x]",
            "f:2: the peer's port number expected at \"[x]\"",
            false,
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[2]\n[1] \"a\"[3]",
            "f:3: port 1 of \"a\" was given in line 2 already, and otherwise",
            true,
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[9]",
            "f:2: a[1] leads to port 9 of \"a\", which has ports 1 to 8",
            true,
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[2]\n[2] \"a\"[3]\n[3] \"a\"[2]",
            "f:2: a[1] leads to a[2], which by line 3 leads to a[3]",
            true,
        ),
        (
            "Switch 8 \"a\"\n[1] \"b\"[1]\n[2] \"b\"[1]\n\nHca 1 \"b\"",
            "f:3: port 1 of \"b\" has two cables, to a[1] and to a[2]",
            true,
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[2] w=16\n[2] \"a\"[1] w=2",
            "f:2: ports a[1] and a[2] have no enabled width and speed in common",
            true,
        ),
        (
            "Switch 8 \"a\"\n[1] \"a\"[1] w=32",
            "f:2: an enabled width \"32\" is not from 1 to 31",
            false,
        ),
        (
            "speed=9\n",
            "f:1: an enabled speed \"9\" is not from 1 to 7",
            false,
        ),
        ("vendid\n", "f:1: = expected at \"vendid\"", false),
        (
            "Hca 1 \"h\"\n@[1] \"x\"\n\nHca 1 \"g\"\n@[1] \"x\"",
            "f:5: the alias \"@x\" is given twice",
            false,
        ),
    ] {
        let error = read("f", text.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), want, "{text}");
        assert_eq!(error.hint().is_some(), hint, "{text}");
    }
    let strict = |text: &str| {
        read_with("f", text.as_bytes(), &Options::new().strict(), &mut |_| {
            None
        })
        .unwrap_err()
        .to_string()
    };
    assert_eq!(
        strict("Switch 8 \"a\"\n[1] \"b\"[1]"),
        "f:2: a[1] leads to \"b\", and there is no such node"
    );
    assert_eq!(
        strict("Switch 8 \"a\"\n[1] \"a\"[2]"),
        "f:2: a[1] leads to a[2], which does not lead back"
    );
}

#[test]
fn one_sided_cables_and_repeated_lines_are_taken_with_a_warning() {
    let parsed = read("f", b"Switch 8 \"a\"\n[1] \"b\"[2] # \"x\" lid 1 4xHDR\n[1] \"b\"[2]\n\nHca 2 \"b\"\n\n[2] \"a\"[1]\n").unwrap();
    assert_eq!(parsed.topology.links().count(), 1);
    assert_eq!(
        parsed
            .topology
            .active_rate(Peer { node: 1, port: 2 })
            .unwrap()
            .1,
        Speeds::HDR
    );
    assert_eq!(parsed.warning_count, 3);
    // A plug that leads back into its own port.
    let parsed = read("f", b"Switch 8 \"a\"\n[1] \"a\"[1]\n").unwrap();
    assert_eq!(
        (parsed.topology.links().count(), parsed.warning_count),
        (1, 0)
    );
}

#[test]
fn a_file_of_a_million_hostile_lines_ends_soon() {
    // Every node takes a name and a port; the reader stops at the limit.
    let mut text = String::new();
    for i in 0..200_000 {
        text += &format!(
            "Switch 254 \"{i}\"\n[254] \"{}\"[254]\n[253] \"nowhere\"[9]\n",
            i ^ 1
        );
    }
    let error = read("f", text.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "f:196609: more than 65536 nodes");
    // A node with a million lines for ports, none of them good enough to be kept twice.
    let text = format!("Switch 254 \"a\"\n{}", "[1] \"a\"[1]\n".repeat(1_000_000));
    let parsed = read("f", text.as_bytes()).unwrap();
    assert_eq!(
        (parsed.warning_count, parsed.warnings.len()),
        (999_999, 100)
    );
    // One line of many megabytes, without an end.
    let text = format!("Switch 8 \"{}", "x".repeat(10_000_000));
    assert!(read("f", text.as_bytes()).unwrap_err().to_string().len() < 200);
}

#[test]
fn what_is_written_is_read_again() {
    for spec in [
        "fat-tree:108",
        "torus:4x4x2,hosts=2,speed=NDR",
        "dragonfly:p=2",
        "back-to-back",
        "random:switches=9,hosts=30,seed=3,width=12x",
    ] {
        let mut topology = spec.parse::<ib_sim::topo::Spec>().unwrap().build().unwrap();
        topology.assign_lids().unwrap();
        let text = write(&topology);
        let parsed = read_with("w", text.as_bytes(), &Options::new().strict(), &mut |_| {
            None
        })
        .unwrap();
        assert_eq!(parsed.topology, topology, "{spec}");
        assert_eq!(parsed.warnings, []);
    }
}
