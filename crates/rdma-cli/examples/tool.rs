//! A tool that does nothing useful, in every way that a tool can: what the tests run.

use std::fmt::Write as _;
use std::process::ExitCode;

use rdma_cli::{Context, Exit, Explain, Failure, Global, Report, Schema, Table, Tool};

/// Does nothing useful.
#[derive(Debug, clap::Parser)]
#[command(name = "tool", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Adds numbers
    Sum { numbers: Vec<u64> },
    /// Prints a table
    Table,
    /// Prints for ever
    Endless,
    /// Fails
    Fail,
    /// Says no
    No,
    /// Panics
    Panic,
    /// Works for long
    Work,
    /// Logs
    Log,
    /// Changes something
    Change {
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct SumReport {
    /// The sum of the numbers.
    sum: u64,
}

impl Report for SumReport {
    const SCHEMA: &'static str = "tool/sum/1";
}

#[derive(Debug, thiserror::Error)]
#[error("timer ran out")]
struct Timer;

#[derive(Debug, thiserror::Error)]
#[error("the device did not answer")]
struct Silent(#[source] Timer);

impl Explain for Silent {
    fn exit(&self) -> Exit {
        Exit::Device
    }

    fn code(&self) -> &'static str {
        "silent"
    }

    fn hint(&self) -> Option<String> {
        Some("reset it".to_owned())
    }
}

impl Tool for Cli {
    fn global(&self) -> &Global {
        &self.global
    }

    fn schemas() -> Vec<Schema> {
        vec![Schema::of::<SumReport>()]
    }

    fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        match self.verb {
            Verb::Sum { numbers } => {
                let report = SumReport {
                    sum: numbers.iter().sum(),
                };
                ctx.emit(&report, |report, out| out.field("sum", report.sum))?;
            }
            Verb::Table => {
                let mut table = Table::new(["LID", "Node"]).right(0);
                table.row(["12", "a\u{1b}[2Jb"]);
                ctx.emit(&SumReport { sum: 0 }, |_, out| out.table(&table))?;
            }
            Verb::Endless => loop {
                ctx.emit(&SumReport { sum: 1 }, |report, out| {
                    writeln!(out, "{}", report.sum)
                })?;
            },
            Verb::Fail => {
                return Err(Failure::from(Silent(Timer)).with_context("asking mlx5_0"));
            }
            Verb::No => return Ok(Exit::No),
            Verb::Panic => panic!("as asked"),
            Verb::Work => {
                let progress = ctx.progress("working");
                progress.set_total(10);
                progress.set(5);
                progress.note("still working");
            }
            Verb::Log => {
                tracing::warn!("odd");
                tracing::debug!(lid = 7, "swept");
            }
            Verb::Change { yes } => ctx.confirm("Change it?", yes)?,
        }
        Ok(Exit::Ok)
    }
}

fn main() -> ExitCode {
    rdma_cli::main::<Cli>()
}
