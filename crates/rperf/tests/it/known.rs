//! What is said of times whose quantiles are known: by us, and by perftest's definitions.

use core::fmt::Write as _;

use rperf::compat::stats::Latency;
use rperf::stats::{Distribution, Quantile};

use crate::shape::Shape;

const SHAPES: [(&str, Shape); 5] = [
    ("fixed 5 µs", Shape::Fixed(5000.0)),
    ("even 1 to 2 µs", Shape::Even(1000.0, 2000.0)),
    (
        "2 µs, 0.2% 80 µs",
        Shape::Bimodal {
            low: 2000.0,
            high: 80_000.0,
            part: 0.002,
        },
    ),
    (
        "exponential, 1.5 + 0.5 µs",
        Shape::Exponential {
            least: 1500.0,
            mean: 500.0,
        },
    ),
    (
        "Pareto, 1.5 µs, exponent 2",
        Shape::Pareto {
            least: 1500.0,
            exponent: 2.0,
        },
    ),
];

/// The table, in µs.
fn table(count: usize) -> String {
    let mut text = format!(
        "{count} samples, µs{:w$} p50      p99    p99.9   p99.99       max     mean     stdev\n",
        "",
        w = 34 - count.to_string().len() - 12
    );
    for (name, shape) in SHAPES {
        let mut times = shape.times(42, count);
        let held: Distribution = times.iter().copied().collect();
        // `of` sorts them. Here a time is one way, as perftest has it for reads.
        let said = Latency::of(&mut times, 1000.0, false).expect("samples");
        let longest = *times.last().expect("samples") as f64;
        let n = times.len() as f64;
        let mean = times.iter().map(|time| *time as f64).sum::<f64>() / n;
        let squares: f64 = times.iter().map(|time| (*time as f64 - mean).powi(2)).sum();
        let quantile = |part: f64| shape.quantile(part) / 1e3;
        let ours = |quantile| held.quantile(quantile).expect("samples") as f64 / 1e3;
        let mut row = |who: &str, cells: [Option<f64>; 7]| {
            let _ = write!(text, "{name:<26} {who:<9}");
            for (width, cell) in [8, 8, 8, 8, 9, 8, 9].into_iter().zip(cells) {
                let _ = match cell {
                    Some(value) => write!(text, " {value:>width$.3}"),
                    None => write!(text, " {:>width$}", "-"),
                };
            }
            text.push('\n');
        };
        // Of the shape, except for what only these samples have.
        row(
            "truth",
            [
                Some(quantile(0.5)),
                Some(quantile(0.99)),
                Some(quantile(0.999)),
                Some(quantile(0.9999)),
                Some(longest / 1e3),
                Some(mean / 1e3),
                Some((squares / (n - 1.0)).sqrt() / 1e3),
            ],
        );
        row(
            "rperf",
            [
                Some(ours(Quantile::P50)),
                Some(ours(Quantile::P99)),
                Some(ours(Quantile::P999)),
                Some(ours(Quantile::P9999)),
                held.max().map(|time| time as f64 / 1e3),
                held.mean().map(|time| time / 1e3),
                held.deviation().map(|time| time / 1e3),
            ],
        );
        row(
            "perftest",
            [
                Some(said.t_typical),
                Some(said.percentile_99),
                Some(said.percentile_99_9),
                None,
                Some(said.t_max),
                Some(said.t_avg),
                said.t_stdev,
            ],
        );
    }
    text
}

/// `tests/data/known.txt` is what this prints: written anew with `RPERF_BLESS=1`.
#[test]
fn the_table_is_as_kept() {
    let text = format!("{}\n{}", table(999), table(99_999));
    crate::kept("known.txt", &text);
}

#[test]
fn what_we_say_is_exact_where_perftest_is_not() {
    for (name, shape) in SHAPES {
        let mut times = shape.times(42, 999);
        let held: Distribution = times.iter().copied().collect();
        let said = Latency::of(&mut times, 1000.0, false).expect("samples");
        for (part, quantile) in [(0.5, Quantile::P50), (0.99, Quantile::P99)] {
            // Against the samples themselves, within half a bucket.
            let rank = (part * 999.0_f64).ceil() as usize;
            let truth = times[rank - 1] as f64;
            let ours = held.quantile(quantile).expect("samples") as f64;
            assert!(
                (ours - truth).abs() <= truth * held.grid().error_bound() + 0.5,
                "{name}"
            );
        }
        assert_eq!(held.max(), times.last().copied());
        // perftest's are one step up at 99%, its maximum one step down, and its 99.9% the same.
        assert_eq!(said.percentile_99, times[988] as f64 / 1e3, "{name}");
        assert_eq!(said.t_max, times[997] as f64 / 1e3, "{name}");
        assert_eq!(said.percentile_99_9, said.t_max, "{name}");
    }
    // A deviation of 0.29 µs is none to perftest.
    let mut times = Shape::Even(1000.0, 2000.0).times(42, 999);
    let held: Distribution = times.iter().copied().collect();
    assert_eq!(
        Latency::of(&mut times, 1000.0, false).and_then(|said| said.t_stdev),
        Some(0.0)
    );
    assert!(held.deviation().is_some_and(|ns| (ns - 288.0).abs() < 10.0));
}
