//! `rverbs explain`.

use std::path::PathBuf;

use rdma_cli::{Context, Exit, Failure};

use crate::cli::render;
use crate::diagnosis::DiagnosisReport;

/// Says why no real device is found, and what to do; exits with 1 where something is missing
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Explain {
    /// Root directory of the machine to look at
    #[arg(long, default_value = "/")]
    sysroot: PathBuf,
}

impl Explain {
    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let report = DiagnosisReport::look(&self.sysroot);
        ctx.emit(&report, render::explain)?;
        Ok(if report.is_ok() { Exit::Ok } else { Exit::No })
    }
}
