//! `cargo xtask lab preload`: Debian's verbs programs on our software devices.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rdma_lab::preload::{self, LIBRARY, Preload, Provider, Row, cases};

use crate::workspace::{Workspace, cargo};

/// Run a command on a software RDMA device, or all of Debian's verbs programs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask lab preload -- ibv_devinfo -v
  cargo xtask lab preload --provider roce -- rping -s
  cargo xtask lab preload --check
  cargo xtask lab preload --check --provider shm --only ib_send

Needs the packages perftest, ibverbs-utils, rdmacm-utils and qperf: cargo xtask deps installs them.
Figures are those of memory copies and UDP sockets on this machine, not of an adapter.")]
pub struct Args {
    /// The device: shm (processes of this host) or roce (RoCEv2 over UDP) [default: shm, and both for --check].
    #[arg(long, value_parser = provider)]
    provider: Option<Provider>,
    /// Run every tool, transport and option, print the table, and fail where one fails.
    #[arg(long, conflicts_with = "command")]
    check: bool,
    /// Only tools whose names begin so, with --check.
    #[arg(long, value_name = "NAME", requires = "check")]
    only: Option<String>,
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

fn check(library: &std::path::Path, args: &Args) -> Result<i32> {
    let begin = Instant::now();
    let providers = match args.provider {
        Some(provider) => vec![provider],
        None => vec![Provider::Shm, Provider::Roce],
    };
    let mut rows: Vec<Row> = Vec::new();
    for provider in providers {
        let lab = Preload::new(library.to_owned(), provider);
        let only = args.only.as_deref().unwrap_or("");
        for case in cases().filter(|case| case.tool.starts_with(only)) {
            let row = lab.run(case);
            eprintln!("{row}");
            rows.push(row);
        }
    }
    print!("{}", preload::table(&rows));
    let failed = rows.iter().filter(|row| !row.is_ok()).count();
    ensure!(failed == 0, "{failed} of {} cases fail", rows.len());
    println!("lab preload: ok, {:.1} s", begin.elapsed().as_secs_f64());
    Ok(0)
}
