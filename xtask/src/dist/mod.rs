//! `cargo xtask dist`: what is given to people: binaries, manual pages, completions, as an archive
//! and as a Debian package. Built twice from the same commit, both come out the same.

mod deb;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::codegen;
use crate::workspace::{Workspace, cargo, shown};
use stage::Stage;

/// Crates whose tools load libraries at run time, which a static binary cannot do.
const DYNAMIC: &[&str] = &["rperf", "rverbs"];

/// Makes the archive and the Debian package, and tries both.
#[derive(clap::Args)]
pub struct Args {
    /// Make only the Debian package.
    #[arg(long)]
    deb: bool,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let package = workspace.members().first().map(|p| p.version.to_string());
    let version = package.context("the workspace has no member")?;
    let into = workspace.target.join("dist");
    if into.exists() {
        fs::remove_dir_all(&into).with_context(|| format!("cannot empty {}", into.display()))?;
    }
    fs::create_dir_all(&into)?;

    let binaries = build(&workspace)?;
    let stage = Stage::new(&workspace, &version, binaries, &into.join("generated"))?;
    let mut made = Vec::new();
    if !args.deb {
        made.push(stage.archive(&into)?);
    }
    if Path::new("/usr/bin/dpkg-deb").exists() {
        made.push(deb::make(&stage, &into)?);
    } else if args.deb {
        bail!("dpkg-deb is not on this machine: a Debian package is made on a Debian");
    } else {
        println!("no Debian package: dpkg-deb is not on this machine");
    }
    sums(&into, &made)?;
    for path in made.iter().chain([&into.join("SHA256SUMS")]) {
        println!("{:>10}  {}", size(path)?, path.display());
    }
    Ok(())
}

/// A tool ready to be given away.
pub struct Binary {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Whether it needs the system's C library.
    pub dynamic: bool,
}

/// Builds the tools, optimised and stripped; those that can be are linked statically, so that they
/// run on any Linux of this architecture.
fn build(workspace: &Workspace) -> Result<Vec<Binary>> {
    let target = host()?;
    let mut binaries = Vec::new();
    for dynamic in [false, true] {
        let tools = workspace.tools();
        let chosen: Vec<_> = tools
            .iter()
            .filter(|t| DYNAMIC.contains(&t.package.as_str()) == dynamic)
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let mut command = cargo();
        command.args([
            "build",
            "--release",
            "--locked",
            "--all-features",
            "--target",
            &target,
        ]);
        for tool in &chosen {
            command.args(["-p", &tool.package, "--bin", &tool.name]);
        }
        let folder = workspace.target.join(if dynamic {
            "dist-dynamic"
        } else {
            "dist-static"
        });
        command
            .env("CARGO_TARGET_DIR", &folder)
            .stdin(Stdio::null());
        if !dynamic {
            command.env("RUSTFLAGS", "-C target-feature=+crt-static");
        }
        println!("$ {}", shown(&command));
        let status = command.status().context("cargo could not be started")?;
        if !status.success() {
            bail!("the tools do not build");
        }
        for tool in chosen {
            let path = folder.join(&target).join("release").join(&tool.name);
            binaries.push(Binary {
                name: tool.name.clone(),
                path,
                dynamic,
            });
        }
    }
    if binaries.is_empty() {
        bail!("the workspace has no tool yet: no binary has `required-features = [\"cli\"]`");
    }
    binaries.sort_by(|a, b| a.name.cmp(&b.name));
    for binary in &binaries {
        let linked = if binary.dynamic { "dynamic" } else { "static" };
        println!("{:>10}  {} ({linked})", size(&binary.path)?, binary.name);
    }
    Ok(binaries)
}

/// The target that rustc builds for here.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .stdin(Stdio::null())
        .output();
    let output = output.context("rustc could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .context("rustc does not say what it builds for")
}

/// When the commit was made: the time of every file that is given away.
fn commit_time(root: &Path) -> Result<String> {
    let mut command = Command::new("git");
    command
        .args(["log", "-1", "--format=%ct"])
        .current_dir(root)
        .stdin(Stdio::null());
    let output = command.output().context("git could not be started")?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if text.is_empty() {
        bail!(
            "git does not tell the time of the commit: {}",
            shown(&command)
        );
    }
    Ok(text)
}

/// Runs a command that must succeed.
fn must(command: &mut Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", shown(command)))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            shown(command),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(())
}

fn sums(into: &Path, made: &[PathBuf]) -> Result<()> {
    let names = made.iter().filter_map(|path| path.file_name());
    let output = Command::new("sha256sum")
        .args(names)
        .current_dir(into)
        .output();
    let output = output.context("sha256sum could not be started")?;
    if !output.status.success() {
        bail!(
            "sha256sum failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    fs::write(into.join("SHA256SUMS"), output.stdout).context("cannot write SHA256SUMS")
}

fn size(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path)
        .with_context(|| format!("no {}", path.display()))?
        .len())
}

/// Whether each tool of a folder starts and tells its version.
fn try_tools(bin: &Path, stage: &Stage) -> Result<()> {
    for binary in &stage.binaries {
        let output = Command::new(bin.join(&binary.name))
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("{} does not start", binary.name))?;
        let told = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let wanted = format!("{} {}", binary.name, stage.version);
        if told != wanted {
            bail!("{} says \"{told}\", not \"{wanted}\"", binary.name);
        }
    }
    Ok(())
}
