//! The command lines of `ib-diag` and `ib-sm`.

mod cmd;
mod ctime;
mod device;
mod explain;
mod fabric;
mod render;
mod sm;

use clap::{Parser, Subcommand};
use rdma_cli::{Context, Exit, Failure, Global, Report, Schema, Tool};

use crate::diag::report::TopologyReport;

pub use sm::Sm;

/// Looks at an InfiniBand subnet without changing it.
#[derive(Debug, Parser)]
#[command(name = "ib-diag", version, about, after_help = EXAMPLES)]
pub struct Diag {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    cmd: Cmd,
}

const EXAMPLES: &str = "\
Examples:
  ib-diag topology                                 the subnet of the first port that is up
  ib-diag topology --device mlx5_0:1 --json        of that port, for machines
  ib-diag topology --device ibsim:lab/Hca1         of a node of a running ibsim
  ib-diag topology --compat ibnetdiscover          as ibnetdiscover prints it
  ib-diag ports                                    what --device may be";

#[derive(Debug, Subcommand)]
enum Cmd {
    Topology(cmd::topology::Topology),
    Ports(cmd::ports::Ports),
}

impl Report for TopologyReport {
    const SCHEMA: &'static str = "ib-diag/topology/1";
}

impl Tool for Diag {
    fn global(&self) -> &Global {
        &self.global
    }

    fn schemas() -> Vec<Schema> {
        vec![
            Schema::of::<TopologyReport>(),
            Schema::of::<cmd::ports::PortsReport>(),
        ]
    }

    fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        match self.cmd {
            Cmd::Topology(cmd) => cmd.run(ctx),
            Cmd::Ports(cmd) => cmd.run(ctx),
        }
    }
}
