//! Where the samples have settled.

use serde::{Deserialize, Serialize};

use super::interval::median;

/// How many samples at the beginning are unlike the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WarmUp {
    /// So many samples at the beginning.
    pub samples: u64,
    /// Whether they settled: not where the best cut is later than the half.
    pub settled: bool,
}

impl WarmUp {
    /// Finds the cut in samples in the order in which they were taken.
    ///
    /// The marginal standard error rule (White 1997): drop what makes the rest's mean the surest.
    /// It is applied to medians of sixty-four batches, so that single long samples do not move it.
    /// Below 64 samples nothing is dropped.
    #[must_use]
    pub fn of(samples: &[u64]) -> Self {
        let batch = samples.len() / 64;
        if batch == 0 {
            return Self {
                samples: 0,
                settled: true,
            };
        }
        let medians: Vec<f64> = samples
            .chunks_exact(batch)
            .filter_map(|batch| {
                let batch: Vec<f64> = batch.iter().map(|value| *value as f64).collect();
                median(&batch)
            })
            .collect();
        // About the last, so that the squares keep their digits; from the end, so that each cut
        // costs one step.
        let origin = medians.last().copied().unwrap_or(0.0);
        let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
        let mut best = (f64::INFINITY, 0);
        for (cut, value) in medians.iter().enumerate().rev() {
            let value = value - origin;
            (sum, squares, n) = (sum + value, squares + value * value, n + 1.0);
            // Of a handful at the end nothing follows. The earliest cut wins among equals.
            let error = (squares - sum * sum / n) / (n * n);
            if n >= 8.0 && error <= best.0 {
                best = (error, cut);
            }
        }
        let settled = best.1 <= medians.len() / 2;
        let dropped = if settled { best.1 * batch } else { 0 };
        Self {
            samples: u64::try_from(dropped).unwrap_or(u64::MAX),
            settled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::WarmUp;

    /// About 1000, with a long one now and then.
    fn steady(i: u64) -> u64 {
        1000 + i.wrapping_mul(2_654_435_761) % 41 + if i % 131 == 7 { 40_000 } else { 0 }
    }

    #[test]
    fn a_slow_start_is_found() {
        let samples: Vec<u64> = (0..6400)
            .map(|i| steady(i) + if i < 700 { 1500 - 2 * i } else { 0 })
            .collect();
        let found = WarmUp::of(&samples);
        assert!(
            found.settled && (600..=800).contains(&found.samples),
            "{found:?}"
        );
    }

    #[test]
    fn what_is_steady_is_kept() {
        let samples: Vec<u64> = (0..6400).map(steady).collect();
        let found = WarmUp::of(&samples);
        assert!(found.settled && found.samples <= 1000, "{found:?}");
        assert_eq!(WarmUp::of(&[5, 5, 5]).samples, 0);
    }

    #[test]
    fn what_drifts_does_not_settle() {
        let samples: Vec<u64> = (0..6400).map(|i| 100_000 - 10 * i).collect();
        assert!(!WarmUp::of(&samples).settled);
    }
}
