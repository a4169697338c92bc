//! The chores of this repository: `cargo xtask VERB`. One file per verb.

use clap::{Parser, Subcommand};

mod lab;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "The chores of this repository")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Start a peer that we did not write and run its tools.
    Lab(lab::Args),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().verb {
        Verb::Lab(args) => lab::run(args),
    }
}
