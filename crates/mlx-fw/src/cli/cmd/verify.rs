//! `mlx-fw verify`.

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::cli::source::{Source, about};
use crate::image::Image;

/// Check every part of an image against its CRC
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 all is well, 1 something is wrong, 3 no image or unreadable, 4 PSID not in the archive"
)]
pub(crate) struct Cmd {
    #[command(flatten)]
    source: Source,
}

impl Cmd {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let bytes = self.source.image()?;
        if let Some(exit) = self.source.compat(ctx, &bytes, render::flint::verify)? {
            return Ok(exit);
        }
        let report = Image::parse(&bytes)
            .map(|image| crate::verify(&image))
            .map_err(about(&self.source.file))?;
        ctx.emit(&report, render::verify::text)?;
        Ok(if report.ok { Exit::Ok } else { Exit::No })
    }
}
