//! `mlx-fw checksum`.

use std::fmt::Write as _;

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::cli::source::{Source, about};
use crate::image::Image;

/// Print the MD5 sum of an image without its device data
#[derive(Debug, clap::Args)]
pub(crate) struct Cmd {
    #[command(flatten)]
    source: Source,
}

impl Cmd {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let bytes = self.source.image()?;
        if let Some(exit) = self.source.compat(ctx, &bytes, render::flint::checksum)? {
            return Ok(exit);
        }
        let report = Image::parse(&bytes)
            .and_then(|image| crate::checksum(&image))
            .map_err(about(&self.source.file))?;
        ctx.emit(&report, |report, out| writeln!(out, "{}", report.checksum))?;
        Ok(Exit::Ok)
    }
}
