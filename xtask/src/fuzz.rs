//! `cargo xtask fuzz`: coverage-guided fuzzing on the stable toolchain.
//!
//! The targets are a package of their own, `fuzz/`, outside of the workspace. Without a sanitizer
//! (`-s none`) they need no nightly compiler: a panic, a hang or a runaway allocation is found all the
//! same, and the code under test has no unsafe blocks for a sanitizer to watch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;

use crate::tool;
use crate::workspace::{Workspace, cargo, shown};

/// Feeds made-up bytes to the parsers.
#[derive(clap::Args)]
pub struct Args {
    /// The target; all of them, one after the other, unless given.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// List the targets and the size of each corpus.
    #[arg(long)]
    list: bool,
    /// Only feed each target its committed corpus, once.
    #[arg(long, conflicts_with_all = ["seconds", "minimise"])]
    replay: bool,
    /// Make each corpus as small as it can be with the same coverage.
    #[arg(long)]
    minimise: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let folder = workspace.root.join("fuzz");
    let all = targets(&folder)?;
    let chosen: Vec<&String> = match &args.target {
        Some(name) => all.iter().filter(|target| *target == name).collect(),
        None => all.iter().collect(),
    };
    if chosen.is_empty() {
        bail!("no such target; there are: {}", all.join(", "));
    }
    if args.list {
        for target in chosen {
            println!("{target:<24} {} seeds", corpus(&folder, target)?.len());
        }
        return Ok(());
    }
    if args.replay {
        return replay(&workspace, &folder, &chosen);
    }
    let fuzzer = tool::FUZZ.path(&workspace)?;
    let mut failed = Vec::new();
    for target in chosen {
        let verb = if args.minimise { "cmin" } else { "run" };
        let mut command = Command::new(&fuzzer);
        command
            .current_dir(&workspace.root)
            .args(["fuzz", verb, "-s", "none", target])
            .env("CARGO_TARGET_DIR", workspace.target.join("fuzz"))
            .stdin(Stdio::null());
        if !args.minimise {
            // What is found goes beside the build; only chosen seeds are committed.
            let found = workspace.target.join("fuzz-corpus").join(target);
            fs::create_dir_all(&found)?;
            command
                .arg(&found)
                .arg(folder.join("corpus").join(target))
                .arg("--");
            command
                .arg(format!("-max_total_time={}", args.seconds))
                .arg("-rss_limit_mb=2048");
            command.args(["-timeout=10", "-print_final_stats=1"]);
        }
        println!("$ {}", shown(&command));
        let status = command
            .status()
            .context("cargo-fuzz could not be started")?;
        if !status.success() {
            failed.push(target.as_str());
        }
    }
    if !failed.is_empty() {
        bail!(
            "found something in: {}; the inputs are in fuzz/artifacts: put each into the corpus with \
             the fix, so that it is replayed for ever",
            failed.join(", ")
        );
    }
    Ok(())
}

/// Builds the targets with the plain compiler and runs each on its corpus.
fn replay(workspace: &Workspace, folder: &Path, targets: &[&String]) -> Result<()> {
    // Not in RUSTFLAGS: another value there would build every dependency of the workspace again.
    let mut build = cargo();
    build
        .args(["build", "--quiet", "--locked", "--bins", "--manifest-path"])
        .arg(folder.join("Cargo.toml"))
        .env("CARGO_TARGET_DIR", workspace.target.join("fuzz-replay"))
        .env("RUSTFLAGS", "--cfg fuzzing")
        .stdin(Stdio::null());
    let status = build.status().context("cargo could not be started")?;
    if !status.success() {
        bail!("the targets do not build: {}", shown(&build));
    }
    let mut failed = Vec::new();
    for target in targets {
        let seeds = corpus(folder, target)?;
        if seeds.is_empty() {
            println!(
                "{target:<24} has no corpus: put a few small inputs into fuzz/corpus/{target}"
            );
            failed.push(target.as_str());
            continue;
        }
        // libFuzzer's own main runs each file that it is given once, and nothing else.
        let program = workspace.target.join("fuzz-replay/debug").join(target);
        let output = Command::new(&program)
            .args(["-timeout=10", "-rss_limit_mb=2048"])
            .args(&seeds)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let told = String::from_utf8_lossy(&output.stderr);
        let ran = told.matches("Executed ").count();
        if output.status.success() && ran == seeds.len() {
            println!("{target:<24} {ran} seeds pass");
        } else {
            println!("{told}");
            println!("{target:<24} FAILED after {ran} of {} seeds", seeds.len());
            failed.push(target.as_str());
        }
    }
    if !failed.is_empty() {
        bail!(
            "these targets fail on their own corpus: {}",
            failed.join(", ")
        );
    }
    Ok(())
}

/// The binaries of the package.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let manifest = folder.join("Cargo.toml");
    if !manifest.exists() {
        bail!("there are no fuzz targets yet: no {}", manifest.display());
    }
    let metadata = MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .context("cargo metadata failed for fuzz/")?;
    let mut names: Vec<String> = metadata
        .packages
        .iter()
        .flat_map(|package| &package.targets)
        .filter(|target| target.is_bin())
        .map(|target| target.name.clone())
        .collect();
    names.sort();
    Ok(names)
}

/// The committed seeds of a target, in order.
fn corpus(folder: &Path, target: &str) -> Result<Vec<PathBuf>> {
    let folder = folder.join("corpus").join(target);
    let mut seeds = Vec::new();
    if folder.exists() {
        for entry in fs::read_dir(&folder)? {
            seeds.push(entry?.path());
        }
    }
    seeds.sort();
    Ok(seeds)
}
