//! Tests that run themselves again in a process of their own, to take packages away from it or to kill it.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rdma_lab::ibsim::{DEFAULT_NET, Ibsim, OpensmOptions, Options};
use rdma_lab::qemu::Guest;
use rdma_lab::skip;

/// Set in the process that a test starts: the test does its inner part there.
const CHILD: &str = "RDMA_LAB_TEST_CHILD";

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// This test binary, running only `test`, as a child.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0");
    command
}

#[test]
fn a_missing_package_is_named() {
    const TEST: &str = "child::a_missing_package_is_named";
    if is_child() {
        let ibsim = Ibsim::start(DEFAULT_NET, &Options::default()).expect_err("no ibsim");
        println!("[{ibsim:#}]");
        let qemu = Guest::builder().boot().expect_err("no QEMU");
        println!("[{qemu:#}]");
        assert!(
            skip::lacks_ibsim("probe"),
            "without RDMA_REQUIRE_PEERS it is a skip"
        );
        return;
    }
    let output = again(TEST)
        .env("PATH", "")
        .env_remove(skip::REQUIRE_PEERS)
        .output()
        .expect("runs");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}{stderr}");
    let ibsim = "[ibsim not found: install package ibsim-utils, or run: cargo xtask deps]";
    let qemu =
        "[qemu-system-x86_64 not found: install package qemu-system-x86, or run: cargo xtask deps]";
    assert!(stdout.contains(ibsim) && stdout.contains(qemu), "{stdout}");
    assert!(
        stderr.contains("SKIPPED: probe: ibsim not found"),
        "{stderr}"
    );

    let output = again(TEST)
        .env("PATH", "")
        .env(skip::REQUIRE_PEERS, "1")
        .output()
        .expect("runs");
    assert!(
        !output.status.success(),
        "where peers are required, a missing one fails"
    );
}

#[test]
fn nothing_survives_a_killed_process() {
    const TEST: &str = "child::nothing_survives_a_killed_process";
    if skip::lacks_ibsim(TEST) {
        return;
    }
    if is_child() {
        let sim = Ibsim::start(DEFAULT_NET, &Options::default()).expect("starts");
        let sm = sim.opensm(&OpensmOptions::default()).expect("subnet up");
        println!("[up {} {} {}]", sim.id(), sm.id(), sim.folder().display());
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let mut child = again(TEST).stdout(Stdio::piped()).spawn().expect("starts");
    let line = line_with(&mut child, "[up ");
    let mut ids: Vec<_> = line
        .trim_end_matches(']')
        .split(' ')
        .skip(1)
        .map(str::to_owned)
        .collect();
    let folder = ids.pop().expect("the folder comes last");
    assert_eq!(ids.iter().filter(|id| runs(id)).count(), 2, "{line}");
    // SIGKILL: no destructor and no handler runs.
    child.kill().expect("killed");
    child.wait().expect("ended");
    let deadline = Instant::now() + Duration::from_secs(5);
    while ids.iter().any(|id| runs(id)) {
        assert!(Instant::now() < deadline, "{line} still run");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Nobody was left to remove it.
    std::fs::remove_dir_all(folder).expect("removed");
}

/// The part of the first line of the child's stdout that starts with `start`.
fn line_with(child: &mut Child, start: &str) -> String {
    let stdout: ChildStdout = child.stdout.take().expect("piped");
    let line = BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .find_map(|line| line.find(start).map(|at| line[at..].to_owned()));
    line.expect("the child says it")
}

fn runs(id: &str) -> bool {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(id).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_kernel_that_apt_can_not_bring_is_explained() {
    const TEST: &str = "child::a_kernel_that_apt_can_not_bring_is_explained";
    if skip::lacks_qemu(TEST) {
        return;
    }
    if is_child() {
        let error = Guest::builder().boot().expect_err("no kernel");
        println!("[{error:#}]");
        return;
    }
    let have = |path: &str| {
        std::fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| {
                entry
                    .file_name()
                    .to_string_lossy()
                    .starts_with("linux-image-")
            })
    };
    if have("/var/cache/apt/archives") {
        return skip::skip(TEST, "apt has a kernel package here already");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").expect("a PATH")
    );
    let known = "echo '  Depends: linux-image-6.1.0-0-amd64'";
    let damaged = "echo damaged > linux-image-6.1.0-0-amd64_6.1_amd64.deb";
    for (apt_cache, apt_get, why) in [
        (
            "exit 100",
            "exit 100",
            "apt knows no package linux-image-amd64: run apt-get update as root, or put a linux-image",
        ),
        (
            known,
            "echo 'E: Failed to fetch' >&2; exit 100",
            "apt can't download linux-image-6.1.0-0-amd64: check the network",
        ),
        (
            known,
            "exit 0",
            "apt downloaded no linux-image-6.1.0-0-amd64",
        ),
        (
            known,
            damaged,
            "can't be unpacked: remove it if it is damaged",
        ),
    ] {
        for (program, script) in [("apt-cache", apt_cache), ("apt-get", apt_get)] {
            let file = folder.path().join(program);
            std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("written");
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755))
                .expect("executable");
        }
        let output = again(TEST)
            .env("PATH", &path)
            .env("RDMA_LAB_CACHE", folder.path().join("cache"))
            .output()
            .expect("runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(why), "{said}");
    }
}
