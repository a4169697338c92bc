//! `cargo xtask lab` as a user meets it: exit codes, messages, and Ctrl-C.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};

use rdma_lab::skip;

fn xtask(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(args);
    command
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn the_exit_code_is_the_commands() {
    if skip::lacks_ibsim("the_exit_code_is_the_commands") {
        return;
    }
    let output = xtask(&["lab", "ibsim", "--", "sh", "-c", "ibstat -l; exit 7"])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(7), "{}", text(&output));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("ibsim0"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_missing_package_is_named() {
    for (lab, package) in [("ibsim", "ibsim-utils"), ("qemu", "qemu-system-x86")] {
        let output = xtask(&["lab", lab, "--check"])
            .env("PATH", "")
            .output()
            .expect("runs");
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output);
        assert!(
            said.contains(&format!(
                "install package {package}, or run: cargo xtask deps"
            )),
            "{said}"
        );
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn ctrl_c_leaves_nothing_behind() {
    if skip::lacks_ibsim("ctrl_c_leaves_nothing_behind") {
        return;
    }
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        // A group of its own, as a shell would give it.
        let mut lab = xtask(&[
            "lab",
            "ibsim",
            "--opensm",
            "--",
            "sh",
            "-c",
            "echo up $OSM_TMP_DIR; sleep 600",
        ]);
        let mut lab = lab
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        BufReader::new(lab.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("readable");
        let folder = line
            .trim()
            .strip_prefix("up ")
            .expect("the command runs")
            .to_owned();
        // The name under which its processes find their ibsim.
        let name = format!("IBSIM_SOCKNAME=rdma-lab-{}-0", lab.id());
        assert!(holders(&name) >= 3, "ibsim, OpenSM and the command");
        assert!(std::path::Path::new(&folder).exists());
        let sent = Command::new("kill")
            .args([format!("-{signal}"), lab.id().to_string()])
            .status()
            .expect("runs");
        assert!(sent.success());
        assert_eq!(lab.wait().expect("ends").code(), Some(code));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while holders(&name) > 0 {
            assert!(
                std::time::Instant::now() < deadline,
                "{} processes are left",
                holders(&name)
            );
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!std::path::Path::new(&folder).exists(), "{folder} is left");
    }
}

/// How many processes carry `pair` in their environment.
fn holders(pair: &str) -> usize {
    let processes = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(Result::ok);
    processes
        .filter_map(|entry| std::fs::read(entry.path().join("environ")).ok())
        .filter(|environ| {
            environ
                .split(|&byte| byte == 0)
                .any(|found| found == pair.as_bytes())
        })
        .count()
}
