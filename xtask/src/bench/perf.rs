//! rperf beside perftest: the same test by the same library on the same device, in turns.
//!
//! Both print perftest's table, so that the same column is compared with the same definition. Instructions
//! are those of the client, counted by callgrind as the difference between two runs: of tests in which it
//! never waits for the other side, for who waits spins. They include what is done with a sample afterwards.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rdma_lab::{peer, preload};

use super::verbs::{build, collected, median, output};
use crate::workspace::{Workspace, cargo, shown};

/// Its name on the command line.
pub const NAME: &str = "perf";
/// What is compared with what.
pub const WHAT: &str =
    "rperf and perftest, the same tests over the same preloaded library, in turns";

/// Iterations of the two runs whose difference is counted.
const FEW: u32 = 500;
const MANY: u32 = 2_500;
/// How long a server may take to listen.
const LIMIT: Duration = Duration::from_secs(20);

/// Who measures.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Who {
    Perftest,
    Rperf,
}

/// A test and the iterations that take about a second.
struct Test {
    verb: &'static str,
    metric: &'static str,
    size: u32,
    shm: u32,
    roce: u32,
}

const TESTS: [Test; 8] = [
    Test {
        verb: "send",
        metric: "lat",
        size: 2,
        shm: 40_000,
        roce: 10_000,
    },
    Test {
        verb: "write",
        metric: "lat",
        size: 2,
        shm: 40_000,
        roce: 10_000,
    },
    Test {
        verb: "read",
        metric: "lat",
        size: 2,
        shm: 40_000,
        roce: 10_000,
    },
    Test {
        verb: "atomic",
        metric: "lat",
        size: 8,
        shm: 40_000,
        roce: 10_000,
    },
    Test {
        verb: "send",
        metric: "bw",
        size: 65_536,
        shm: 20_000,
        roce: 5_000,
    },
    Test {
        verb: "write",
        metric: "bw",
        size: 65_536,
        shm: 20_000,
        roce: 5_000,
    },
    Test {
        verb: "read",
        metric: "bw",
        size: 65_536,
        shm: 20_000,
        roce: 5_000,
    },
    Test {
        verb: "write",
        metric: "bw",
        size: 8,
        shm: 40_000,
        roce: 10_000,
    },
];

impl Test {
    /// Whether shared memory does it at once.
    fn never_waits(&self) -> bool {
        self.size == 8 || (self.verb, self.metric) == ("read", "lat")
    }
}

struct Lab {
    bin: PathBuf,
    provider: &'static str,
    device: &'static str,
    port: u16,
}

impl Lab {
    fn command(&self, who: Who, test: &Test, count: u32, under: &[&str], client: bool) -> Command {
        let mut command = Command::new(self.bin.join("rverbs"));
        command
            .args(["run", "--provider", self.provider, "--"])
            .args(under);
        match who {
            Who::Perftest => {
                command
                    .arg(format!("ib_{}_{}", test.verb, test.metric))
                    .arg("-F");
            }
            Who::Rperf => {
                command
                    .arg(self.bin.join("rperf"))
                    .args([test.verb, test.metric]);
                command.args(["--compat", "perftest"]);
            }
        }
        command.args([
            "-d",
            self.device,
            "-p",
            &self.port.to_string(),
            "-n",
            &count.to_string(),
        ]);
        if test.verb != "atomic" {
            command.args(["-s", &test.size.to_string()]);
        }
        command.args(client.then_some("127.0.0.1"));
        command.stdin(Stdio::null());
        command
    }

    /// The client, with a server of the same kind beside it.
    fn pair(
        &mut self,
        who: Who,
        test: &Test,
        count: u32,
        under: &[&str],
    ) -> Result<std::process::Output> {
        self.port = 21_000 + (self.port + 1) % 8_000;
        let mut server = self.command(who, test, count, &[], false);
        let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let begin = Instant::now();
        while !preload::listens(self.port) {
            ensure!(
                begin.elapsed() < LIMIT,
                "the server of ib_{}_{} does not listen",
                test.verb,
                test.metric
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut client = self.command(who, test, count, under, true);
        let said = client
            .output()
            .with_context(|| format!("cannot run {}", shown(&client)));
        if !said.as_ref().is_ok_and(|it| it.status.success()) {
            let _ = server.kill();
        }
        server.wait()?;
        let said = said?;
        ensure!(
            said.status.success(),
            "{} failed: {}",
            shown(&client),
            String::from_utf8_lossy(&said.stderr)
        );
        Ok(said)
    }

    /// Typical µs, or MiB a second.
    fn figure(&mut self, who: Who, test: &Test, count: u32) -> Result<f64> {
        let said = self.pair(who, test, count, &[])?;
        let text = String::from_utf8_lossy(&said.stdout);
        let row = text
            .lines()
            .skip_while(|line| !line.starts_with(" #bytes"))
            .nth(1);
        let column = if test.metric == "lat" { 4 } else { 3 };
        let cell = row.and_then(|row| row.split_whitespace().nth(column)?.parse().ok());
        cell.with_context(|| format!("no table in: {text}"))
    }

    /// Instructions of the client for each iteration.
    fn instructions(&mut self, who: Who, test: &Test) -> Result<f64> {
        let under = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
        ];
        let mut count = |count| collected(&self.pair(who, test, count, &under)?.stderr);
        Ok((count(MANY)? - count(FEW)?) / f64::from(MANY - FEW))
    }
}

/// Builds what is needed, and prints a table for each device.
pub fn run(workspace: &Workspace, rounds: u32) -> Result<()> {
    println!("{NAME}: {WHAT}");
    for program in ["valgrind", "ib_send_lat"] {
        peer::need(program)?;
    }
    let mut ours = cargo();
    ours.args([
        "build",
        "--release",
        "-p",
        "rverbs",
        "-p",
        "rverbs-preload",
        "-p",
        "rperf",
    ]);
    ours.args(["--features", "rverbs/cli"]);
    build(ours)?;
    let bin = workspace.target.join("release");
    for (provider, device) in [("shm", "rverbs_shm0"), ("roce", "rverbs_roce_lo")] {
        let mut lab = Lab {
            bin: bin.clone(),
            provider,
            device,
            port: 21_000 + u16::try_from(std::process::id() % 8_000)?,
        };
        known(&lab)?;
        println!("\nsoft-{provider}, median of {rounds} rounds, in turns");
        println!(
            "{:<22} {:>12} {:>12} {:>8} {:>14} {:>14}",
            "", "perftest", "rperf", "ratio", "instructions", "rperf's"
        );
        for test in &TESTS {
            let count = if provider == "shm" {
                test.shm
            } else {
                test.roce
            };
            let (mut theirs, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..rounds.max(1) {
                theirs.push(lab.figure(Who::Perftest, test, count)?);
                ours.push(lab.figure(Who::Rperf, test, count)?);
            }
            let (theirs, ours) = (median(&mut theirs), median(&mut ours));
            let counted = if provider == "shm" && test.never_waits() {
                let mut count = |who| lab.instructions(who, test);
                (
                    format!("{:.0}", count(Who::Perftest)?),
                    format!("{:.0}", count(Who::Rperf)?),
                )
            } else {
                ("-".to_owned(), "-".to_owned())
            };
            let unit = if test.metric == "lat" { "us" } else { "MiB/s" };
            println!(
                "{:<22} {theirs:>12.2} {ours:>12.2} {:>8.3} {:>14} {:>14}",
                format!("{} {} {} B, {unit}", test.verb, test.metric, test.size),
                ours / theirs,
                counted.0,
                counted.1
            );
        }
    }
    Ok(())
}

/// Fails where programs under the library do not see the device.
fn known(lab: &Lab) -> Result<()> {
    let mut command = Command::new(lab.bin.join("rverbs"));
    command.args(["run", "--provider", lab.provider, "--"]);
    command.arg(lab.bin.join("rverbs")).arg("devices");
    if output(&mut command)?.contains(lab.device) {
        return Ok(());
    }
    bail!("there is no {}", lab.device)
}
