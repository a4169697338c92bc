//! `cargo xtask ci`: the whole check, the same here and in CI.
//!
//! Every step runs, also after a failure. What a step prints goes to `target/ci/STEP.log`; on the
//! screen stand one line for each step, one for each test binary, and at the end a table, the end
//! of the log of each failed step with the command that repeats it, and what the tests did.

mod execute;
mod step;
mod tally;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use execute::Log;
use step::Step;
use tally::Tally;

/// How much of a failed step's log is shown at the end.
const LAST_LINES: usize = 40;

/// Checks everything, and says at the end what failed.
#[derive(clap::Args)]
pub struct Args {
    /// Only the steps that take seconds, and the tests.
    #[arg(long)]
    quick: bool,
    /// Leave a step out (may be repeated).
    #[arg(long, value_name = "STEP")]
    skip: Vec<String>,
    /// Run only this step (may be repeated).
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Stop at the first step that fails.
    #[arg(long)]
    fail_fast: bool,
    /// List the steps and what they run.
    #[arg(long)]
    list: bool,
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Ok,
    Failed,
    Left,
}

impl Verdict {
    const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "FAILED",
            Self::Left => "not run",
        }
    }
}

struct Outcome {
    step: &'static str,
    verdict: Verdict,
    took: Duration,
    failures: Vec<Failure>,
    log: PathBuf,
}

struct Failure {
    why: String,
    repeat: String,
    lines: Vec<String>,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let steps = step::all(&workspace, args.skip.iter().any(|name| name == "deps"));
    for name in args.skip.iter().chain(&args.only) {
        if !steps.iter().any(|step| step.name == name) {
            let names: Vec<&str> = steps.iter().map(|step| step.name).collect();
            bail!("no step is called {name}; there are: {}", names.join(", "));
        }
    }
    if args.list {
        for step in &steps {
            println!("{:<12} {}", step.name, step.what);
            for command in &step.commands {
                println!("{:<12}   {}", "", command.shown());
            }
        }
        return Ok(());
    }
    let logs = workspace.target.join("ci");
    fs::create_dir_all(&logs).with_context(|| format!("cannot make {}", logs.display()))?;

    let begin = Instant::now();
    let mut tally = Tally::default();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in &steps {
        let stopped = args.fail_fast && outcomes.iter().any(|o| o.verdict == Verdict::Failed);
        let log = logs.join(format!("{}.log", step.name));
        if stopped || !wanted(args, step) {
            let (took, failures) = (Duration::ZERO, Vec::new());
            outcomes.push(Outcome {
                step: step.name,
                verdict: Verdict::Left,
                took,
                failures,
                log,
            });
            continue;
        }
        outcomes.push(run_step(step, log, &mut tally)?);
    }

    let failed: Vec<&Outcome> = outcomes
        .iter()
        .filter(|o| o.verdict == Verdict::Failed)
        .collect();
    print_table(&outcomes, begin.elapsed());
    for outcome in &failed {
        print_failures(outcome);
    }
    print!("{}", tally.summary());
    if failed.is_empty() {
        println!("{}", tally.closing_line());
        return Ok(());
    }
    let names: Vec<&str> = failed.iter().map(|outcome| outcome.step).collect();
    println!(
        "steps that failed: {}\n{}",
        names.join(", "),
        tally.closing_line()
    );
    // The closing line is the last on stdout; the verdict is the exit code.
    std::process::exit(1);
}

fn wanted(args: &Args, step: &Step) -> bool {
    let named = |names: &[String]| names.iter().any(|name| name == step.name);
    if !args.only.is_empty() {
        return named(&args.only);
    }
    !named(&args.skip) && (step.quick || !args.quick)
}

/// Runs all commands of a step, also after one has failed.
fn run_step(step: &Step, path: PathBuf, tally: &mut Tally) -> Result<Outcome> {
    println!("==> {:<12} {}", step.name, step.what);
    let begin = Instant::now();
    let mut log = Log::create(&path)?;
    let mut failures = Vec::new();
    for command in &step.commands {
        let from = log.len();
        let error = if step.tests {
            let mut tests = tally.binary_observer();
            let error = log.run(command, &mut |line| tests.line(line));
            tests.finish(error.is_some());
            error
        } else {
            log.run(command, &mut |_| None)
        };
        if let Some(why) = error {
            println!("    FAILED: {}", command.shown());
            // What failed tests printed is shown with the summary; here the lists of the good
            // ones would only hide Cargo's own words.
            let lines = if step.tests && tally.has_failures() {
                log.last_from(from, "error: ", LAST_LINES)
            } else {
                log.last(from, LAST_LINES)
            };
            failures.push(Failure {
                why,
                repeat: command.shown(),
                lines,
            });
        }
    }
    let took = begin.elapsed();
    let verdict = if failures.is_empty() {
        Verdict::Ok
    } else {
        Verdict::Failed
    };
    println!("    {} in {:.1} s", verdict.word(), took.as_secs_f64());
    Ok(Outcome {
        step: step.name,
        verdict,
        took,
        failures,
        log: path,
    })
}

fn print_table(outcomes: &[Outcome], whole: Duration) {
    println!("\n{:<12} {:<8} {:>8}", "step", "verdict", "time");
    for outcome in outcomes {
        let took = match outcome.verdict {
            Verdict::Left => String::new(),
            _ => format!("{:.1} s", outcome.took.as_secs_f64()),
        };
        println!(
            "{:<12} {:<8} {took:>8}",
            outcome.step,
            outcome.verdict.word()
        );
    }
    println!(
        "{:<12} {:<8} {:>8}",
        "all",
        "",
        format!("{:.1} s", whole.as_secs_f64())
    );
}

fn print_failures(outcome: &Outcome) {
    for failure in &outcome.failures {
        println!("\n---- {} failed: {} ----", outcome.step, failure.why);
        for line in &failure.lines {
            println!("{line}");
        }
        println!("---- again: {}", failure.repeat);
        println!("---- as a step: cargo xtask ci --only {}", outcome.step);
        println!("---- the whole log: {}", outcome.log.display());
    }
}
