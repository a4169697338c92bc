//! `rverbs gids`.

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::report::GidsReport;

/// Shows the addresses of a port, and which one to use
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Gids {
    /// Name of the device; the first one, if not said
    #[arg(short, long)]
    device: Option<String>,
    /// Number of the port
    #[arg(short, long, default_value_t = 1)]
    port: u8,
}

impl Gids {
    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let context = super::open(self.device.as_deref())?;
        let report = GidsReport::query(&context, self.port)?;
        ctx.emit(&report, render::gids)?;
        Ok(Exit::Ok)
    }
}
