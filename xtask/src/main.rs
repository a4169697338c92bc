//! The chores of this repository: `cargo xtask VERB`. One file or folder per verb.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod bench;
mod ci;
mod codegen;
mod demo;
mod deny;
mod deps;
mod dist;
mod fuzz;
mod lab;
mod tidy;
mod tool;
mod workspace;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "The chores of this repository"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Ci(ci::Args),
    Deps(deps::Args),
    Tidy(tidy::Args),
    Deny(deny::Args),
    Codegen(codegen::Args),
    Fuzz(fuzz::Args),
    Bench(bench::Args),
    Demo(demo::Args),
    Dist(dist::Args),
    /// Start a peer that we did not write and run its tools.
    Lab(lab::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Ci(args) => ci::run(&args),
        Verb::Deps(args) => deps::run(&args),
        Verb::Tidy(args) => tidy::run(&args),
        Verb::Deny(args) => deny::run(&args),
        Verb::Codegen(args) => codegen::run(&args),
        Verb::Fuzz(args) => fuzz::run(&args),
        Verb::Bench(args) => bench::run(&args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Dist(args) => dist::run(&args),
        Verb::Lab(args) => lab::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("caused by: {cause}");
            }
            ExitCode::FAILURE
        }
    }
}
