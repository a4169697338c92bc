//! What the binaries of this workspace share, so that every one of them behaves alike.
//!
//! A tool is a `clap` parser that implements [`Tool`]; its binary is one call:
//!
//! ```no_run
//! use rdma_cli::{Context, Exit, Failure, Global, Report, Schema, Tool};
//! use std::fmt::Write as _;
//!
//! /// Adds numbers.
//! #[derive(Debug, clap::Parser)]
//! #[command(name = "sum", version)]
//! struct Cli {
//!     #[command(flatten)]
//!     global: Global,
//!     numbers: Vec<u64>,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct SumReport { sum: u64 }
//!
//! impl Report for SumReport {
//!     const SCHEMA: &'static str = "sum/sum/1";
//! }
//!
//! impl Tool for Cli {
//!     fn global(&self) -> &Global { &self.global }
//!     fn schemas() -> Vec<Schema> { vec![Schema::of::<SumReport>()] }
//!     fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
//!         let report = SumReport { sum: self.numbers.iter().sum() };
//!         ctx.emit(&report, |report, out| writeln!(out, "sum  {}", report.sum))?;
//!         Ok(Exit::Ok)
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode { rdma_cli::main::<Cli>() }
//! ```
//!
//! - [`Global`]: the flags that every tool has. [`Context`]: what a command is run with.
//! - [`Exit`]: the one table of exit codes. [`Explain`] and [`Failure`]: errors with a hint.
//! - [`Text`] and [`Table`]: text for people; [`Report`] and [`Schema`]: JSON for machines.
//! - [`Progress`]: long work, drawn on stderr and only on a terminal.
//! - [`read_file`] and [`write_file`]: files, with their trouble explained.
//!
//! stdout is the answer and stderr is the conversation: nothing but the report is ever written
//! to stdout. Only binaries use this crate; libraries return reports and errors.

mod confirm;
mod exit;
mod failure;
mod file;
mod generate;
mod global;
mod log;
mod output;
mod progress;
mod run;
mod style;
mod table;
pub mod units;

pub use exit::Exit;
pub use failure::{Explain, Failure};
pub use file::{read_file, write_file};
pub use generate::man_pages;
pub use global::{Global, When};
pub use output::{Context, Report, Schema, Text};
pub use progress::Progress;
pub use run::{Tool, command, main, main_of};
pub use style::{BAD, DIM, GOOD, HEADING, WARN, paint, printable};
pub use table::Table;
