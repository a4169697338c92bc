//! `mlx-fw query`.

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::cli::source::{Source, about};
use crate::image::Image;

/// Say what an image is: version, board, GUIDs, protection
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit codes: 0 answered, 3 no image or unreadable, 4 PSID not in the archive"
)]
pub(crate) struct Cmd {
    #[command(flatten)]
    source: Source,

    /// Say everything: names, parameter file, sections
    #[arg(long)]
    full: bool,
}

impl Cmd {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let bytes = self.source.image()?;
        if let Some(exit) = self.source.compat(ctx, &bytes, |bytes, file| {
            render::flint::query(bytes, file, self.full)
        })? {
            return Ok(exit);
        }
        let report = Image::parse(&bytes)
            .and_then(|image| crate::query(&image, self.full))
            .map_err(about(&self.source.file))?;
        ctx.emit(&report, render::query::text)?;
        for warning in &report.warnings {
            ctx.warn(warning);
        }
        Ok(Exit::Ok)
    }
}
