//! Whether one measurement differs from another, and by how much.
//!
//! What is compared is the figure of each **run** where both sides have at least four: then the
//! spread from run to run, which is the greatest there is, is part of the answer. With fewer, the
//! samples (latency) or the intervals of the time line (bandwidth) have to do; they say nothing
//! about what another run would give, and the report says so.
//!
//! Whether there is a difference is asked of ranks ([`RankTest`]), because latencies have no shape
//! that a test could rely on; how great it is, of the quotient ([`quotient`]). Where many figures
//! are compared, their p-values are corrected (Holm 1979), so that the whole comparison raises a
//! false alarm no more often than it says. Ranks of a few runs cannot give a p-value that outlives
//! that: then the runs' figures are asked instead ([`welch`], on logarithms). One run far out makes
//! that test miss a difference rather than find one that is not there. Which test is used depends
//! on how many runs and figures there are, never on their values.

use serde::Serialize;

use crate::result::{Measurement, Results, Side};
use crate::spec::{Amount, Spec};
use crate::stats::{
    Distribution, Interval, Quantile, RankTest, Throughput, Timeline, least_p, median, quotient,
    welch,
};

/// What counts as a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// How much worse is no matter, as a part of one.
    pub threshold: f64,
    /// How sure a verdict is, as a part of one.
    pub confidence: f64,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CompareReport {
    /// The worst of the comparisons.
    pub verdict: Verdict,
    /// How much worse is no matter, as a part of one.
    pub threshold: f64,
    /// How sure the verdicts are, as a part of one, all of them together.
    pub confidence: f64,
    /// Figures that are on both sides.
    pub comparisons: Vec<Comparison>,
    /// Measurements that only the first file has.
    pub only_before: Vec<Spec>,
    /// Measurements that only the second file has.
    pub only_after: Vec<Spec>,
    /// What else differs: it may be why.
    pub differences: Vec<Difference>,
}

/// Whether something became worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Better by more than the threshold.
    Better,
    /// No difference above the threshold.
    Same,
    /// What was measured does not tell.
    Unclear,
    /// Worse by more than the threshold.
    Worse,
}

impl Verdict {
    /// In a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Same => "same",
            Self::Unclear => "unclear",
            Self::Worse => "worse",
        }
    }
}

/// A figure that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// The median latency, in ns.
    Median,
    /// The latency that 99% are below, in ns.
    P99,
    /// Bytes per second.
    Bandwidth,
}

impl Figure {
    /// In reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Median => "p50",
            Self::P99 => "p99",
            Self::Bandwidth => "bandwidth",
        }
    }
}

/// What is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// One figure of each run.
    Runs,
    /// The samples of all runs together, because there are fewer than four.
    Samples,
    /// The intervals of the time lines, because there are fewer than four runs.
    Intervals,
    /// The figures alone: nothing tells their spread.
    Figures,
}

/// One figure, before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// What was measured.
    pub spec: Spec,
    /// Which figure of it.
    pub figure: Figure,
    /// What was compared.
    pub basis: Basis,
    /// How many of these there were before.
    pub count_before: u64,
    /// How many after.
    pub count_after: u64,
    /// The figure before.
    pub before: f64,
    /// The figure after.
    pub after: f64,
    /// How much greater it became, as a part of what it was.
    pub change: f64,
    /// Between which the change lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// How often chance gives such a difference, corrected for how many figures are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
    /// What `p` comes from.
    pub test: Test,
    /// Whether it became worse.
    pub verdict: Verdict,
}

/// A test of chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Test {
    /// The rank-sum test of Wilcoxon, Mann and Whitney.
    Ranks,
    /// The rank-sum test of what lies above the quantile of both sides.
    Tails,
    /// Welch's test, of logarithms: too few runs for ranks.
    Welch,
    /// None.
    None,
}

/// Something about the hosts or devices that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Difference {
    /// What.
    pub what: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

/// Runs below which the spread between them is not known: four and four are the fewest of which
/// ranks can tell anything at 95%.
const RUNS: usize = 4;
/// Intervals of a time line that are worth comparing.
const INTERVALS: usize = 8;

/// Compares two results.
#[must_use]
pub fn compare(before: &Results, after: &Results, limits: Limits) -> CompareReport {
    let mut rest: Vec<&Measurement> = after.measurements.iter().collect();
    let mut pairs = Vec::new();
    let mut only_before = Vec::new();
    for old in &before.measurements {
        match rest.iter().position(|new| alike(&old.spec, &new.spec)) {
            Some(index) => pairs.push((old, rest.remove(index))),
            None => only_before.push(old.spec.clone()),
        }
    }
    let family = Family {
        figures: pairs
            .iter()
            .map(|(old, _)| if old.is_latency() { 2 } else { 1 })
            .sum(),
        confidence: limits.confidence,
    };
    let mut comparisons: Vec<Comparison> = pairs
        .into_iter()
        .flat_map(|(old, new)| figures(old, new, family))
        .collect();
    correct(&mut comparisons);
    for comparison in &mut comparisons {
        comparison.verdict = comparison.judge(limits);
    }
    CompareReport {
        verdict: verdict(&comparisons),
        threshold: limits.threshold,
        confidence: limits.confidence,
        comparisons,
        only_before,
        only_after: rest.into_iter().map(|new| new.spec.clone()).collect(),
        differences: differences(before, after),
    }
}

/// The figures that are compared together.
#[derive(Debug, Clone, Copy)]
struct Family {
    /// How many at most.
    figures: u32,
    confidence: f64,
}

impl Family {
    /// Whether ranks of so many values can tell anything, corrected for so many figures.
    fn ranks_tell(self, n: usize, m: usize) -> bool {
        least_p(n, m) * f64::from(self.figures) <= 1.0 - self.confidence
    }
}

/// The worst; better only where nothing is unclear.
fn verdict(comparisons: &[Comparison]) -> Verdict {
    let worst = comparisons
        .iter()
        .map(|comparison| comparison.verdict)
        .max();
    let better = comparisons
        .iter()
        .any(|comparison| comparison.verdict == Verdict::Better);
    match worst {
        None => Verdict::Unclear,
        Some(Verdict::Same) if better => Verdict::Better,
        Some(worst) => worst,
    }
}

/// Whether two measurements are of the same thing: for how long is no matter.
fn alike(one: &Spec, other: &Spec) -> bool {
    let any = Amount::Iterations(core::num::NonZeroU64::MIN);
    let of = |spec: &Spec| Spec {
        amount: any,
        ..spec.clone()
    };
    of(one) == of(other)
}

fn figures(before: &Measurement, after: &Measurement, family: Family) -> Vec<Comparison> {
    if !before.is_latency() {
        return Vec::from_iter(bandwidth(before, after, family));
    }
    let (Some(old), Some(new)) = (before.distribution(), after.distribution()) else {
        return Vec::new();
    };
    [
        (Figure::Median, Quantile::P50),
        (Figure::P99, Quantile::P99),
    ]
    .into_iter()
    // A tail of ten samples is the least to speak of.
    .filter(|(figure, _)| *figure == Figure::Median || old.count().min(new.count()) >= 1000)
    .filter_map(|(figure, quantile)| {
        let of_runs = |of: &Measurement| of.quantiles(quantile);
        let (old_runs, new_runs) = (of_runs(before), of_runs(after));
        if old_runs.len().min(new_runs.len()) >= RUNS {
            return values(before, figure, Basis::Runs, [&old_runs, &new_runs], family);
        }
        samples(before, figure, quantile, [&old, &new], family)
    })
    .collect()
}

fn bandwidth(before: &Measurement, after: &Measurement, family: Family) -> Option<Comparison> {
    let runs = [&before.rates(), &after.rates()];
    let enough = |of: [&Vec<f64>; 2], least| of.iter().all(|values| values.len() >= least);
    let slices = [&slices(before), &slices(after)];
    let basis = match () {
        () if enough(runs, RUNS) => Basis::Runs,
        () if enough(slices, INTERVALS) => Basis::Intervals,
        () => Basis::Figures,
    };
    let of = if basis == Basis::Intervals {
        slices
    } else {
        runs
    };
    values(before, Figure::Bandwidth, basis, of, family)
}

fn slices(of: &Measurement) -> Vec<f64> {
    of.runs
        .iter()
        .filter_map(|run| run.timeline.as_ref())
        .flat_map(Timeline::throughputs)
        .map(Throughput::bytes_per_second)
        .collect()
}

/// Compares by values that are independent, or taken to be.
fn values(
    of: &Measurement,
    figure: Figure,
    basis: Basis,
    [old, new]: [&Vec<f64>; 2],
    family: Family,
) -> Option<Comparison> {
    let (before, after) = (median(old)?, median(new)?);
    let test = match basis {
        Basis::Figures => Test::None,
        Basis::Runs if !family.ranks_tell(old.len(), new.len()) => Test::Welch,
        Basis::Runs | Basis::Samples | Basis::Intervals => Test::Ranks,
    };
    let logs = |of: &[f64]| of.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let p = match test {
        Test::None => None,
        Test::Welch => welch(&logs(old), &logs(new)),
        Test::Ranks | Test::Tails => RankTest::of(old, new).map(|test| test.p),
    };
    let quotient = quotient(old, new, family.confidence).filter(|_| test != Test::None);
    Some(Comparison {
        spec: of.spec.clone(),
        figure,
        basis,
        count_before: count(old.len()),
        count_after: count(new.len()),
        before,
        after,
        change: quotient.map_or_else(|| change(before, after), |(estimate, ..)| estimate - 1.0),
        interval: quotient.map(|(_, low, high)| Interval {
            low: low - 1.0,
            high: high - 1.0,
            confidence: family.confidence,
        }),
        p,
        test,
        verdict: Verdict::Unclear,
    })
}

/// Compares by the samples of a run.
fn samples(
    of: &Measurement,
    figure: Figure,
    quantile: Quantile,
    [old, new]: [&Distribution; 2],
    family: Family,
) -> Option<Comparison> {
    let (before, after) = (
        old.quantile(quantile)? as f64,
        new.quantile(quantile)? as f64,
    );
    let (test, found) = match figure {
        Figure::P99 => (Test::Tails, RankTest::of_tails(old, new, quantile)),
        Figure::Median | Figure::Bandwidth => (Test::Ranks, RankTest::of_distributions(old, new)),
    };
    Some(Comparison {
        spec: of.spec.clone(),
        figure,
        basis: Basis::Samples,
        count_before: old.count(),
        count_after: new.count(),
        before,
        after,
        change: change(before, after),
        interval: quantile_change([old, new], quantile, family.confidence),
        p: found.map(|found| found.p),
        test,
        verdict: Verdict::Unclear,
    })
}

/// Between which the quotient of two quantiles lies, less one: from the interval of each (the
/// "method of variance estimates recovery" of Zou and Donner 2008, on logarithms).
fn quantile_change(
    [old, new]: [&Distribution; 2],
    quantile: Quantile,
    confidence: f64,
) -> Option<Interval> {
    let of = |held: &Distribution| {
        let around = Interval::of_quantile(held, quantile, confidence)?;
        let middle = held.quantile(quantile)? as f64;
        (around.low > 0.0).then(|| (around.low.ln(), middle.ln(), around.high.ln()))
    };
    let ((low_a, a, high_a), (low_b, b, high_b)) = (of(old)?, of(new)?);
    let reach = |one: f64, other: f64| one.hypot(other);
    Some(Interval {
        low: (b - a - reach(b - low_b, high_a - a)).exp_m1(),
        high: (b - a + reach(high_b - b, a - low_a)).exp_m1(),
        confidence,
    })
}

fn change(before: f64, after: f64) -> f64 {
    if before == 0.0 {
        0.0
    } else {
        after / before - 1.0
    }
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// Corrects the p-values for how many there are (Holm 1979).
fn correct(comparisons: &mut [Comparison]) {
    let mut order: Vec<&mut f64> = comparisons
        .iter_mut()
        .filter_map(|one| one.p.as_mut())
        .collect();
    order.sort_by(|a, b| a.total_cmp(b));
    let all = order.len();
    let mut least = 0.0_f64;
    for (index, p) in order.into_iter().enumerate() {
        least = least.max(*p * (all - index) as f64).min(1.0);
        *p = least;
    }
}

impl Comparison {
    /// How much worse a change is: positive is worse.
    fn harm(&self, change: f64) -> f64 {
        match self.figure {
            Figure::Median | Figure::P99 => change,
            Figure::Bandwidth => -change,
        }
    }

    fn judge(&self, limits: Limits) -> Verdict {
        let harm = self.harm(self.change);
        let sure = self.p.is_some_and(|p| p <= 1.0 - limits.confidence);
        if sure && harm > limits.threshold {
            return Verdict::Worse;
        }
        if sure && harm < -limits.threshold {
            return Verdict::Better;
        }
        // No difference was found: could there be one that matters?
        let most = self
            .interval
            .map(|around| self.harm(around.low).max(self.harm(around.high)));
        if sure || most.is_some_and(|most| most <= limits.threshold) {
            Verdict::Same
        } else {
            Verdict::Unclear
        }
    }
}

/// What is not as it was, of both sides.
fn differences(before: &Results, after: &Results) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut add = |what: String, before: String, after: String| {
        if before != after {
            found.push(Difference {
                what,
                before,
                after,
            });
        }
    };
    add("rperf".into(), before.rperf.clone(), after.rperf.clone());
    let nowhere = Side::default();
    let sides = [
        ("", &before.local, &after.local),
        (
            "remote ",
            before.remote.as_ref().unwrap_or(&nowhere),
            after.remote.as_ref().unwrap_or(&nowhere),
        ),
    ];
    for (which, before, after) in sides {
        let facts = before.facts().into_iter().zip(after.facts());
        for ((what, before), (_, after)) in facts {
            add(format!("{which}{what}"), before, after);
        }
    }
    found
}
