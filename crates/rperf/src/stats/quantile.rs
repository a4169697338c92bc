//! Which part of the samples lies at or below a value.

use core::fmt;

/// A part of all samples, in millionths, so that a rank is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quantile(u32);

impl Quantile {
    /// The median.
    pub const P50: Self = Self(500_000);
    /// 90%.
    pub const P90: Self = Self(900_000);
    /// 99%.
    pub const P99: Self = Self(990_000);
    /// 99.9%.
    pub const P999: Self = Self(999_000);
    /// 99.99%.
    pub const P9999: Self = Self(999_900);

    /// So many millionths; more than all is all.
    #[must_use]
    pub const fn millionths(parts: u32) -> Self {
        Self(if parts > 1_000_000 { 1_000_000 } else { parts })
    }

    /// The rank, from 1, of the sample that this quantile is of `count` sorted ones: the smallest
    /// rank at or below which at least this part of them lies (the nearest-rank definition).
    #[must_use]
    pub fn rank(self, count: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(self.0)).div_ceil(1_000_000);
        u64::try_from(rank).unwrap_or(count).max(1)
    }

    /// As a part of one.
    #[must_use]
    pub fn part(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

/// `p99.9`.
impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", f64::from(self.0) / 1e4)
    }
}

#[cfg(test)]
mod tests {
    use super::Quantile;

    #[test]
    fn ranks_are_exact() {
        assert_eq!(Quantile::P99.rank(100), 99);
        assert_eq!(Quantile::P99.rank(101), 100);
        assert_eq!(Quantile::P50.rank(1), 1);
        assert_eq!(Quantile::P50.rank(0), 1);
        // 0.07 · 100 is more than 7 in floating point.
        assert_eq!(Quantile::millionths(70_000).rank(100), 7);
        assert_eq!(Quantile::P9999.to_string(), "p99.99");
    }
}
