//! What was measured, where and on what: the results file.
//!
//! A file is what a measuring command prints with `--json`: `{"schema": "rperf/result/1", "data":
//! Results}`. All times are ns where their name says nothing else.

mod concern;
mod environment;
mod read;

use serde::{Deserialize, Serialize};

pub use concern::{Concern, Warning};
pub use environment::{Device, Host, IdleState, Side};
pub use read::ReadError;

use crate::compat::stats as perftest;
use crate::spec::{Metric, Spec};
use crate::stats::{
    Distribution, Interval, Outliers, Quantile, Summary, Throughput, Timeline, WarmUp, median,
};

/// The name of the schema of a results file.
pub const SCHEMA: &str = "rperf/result/1";

/// How sure the intervals in results are.
pub const CONFIDENCE: f64 = 0.95;

/// One run of `rperf`: what it measured, and all that may have a say in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Results {
    /// Version of `rperf`.
    pub rperf: String,
    /// When it started, in UTC, as RFC 3339 has it.
    pub started: String,
    /// Where `rperf` ran.
    pub local: Side,
    /// Where its peer ran, as far as it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<Side>,
    /// What was measured, in order.
    pub measurements: Vec<Measurement>,
    /// What may have spoiled it.
    pub warnings: Vec<Warning>,
}

impl Results {
    /// Looks for what may have spoiled a figure, and says it in `warnings`, instead of what
    /// stood there.
    #[must_use]
    pub fn warned(mut self) -> Self {
        self.warnings = concern::look(&self);
        self
    }

    /// Reads a results file.
    ///
    /// # Errors
    /// [`ReadError`], with the field and where in the file it is.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        read::read(bytes)
    }
}

/// One measurement, repeated or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Measurement {
    /// What was measured.
    pub spec: Spec,
    /// The latency over all runs, in a few numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Summary>,
    /// Where the median of the latency lies: between medians of the runs where these are at least
    /// six, where they are fewer by Student's t of them, and of one run as far as its samples can
    /// tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_interval: Option<Interval>,
    /// How many samples lie far outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<Outliers>,
    /// The throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// The runs, in order.
    pub runs: Vec<Run>,
}

/// The throughput over all runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Bandwidth {
    /// Bytes per second: the median of the runs.
    pub bytes_per_second: f64,
    /// Messages per second: the median of the runs.
    pub messages_per_second: f64,
    /// The least and the most bytes per second of a whole interval of the time line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<(f64, f64)>,
    /// Where the mean of the runs' bytes per second lies; not there below two runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_interval: Option<Interval>,
}

impl Bandwidth {
    /// 10⁹ bits per second.
    #[must_use]
    pub fn gigabits(&self) -> f64 {
        self.bytes_per_second * 8.0 / 1e9
    }
}

/// One run of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Run {
    /// How much in what time.
    pub throughput: Throughput,
    /// How long each took, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Distribution>,
    /// What happened when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// How many samples were dropped at its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// perftest's own figures of the same samples, where all of them were kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub perftest: Option<perftest::Latency>,
}

impl Run {
    /// A run of which nothing but its throughput is known.
    #[must_use]
    pub const fn of(throughput: Throughput) -> Self {
        Self {
            throughput,
            latency: None,
            timeline: None,
            warm_up: None,
            perftest: None,
        }
    }
}

impl Measurement {
    /// What follows from the runs.
    #[must_use]
    pub fn of(spec: Spec, runs: Vec<Run>) -> Self {
        let mut measurement = Self {
            spec,
            latency: None,
            median_interval: None,
            outliers: None,
            bandwidth: Bandwidth::of(&runs),
            runs,
        };
        if let Some(held) = measurement.distribution() {
            let medians = measurement.medians();
            measurement.latency = Summary::of(&held);
            measurement.outliers = Outliers::of(&held);
            measurement.median_interval = match medians.len() {
                1 => Interval::of_quantile(&held, Quantile::P50, CONFIDENCE),
                _ => Interval::of_median(&medians, CONFIDENCE)
                    .or_else(|| Interval::of_mean(&medians, CONFIDENCE)),
            };
        }
        measurement
    }

    /// The latency of all runs together; nothing where none was measured.
    ///
    /// A run whose buckets are others than the first's is left out.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        let mut held = self.runs.iter().filter_map(|run| run.latency.as_ref());
        let mut all = held.next()?.clone();
        for one in held {
            // Runs of one measurement are recorded alike.
            let _ = all.merge(one);
        }
        (all.count() > 0).then_some(all)
    }

    /// The median latency of each run that has one, in ns.
    #[must_use]
    pub fn medians(&self) -> Vec<f64> {
        self.quantiles(Quantile::P50)
    }

    /// A quantile of the latency of each run that has one, in ns.
    #[must_use]
    pub fn quantiles(&self, quantile: Quantile) -> Vec<f64> {
        self.runs
            .iter()
            .filter_map(|run| run.latency.as_ref())
            .filter_map(|held| held.quantile(quantile))
            .map(|time| time as f64)
            .collect()
    }

    /// The bytes per second of each run.
    #[must_use]
    pub fn rates(&self) -> Vec<f64> {
        let rates = self
            .runs
            .iter()
            .map(|run| run.throughput.bytes_per_second());
        rates.collect()
    }

    /// Whether latency is what was wanted.
    #[must_use]
    pub fn is_latency(&self) -> bool {
        self.spec.metric == Metric::Latency
    }
}

impl Bandwidth {
    fn of(runs: &[Run]) -> Option<Self> {
        let of_runs = |rate: fn(Throughput) -> f64| -> Vec<f64> {
            runs.iter().map(|run| rate(run.throughput)).collect()
        };
        let bytes = of_runs(Throughput::bytes_per_second);
        let slices = runs
            .iter()
            .filter_map(|run| run.timeline.as_ref())
            .flat_map(Timeline::throughputs)
            .map(Throughput::bytes_per_second)
            .fold(None, |ends: Option<(f64, f64)>, rate| {
                Some(ends.map_or((rate, rate), |(low, high)| (low.min(rate), high.max(rate))))
            });
        Some(Self {
            bytes_per_second: median(&bytes)?,
            messages_per_second: median(&of_runs(Throughput::message_rate))?,
            slices,
            mean_interval: Interval::of_mean(&bytes, CONFIDENCE),
        })
    }
}
