//! Race: querying and verifying an image, ours against `mstflint -i`, on images that we build.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use mlx_fw::image::SectionType;
use mlx_fw::image::build::{Builder, filler};
use rdma_lab::peer;

use super::race::{Heat, Race};
use crate::workspace::{Build, Workspace, shown};

/// Both are a few milliseconds of starting and reading, and verifying is mostly CRCs.
const GOAL: f64 = 1.0;

/// The size of the flash, as adapters of today have it.
const FLASH: u64 = 1 << 24;

/// The size of the main code: about what an image of theirs carries.
const CODE: usize = 6 << 20;

/// The race.
pub const RACE: Race = Race {
    name: "firmware",
    what: "mlx-fw query and verify against mstflint, on 16 MiB images of our own",
    heats,
};

fn heats(workspace: &Workspace, rounds: u32) -> Result<Vec<Heat>> {
    let ours = workspace.build_tools(Build::Release)?.join("mlx-fw");
    let mstflint = peer::need("mstflint")?;
    let folder = workspace.target.join("bench-firmware");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut heats = Vec::new();
    for (format, builder) in [("fs3", Builder::fs3()), ("fs4", Builder::fs4())] {
        let image = folder.join(format!("{format}.bin"));
        let code = SectionType::MAIN_CODE;
        let bytes = builder
            .flash(FLASH)
            .section(code, filler(1, CODE))
            .build()?;
        fs::write(&image, bytes).with_context(|| format!("cannot write {}", image.display()))?;
        for verb in ["query", "verify"] {
            let us = || {
                let mut command = Command::new(&ours);
                command.arg(verb).arg(&image).args(["--compat", "flint"]);
                command
            };
            let them = || mst(&mstflint, &image, verb);
            for command in [us(), them()] {
                accepted(command)?;
            }
            let input = format!("{format} {verb}");
            heats.push(Heat::run(
                input,
                GOAL,
                rounds,
                &mut || Ok(us()),
                &mut || Ok(them()),
            )?);
        }
    }
    Ok(heats)
}

fn mst(mstflint: &Path, image: &Path, verb: &str) -> Command {
    let mut command = Command::new(mstflint);
    command.arg("-i").arg(image).arg(verb);
    command
}

/// A program that refuses the image is quick, and its time means nothing.
fn accepted(mut command: Command) -> Result<()> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("cannot be started")?;
    if !output.status.success() {
        let said = [output.stdout, output.stderr].concat();
        bail!(
            "{} refuses the image: {}",
            shown(&command),
            String::from_utf8_lossy(&said).trim()
        );
    }
    Ok(())
}
