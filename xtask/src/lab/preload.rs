//! `cargo xtask lab preload`: Debian's verbs programs on our software devices, and on the kernel's.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdma_lab::preload::{self, Case, LIBRARY, Preload, Provider, Row, Rxe, cases};

use crate::workspace::{Workspace, cargo};

/// Run a command on a software RDMA device, or all of Debian's verbs programs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask lab preload -- ibv_devinfo -v
  cargo xtask lab preload --provider roce -- rping -s
  cargo xtask lab preload --check
  cargo xtask lab preload --check --provider shm --only ib_send --repeat 20
  cargo xtask lab preload --check --rxe                  the kernel's rxe under QEMU beside them

Needs the packages perftest, ibverbs-utils, rdmacm-utils and qperf: cargo xtask deps installs them; and
for --rxe what lab qemu needs. Figures are those of memory copies and UDP sockets on this machine, not of
an adapter; those of rxe are of an emulated machine.")]
pub struct Args {
    /// The device: shm (processes of this host) or roce (RoCEv2 over UDP) [default: shm, and both for --check].
    #[arg(long, value_parser = provider)]
    provider: Option<Provider>,
    /// Run every tool, transport and option, print the table, and fail where one fails.
    #[arg(long, conflicts_with = "command")]
    check: bool,
    /// Run the same list on the kernel's rxe in a QEMU guest, too, and print one table of all.
    #[arg(long, requires = "check")]
    rxe: bool,
    /// Only cases whose tool, transport and option begin so (one space between), with --check (repeatable).
    #[arg(long, value_name = "NAME", requires = "check")]
    only: Vec<String>,
    /// Leave out what takes seconds and shows little, as CI does, with --check.
    #[arg(long, requires = "check")]
    quick: bool,
    /// How many cases to run at a time on the software devices, with --check; figures suffer.
    #[arg(long, value_name = "N", requires = "check", default_value_t = 1)]
    jobs: usize,
    /// Run each case that often, with --check; the rows that fail are printed, and how often.
    #[arg(long, value_name = "N", requires = "check", default_value_t = 1)]
    repeat: u32,
    /// What to run [default: a shell].
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

fn provider(text: &str) -> Result<Provider, String> {
    [Provider::Shm, Provider::Roce]
        .into_iter()
        .find(|provider| provider.name() == text)
        .ok_or_else(|| "shm or roce".to_owned())
}

pub(super) fn run(args: &Args) -> Result<i32> {
    let library = build()?;
    if args.check {
        return check(&library, args);
    }
    let lab = Preload::new(library, args.provider.unwrap_or(Provider::Shm));
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".into());
    let (program, rest) = match args.command.split_first() {
        Some((program, rest)) => (program.clone(), rest),
        None => {
            eprintln!(
                "This shell's commands run on soft-{}.",
                lab.provider().name()
            );
            (shell, &[][..])
        }
    };
    let mut command = lab.command(program.as_ref());
    command
        .args(rest)
        .current_dir(std::env::current_dir().context("finding the current folder")?);
    rdma_lab::process::run_in_foreground(&command)
}

/// Builds the library, optimised, since figures are read from it.
fn build() -> Result<PathBuf> {
    let mut command = cargo();
    command.args(["build", "--release", "--quiet", "-p", "rverbs-preload"]);
    let status = command.status().context("cargo could not be started")?;
    ensure!(status.success(), "building rverbs-preload failed");
    let library = Workspace::load()?.target.join("release").join(LIBRARY);
    ensure!(library.is_file(), "no file {}", library.display());
    Ok(library)
}

/// Whether a case is asked for.
fn wanted(case: &Case, only: &[String]) -> bool {
    let name = [case.tool, case.transport, case.option]
        .join(" ")
        .replace("  ", " ");
    only.is_empty() || only.iter().any(|only| name.starts_with(only))
}

fn check(library: &Path, args: &Args) -> Result<i32> {
    let begin = Instant::now();
    let providers = match args.provider {
        Some(provider) => vec![provider],
        None => vec![Provider::Shm, Provider::Roce],
    };
    let cases: Vec<&'static Case> = cases()
        .filter(|case| wanted(case, &args.only) && !(args.quick && case.is_slow()))
        .collect();
    ensure!(!cases.is_empty(), "no case begins with {:?}", args.only);
    let limit = Duration::from_secs(60);
    let show = |row: &Row| eprintln!("{:>6.2} s  {row}", row.wall.as_secs_f64());
    let mut rows: Vec<Row> = Vec::new();
    for _ in 0..args.repeat {
        for provider in &providers {
            rows.extend(preload::run_all(
                library, *provider, limit, args.jobs, &cases, show,
            ));
        }
        if args.rxe {
            let mut lab = Rxe::boot(limit)?;
            for case in &cases {
                let row = lab.run(case)?;
                show(&row);
                rows.push(row);
            }
        }
    }
    if args.repeat > 1 {
        let failed = rows.iter().filter(|row| !row.is_ok());
        failed.for_each(|row| println!("{row}"));
    } else if args.rxe {
        print!("{}", preload::beside(&rows));
    } else {
        print!("{}", preload::table(&rows));
    }
    let failed = rows.iter().filter(|row| !row.is_ok()).count();
    ensure!(failed == 0, "{failed} of {} cases fail", rows.len());
    println!(
        "lab preload: ok, {} cases, {:.1} s",
        rows.len(),
        begin.elapsed().as_secs_f64()
    );
    Ok(0)
}
