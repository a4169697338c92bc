//! The command line.

use rdma_cli::{Context, Exit, Failure, Schema, Tool};

/// RDMA benchmarks: bandwidth and latency, with statistics one can trust
#[derive(Debug, clap::Parser)]
#[command(name = "rperf", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    global: rdma_cli::Global,
}

impl Tool for Cli {
    fn global(&self) -> &rdma_cli::Global {
        &self.global
    }

    fn run(self, _: &mut Context) -> Result<Exit, Failure> {
        Ok(Exit::Ok)
    }

    fn schemas() -> Vec<Schema> {
        Vec::new()
    }
}
