//! The command line.

mod cmd;
mod explain;
mod file;
mod host;
mod name;
mod render;

pub use name::command_line;

use rdma_cli::{Context, Exit, Failure, Report, Schema, Tool};

use crate::compare::CompareReport;
use crate::result::{self, Results};
use crate::spec::Verb;

/// RDMA benchmarks: bandwidth and latency, with statistics one can trust
#[derive(Debug, clap::Parser)]
#[command(name = "rperf", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    global: rdma_cli::Global,
    #[command(subcommand)]
    cmd: Cmd,
}

#[derive(Debug, clap::Subcommand)]
enum Cmd {
    /// Messages: ib_send_bw and ib_send_lat
    Send(cmd::measure::Measure),
    /// Writes into the other side's memory: ib_write_bw and ib_write_lat
    Write(cmd::measure::Measure),
    /// Reads of the other side's memory: ib_read_bw and ib_read_lat
    Read(cmd::measure::Measure),
    /// Atomic operations on the other side's memory: ib_atomic_bw and ib_atomic_lat
    Atomic(cmd::measure::Measure),
    Compare(cmd::compare::Compare),
    Report(cmd::report::ReportCommand),
}

impl Report for Results {
    const SCHEMA: &'static str = result::SCHEMA;
}

impl Report for CompareReport {
    const SCHEMA: &'static str = "rperf/compare/1";
}

impl Tool for Cli {
    fn global(&self) -> &rdma_cli::Global {
        &self.global
    }

    fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        match self.cmd {
            Cmd::Send(cmd) => cmd.run(Verb::Send, ctx),
            Cmd::Write(cmd) => cmd.run(Verb::Write, ctx),
            Cmd::Read(cmd) => cmd.run(Verb::Read, ctx),
            Cmd::Atomic(cmd) => cmd.run(Verb::Atomic, ctx),
            Cmd::Compare(cmd) => cmd.run(ctx),
            Cmd::Report(cmd) => cmd.run(ctx),
        }
    }

    fn schemas() -> Vec<Schema> {
        vec![Schema::of::<Results>(), Schema::of::<CompareReport>()]
    }
}
