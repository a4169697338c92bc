//! What lies far outside.

use serde::{Deserialize, Serialize};

use super::{Distribution, Quantile, interval::median};

/// Samples outside Tukey's outer fences: three times the distance of the quartiles beyond them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Outliers {
    /// How many are below `low_fence`.
    pub low: u64,
    /// How many are above `high_fence`.
    pub high: u64,
    /// In ns.
    pub low_fence: u64,
    /// In ns.
    pub high_fence: u64,
}

impl Outliers {
    /// Of a distribution; nothing where nothing was recorded.
    #[must_use]
    pub fn of(distribution: &Distribution) -> Option<Self> {
        let first = distribution.quantile(Quantile::millionths(250_000))?;
        let third = distribution.quantile(Quantile::millionths(750_000))?;
        let reach = third.saturating_sub(first).saturating_mul(3);
        let low_fence = first.saturating_sub(reach);
        let high_fence = third.saturating_add(reach);
        let sum = |out: fn(u64, u64) -> bool, fence| {
            distribution
                .steps()
                .filter(|step| out(step.middle(), fence))
                .map(|step| step.count)
                .sum()
        };
        Some(Self {
            low: sum(|value, fence| value < fence, low_fence),
            high: sum(|value, fence| value > fence, high_fence),
            low_fence,
            high_fence,
        })
    }
}

/// Which of a few values (one of each repeat) do not belong to the others: those whose modified
/// z-score, by the median absolute deviation, is above 3.5 (Iglewicz and Hoaglin 1993).
///
/// Below five values there is no saying, and none is named.
#[must_use]
pub fn odd_ones(values: &[f64]) -> Vec<usize> {
    let Some(middle) = median(values).filter(|_| values.len() >= 5) else {
        return Vec::new();
    };
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    // Where more than half are equal, whatever differs would be odd: a deviation of a millionth
    // is not.
    let spread = median(&distances).unwrap_or(0.0).max(middle.abs() * 1e-6);
    (0..)
        .zip(&distances)
        .filter(|(_, distance)| 0.6745 * **distance > 3.5 * spread)
        .map(|(index, _)| index)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Outliers, odd_ones};

    #[test]
    fn what_is_far_outside_is_counted() {
        let held = (1000..1100).chain([5, 9000, 9001]).collect();
        let out = Outliers::of(&held).expect("samples");
        assert_eq!((out.low, out.high), (1, 2), "{out:?}");
        assert_eq!(
            Outliers::of(&[7, 7].into_iter().collect()).map(|o| o.high),
            Some(0)
        );
    }

    #[test]
    fn one_repeat_is_odd() {
        assert_eq!(odd_ones(&[1.0, 1.01, 0.99, 1.02, 3.0]), [4]);
        assert!(odd_ones(&[1.0, 1.0, 1.0, 1.0, 1.0]).is_empty());
        assert!(odd_ones(&[1.0, 3.0]).is_empty());
    }
}
