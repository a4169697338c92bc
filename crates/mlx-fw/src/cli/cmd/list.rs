//! `mlx-fw list`.

use std::path::PathBuf;

use rdma_cli::{Context, Exit, Failure};

use crate::archive::mfa2::{Archive, Limits};
use crate::cli::render;
use crate::cli::source::{about, read};
use crate::report::DigestState;

/// List what is in an archive
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 listed, 1 a digest or an image is wrong, 3 no archive or unreadable"
)]
pub(crate) struct Cmd {
    /// An MFA2 archive; `-` is standard input
    archive: PathBuf,
}

impl Cmd {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let bytes = read(&self.archive)?;
        let progress = ctx.progress("unpacking");
        let report = Archive::parse(&bytes)
            .and_then(|archive| archive.list(&Limits::default()))
            .map_err(about(&self.archive))?;
        drop(progress);
        ctx.emit(&report, render::list::text)?;
        let wrong = [report.digests.all, report.digests.descriptors].contains(&DigestState::Wrong)
            || report.devices.iter().any(|device| device.problem.is_some());
        Ok(if wrong { Exit::No } else { Exit::Ok })
    }
}
