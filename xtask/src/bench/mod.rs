//! `cargo xtask bench`: how fast we are.
//!
//! Two kinds. A *bench* is a criterion bench of a crate, compared with an earlier run of itself. A
//! *race* runs us and a peer side by side on the same input in one run, since only a ratio means
//! something on a machine that is not ours. A race is a file in this folder and a line in [`RACES`].
//! [`verbs`] is one too, with tables of its own.

mod discovery;
mod firmware;
mod perf;
mod race;
mod routing;
mod verbs;

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, cargo, shown};
use race::Race;

/// The races, by name.
const RACES: &[Race] = &[discovery::RACE, firmware::RACE, routing::RACE];

/// Measures: criterion benches, and races with the peers.
#[derive(clap::Args)]
pub struct Args {
    /// One race or bench (a crate's bench whose name a race has is CRATE/NAME); all unless given.
    name: Option<String>,
    /// Keep the benches' figures under a name.
    #[arg(long, value_name = "BASELINE")]
    save: Option<String>,
    /// Compare the benches with figures that were kept.
    #[arg(long, value_name = "BASELINE", conflicts_with = "save")]
    against: Option<String>,
    /// List benches and races.
    #[arg(long)]
    list: bool,
    /// How often each side of a race runs; the best of them counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: u32,
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let benches = benches(&workspace);
    if args.list {
        for (package, bench) in &benches {
            println!("{:<24} bench", format!("{package}/{bench}"));
        }
        for race in RACES {
            println!("{:<24} race: {}", race.name, race.what);
        }
        println!("{:<24} race: {}", verbs::NAME, verbs::WHAT);
        println!("{:<24} race: {}", perf::NAME, perf::WHAT);
        return Ok(());
    }
    let mut any = false;
    for (package, bench) in benches
        .iter()
        .filter(|(p, b)| wants_bench(args.name.as_deref(), p, b))
    {
        any = true;
        criterion(args, package, bench)?;
    }
    for race in RACES
        .iter()
        .filter(|race| args.name.as_deref().is_none_or(|n| n == race.name))
    {
        any = true;
        race.run(&workspace, args.rounds)?;
    }
    if args.name.as_deref().is_none_or(|name| name == verbs::NAME) {
        any = true;
        verbs::run(&workspace, args.rounds)?;
    }
    if args.name.as_deref().is_none_or(|name| name == perf::NAME) {
        any = true;
        perf::run(&workspace, args.rounds)?;
    }
    if !any {
        bail!("there is no such bench or race: `cargo xtask bench --list` lists them");
    }
    Ok(())
}

/// Whether a bench is asked for: by its name, which a race of the same name hides, or with its crate.
fn wants_bench(name: Option<&str>, package: &str, bench: &str) -> bool {
    match name.map(|name| (name, name.split_once('/'))) {
        None => true,
        Some((_, Some(whole))) => whole == (package, bench),
        Some((name, None)) => name == bench && RACES.iter().all(|race| race.name != name),
    }
}

/// The criterion benches: crate and name.
fn benches(workspace: &Workspace) -> Vec<(String, String)> {
    let mut benches = Vec::new();
    for package in workspace.members() {
        for target in package.targets.iter().filter(|target| target.is_bench()) {
            benches.push((package.name.to_string(), target.name.clone()));
        }
    }
    benches
}

fn criterion(args: &Args, package: &str, bench: &str) -> Result<()> {
    let mut command = cargo();
    command.args([
        "bench",
        "--all-features",
        "-p",
        package,
        "--bench",
        bench,
        "--",
    ]);
    if let Some(name) = &args.save {
        command.args(["--save-baseline", name]);
    }
    if let Some(name) = &args.against {
        command.args(["--baseline", name]);
    }
    println!("$ {}", shown(&command));
    let status = command.status().context("cargo could not be started")?;
    if !status.success() {
        bail!("the bench {bench} of {package} failed");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_race_hides_a_bench_of_its_name() {
        assert!(wants_bench(None, "ib-sm", "discovery"));
        assert!(!wants_bench(Some("discovery"), "ib-sm", "discovery"));
        assert!(wants_bench(Some("ib-sm/discovery"), "ib-sm", "discovery"));
        assert!(wants_bench(Some("image"), "mlx-fw", "image"));
        assert!(!wants_bench(Some("ib-sm/image"), "mlx-fw", "image"));
    }
}
