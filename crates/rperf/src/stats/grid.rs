//! The buckets of a histogram: exact while values are small, then so many to each power of two.

/// Where the borders of the buckets are.
///
/// With `b` bits of precision, each value below `2^(b+1)` has a bucket of its own, and each
/// greater power of two is cut into `2^b` equal buckets: a bucket is at most `2^-b` of its values
/// wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    digits: u8,
    bits: u32,
    highest: u64,
}

/// No such buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// Precision is one to four decimal digits.
    #[error("a histogram has one to four digits, not {0}")]
    Digits(u8),
    /// Two histograms with other buckets do not add up.
    #[error("histograms with different buckets cannot be added")]
    Different,
    /// More than 2^64 values.
    #[error("the histograms hold more values than can be counted")]
    Many,
}

impl Grid {
    /// Three digits up to 68.7 s (`2^36 - 1` ns): 27 648 buckets, 216 KiB, of which a measurement
    /// touches few.
    pub const LATENCY: Self = Self {
        digits: 3,
        bits: 10,
        highest: (1 << 36) - 1,
    };

    /// Buckets of `digits` decimal digits for values up to `highest`; greater ones count as
    /// overflow.
    ///
    /// # Errors
    /// [`GridError::Digits`] where `digits` is not 1 to 4.
    pub const fn new(digits: u8, highest: u64) -> Result<Self, GridError> {
        // The least b with 2^b >= 10^digits.
        let bits = match digits {
            1 => 4,
            2 => 7,
            3 => 10,
            4 => 14,
            _ => return Err(GridError::Digits(digits)),
        };
        Ok(Self {
            digits,
            bits,
            highest,
        })
    }

    /// The decimal digits that are kept.
    #[must_use]
    pub const fn digits(self) -> u8 {
        self.digits
    }

    /// The highest value with a bucket of its own.
    #[must_use]
    pub const fn highest(self) -> u64 {
        self.highest
    }

    /// The most that the middle of a bucket is off, as a part of the value: `2^-(b+1)`.
    #[must_use]
    pub fn error_bound(self) -> f64 {
        0.5 / f64::from(1_u32 << self.bits)
    }

    /// The binary logarithm of the width of the bucket of `value`.
    #[inline]
    const fn shift(self, value: u64) -> u32 {
        // The bit at `bits` makes small values exact without a branch.
        63 - self.bits - (value | (1 << self.bits)).leading_zeros()
    }

    /// The bucket of `value`, which must not be above the highest.
    #[inline]
    pub(super) const fn index(self, value: u64) -> u64 {
        let shift = self.shift(value);
        ((shift as u64) << self.bits) + (value >> shift)
    }

    /// The lowest value of bucket `index`.
    pub(super) const fn low(self, index: u64) -> u64 {
        let octave = index >> self.bits;
        let shift = octave.saturating_sub(1);
        (index - (shift << self.bits)) << shift
    }

    /// The lowest and the highest value of the bucket of `value`.
    #[must_use]
    pub const fn bucket(self, value: u64) -> (u64, u64) {
        let shift = self.shift(value);
        let low = (value >> shift) << shift;
        (low, low + ((1 << shift) - 1))
    }

    /// How many buckets there are.
    pub(super) fn buckets(self) -> usize {
        // At most 50 · 2^14.
        usize::try_from(self.index(self.highest) + 1).unwrap_or(usize::MAX)
    }
}

impl Default for Grid {
    fn default() -> Self {
        Self::LATENCY
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Grid;

    proptest! {
        #[test]
        fn a_bucket_holds_its_value(digits in 1_u8..=4, value: u64) {
            let grid = Grid::new(digits, u64::MAX).expect("digits");
            let (low, high) = grid.bucket(value);
            prop_assert!(low <= value && value <= high);
            prop_assert_eq!(grid.low(grid.index(value)), low);
            prop_assert_eq!(grid.index(low), grid.index(high));
            if let Some(next) = high.checked_add(1) {
                prop_assert_eq!(grid.index(next), grid.index(value) + 1);
            }
            let middle = low + (high - low) / 2;
            let off = middle.abs_diff(low).max(high - middle);
            // What a bucket of width 2^s is off is at most 2^(s-1).
            prop_assert!(off as f64 <= grid.error_bound() * low as f64);
        }
    }

    #[test]
    fn the_usual_grid_is_as_said() {
        assert_eq!(Grid::LATENCY, Grid::new(3, (1 << 36) - 1).expect("digits"));
        assert_eq!(Grid::LATENCY.buckets(), 27_648);
        assert!(Grid::new(0, 1).is_err() && Grid::new(5, 1).is_err());
    }
}
