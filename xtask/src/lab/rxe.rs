//! `cargo xtask lab rxe`: our RoCEv2 against the Linux kernel's, on one wire.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdma_lab::preload::LIBRARY;
use rdma_lab::qemu::Guest;
use rdma_lab::rxe::{self, CASES, Case, Direction, Lab, MEASURES, Ours, Speed};

use crate::workspace::{Workspace, cargo};

/// Run verbs programs on soft-roce against Linux rxe in a guest, and dissect what crosses the wire.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask lab rxe                      every case, both ways, with and without loss
  cargo xtask lab rxe --check              the few that CI runs, in under a minute
  cargo xtask lab rxe --only 'UC' --loss 5
  cargo xtask lab rxe --pcap rxe.pcap      keep what was captured
  cargo xtask lab rxe --speed              how fast they are, side by side

rxe0 is on one end of a veth pair in the guest's first network namespace, soft-roce on the other end in a
second one: unmodified programs on librverbs_preload.so, and the example roce_peer, which checks every
byte. The exit code is 1 where a row fails or tshark finds a packet wrong. Needs what lab qemu needs, and the
packages tcpdump and tshark: cargo xtask deps installs them. Figures are those of software under QEMU's
emulation.")]
pub struct Args {
    /// Only the few cases that CI runs.
    #[arg(long)]
    check: bool,
    /// Only cases whose transport and name begin so, as in `RC ib_`.
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,
    /// How many of 100 packets are lost in each direction, in the second half.
    #[arg(long, value_name = "PERCENT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=50))]
    loss: u32,
    /// Measure soft-roce beside rxe on the same wire, in turns, instead.
    #[arg(long, conflicts_with_all = ["check", "only", "loss", "pcap"])]
    speed: bool,
    /// How often each is measured, with --speed.
    #[arg(long, value_name = "N", requires = "speed", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Write what was captured on the wire to this file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<i32> {
    let begin = Instant::now();
    let ours = build()?;
    if args.speed {
        return speed(&ours, args.rounds);
    }
    let cases: Vec<&'static Case> = CASES
        .iter()
        .filter(|case| case.quick || !args.check)
        .filter(|case| format!("{} {}", case.transport, case.name).starts_with(&args.only))
        .collect();
    ensure!(!cases.is_empty(), "no case begins with {:?}", args.only);
    let built = begin.elapsed();
    let mut lab = Lab::boot(&ours, Duration::from_secs(60))?;
    say_up(lab.guest());
    lab.start_capture()?;
    let mut rows = Vec::new();
    let mut losses = vec![0];
    if args.loss > 0 {
        losses.push(args.loss);
    }
    for loss in losses {
        lab.lose(loss)?;
        for case in &cases {
            let quick = !args.check || case.quick_lossy;
            if loss > 0 && !(case.survives_loss && quick) {
                continue;
            }
            for direction in Direction::ALL {
                for row in lab.run(case, direction)? {
                    eprintln!("{:>6.2} s  {row}", row.wall.as_secs_f64());
                    rows.push(row);
                }
            }
        }
    }
    let bytes = lab.end_capture()?;
    drop(lab);
    let folder = rdma_lab::process::Folder::new()?;
    let file = args
        .pcap
        .clone()
        .unwrap_or_else(|| folder.path().join("rxe.pcap"));
    std::fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
    let capture = rxe::dissect(&file)?;
    print!("{}", rxe::table(&rows));
    println!("capture: {capture}");
    let failed = rows.iter().filter(|row| row.result.is_err()).count();
    let took = begin.elapsed().saturating_sub(built).as_secs_f64();
    if failed > 0 || !capture.is_clean() {
        println!(
            "lab rxe: FAILED, {failed} rows of {}, {took:.1} s",
            rows.len()
        );
        return Ok(1);
    }
    println!(
        "lab rxe: ok, {} rows, {} packets, {took:.1} s",
        rows.len(),
        capture.packets
    );
    Ok(0)
}

fn say_up(guest: &Guest) {
    eprintln!(
        "Linux {} under QEMU is up after {:.1} s",
        guest.kernel(),
        guest.booted_after().as_secs_f64()
    );
}

/// Both goals are medians of the same run: a figure by itself says nothing under emulation.
fn speed(ours: &Ours, rounds: u32) -> Result<i32> {
    let mut lab = Speed::boot(&ours.library, Duration::from_secs(60))?;
    say_up(lab.guest());
    let mut missed = 0;
    for measure in MEASURES {
        let compared = lab.compare(measure, rounds)?;
        println!("{compared}");
        missed += u32::from(!compared.is_reached());
    }
    if missed > 0 {
        println!(
            "lab rxe: {missed} of {} goals of speed missed",
            MEASURES.len()
        );
        return Ok(1);
    }
    println!("lab rxe: ok, every goal of speed reached");
    Ok(0)
}

/// Builds what is ours, optimised: emulation is slow enough.
fn build() -> Result<Ours> {
    for what in [
        &[
            "-p",
            "rverbs",
            "--no-default-features",
            "--example",
            "roce_peer",
        ][..],
        &["-p", "rverbs-preload"],
    ] {
        let mut command = cargo();
        command.args(["build", "--release", "--quiet"]).args(what);
        let status = command.status().context("cargo could not be started")?;
        ensure!(status.success(), "cargo build {} failed", what.join(" "));
    }
    let release = Workspace::load()?.target.join("release");
    let ours = Ours {
        peer: release.join("examples").join("roce_peer"),
        library: release.join(LIBRARY),
    };
    for file in [&ours.peer, &ours.library] {
        ensure!(file.is_file(), "no file {}", file.display());
    }
    Ok(ours)
}
