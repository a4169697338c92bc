//! What one request costs: C, the crate `ibverbs` 0.9 and `rverbs`, all over the same preloaded library.
//!
//! Instructions are counted by callgrind as the difference between two runs, so that set-up falls out;
//! they don't depend on the machine's other work. Times are medians, and the programs take turns.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rdma_lab::peer;

use crate::workspace::{Workspace, cargo, shown};

/// Its name on the command line.
pub const NAME: &str = "verbs";
/// What is compared with what, and on what.
pub const WHAT: &str = "a request by C, by the crate ibverbs and by rverbs, on one software device; shm and roce beside \
     what the machine does bare";

/// Rounds of the two runs whose difference is counted.
const FEW: u32 = 2_000;
const MANY: u32 = 12_000;

/// A program and how it is called: the loop that it runs.
struct Runner {
    name: &'static str,
    program: PathBuf,
    verb: &'static str,
    device: Option<&'static str>,
}

struct Lab {
    rverbs: PathBuf,
    provider: &'static str,
}

impl Lab {
    /// A program on the software device.
    fn command(&self, runner: &Runner, rounds: u32, under: &[&str]) -> Command {
        let mut command = Command::new(&self.rverbs);
        command.args(["run", "--provider", self.provider, "--"]);
        command.args(under).arg(&runner.program).arg(runner.verb);
        command.arg(rounds.to_string()).args(runner.device);
        command.stdin(Stdio::null());
        command
    }

    /// Nanoseconds a round, as the program says.
    fn time(&self, runner: &Runner, rounds: u32) -> Result<f64> {
        let mut command = self.command(runner, rounds, &[]);
        let said = output(&mut command)?;
        let said = said.trim();
        said.parse()
            .with_context(|| format!("{} said {said:?}", shown(&command)))
    }

    /// Instructions of a round.
    fn instructions(&self, runner: &Runner) -> Result<f64> {
        let count = |rounds| {
            let under = [
                "valgrind",
                "--tool=callgrind",
                "--callgrind-out-file=/dev/null",
            ];
            let mut command = self.command(runner, rounds, &under);
            let output = command.output()?;
            collected(&output.stderr).with_context(|| shown(&command))
        };
        Ok((count(MANY)? - count(FEW)?) / f64::from(MANY - FEW))
    }
}

/// How many instructions callgrind says that it has counted.
pub(super) fn collected(stderr: &[u8]) -> Result<f64> {
    let told = String::from_utf8_lossy(stderr);
    let mut lines = told.lines();
    let count = lines.find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok());
    count.with_context(|| format!("callgrind did not count: {told}"))
}

pub(super) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        bail!("{} failed ({})", shown(command), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn build(mut command: Command) -> Result<()> {
    println!("$ {}", shown(&command));
    let status = command.stdin(Stdio::null()).status()?;
    if !status.success() {
        bail!("{} failed", shown(&command));
    }
    Ok(())
}

pub(super) fn median(samples: &mut [f64]) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Builds all of it, and prints the tables.
pub fn run(workspace: &Workspace, rounds: u32) -> Result<()> {
    println!("{NAME}: {WHAT}");
    peer::need("valgrind")?;
    let mut ours = cargo();
    ours.args(["build", "--release", "-p", "rverbs", "-p", "rverbs-preload"]);
    ours.args(["--bins", "--lib", "--examples", "--features", "rverbs/cli"]);
    build(ours)?;
    let release = workspace.target.join("release");
    let examples = release.join("examples");
    let apart = workspace.target.join("crosscheck-ibverbs");
    let mut theirs = cargo();
    theirs
        .args(["build", "--release", "--locked", "--manifest-path"])
        .arg(workspace.root.join("crosscheck/ibverbs/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &apart);
    build(theirs)?;
    let loop_c = workspace.target.join("verbs-loop");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-Wall", "-o"])
        .arg(&loop_c)
        .arg(workspace.root.join("xtask/src/bench/verbs/loop.c"))
        .arg("-libverbs");
    build(cc)?;

    for (provider, device, many) in [
        ("shm", "rverbs_shm0", 200_000),
        ("roce", "rverbs_lo", 20_000),
    ] {
        let lab = Lab {
            rverbs: release.join("rverbs"),
            provider,
        };
        let device = device_of(&lab, device)?;
        let c = |name, verb| Runner {
            name,
            program: loop_c.clone(),
            verb,
            device: None,
        };
        let rust = |name, verb| Runner {
            name,
            program: examples.join("overhead"),
            verb,
            device: Some(device),
        };
        let crate_ibverbs = Runner {
            name: "ibverbs 0.9",
            program: apart.join("release/ibverbs_loop"),
            verb: "message",
            device: None,
        };
        table(
            &lab,
            "write of 8 bytes, posted and polled",
            &[
                c("C, the request made once", "write"),
                rust("rverbs, repeated", "repeat"),
                c("C, the request filled", "fill"),
                rust("rverbs, buffer moved in and out", "write"),
            ],
            rounds,
            many,
        )?;
        table(
            &lab,
            "message of 8 bytes, sent and received",
            &[c("C", "message"), crate_ibverbs, rust("rverbs", "message")],
            rounds,
            many,
        )?;
    }
    beside_bare(&examples)
}

/// The software device's name, as a program under the library sees it.
fn device_of(lab: &Lab, fallback: &'static str) -> Result<&'static str> {
    let mut command = Command::new(&lab.rverbs);
    command.args(["run", "--provider", lab.provider, "--"]);
    command.arg(&lab.rverbs).arg("devices");
    let said = output(&mut command)?;
    let names = said.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        (words.next() == Some("verbs")).then_some(name)
    });
    let first = names.into_iter().next();
    Ok(first.map_or(fallback, |name| &*name.to_owned().leak()))
}

fn table(lab: &Lab, what: &str, runners: &[Runner], rounds: u32, many: u32) -> Result<()> {
    let mut times = vec![Vec::new(); runners.len()];
    for _ in 0..rounds.max(1) {
        for (runner, times) in runners.iter().zip(&mut times) {
            times.push(lab.time(runner, many)?);
        }
    }
    println!("\nsoft-{}: {what}", lab.provider);
    println!(
        "{:<34} {:>13} {:>9} {:>10}",
        "", "instructions", "over C", "median"
    );
    let mut base = f64::NAN;
    for (runner, times) in runners.iter().zip(&mut times) {
        // A device that waits for its own thread or the network has no fixed count.
        let counted = if lab.provider == "shm" {
            lab.instructions(runner)?
        } else {
            f64::NAN
        };
        if runner.name.starts_with('C') {
            base = counted;
        }
        let shown = |value: f64, sign: &str| {
            if value.is_nan() {
                "-".to_owned()
            } else if sign.is_empty() {
                format!("{value:.1}")
            } else {
                format!("{value:+.1}")
            }
        };
        println!(
            "{:<34} {:>13} {:>9} {:>7.0} ns",
            runner.name,
            shown(counted, ""),
            shown(counted - base, "+"),
            median(times)
        );
    }
    println!("median of {rounds}, in turns; all over the same librverbs_preload.so");
    Ok(())
}

/// The devices beside what the machine does bare.
fn beside_bare(examples: &Path) -> Result<()> {
    println!("\nshm beside a flag in shared memory and memcpy");
    print!("{}", output(&mut Command::new(examples.join("shm_speed")))?);
    println!("\nroce beside bare UDP with segmentation offload, on loopback");
    let mut roce = Command::new(examples.join("roce_peer"));
    roce.args(["bench", "--addr", "127.0.0.1", "--seconds", "1"]);
    print!("{}", output(&mut roce)?);
    Ok(())
}
