//! `cargo xtask deny`: licences, bans and sources of everything that we depend on.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tool;
use crate::workspace::{Workspace, shown};

/// Checks licences, bans and sources against deny.toml.
///
/// Advisories are not part of it: their database is fetched from a place that a build machine need
/// not reach. `cargo deny check advisories` does that by hand.
#[derive(clap::Args)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut command = Command::new(tool::DENY.path(&workspace)?);
    command
        .current_dir(&workspace.root)
        .args([
            "--locked",
            "--all-features",
            "check",
            "--hide-inclusion-graph",
        ])
        .args(["bans", "licenses", "sources"])
        .stdin(Stdio::null());
    let status = command
        .status()
        .context("cargo-deny could not be started")?;
    if !status.success() {
        bail!(
            "cargo-deny has complaints; see deny.toml for the rules: {}",
            shown(&command)
        );
    }
    Ok(())
}
