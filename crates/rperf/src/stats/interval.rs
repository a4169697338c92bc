//! How sure a figure is.

use serde::{Deserialize, Serialize};

use super::{Distribution, Quantile, normal};

/// Where the truth lies, with a confidence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How often such an interval holds the truth, as a part of one.
    pub confidence: f64,
}

/// The median of values in any order; nothing of none.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values);
    let upper = *sorted.get(sorted.len() / 2)?;
    let lower = *sorted.get((sorted.len() - 1) / 2)?;
    Some(f64::midpoint(lower, upper))
}

pub(super) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

impl Interval {
    /// Of the mean of independent values (one of each repeat), by Student's t; nothing below two.
    #[must_use]
    pub fn of_mean(values: &[f64], confidence: f64) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n >= 2)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / f64::from(n - 1) / f64::from(n)).sqrt();
        let reach = normal::student(1.0 - confidence, n - 1) * error;
        Some(Self {
            low: mean - reach,
            high: mean + reach,
            confidence,
        })
    }

    /// Of the median of independent values (one of each repeat), between two of them, whatever
    /// their distribution is; nothing where they are too few for the confidence (below six for
    /// 95%).
    #[must_use]
    pub fn of_median(values: &[f64], confidence: f64) -> Option<Self> {
        let sorted = sorted(values);
        let count = u64::try_from(sorted.len()).ok()?;
        let (low, high) = ranks(count, Quantile::P50, confidence)?;
        let at = |rank: u64| {
            let index = usize::try_from(rank.checked_sub(1)?).ok()?;
            sorted.get(index).copied()
        };
        Some(Self {
            low: at(low)?,
            high: at(high)?,
            confidence,
        })
    }

    /// Of a quantile of the samples of one run, between two of them. It says what more samples
    /// of this run would do: what another run would do, it cannot know.
    #[must_use]
    pub fn of_quantile(
        distribution: &Distribution,
        quantile: Quantile,
        confidence: f64,
    ) -> Option<Self> {
        let (low, high) = ranks(distribution.count(), quantile, confidence)?;
        Some(Self {
            low: distribution.at_rank(low)? as f64,
            high: distribution.at_rank(high)? as f64,
            confidence,
        })
    }

    /// Whether a value lies in it.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The ranks, from 1, between which a quantile of the truth lies: how many of `count` samples are
/// below it is a binomial number.
fn ranks(count: u64, quantile: Quantile, confidence: f64) -> Option<(u64, u64)> {
    let part = quantile.part();
    let tail = (1.0 - confidence) / 2.0;
    let n = count as f64;
    if count <= 1000 {
        // The last rank that is too low with at most `tail`, and the first that is too high.
        let (mut low, mut high) = (None, None);
        let mut below = 0.0;
        let mut log = n * (1.0 - part).ln();
        for k in 0..=count {
            let i = k as f64;
            // `below`: how likely fewer than k are below the quantile.
            if below <= tail && k > 0 {
                low = Some(k);
            }
            if high.is_none() && 1.0 - below <= tail {
                high = Some(k);
            }
            below += log.exp();
            log += ((n - i) / (i + 1.0) * part / (1.0 - part)).ln();
        }
        return Some((low?, high?));
    }
    let reach = normal::quantile(1.0 - tail) * (n * part * (1.0 - part)).sqrt();
    let (low, high) = ((n * part - reach).floor(), (n * part + reach).ceil() + 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and a count, which is asked first"
    )]
    (low >= 1.0 && high <= n).then_some((low as u64, high as u64))
}

#[cfg(test)]
mod tests {
    use super::{Interval, median, ranks};
    use crate::stats::Quantile;

    #[test]
    fn as_the_tables_say() {
        // The usual table of order statistics for the median at 95%.
        for (n, low, high) in [
            (6, 1, 6),
            (8, 1, 8),
            (9, 2, 8),
            (10, 2, 9),
            (20, 6, 15),
            (50, 18, 33),
        ] {
            assert_eq!(ranks(n, Quantile::P50, 0.95), Some((low, high)), "{n}");
        }
        assert_eq!(ranks(5, Quantile::P50, 0.95), None);
        assert_eq!(ranks(100, Quantile::P9999, 0.95), None);
        // Both ways agree where they meet.
        let (low, high) = ranks(1000, Quantile::P50, 0.95).expect("enough");
        let (next_low, next_high) = ranks(1001, Quantile::P50, 0.95).expect("enough");
        assert!(low.abs_diff(next_low) <= 1 && high.abs_diff(next_high) <= 1);
    }

    #[test]
    fn a_mean_of_three() {
        let mean = Interval::of_mean(&[1.0, 2.0, 3.0], 0.95).expect("two");
        assert!((mean.low - (2.0 - 4.302_653 / 3.0_f64.sqrt())).abs() < 1e-5);
        assert!(mean.contains(2.0) && !mean.contains(5.0));
        assert_eq!(Interval::of_mean(&[1.0], 0.95), None);
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
