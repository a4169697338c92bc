//! ibsim, OpenSM and infiniband-diags.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rdma_lab::ibsim::{Counts, DEFAULT_NET, Ibsim, OpensmOptions, Options};
use rdma_lab::{skip, testdata};

fn start(net: &str) -> Ibsim {
    Ibsim::start(net, &Options::default()).expect("ibsim starts")
}

#[test]
fn opensm_brings_the_default_net_up_and_the_tools_see_it() {
    if skip::lacks_ibsim("opensm_brings_the_default_net_up_and_the_tools_see_it") {
        return;
    }
    let sim = start(DEFAULT_NET);
    assert_eq!((sim.counts().switches, sim.counts().adapters), (4, 4));
    let sm = sim
        .opensm(&OpensmOptions {
            attach: Some("h1".into()),
            ..OpensmOptions::default()
        })
        .expect("subnet up");
    let found = sim
        .run("ibnetdiscover", &[], Some("h2"))
        .expect("runs")
        .success()
        .expect("exit code 0")
        .stdout_text();
    assert_eq!(
        found
            .lines()
            .filter(|line| line.starts_with("Switch\t"))
            .count(),
        4,
        "{found}"
    );
    assert_eq!(
        found
            .lines()
            .filter(|line| line.starts_with("Ca\t"))
            .count(),
        4,
        "{found}"
    );
    let links = sim
        .run("iblinkinfo", &["-l"], Some("h2"))
        .expect("runs")
        .success()
        .expect("exit code 0")
        .stdout_text();
    assert_eq!(
        links.matches("Active/  LinkUp").count(),
        18,
        "nine cables seen from both ends\n{links}"
    );
    let sminfo = sim
        .run("sminfo", &[], Some("h2"))
        .expect("runs")
        .success()
        .expect("exit code 0")
        .stdout_text();
    assert!(sminfo.contains("SMINFO_MASTER"), "{sminfo}");
    drop(sm);
    let attached = sim.console("attached").expect("console");
    assert!(!attached.contains("Client"), "all have left: {attached}");
}

#[test]
fn an_unplugged_cable_is_seen() {
    if skip::lacks_ibsim("an_unplugged_cable_is_seen") {
        return;
    }
    let sim = start(DEFAULT_NET);
    let mut sm = sim.opensm(&OpensmOptions::default()).expect("subnet up");
    let before = sm.times_up();
    sim.console("unlink \"h3\"[1]").expect("console");
    sm.wait_up_again(before, Duration::from_secs(30))
        .expect("OpenSM sweeps on the trap");
    let found = sim
        .run("ibnetdiscover", &[], Some("h2"))
        .expect("runs")
        .success()
        .expect("exit code 0")
        .stdout_text();
    assert_eq!(
        found
            .lines()
            .filter(|line| line.starts_with("Ca\t"))
            .count(),
        3,
        "h3 is gone\n{found}"
    );
    let dump = sim.console("dump \"h3\"").expect("console");
    assert!(dump.contains("Down"), "{dump}");
}

#[test]
fn a_hanging_program_is_killed_and_gives_its_slot_back() {
    if skip::lacks_ibsim("a_hanging_program_is_killed_and_gives_its_slot_back") {
        return;
    }
    let sim = start(DEFAULT_NET);
    // More often than ibsim has slots.
    for _ in 0..12 {
        let mut command = sim
            .command(
                "sh",
                &["-c", "ibstat -l; echo to-stderr >&2; exec sleep 100"],
                Some("h2"),
            )
            .expect("found");
        command.env(
            "PATH",
            format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()),
        );
        let begun = Instant::now();
        let error = sim
            .run_command(&command, Duration::from_millis(300))
            .expect_err("it hangs");
        let message = format!("{error:#}");
        assert!(
            message.contains("did not end within 300ms and was killed"),
            "{message}"
        );
        assert!(message.contains("to-stderr"), "{message}");
        assert!(begun.elapsed() < Duration::from_secs(5));
        let attached = sim.console("attached").expect("console");
        assert!(!attached.contains("Client"), "{attached}");
    }
    sim.run("ibstat", &["-l"], Some("h2"))
        .expect("a slot is free")
        .success()
        .expect("exit code 0");
}

#[test]
fn both_streams_and_the_exit_code_come_back() {
    if skip::lacks_ibsim("both_streams_and_the_exit_code_come_back") {
        return;
    }
    let sim = start(DEFAULT_NET);
    let output = sim
        .run("sh", &["-c", "printf out; printf err >&2; exit 7"], None)
        .expect("runs");
    assert_eq!(
        (
            output.stdout_text().as_str(),
            output.stderr_text().as_str(),
            output.code
        ),
        ("out", "err", 7)
    );
    let message = format!("{:#}", output.success().expect_err("7 is no success"));
    assert!(message.contains("ended with exit code 7"), "{message}");
}

#[test]
fn a_net_that_ibsim_refuses_says_why() {
    if skip::lacks_ibsim("a_net_that_ibsim_refuses_says_why") {
        return;
    }
    for (net, why) in [
        (
            "Switch 4 \"x\"\n[1] \"y\"[1]\n",
            "can't find remote node \"y\" connected to node \"x\" port 1",
        ),
        ("Swich 4 \"x\"\n", "no node in it"),
        ("", "no node in it"),
        (
            "Switch 4 \"x\"\n\nSwitch 4 \"x\"\n",
            "node id x already exists",
        ),
    ] {
        let message = format!(
            "{:#}",
            Ibsim::start(net, &Options::default()).expect_err("refused")
        );
        assert!(message.contains(why), "{message}");
    }
    let message = format!(
        "{:#}",
        Ibsim::start_file(Path::new("/no/such/net"), &Options::default()).expect_err("absent")
    );
    assert!(
        message.contains("/no/such/net") && message.contains("No such file"),
        "{message}"
    );
    let message = format!(
        "{:#}",
        Ibsim::start_file(Path::new("/"), &Options::default()).expect_err("a folder")
    );
    assert!(message.contains("directory"), "{message}");
}

#[test]
fn a_node_that_is_not_there_is_named() {
    if skip::lacks_ibsim("a_node_that_is_not_there_is_named") {
        return;
    }
    let sim = start(DEFAULT_NET);
    let message = format!(
        "{:#}",
        sim.run("ibstat", &[], Some("nobody"))
            .expect_err("no such node")
    );
    assert_eq!(
        message,
        "the net has no node nobody; it has spine1, spine2, leaf1, leaf2, h1 …"
    );
}

#[test]
fn nothing_is_left_behind() {
    if skip::lacks_ibsim("nothing_is_left_behind") {
        return;
    }
    let sim = start(DEFAULT_NET);
    let (name, folder) = (sim.socket_name().to_owned(), sim.folder().to_path_buf());
    let sm = sim.opensm(&OpensmOptions::default()).expect("subnet up");
    assert!(holders(&name) >= 2, "ibsim and opensm carry the name");
    drop(sm);
    drop(sim);
    assert_eq!(holders(&name), 0, "after a drop");
    assert!(!folder.exists());

    // The same by a panic, with an SM running.
    let (sender, receiver) = std::sync::mpsc::channel();
    let outcome = std::thread::spawn(move || {
        let sim = start(DEFAULT_NET);
        let _sm = sim.opensm(&OpensmOptions::default()).expect("subnet up");
        sender
            .send((sim.socket_name().to_owned(), sim.folder().to_path_buf()))
            .expect("received below");
        std::panic::resume_unwind(Box::new("a failing test"));
    })
    .join();
    assert!(outcome.is_err());
    let (name, folder) = receiver.recv().expect("sent before the panic");
    assert_eq!(holders(&name), 0, "after a panic");
    assert!(!folder.exists());
}

/// How many processes carry `name` in their environment.
fn holders(name: &str) -> usize {
    let processes = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(Result::ok);
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .filter(|environ| {
            environ
                .windows(name.len() + 1)
                .any(|window| window.strip_suffix(b"\0") == Some(name.as_bytes()))
        })
        .count()
}

#[test]
fn several_run_at_once() {
    if skip::lacks_ibsim("several_run_at_once") {
        return;
    }
    let one = start(DEFAULT_NET);
    let other = start("Switch 2 \"only\"\n[1] \"host\"[1]\n\nHca 1 \"host\"\n[1] \"only\"[1]\n");
    let count = |sim: &Ibsim| {
        sim.run("ibswitches", &[], None)
            .expect("runs")
            .success()
            .expect("exit code 0")
            .stdout_text()
            .lines()
            .count()
    };
    assert_eq!((count(&one), count(&other)), (4, 1));
}

#[test]
fn the_real_fabric_of_582_hosts_comes_up() {
    const TEST: &str = "the_real_fabric_of_582_hosts_comes_up";
    if skip::lacks_ibsim(TEST) {
        return;
    }
    let Some(file) = testdata("fabrics/topograph_example.out") else {
        return rdma_lab::testdata_missing(TEST, "fabrics/topograph_example.out");
    };
    let sim = Ibsim::start_file(&file, &Options::default()).expect("ibsim starts");
    let found = sim
        .run("ibnetdiscover", &[], None)
        .expect("runs")
        .success()
        .expect("exit code 0")
        .stdout_text();
    let seen = Counts::of(&found);
    assert_eq!(
        (seen.switches, seen.adapters),
        (sim.counts().switches, sim.counts().adapters)
    );
}

#[test]
fn a_net_beyond_ibsims_own_limits_is_served() {
    if skip::lacks_ibsim("a_net_beyond_ibsims_own_limits_is_served") {
        return;
    }
    // One switch over 17 over 289: more than the 256 that ibsim takes unless told otherwise.
    let mut net = String::from("Switch 17 \"top\"\n");
    let mut rest = String::new();
    for middle in 1..=17 {
        writeln!(net, "[{middle}] \"m{middle}\"[18]").expect("a string");
        writeln!(rest, "\nSwitch 18 \"m{middle}\"\n[18] \"top\"[{middle}]").expect("a string");
        for leaf in 1..=17 {
            writeln!(rest, "[{leaf}] \"l{middle}.{leaf}\"[1]").expect("a string");
        }
        for leaf in 1..=17 {
            writeln!(
                rest,
                "\nSwitch 2 \"l{middle}.{leaf}\"\n[1] \"m{middle}\"[{leaf}]"
            )
            .expect("a string");
        }
    }
    net.push_str(&rest);
    let sim = start(&net);
    assert_eq!(sim.counts().switches, 1 + 17 + 289);
    let found = sim
        .run("ibswitches", &[], None)
        .expect("runs")
        .success()
        .expect("exit code 0")
        .stdout_text();
    assert_eq!(found.lines().count(), 1 + 17 + 289, "{}", sim.messages());
}
