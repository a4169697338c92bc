//! The command line.

mod cmd;
mod explain;
mod render;

use rdma_cli::{Context, Exit, Failure, Report, Schema, Tool};

use crate::diagnosis::DiagnosisReport;
use crate::report::{DevicesReport, GidsReport, InfoReport, PingReport};

/// RDMA verbs: devices, real and in software
#[derive(Debug, clap::Parser)]
#[command(name = "rverbs", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(flatten)]
    global: rdma_cli::Global,
    #[command(subcommand)]
    cmd: Cmd,
}

#[derive(Debug, clap::Subcommand)]
enum Cmd {
    Devices(cmd::devices::Devices),
    Info(cmd::info::Info),
    Gids(cmd::gids::Gids),
    Explain(cmd::explain::Explain),
    Ping(cmd::ping::Ping),
    Run(cmd::run::Run),
}

impl Report for DevicesReport {
    const SCHEMA: &'static str = "rverbs/devices/1";
}

impl Report for InfoReport {
    const SCHEMA: &'static str = "rverbs/info/1";
}

impl Report for GidsReport {
    const SCHEMA: &'static str = "rverbs/gids/1";
}

impl Report for DiagnosisReport {
    const SCHEMA: &'static str = "rverbs/explain/1";
}

impl Report for PingReport {
    const SCHEMA: &'static str = "rverbs/ping/1";
}

impl Tool for Cli {
    fn global(&self) -> &rdma_cli::Global {
        &self.global
    }

    fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        match self.cmd {
            Cmd::Devices(cmd) => cmd.run(ctx),
            Cmd::Info(cmd) => cmd.run(ctx),
            Cmd::Gids(cmd) => cmd.run(ctx),
            Cmd::Explain(cmd) => cmd.run(ctx),
            Cmd::Ping(cmd) => cmd.run(ctx, self.global.verbose > 0),
            Cmd::Run(cmd) => cmd.run(ctx),
        }
    }

    fn schemas() -> Vec<Schema> {
        vec![
            Schema::of::<DevicesReport>(),
            Schema::of::<InfoReport>(),
            Schema::of::<GidsReport>(),
            Schema::of::<DiagnosisReport>(),
            Schema::of::<PingReport>(),
        ]
    }
}
