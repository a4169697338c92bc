//! Routing, offline: a table of time, memory and quality on trees, tori, dragonflies and graphs by
//! chance, and a race with OpenSM's route computation on ibsim where that is quick.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ib_sim::topo::{Spec, file};
use rdma_lab::ibsim::{Ibsim, OpensmOptions, Options};
use serde_json::Value;

use super::race::{Heat, Race};
use crate::workspace::{Build, Workspace};

/// What is routed: fabric, engine, lanes.
const TABLE: &[(&str, &str, u8)] = &[
    ("fat-tree:108", "auto", 8),
    ("fat-tree:648", "auto", 8),
    ("fat-tree:1728", "auto", 8),
    ("fat-tree:5184", "auto", 8),
    ("fat-tree:11664", "auto", 8),
    ("fat-tree:11664", "general", 8),
    ("fat-tree:k=48,levels=3", "auto", 8),
    ("fat-tree:k=56,levels=3", "auto", 8),
    ("torus:6x6,hosts=3", "auto", 8),
    ("torus:6x6,hosts=3", "auto", 1),
    ("torus:6x6x6,hosts=3", "auto", 8),
    ("torus:6x6x6,hosts=3", "auto", 1),
    ("torus:6x6x6,hosts=3", "general", 8),
    ("torus:6x6x6,hosts=3", "general", 1),
    ("torus:12x12x12,hosts=3", "auto", 8),
    ("dragonfly:p=2", "auto", 4),
    ("dragonfly:p=2", "auto", 1),
    ("dragonfly:p=3", "auto", 4),
    ("dragonfly:p=3", "auto", 1),
    ("dragonfly:p=4", "auto", 4),
    ("dragonfly:p=6", "auto", 4),
    ("random:switches=100,hosts=500,degree=6", "auto", 1),
    ("random:switches=100,hosts=500,degree=6", "auto", 2),
    ("random:switches=100,hosts=500,degree=6", "auto", 4),
    ("random:switches=100,hosts=500,degree=6", "auto", 8),
];

/// What OpenSM routes as well: fabric, its engine, ours, lanes, and the share of its time that ours may take.
/// OpenSM's nue has one lane unless it is told otherwise.
const PEER: &[(&str, &str, &str, u8, f64)] = &[
    ("fat-tree:1728", "ftree", "auto", 8, 1.0 / 5.0),
    ("fat-tree:1728", "dfsssp", "general", 8, 1.0 / 5.0),
    ("fat-tree:1728", "nue", "general", 1, 1.0 / 5.0),
    ("torus:6x6x6,hosts=3", "nue", "auto", 1, 1.0 / 5.0),
    ("torus:6x6x6,hosts=3", "nue", "nue", 1, 1.0),
];

/// Beyond so many end ports only a few permutations are tried: they take longer than routing.
const MANY: u64 = 6000;

/// The race.
pub const RACE: Race = Race {
    name: "routing",
    what: "ib-sm route, offline; and against OpenSM's route computation on ibsim",
    heats,
};

fn heats(workspace: &Workspace, rounds: u32) -> Result<Vec<Heat>> {
    let ours = workspace.build_tools(Build::Release)?.join("ib-sm");
    println!(
        "{:<40} {:<8} {:>3} {:>7} {:>8} {:>6} {:>5} {:>8} {:>6} {:>6} {:>6} {:>5} {:>3}",
        "fabric",
        "engine",
        "VLs",
        "ends",
        "s",
        "MiB",
        "hops",
        "max/mean",
        "shift",
        "bw",
        "bisec",
        "loops",
        "use"
    );
    for &(spec, engine, vls) in TABLE {
        let spec_ends = spec.parse::<Spec>()?.build()?.hosts().count() as u64;
        let tries = if spec_ends > MANY { "20" } else { "200" };
        let mut best: Option<Value> = None;
        for round in 0..rounds.max(1) {
            let mut command = Command::new(&ours);
            command.args([
                "route",
                spec,
                "--engine",
                engine,
                "--vls",
                &vls.to_string(),
                "--cost",
                "--json",
            ]);
            if round == 0 {
                command.args(["--shifts", tries, "--bisections", tries]);
            } else {
                // Quality is the same each time.
                command.arg("--no-verify");
            }
            let answer = run(&mut command)?;
            match &mut best {
                None => best = Some(answer),
                Some(best) if seconds(&answer) < seconds(best) => {
                    best["cost"] = answer["cost"].clone()
                }
                Some(_) => {}
            }
        }
        let best = best.context("no round")?;
        println!("{}", line(spec, engine, vls, &best));
    }
    let mut heats = Vec::new();
    for &(spec, peer, engine, vls, goal) in PEER {
        let topology = spec.parse::<Spec>()?.build()?;
        let sim = Ibsim::start(&file::write(&topology), &Options::default())?;
        let (mut best, mut theirs) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds.clamp(1, 3) {
            let options = OpensmOptions {
                args: ["-D", "0x07", "-R", peer].map(str::to_owned).to_vec(),
                ..OpensmOptions::default()
            };
            let sm = sim.opensm(&options)?;
            theirs =
                theirs.min(routed(&sm.log()).with_context(|| format!("OpenSM's log of {peer}"))?);
            drop(sm);
            let mut command = Command::new(&ours);
            command.args(["route", spec, "--engine", engine, "--vls", &vls.to_string()]);
            command.args(["--cost", "--json", "--no-verify"]);
            let answer = run(&mut command)?;
            best = best.min(Duration::from_secs_f64(seconds(&answer)));
        }
        heats.push(Heat {
            input: format!("{spec}: {engine}/{peer}"),
            ours: best,
            peer: theirs,
            goal,
        });
    }
    Ok(heats)
}

fn run(command: &mut Command) -> Result<Value> {
    let output = command.output()?;
    let good = matches!(output.status.code(), Some(0 | 1));
    ensure!(
        good,
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut answer: Value = serde_json::from_slice(&output.stdout)?;
    Ok(answer["data"].take())
}

fn seconds(answer: &Value) -> f64 {
    answer["cost"]["seconds"].as_f64().unwrap_or(f64::INFINITY)
}

fn line(spec: &str, engine: &str, vls: u8, answer: &Value) -> String {
    let quality = &answer["quality"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let loops = match quality["looped_channels"].as_u64() {
        Some(0) => "none",
        _ => "LOOPS",
    };
    let reached = quality["unreached"].as_u64() == Some(0);
    format!(
        "{spec:<40} {engine:<8} {vls:>3} {:>7} {:>8.3} {:>6.0} {:>5.2} {:>8.3} {:>6} {:>6.3} {:>6.3} {:>5} {:>3}{}",
        answer["fabric"]["ends"].to_string(),
        seconds(answer),
        number(&answer["cost"]["peak_mib"]),
        number(&quality["mean_hops"]),
        number(&quality["all_to_all"]["imbalance"]),
        quality["shift"]["worst"].to_string(),
        number(&quality["shift"]["bandwidth"]),
        number(&quality["bisection"]["bandwidth"]),
        loops,
        quality["vls"].to_string(),
        if reached { "" } else { "  NOT ALL REACHED" },
    )
}

/// How long OpenSM computed routes, by its log: from the line where it begins to that where all
/// tables are in the switches.
fn routed(log: &str) -> Option<Duration> {
    let time = |line: &str| -> Option<f64> {
        let mut words = line.split_whitespace().skip(2);
        let mut clock = words.next()?.split(':').map(|it| it.parse::<f64>().ok());
        let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
        let micros: f64 = words.next()?.parse().ok()?;
        Some(hours * 3600.0 + minutes * 60.0 + seconds + micros / 1e6)
    };
    let begin = log
        .lines()
        .find(|line| line.contains("building routing with"))?;
    let end = log
        .lines()
        .find(|line| line.contains("tables configured on all switches"))?;
    Some(Duration::from_secs_f64(
        (time(end)? - time(begin)?).max(0.0),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_opensm_is_understood() {
        let log = "Dec 01 07:52:19 100000 [A] 0x04 -> x: building routing with ftree\n\
                   Dec 01 07:52:20 350000 [A] 0x02 -> y: ftree tables configured on all switches\n";
        assert_eq!(routed(log), Some(Duration::from_millis(1250)));
        assert_eq!(routed("nothing"), None);
    }
}
