//! `rverbs devices`.

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::report::DevicesReport;

/// Lists devices, those in software too
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Devices {}

impl Devices {
    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let report = DevicesReport::from(&crate::devices());
        ctx.emit(&report, render::devices)?;
        Ok(Exit::Ok)
    }
}
