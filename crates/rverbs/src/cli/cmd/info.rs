//! `rverbs info`.

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::report::InfoReport;

/// Shows what a device says about itself
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Info {
    /// Name of the device; the first one, if not said
    #[arg(short, long)]
    device: Option<String>,
}

impl Info {
    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let report = InfoReport::query(&super::open(self.device.as_deref())?)?;
        ctx.emit(&report, render::info)?;
        Ok(Exit::Ok)
    }
}
