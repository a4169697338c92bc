//! What may have spoiled a figure.

use core::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use super::{Measurement, Results, Side};
use crate::stats::odd_ones;

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// No device was measured, but software.
    Software,
    /// Both sides ran on one processor.
    SharedCore,
    /// Fewer processors than sides that spin.
    FewCores,
    /// A governor that saves power.
    Governor,
    /// An idle state that takes long to leave.
    IdleState,
    /// The processor is on another NUMA node than the device.
    NumaNode,
    /// Others used the host.
    Load,
    /// A run was too short.
    Short,
    /// Too few samples for what one wants to know.
    FewSamples,
    /// A run had not settled when it ended.
    Unsettled,
    /// Times were too long to be told apart.
    Overflow,
    /// One run is not like the others.
    OddRun,
}

/// Something that may have spoiled a figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Warning {
    /// What kind of trouble.
    pub concern: Concern,
    /// What it is, and what to do about it.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Below this a run is too short, in ns: a scheduler's slice is a part of it that counts.
const SHORT: u64 = 100_000_000;
/// Above this an idle state shows in a latency, in µs.
const SLOW_EXIT: u32 = 10;

/// Everything that may have spoiled a figure of `results`.
pub(super) fn look(results: &Results) -> Vec<Warning> {
    let mut found = Vec::new();
    let mut add = |concern, text: String| found.push(Warning { concern, text });
    let sides = [
        ("this", Some(&results.local)),
        ("the other", results.remote.as_ref()),
    ];
    for (which, side) in sides {
        if let Some(side) = side {
            of_side(which, side, &mut add);
        }
    }
    if let Some(remote) = &results.remote {
        of_both(&results.local, remote, &mut add);
    }
    let of_sides = found.len();
    let mut add = |concern, text: String| found.push(Warning { concern, text });
    for measurement in &results.measurements {
        of_measurement(measurement, &mut add);
    }
    let rest = found.split_off(of_sides);
    found.extend(gathered(rest));
    found
}

/// The first of each kind, with how many others there are: a test of all sizes has the same trouble often.
fn gathered(all: Vec<Warning>) -> Vec<Warning> {
    let mut kept: Vec<(Warning, usize)> = Vec::new();
    for warning in all {
        match kept
            .iter_mut()
            .find(|(first, _)| first.concern == warning.concern)
        {
            Some((_, others)) => *others += 1,
            None => kept.push((warning, 0)),
        }
    }
    let kept = kept.into_iter().map(|(mut warning, others)| {
        if others > 0 {
            let _ = write!(warning.text, " (and {others} more like it)");
        }
        warning
    });
    kept.collect()
}

fn of_side(which: &str, side: &Side, add: &mut impl FnMut(Concern, String)) {
    let (host, device) = (&side.host, &side.device);
    if device.software {
        add(
            Concern::Software,
            format!(
                "{which} side used {}: no network device was measured",
                device.label()
            ),
        );
    }
    if let Some(governor) = host
        .governor
        .as_deref()
        .filter(|name| *name != "performance")
    {
        add(
            Concern::Governor,
            format!("the frequency governor of {which} side is {governor}: set it to performance"),
        );
    }
    let slowest = host
        .idle_states
        .iter()
        .max_by_key(|state| state.exit_microseconds);
    if let Some(state) = slowest.filter(|state| state.exit_microseconds > SLOW_EXIT) {
        add(
            Concern::IdleState,
            format!(
                "idle state {} of {which} side takes {} µs to leave: waits that sleep see it",
                state.name, state.exit_microseconds
            ),
        );
    }
    if let (Some(cpu), Some(device)) = (host.numa_node, device.numa_node)
        && cpu != device
    {
        add(
            Concern::NumaNode,
            format!("{which} side ran on NUMA node {cpu}, its device is on node {device}"),
        );
    }
    // The measurement itself is not yet in it.
    if let (Some(load), Some(cpus)) = (host.load_hundredths, host.cpus)
        && u64::from(load) * 4 > u64::from(cpus) * 100
    {
        add(
            Concern::Load,
            format!(
                "the load of {which} side was {}.{:02} on {cpus} processors before it began",
                load / 100,
                load % 100
            ),
        );
    }
}

fn of_both(local: &Side, remote: &Side, add: &mut impl FnMut(Concern, String)) {
    let (here, there) = (&local.host, &remote.host);
    if here.boot.is_none() || here.boot != there.boot {
        return;
    }
    let one = |cores: &[u32]| match cores {
        [core] => Some(*core),
        _ => None,
    };
    // Two sides that may both use all processors do not share one by that.
    if let Some(core) = one(&here.cores).filter(|core| one(&there.cores) == Some(*core)) {
        add(
            Concern::SharedCore,
            format!(
                "both sides ran on processor {core}: each waited for the other to be descheduled"
            ),
        );
    } else if here.cpus.is_some_and(|cpus| cpus < 2) {
        add(
            Concern::FewCores,
            "both sides spin on a host with one processor".into(),
        );
    }
}

fn of_measurement(measurement: &Measurement, add: &mut impl FnMut(Concern, String)) {
    let Measurement { spec, runs, .. } = measurement;
    let mut about = |concern, text: fmt::Arguments<'_>| add(concern, format!("{}: {text}", spec));
    if let Some(run) = runs.iter().find(|run| run.throughput.elapsed < SHORT) {
        let milliseconds = run.throughput.elapsed as f64 / 1e6;
        about(
            Concern::Short,
            format_args!("a run took {milliseconds:.1} ms: below 100 ms a figure is mostly chance"),
        );
    }
    if let Some(summary) = measurement.latency.filter(|summary| summary.count < 1000) {
        about(
            Concern::FewSamples,
            format_args!("{} samples are too few for the 99.9%", summary.count),
        );
    }
    if runs
        .iter()
        .any(|run| run.warm_up.is_some_and(|warm_up| !warm_up.settled))
    {
        about(
            Concern::Unsettled,
            format_args!("the times still changed when it ended: let it run longer"),
        );
    }
    let overflow: u64 = runs
        .iter()
        .filter_map(|run| run.latency.as_ref())
        .fold(0, |sum, held| sum.saturating_add(held.overflow()));
    if overflow > 0 {
        about(
            Concern::Overflow,
            format_args!("{overflow} times were longer than the histogram is"),
        );
    }
    let values = match measurement.is_latency() {
        true => measurement.medians(),
        false => measurement.rates(),
    };
    for run in odd_ones(&values) {
        about(
            Concern::OddRun,
            format_args!("run {} of {} is not like the others", run + 1, runs.len()),
        );
    }
}
