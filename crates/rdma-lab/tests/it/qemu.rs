//! A guest with rxe, perftest and rping.

use std::time::{Duration, Instant};

use rdma_lab::qemu::{Guest, PROGRAMS, script};
use rdma_lab::{packages, peer, skip};

/// One guest for all of it: booting is most of the time.
#[test]
fn the_guest_runs_the_c_tools_and_returns_what_they_say() {
    const TEST: &str = "the_guest_runs_the_c_tools_and_returns_what_they_say";
    if skip::lacks_qemu(TEST) {
        return;
    }
    let mut put = std::env::temp_dir();
    put.push(format!("rdma-lab-put-{}", std::process::id()));
    std::fs::write(&put, [0, 1, 2, 255]).expect("written");
    let own = std::env::current_exe().expect("this test");
    let booted = Guest::builder()
        .rxe(true)
        .program(&own)
        .file(&put, "/opt/put")
        .boot();
    std::fs::remove_file(&put).expect("removed");
    let mut guest = booted.unwrap_or_else(|error| panic!("{error:?}"));
    let name = guest.folder().to_str().expect("UTF-8").to_owned();
    assert_eq!(holders(&name), 1, "QEMU carries the name of its folder");

    let devinfo = run(&mut guest, script::DEVINFO);
    assert_eq!(devinfo.code, 0);
    assert!(devinfo.stdout_text().contains("PORT_ACTIVE"), "{devinfo:?}");

    let lat = run(&mut guest, script::SEND_LAT);
    assert_eq!(lat.code, 0, "{}", lat.stderr_text());
    let typical = script::typical_latency(&lat.stdout_text());
    assert!(
        typical.is_some_and(|typical| typical > 1.0),
        "{}",
        lat.stdout_text()
    );

    let rping = run(&mut guest, script::RPING);
    assert_eq!(rping.code, 0, "{}", rping.stderr_text());
    assert_eq!(
        rping
            .stdout_text()
            .lines()
            .filter(|line| line.starts_with("ping data: rdma-ping-"))
            .count(),
        3,
        "{rping:?}"
    );

    // Both streams and the exit code, bytes that are no text, an output that imitates the protocol, no output at all.
    let both = run(
        &mut guest,
        "printf 'a\\0\\377\\n'; printf 'DONE 9 0 0 0\\n' >&2; exit 7",
    );
    assert_eq!(
        (
            both.stdout.as_slice(),
            both.stderr_text().as_str(),
            both.code
        ),
        (&b"a\0\xff\n"[..], "DONE 9 0 0 0\n", 7)
    );
    let silent = run(&mut guest, "kill -SEGV $$");
    assert_eq!((silent.stdout.len(), silent.code), (0, 139));
    let much = run(&mut guest, "head -c 1000000 /dev/zero");
    assert_eq!(much.stdout.len(), 1_000_000);
    assert_eq!(run(&mut guest, "no-such-program").code, 127);
    assert_eq!(run(&mut guest, "cat /opt/put").stdout, [0, 1, 2, 255]);

    // A Rust binary of ours with its libraries: this very test lists its tests.
    let own = own
        .file_name()
        .and_then(|name| name.to_str())
        .expect("UTF-8");
    let listed = run(&mut guest, &format!("{own} --list"));
    assert!(listed.stdout_text().contains(TEST), "{listed:?}");

    // What hangs is killed with its children and reported, and the guest goes on.
    let begun = Instant::now();
    let error = guest
        .run(
            "echo before; sleep 1000 & sleep 1000",
            Duration::from_secs(1),
        )
        .expect_err("too long");
    let message = format!("{error:#}");
    assert!(
        message.contains("did not end within 1 s and was killed") && message.contains("before"),
        "{message}"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(run(&mut guest, "pgrep -f 'sleep 1000'").stdout_text(), "");

    drop(guest);
    assert_eq!(holders(&name), 0, "after a drop");
    assert!(!std::path::Path::new(&name).exists());
}

#[test]
fn every_program_of_the_guest_has_a_package() {
    for program in PROGRAMS.iter().chain(&["qemu-system-x86_64", "busybox"]) {
        assert!(
            peer::package_of(program)
                .is_some_and(|package| package.labs.contains(&peer::Lab::Qemu)),
            "{program}"
        );
    }
    assert!(
        packages()
            .iter()
            .any(|package| package.name == "ibsim-utils")
    );
}

fn run(guest: &mut Guest, script: &str) -> rdma_lab::Output {
    guest
        .run(script, Duration::from_secs(60))
        .unwrap_or_else(|error| panic!("{error:?}"))
}

/// How many processes carry `name` in their command line.
fn holders(name: &str) -> usize {
    let processes = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(Result::ok);
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(name))
        .count()
}
