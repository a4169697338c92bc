//! Whether differences are found where there are some, and only there.

use rperf::compare::{Basis, Figure, Limits, Test, Verdict, compare};
use rperf::result::{Measurement, Results, Run};

use crate::sample;
use crate::shape::{Chance, Shape};

const STRICT: Limits = Limits {
    threshold: 0.0,
    confidence: 0.95,
};

fn of(measurement: Measurement) -> Results {
    sample::results(vec![measurement])
}

/// Latency of `runs` runs of `count` samples each; each run is off by up to 3% as a whole.
fn latency(seed: u64, runs: usize, count: usize, by: f64) -> Results {
    let mut chance = Chance(seed);
    let runs = (0..runs).map(|_| {
        let off = by * (1.0 + 0.03 * (2.0 * chance.part() - 1.0));
        let shape = Shape::Exponential {
            least: 1200.0 * off,
            mean: 300.0 * off,
        };
        let seed = (chance.part() * 1e15) as u64;
        sample::run(&shape.times(seed, count), 2)
    });
    of(Measurement::of(sample::latency(2), runs.collect()))
}

/// Bandwidth of `runs` runs around `rate` bytes per second.
fn bandwidth(seed: u64, runs: usize, rate: f64) -> Results {
    let mut chance = Chance(seed);
    let runs = (0..runs).map(|_| {
        let bytes = rate * (1.0 + 0.02 * (2.0 * chance.part() - 1.0));
        Run::of(rperf::stats::Throughput {
            messages: (bytes / 65536.0) as u64,
            bytes: bytes as u64,
            elapsed: 1_000_000_000,
        })
    });
    of(Measurement::of(sample::bandwidth(65536), runs.collect()))
}

fn verdict(before: &Results, after: &Results, limits: Limits) -> Verdict {
    compare(before, after, limits).verdict
}

#[test]
fn false_alarms_are_as_rare_as_said() {
    let mut alarms = 0;
    for trial in 0..400 {
        let (before, after) = (
            bandwidth(2 * trial, 8, 9e9),
            bandwidth(2 * trial + 1, 8, 9e9),
        );
        let verdict = verdict(&before, &after, STRICT);
        alarms += u32::from(matches!(verdict, Verdict::Worse | Verdict::Better));
    }
    // 5% of 400 are 20, with a deviation of 4.4; the exact test gives a little less than said.
    assert!((6..=33).contains(&alarms), "{alarms} of 400");

    let mut alarms = 0;
    // Two figures each, p50 and p99, corrected together.
    for trial in 0..300 {
        let run = |seed| {
            let shape = Shape::Pareto {
                least: 1500.0,
                exponent: 3.0,
            };
            of(Measurement::of(
                sample::latency(2),
                vec![sample::run(&shape.times(seed, 1000), 2)],
            ))
        };
        let verdict = verdict(&run(2 * trial), &run(2 * trial + 1), STRICT);
        alarms += u32::from(matches!(verdict, Verdict::Worse | Verdict::Better));
    }
    // 15, with a deviation of 3.8.
    assert!((3..=27).contains(&alarms), "{alarms} of 300");
}

#[test]
fn a_shift_is_found_and_measured() {
    let mut held = 0;
    for trial in 0..40 {
        let before = latency(1000 + trial, 8, 200, 1.0);
        let after = latency(2000 + trial, 8, 200, 1.08);
        let report = compare(
            &before,
            &after,
            Limits {
                threshold: 0.02,
                ..STRICT
            },
        );
        assert_eq!(report.verdict, Verdict::Worse, "{trial}");
        let median = &report.comparisons[0];
        assert_eq!((median.figure, median.basis), (Figure::Median, Basis::Runs));
        assert!((median.change - 0.08).abs() < 0.04, "{}", median.change);
        held += u32::from(median.interval.unwrap().contains(0.08));
        let limits = Limits {
            threshold: 0.02,
            ..STRICT
        };
        let back = compare(&after, &before, limits).comparisons[0].verdict;
        assert_eq!(back, Verdict::Better);
    }
    // 38 of 40 are 95%, with a deviation of 1.4.
    assert!(held >= 34, "{held} of 40 intervals hold the truth");
}

#[test]
fn what_is_below_the_threshold_is_no_matter() {
    let limits = Limits {
        threshold: 0.15,
        ..STRICT
    };
    let before = latency(1, 8, 1000, 1.0);
    assert_eq!(
        verdict(&before, &latency(2, 8, 1000, 1.05), limits),
        Verdict::Same
    );
    assert_eq!(
        verdict(&before, &latency(2, 8, 1000, 1.5), limits),
        Verdict::Worse
    );
}

#[test]
fn a_tail_alone_is_found() {
    let run = |rare| {
        let shape = Shape::Bimodal {
            low: 1500.0,
            high: 60_000.0,
            part: rare,
        };
        of(Measurement::of(
            sample::latency(2),
            vec![sample::run(&shape.times(7, 20_000), 2)],
        ))
    };
    let report = compare(
        &run(0.005),
        &run(0.02),
        Limits {
            threshold: 0.02,
            ..STRICT
        },
    );
    let verdicts: Vec<_> = report
        .comparisons
        .iter()
        .map(|one| (one.figure, one.verdict))
        .collect();
    assert_eq!(
        verdicts,
        [
            (Figure::Median, Verdict::Same),
            (Figure::P99, Verdict::Worse)
        ]
    );
}

#[test]
fn bandwidth_is_worse_when_it_is_less() {
    let limits = Limits {
        threshold: 0.02,
        ..STRICT
    };
    let before = bandwidth(1, 6, 12e9);
    assert_eq!(
        verdict(&before, &bandwidth(2, 6, 11e9), limits),
        Verdict::Worse
    );
    assert_eq!(
        verdict(&before, &bandwidth(2, 6, 13e9), limits),
        Verdict::Better
    );
    assert_eq!(verdict(&before, &before, limits), Verdict::Same);
    // One figure each tells nothing of chance.
    let alone = compare(&bandwidth(1, 1, 12e9), &bandwidth(2, 1, 6e9), limits);
    assert_eq!(alone.verdict, Verdict::Unclear);
    assert_eq!(alone.comparisons[0].basis, Basis::Figures);
}

#[test]
fn what_has_no_counterpart_is_named() {
    let report = compare(&bandwidth(1, 4, 1e9), &latency(1, 4, 100, 1.0), STRICT);
    assert!(report.comparisons.is_empty());
    assert_eq!((report.only_before.len(), report.only_after.len()), (1, 1));
    assert_eq!(report.verdict, Verdict::Unclear);
}

#[test]
fn what_else_differs_is_named() {
    let mut before = bandwidth(1, 4, 1e9);
    before.remote = Some(sample::side("there", 1));
    let mut after = before.clone();
    after.local.host.governor = Some("powersave".into());
    after.remote = None;
    let report = compare(&before, &after, STRICT);
    let names: Vec<_> = report
        .differences
        .iter()
        .map(|one| one.what.as_str())
        .collect();
    assert!(
        names.contains(&"governor") && names.contains(&"remote device"),
        "{names:?}"
    );
}

#[test]
fn four_runs_of_many_figures_are_enough() {
    // Corrected for eleven figures, ranks of four and four could never tell.
    let limits = Limits {
        threshold: 0.02,
        ..STRICT
    };
    let (before, after) = (sample::sweep(1.0), sample::sweep(1.06));
    let report = compare(&before, &after, limits);
    assert_eq!(report.comparisons.len(), 11);
    assert!(report.comparisons.iter().all(|one| one.test == Test::Welch));
    assert!(
        report
            .comparisons
            .iter()
            .filter(|one| one.verdict == Verdict::Worse)
            .count()
            >= 8
    );
    // And are none where nothing changed.
    let mut alarms = 0;
    for trial in 0..400 {
        let many = |seed: u64| {
            let of = |i: u64| bandwidth(1000 * seed + i, 4, 9e9).measurements.remove(0);
            let measurements = (0..6_u32).map(|i| {
                let mut one = of(u64::from(i));
                one.spec.size = i;
                one
            });
            sample::results(measurements.collect())
        };
        let verdict = verdict(&many(2 * trial), &many(2 * trial + 1), STRICT);
        alarms += u32::from(matches!(verdict, Verdict::Worse | Verdict::Better));
    }
    // 20 of 400, with a deviation of 4.4.
    assert!((4..=33).contains(&alarms), "{alarms} of 400");
}
