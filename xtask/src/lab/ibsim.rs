//! `cargo xtask lab ibsim`: a simulated fabric for OpenSM, infiniband-diags and our own tools.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use rdma_lab::ibsim::{Counts, DEFAULT_NET, Ibsim, OpensmOptions, Options};

/// Serve a fabric with ibsim and run a command, or a shell, on it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask lab ibsim --opensm -- ibnetdiscover
  cargo xtask lab ibsim net.txt --attach leaf1 -- ibswitches
  cargo xtask lab ibsim --opensm --console 'unlink \"h3\"[1]' -- iblinkinfo -l
  cargo xtask lab ibsim --check

The command sees a port of the simulated fabric as /dev/infiniband/umad0, by a preload. Programs that
speak ibsim's own protocol find it by IBSIM_SOCKNAME. Needs the packages ibsim-utils, libumad2sim0,
opensm and infiniband-diags: cargo xtask deps installs them.")]
pub struct Args {
    /// The net file: ibsim's syntax, which is that of ibnetdiscover's output [default: a small fabric of our own].
    net: Option<PathBuf>,
    /// Bring the subnet up with OpenSM first.
    #[arg(long)]
    opensm: bool,
    /// One more argument for OpenSM (repeatable), such as --opensm-arg=-R --opensm-arg=ftree.
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    opensm_arg: Vec<String>,
    /// The node whose port the command gets [default: the net's first].
    #[arg(long, value_name = "NODE")]
    attach: Option<String>,
    /// A line for ibsim's console before the command starts (repeatable), such as 'unlink "leaf1"[3]'.
    #[arg(long, value_name = "LINE")]
    console: Vec<String>,
    /// Bring the subnet up and assert what ibnetdiscover, iblinkinfo and sminfo say.
    #[arg(long, conflicts_with_all = ["command", "console"])]
    check: bool,
    /// What to run [default: a shell].
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,
}

pub(super) fn run(args: &Args) -> Result<i32> {
    let begin = Instant::now();
    let options = Options::default();
    let sim = match &args.net {
        Some(file) => Ibsim::start_file(file, &options)?,
        None => Ibsim::start(DEFAULT_NET, &options)?,
    };
    let counts = sim.counts();
    eprintln!(
        "ibsim serves {} switches and {} adapters after {:.1} s",
        counts.switches,
        counts.adapters,
        begin.elapsed().as_secs_f64()
    );
    let sm = if args.opensm || args.check {
        let options = OpensmOptions {
            attach: args.attach.clone(),
            args: args.opensm_arg.clone(),
            ..OpensmOptions::default()
        };
        let sm = sim.opensm(&options)?;
        eprintln!(
            "OpenSM: SUBNET UP after {:.1} s (simulated by ibsim)",
            sm.up_after().as_secs_f64()
        );
        Some(sm)
    } else {
        None
    };
    if args.check {
        check(&sim, args.attach.as_deref())?;
        drop(sm);
        println!("lab ibsim: ok, {:.1} s", begin.elapsed().as_secs_f64());
        return Ok(0);
    }
    for line in &args.console {
        print!("{}", sim.console(line)?);
    }
    let mut command = match args.command.split_first() {
        Some((program, rest)) => {
            let rest: Vec<_> = rest.iter().map(String::as_str).collect();
            sim.command(program, &rest, args.attach.as_deref())?
        }
        None => {
            explain(&sim, args.attach.as_deref());
            let shell = std::env::var("SHELL").unwrap_or_else(|_| "sh".into());
            sim.command(shell, &[], args.attach.as_deref())?
        }
    };
    // The command's file arguments are the user's, so it runs in the user's folder.
    command.current_dir(std::env::current_dir().context("finding the current folder")?);
    with_sbin(&mut command);
    rdma_lab::process::run_in_foreground(&command)
}

/// infiniband-diags are in /usr/sbin, which is not in an ordinary user's PATH.
fn with_sbin(command: &mut Command) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([Path::new("/usr/sbin").to_path_buf()]);
    if let Ok(path) = std::env::join_paths(folders) {
        command.env("PATH", path);
    }
}

fn explain(sim: &Ibsim, attach: Option<&str>) {
    let pairs: Vec<String> = sim
        .environment(attach)
        .into_iter()
        .filter(|(key, _)| !key.starts_with("OSM_"))
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    eprintln!("This shell's commands run on the fabric. From another terminal:");
    eprintln!("  {} CMD", pairs.join(" "));
    eprintln!("with SIM_HOST=NODE before it to choose the node. The lab ends with this shell.");
    if !std::io::stdin().is_terminal() {
        eprintln!("stdin is not a terminal: the shell reads its commands from there.");
    }
}

/// What CI asserts: the peers see exactly the fabric that the net file describes.
fn check(sim: &Ibsim, attach: Option<&str>) -> Result<()> {
    let tool = |program: &str, args: &[&str]| -> Result<String> {
        let output = sim.run(program, args, attach)?.success()?;
        println!(
            "{program}: {} lines in {:.2} s",
            output.stdout_text().lines().count(),
            output.wall.as_secs_f64()
        );
        Ok(output.stdout_text())
    };
    let found = tool("ibnetdiscover", &[])?;
    let (seen, expected) = (Counts::of(&found), sim.counts());
    ensure!(
        seen.switches == expected.switches && seen.adapters == expected.adapters,
        "ibnetdiscover sees {} switches and {} adapters, the net file has {} and {}",
        seen.switches,
        seen.adapters,
        expected.switches,
        expected.adapters
    );
    let ends = found.lines().filter(|line| line.starts_with('[')).count();
    let links = tool("iblinkinfo", &["-l"])?;
    let active = links
        .lines()
        .filter(|line| line.contains("Active/  LinkUp"))
        .count();
    ensure!(
        active == ends,
        "iblinkinfo shows {active} active link ends, ibnetdiscover {ends}"
    );
    let sminfo = tool("sminfo", &[])?;
    ensure!(
        sminfo.contains("SMINFO_MASTER"),
        "sminfo shows no master: {sminfo}"
    );
    println!(
        "checked: {} switches, {} adapters, {active} link ends active, one master",
        seen.switches, seen.adapters
    );
    Ok(())
}
