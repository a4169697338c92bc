//! The command line of `ib-sm`.

use clap::{Parser, Subcommand};
use rdma_cli::{Context, Exit, Failure, Global, Report, Schema, Tool};

use super::cmd;
use crate::routing::report::RoutingReport;

/// Brings an InfiniBand subnet up, routes it, keeps it so, and judges how it is routed.
#[derive(Debug, Parser)]
#[command(name = "ib-sm", version, about, after_help = EXAMPLES)]
pub struct Sm {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    cmd: Cmd,
}

const EXAMPLES: &str = "\
Examples:
  ib-sm run                                      manage the subnet of the first port that is up
  ib-sm run --once --device ibsim:lab/Hca1       bring up a fabric of a running ibsim, and end
  ib-sm run --once --sim fat-tree:648            the same with a simulated fabric
  ib-sm simulate --name lab fat-tree:648         serve a simulated fabric to other programs
  ib-sm route fat-tree:648                         what a fabric is, and how good its routing is
  ib-sm route fabric.net --engine updn --json      with another engine, for machines
  ib-sm route fabric.net --dump DIR                its tables, in the files of OpenSM
  ib-sm verify fabric.net --tables opensm.fdbs     how good the tables of OpenSM are";

#[derive(Debug, Subcommand)]
enum Cmd {
    Run(cmd::run::Run),
    Route(Box<cmd::route::Route>),
    Verify(cmd::verify::Verify),
    #[cfg(feature = "sim")]
    Simulate(cmd::simulate::Simulate),
}

impl Report for RoutingReport {
    const SCHEMA: &'static str = "ib-sm/routing/1";
}

impl Tool for Sm {
    fn global(&self) -> &Global {
        &self.global
    }

    fn schemas() -> Vec<Schema> {
        vec![
            Schema::of::<cmd::run::EventReport>(),
            Schema::of::<RoutingReport>(),
        ]
    }

    fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        match self.cmd {
            Cmd::Route(cmd) => cmd.run(ctx),
            Cmd::Verify(cmd) => cmd.run(ctx),
            Cmd::Run(cmd) => cmd.run(ctx, &self.global),
            #[cfg(feature = "sim")]
            Cmd::Simulate(cmd) => cmd.run(ctx),
        }
    }
}
