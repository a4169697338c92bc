//! ib-diag beside ibnetdiscover on the same ibsim: the same text, line for line.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ib_sim::topo::file;
use ib_sm::Error;
use ib_sm::core::discovery::Config;
use ib_sm::run::driver;
use rdma_host::ibsim::{Endpoint, IbsimPort};
use rdma_lab::ibsim::{Ibsim, Options};
use rdma_lab::skip::{lacks_ibsim, testdata_missing};
use rdma_lab::testdata;

use crate::walk::topology;

const IB_DIAG: &str = env!("CARGO_BIN_EXE_ib-diag");

/// Without the line that has the date.
fn lines(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| !line.starts_with("# Topology file:"))
        .collect()
}

/// Runs both tools, ours by the sockets and ours by the preload, and compares.
fn compare(sim: &Ibsim, name: &str, attach: Option<&str>, theirs: &[&str], ours: &[&str]) -> usize {
    let want = sim
        .run("ibnetdiscover", theirs, attach)
        .and_then(|it| it.success())
        .expect("ibnetdiscover");
    let want = want.stdout_text();
    let device = match attach {
        Some(node) => format!("ibsim:{}/{node}", sim.socket_name()),
        None => format!("ibsim:{}", sim.socket_name()),
    };
    let direct = Command::new(IB_DIAG)
        .args(["topology", "--compat", "ibnetdiscover", "--device", &device])
        .args(ours)
        .output()
        .expect("ib-diag");
    assert!(
        direct.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&direct.stderr)
    );
    let args = [&["topology", "--compat", "ibnetdiscover"], ours].concat();
    let preloaded = sim
        .run(Path::new(IB_DIAG), &args, attach)
        .and_then(|it| it.success())
        .expect("ib-diag by umad");
    for (way, text) in [
        (
            "sockets",
            String::from_utf8_lossy(&direct.stdout).into_owned(),
        ),
        ("umad", preloaded.stdout_text()),
    ] {
        let (want, have) = (lines(&want), lines(&text));
        for (line, (want, have)) in want.iter().zip(&have).enumerate() {
            assert_eq!(have, want, "{name} by {way}, line {line}");
        }
        assert_eq!(have.len(), want.len(), "{name} by {way}");
    }
    lines(&want).len()
}

fn start(file: &Path) -> Ibsim {
    Ibsim::start_file(file, &Options::default()).expect("ibsim")
}

#[test]
fn real_fabrics_read_as_ibnetdiscover_reads_them() {
    let test = "real_fabrics_read_as_ibnetdiscover_reads_them";
    if lacks_ibsim(test) {
        return;
    }
    for name in [
        "ibtopotool_1.topo",
        "ibtopotool_2.topo",
        "ibtopotool_3.topo",
        "ibtopotool_4.topo",
        "topograph_example.out",
    ] {
        let Some(file) = testdata(format!("fabrics/{name}")) else {
            testdata_missing(test, name);
            continue;
        };
        let sim = start(&file);
        assert!(compare(&sim, name, None, &[], &[]) > 10);
        compare(&sim, name, None, &["-f"], &["--full"]);
        compare(&sim, name, None, &["-g"], &["--group"]);
    }
}

#[test]
fn generated_fabrics_read_as_ibnetdiscover_reads_them() {
    if lacks_ibsim("generated_fabrics_read_as_ibnetdiscover_reads_them") {
        return;
    }
    for spec in [
        "fat-tree:648",
        "fat-tree:1728",
        "fat-tree:5184",
        "torus:4x4x4,hosts=2",
        "random:switches=30,hosts=30,seed=3",
    ] {
        let net = file::write(&topology(spec));
        let sim = Ibsim::start(&net, &Options::default()).expect("ibsim");
        compare(&sim, spec, Some("host-0"), &["-o", "32"], &[]);
    }
}

#[test]
fn a_simulator_that_dies_halfway_is_an_error_in_time() {
    if lacks_ibsim("a_simulator_that_dies_halfway_is_an_error_in_time") {
        return;
    }
    let net = file::write(&topology("fat-tree:648"));
    let mut sim = Some(Ibsim::start(&net, &Options::default()).expect("ibsim"));
    let name = sim
        .as_ref()
        .map(|sim| sim.socket_name().to_owned())
        .expect("a name");
    let mut port = IbsimPort::open(&Endpoint::Unix(name), None).expect("a port");
    let begin = Instant::now();
    let result = driver::discover(&mut port, Config::default(), |_| drop(sim.take()));
    assert!(begin.elapsed() < Duration::from_secs(10));
    match result.expect_err("the simulator is gone") {
        Error::Port { answers, .. } => assert!(answers > 0),
        other => panic!("{other}"),
    }
}

#[test]
fn a_simulator_that_hangs_halfway_ends_in_a_report_in_time() {
    if lacks_ibsim("a_simulator_that_hangs_halfway_ends_in_a_report_in_time") {
        return;
    }
    let net = file::write(&topology("fat-tree:648"));
    let sim = Ibsim::start(&net, &Options::default()).expect("ibsim");
    let endpoint = Endpoint::Unix(sim.socket_name().to_owned());
    let mut port = IbsimPort::open(&endpoint, None).expect("a port");
    let signal = |name: &str| {
        let status = Command::new("kill")
            .args([name, &sim.id().to_string()])
            .status();
        assert!(status.expect("kill").success());
    };
    let config = Config {
        timeout: Duration::from_millis(50),
        window: 8,
        ..Config::default()
    };
    let begin = Instant::now();
    let mut first = true;
    let found = driver::discover(&mut port, config, |_| {
        if std::mem::take(&mut first) {
            signal("-STOP");
        }
    });
    let took = begin.elapsed();
    // It does not take the good-bye either.
    let silent = IbsimPort::open(&endpoint, None).expect_err("it hangs");
    signal("-CONT");
    assert!(took < Duration::from_secs(20), "{took:?}");
    match found {
        Ok(found) => assert!(!found.complete, "{:?}", found.warnings),
        // The queue was full.
        Err(error) => assert!(
            matches!(error, Error::Port { .. } | Error::LocalSilent { .. }),
            "{error}"
        ),
    }
    assert!(
        silent.to_string().contains("did not answer within"),
        "{silent}"
    );
}

#[test]
fn a_dead_simulator_ends_the_tool_with_6_or_4() {
    if lacks_ibsim("a_dead_simulator_ends_the_tool_with_6_or_4") {
        return;
    }
    let sim = Ibsim::start(
        &file::write(&topology("switch:hosts=2")),
        &Options::default(),
    )
    .expect("ibsim");
    let run = |device: &str| {
        let output = Command::new(IB_DIAG)
            .args(["topology", "--device", device])
            .output()
            .expect("ib-diag");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, text) = run(&format!("ibsim:{}/nobody", sim.socket_name()));
    assert_eq!(code, Some(4), "{text}");
    assert!(text.contains("has no node \"nobody\""), "{text}");
    let ports: Vec<_> = (0..10)
        .map(|_| {
            IbsimPort::open(&Endpoint::Unix(sim.socket_name().to_owned()), None).expect("a place")
        })
        .collect();
    let (code, text) = run(&format!("ibsim:{}", sim.socket_name()));
    assert_eq!(code, Some(6), "{text}");
    assert!(text.contains("no place left"), "{text}");
    drop(ports);
    let (code, text) = run(&format!("ibsim:{}", sim.socket_name()));
    assert_eq!(code, Some(0), "dropping a port frees its place: {text}");
    let name = sim.socket_name().to_owned();
    drop(sim);
    let (code, text) = run(&format!("ibsim:{name}"));
    assert_eq!(code, Some(4), "{text}");
}

/// A switch's or adapter's lines of a net file, its cables as (port, other id, other port).
fn node(
    kind: &str,
    ports: u8,
    id: u64,
    ids: (u32, u32, u64),
    name: &str,
    cables: &[(u8, String, u8)],
) -> String {
    let (vendor, device, system) = ids;
    let (guid, letter) = match kind {
        "Switch" => (format!("switchguid=0x{id:x}({id:x})"), 'S'),
        _ => (format!("caguid=0x{id:x}"), 'H'),
    };
    let mut text =
        format!("vendid=0x{vendor:x}\ndevid=0x{device:x}\nsysimgguid=0x{system:x}\n{guid}\n");
    let extra = if kind == "Switch" {
        " base port 0 lid 1 lmc 0"
    } else {
        ""
    };
    text += &format!("{kind}\t{ports} \"{letter}-{id:016x}\"\t\t# \"{name}\"{extra}\n");
    for (port, far, far_port) in cables {
        text += &format!("[{port}]\t\"{far}\"[{far_port}] 4xQDR\n");
    }
    text + "\n"
}

/// Two spine chips and four line chips of each Voltaire director, and a host at each line chip.
fn voltaire(spine: u32, line: u32, base: u64) -> String {
    let ports = if matches!(line, 0x5a5b) { 36 } else { 24 };
    let (spines, lines) = (2_u8, 4_u8);
    let id = |at: u64| base + at * 16;
    let switch = |at: u64| format!("S-{:016x}", id(at));
    let mut text = String::new();
    for s in 0..spines {
        let cables: Vec<_> = (0..lines)
            .map(|l| (1 + 3 * l, switch(10 + u64::from(l)), 1 + 3 * s))
            .collect();
        text += &node(
            "Switch",
            ports,
            id(s.into()),
            (0x8f1, spine, base),
            "Voltaire spine",
            &cables,
        );
    }
    for l in 0..lines {
        let host = id(20 + u64::from(l));
        let mut cables: Vec<_> = (0..spines)
            .map(|s| (1 + 3 * s, switch(s.into()), 1 + 3 * l))
            .collect();
        cables.push((ports - l, format!("H-{host:016x}"), 1));
        // Directors in a chain, so that all are reached.
        if l == 0 && base > 0x10_0000 {
            cables.push((
                ports - 10,
                format!("S-{:016x}", base - 0x10_0000 + 11 * 16),
                ports - 9,
            ));
        }
        if l == 1 && base < 0x70_0000 {
            cables.push((
                ports - 9,
                format!("S-{:016x}", base + 0x10_0000 + 10 * 16),
                ports - 10,
            ));
        }
        text += &node(
            "Switch",
            ports,
            id(10 + u64::from(l)),
            (0x8f1, line, base),
            "Voltaire line",
            &cables,
        );
        let cable = (1, switch(10 + u64::from(l)), ports - l);
        text += &node(
            "Hca",
            1,
            host,
            (0x8f1, 0x5a44, host),
            &format!("host{l} HCA-1"),
            &[cable],
        );
    }
    text
}

#[test]
fn boxes_are_told_as_ibnetdiscover_tells_them() {
    if lacks_ibsim("boxes_are_told_as_ibnetdiscover_tells_them") {
        return;
    }
    // Directors of equal port counts, since a chain joins them by port number.
    for line in [0x5a09, 0x5a0d, 0x5a38] {
        let spines = [0x5a0b, 0x5a08, 0x5a40, 0x5a37, 0x5a33, 0x5a32, 0x5a60];
        let net: String = (1_u64..)
            .zip(spines)
            .map(|(at, spine)| voltaire(spine, line, at << 20))
            .collect();
        let sim = Ibsim::start(&net, &Options::default()).expect("ibsim");
        compare(
            &sim,
            &format!("Voltaire, line boards {line:#x}"),
            None,
            &["-g"],
            &["--group"],
        );
    }
    let spines = [0x5a5c, 0x5a5d, 0x5a5c, 0x5a5d, 0x5a5c, 0x5a5d, 0x5a5d];
    let net: String = (1_u64..)
        .zip(spines)
        .map(|(at, spine)| voltaire(spine, 0x5a5b, at << 20))
        .collect();
    let sim = Ibsim::start(&net, &Options::default()).expect("ibsim");
    compare(&sim, "Voltaire 4700", None, &["-g"], &["--group"]);

    // A Mellanox director by its descriptions, a box of two adapters, one of Topspin's, one of Xsigo's.
    let switch = |at: u64| format!("S-{at:016x}");
    let host = |at: u64| format!("H-{at:016x}");
    let mut net = String::new();
    for (at, slot) in [
        (1_u64, "S01"),
        (2, "S02:MTS3610"),
        (3, "L01"),
        (4, "L07"),
        (5, "L99"),
        (6, "X01"),
        (7, "L02"),
    ] {
        let mut cables = Vec::new();
        if at < 7 {
            cables.push((20, switch(at + 1), 21));
        }
        if at > 1 {
            cables.push((21, switch(at - 1), 20));
        }
        for port in 1..=2_u8 {
            cables.push((port, host(at * 16 + u64::from(port)), 1));
        }
        let name = format!("MF0;director:IS5600/{slot}/U1");
        net += &node("Switch", 36, at, (0x2c9, 0xbd36, 0x1000), &name, &cables);
        for port in 1..=2_u8 {
            let id = at * 16 + u64::from(port);
            let (vendor, system) = match at {
                1 => (0x2c9, 0x2000),
                2 => (0x5ad, 0x0005_ad00_0001_0000 | u64::from(port) << 24),
                3 => (0x1397, 0x0013_9702_0000_0000 | u64::from(port)),
                4 => (0x1397, 0x0013_9701_0000_0000 | u64::from(port) << 24),
                _ => (0x2c9, id),
            };
            net += &node(
                "Hca",
                1,
                id,
                (vendor, 0x673c, system),
                "adapter",
                &[(1, switch(at), port)],
            );
        }
    }
    let sim = Ibsim::start(&net, &Options::default()).expect("ibsim");
    compare(&sim, "other boxes", None, &["-g"], &["--group"]);
    compare(&sim, "other boxes, not grouped", None, &[], &[]);
}
