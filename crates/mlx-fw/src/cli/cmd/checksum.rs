//! `mlx-fw checksum`.

use std::fmt::Write as _;

use rdma_cli::{Context, Exit, Failure};

use crate::cli::source::{Source, about};
use crate::cli::{Compat, render};
use crate::image::Image;

/// Print the MD5 sum of an image without its device data
#[derive(Debug, clap::Args)]
pub(crate) struct Cmd {
    #[command(flatten)]
    source: Source,

    /// Print the text of another program, with its exit code
    #[arg(long, value_name = "PROGRAM")]
    compat: Option<Compat>,
}

impl Cmd {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let bytes = self.source.image()?;
        if self.compat.is_some() {
            let file = self.source.file.display().to_string();
            let (text, good) = render::flint::checksum(&bytes, &file);
            ctx.print_raw(&text)?;
            return Ok(if good { Exit::Ok } else { Exit::No });
        }
        let report = Image::parse(&bytes)
            .and_then(|image| crate::checksum(&image))
            .map_err(about(&self.source.file))?;
        ctx.emit(&report, |report, out| writeln!(out, "{}", report.checksum))?;
        Ok(Exit::Ok)
    }
}
