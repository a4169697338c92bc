//! Cargo subcommands that are not part of the toolchain: found, or built into `target/tools`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, cargo, shown};

/// A program from the registry, at one version so that everyone gets the same verdicts.
pub struct CargoTool {
    /// The package and its binary.
    pub name: &'static str,
    /// The version that is installed when none is there.
    pub version: &'static str,
    /// How any version of the same series begins; such a one on the path is used as it is.
    pub series: &'static str,
}

/// Licences, bans, sources.
pub const DENY: CargoTool = CargoTool {
    name: "cargo-deny",
    version: "0.20.2",
    series: "0.20.",
};

/// Coverage-guided fuzzing.
pub const FUZZ: CargoTool = CargoTool {
    name: "cargo-fuzz",
    version: "0.13.2",
    series: "0.13.",
};

impl CargoTool {
    /// Where the program is; builds it when it is nowhere, which takes a minute or two.
    pub fn path(&self, workspace: &Workspace) -> Result<PathBuf> {
        let tools = workspace.target.join("tools");
        let own = tools.join("bin").join(self.name);
        for candidate in [own.clone(), PathBuf::from(self.name)] {
            if self.fits(&candidate) {
                return Ok(candidate);
            }
        }
        println!(
            "{} {} is not here; building it into {}",
            self.name,
            self.version,
            tools.display()
        );
        let begin = Instant::now();
        let mut install = cargo();
        // A debug build of the tool is quicker to make and quick enough to run.
        install
            .args([
                "install",
                "--quiet",
                "--debug",
                "--locked",
                "--force",
                "--version",
                self.version,
            ])
            .arg("--root")
            .arg(&tools)
            .arg("--target-dir")
            .arg(tools.join("build"))
            .arg(self.name)
            .env_remove("RUSTFLAGS")
            .stdin(Stdio::null());
        let status = install.status().context("cargo could not be started")?;
        if !status.success() || !self.fits(&own) {
            bail!(
                "{} could not be had: `{}` failed; install version {} by hand and run this again",
                self.name,
                shown(&install),
                self.version
            );
        }
        // The build's leftovers are several hundred megabytes and serve nothing more.
        let _ = std::fs::remove_dir_all(tools.join("build"));
        println!(
            "built {} in {:.0} s",
            self.name,
            begin.elapsed().as_secs_f64()
        );
        Ok(own)
    }

    fn fits(&self, path: &PathBuf) -> bool {
        let output = Command::new(path)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        output.is_ok_and(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split_whitespace()
                .any(|word| word.starts_with(self.series))
        })
    }
}
