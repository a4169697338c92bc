//! What was recorded: buckets that hold something, and exact sums.

use serde::{Deserialize, Serialize};

use super::{Grid, GridError, Histogram, Quantile};

/// The distribution of recorded times, as compact as what it holds.
///
/// In a results file it is an object with `digits` and `highest` (the buckets), the exact `count`,
/// `min`, `max`, `sum` and `squares`, and `buckets`: pairs of a bucket's lowest value and its
/// count, ascending. A reader needs no formula to use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Record", into = "Record")]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Distribution {
    pub(super) grid: Grid,
    pub(super) count: u64,
    pub(super) overflow: u64,
    /// `u64::MAX` where nothing was recorded.
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) sum: u128,
    pub(super) squares: u128,
    /// The lowest value of each bucket that holds something, and how many.
    pub(super) buckets: Vec<(u64, u64)>,
}

/// One bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its lowest value.
    pub low: u64,
    /// Its highest value.
    pub high: u64,
    /// How many it holds.
    pub count: u64,
    /// How many the buckets before it hold.
    pub before: u64,
}

impl Step {
    /// The middle, which stands for all values.
    #[must_use]
    pub const fn middle(self) -> u64 {
        self.low + (self.high - self.low) / 2
    }
}

impl Distribution {
    /// How many.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// How many were above the highest value of the buckets.
    #[must_use]
    pub const fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The least; nothing where nothing was recorded.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The greatest; nothing where nothing was recorded.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }

    /// The exact mean.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The exact deviation of a sample (divisor n - 1); nothing below two.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        let (count, one_less) = (u128::from(self.count), self.count.checked_sub(1)?);
        if one_less == 0 {
            return None;
        }
        // About the whole part q of the mean, in integers: the sum of (v - q)^2 is
        // squares - 2q·sum + n·q^2, which fits where the squares did. What the fraction r/n of the
        // mean adds to it is r^2/n.
        let (whole, rest) = (self.sum / count, self.sum % count);
        let about = self
            .squares
            .wrapping_sub(whole.wrapping_mul(self.sum).wrapping_mul(2))
            .wrapping_add(count.wrapping_mul(whole.wrapping_mul(whole)));
        let rest = rest as f64;
        let sum = about as f64 - rest * rest / count as f64;
        Some((sum.max(0.0) / one_less as f64).sqrt())
    }

    /// The value at a quantile: exact for the least and the greatest, else the middle of its
    /// bucket, which is off by at most [`Grid::error_bound`] of the value.
    ///
    /// A quantile among the values above the highest is the greatest.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        self.at_rank(quantile.rank(self.count))
    }

    /// The value at a rank, from 1.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        if rank <= 1 {
            return Some(self.min);
        }
        if rank > self.count - self.overflow || rank >= self.count {
            return Some(self.max);
        }
        self.steps()
            .find(|step| step.before + step.count >= rank)
            .map(|step| step.middle().clamp(self.min, self.max))
    }

    /// The buckets that hold something, ascending.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.buckets.iter().scan(0, |before, &(low, count)| {
            let step = Step {
                low,
                high: self.grid.bucket(low).1,
                count,
                before: *before,
            };
            *before += count;
            Some(step)
        })
    }

    /// How the values are cut.
    #[must_use]
    pub const fn grid(&self) -> Grid {
        self.grid
    }

    /// Adds what another recorded.
    ///
    /// # Errors
    /// [`GridError::Different`] where its buckets are others, [`GridError::Many`] where there are
    /// more together than can be counted; then nothing was added.
    pub fn merge(&mut self, other: &Self) -> Result<(), GridError> {
        if self.grid != other.grid {
            return Err(GridError::Different);
        }
        let count = self.count.checked_add(other.count);
        self.count = count.ok_or(GridError::Many)?;
        // No more than the count, as is what each bucket holds.
        self.overflow += other.overflow;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.squares = self.squares.saturating_add(other.squares);
        self.buckets.extend_from_slice(&other.buckets);
        self.buckets.sort_unstable_by_key(|(low, _)| *low);
        self.buckets.dedup_by(|from, into| {
            let same = from.0 == into.0;
            if same {
                into.1 += from.1;
            }
            same
        });
        Ok(())
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            grid: Grid::default(),
            count: 0,
            overflow: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            squares: 0,
            buckets: Vec::new(),
        }
    }
}

impl FromIterator<u64> for Distribution {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut histogram = Histogram::default();
        histogram.extend(values);
        histogram.distribution()
    }
}

/// A distribution as it stands in a results file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
struct Record {
    /// Decimal digits that the buckets keep, 1 to 4.
    digits: u8,
    /// The highest value, in ns, that has a bucket.
    highest: u64,
    /// How many were recorded.
    count: u64,
    /// How many of these were above `highest`.
    overflow: u64,
    /// The least, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    min: Option<u64>,
    /// The greatest, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<u64>,
    /// The exact sum, in ns, in decimal digits.
    sum: String,
    /// The exact sum of the squares, in ns², in decimal digits.
    squares: String,
    /// The lowest value of each bucket that holds something, in ns, and how many it holds.
    buckets: Vec<(u64, u64)>,
}

impl From<Distribution> for Record {
    fn from(from: Distribution) -> Self {
        Self {
            digits: from.grid.digits(),
            highest: from.grid.highest(),
            count: from.count,
            overflow: from.overflow,
            min: from.min(),
            max: from.max(),
            sum: from.sum.to_string(),
            squares: from.squares.to_string(),
            buckets: from.buckets,
        }
    }
}

/// What is wrong with a distribution in a file.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Grid(#[from] GridError),
    #[error("{0} is not a whole number")]
    Number(&'static str),
    #[error("the buckets hold {held} values, but count is {count}")]
    Count { held: u64, count: u64 },
    #[error("the bucket at {0} is not where one begins, holds nothing, or is out of order")]
    Bucket(u64),
    #[error("min, max, sum or overflow do not belong to the buckets")]
    Sums,
}

impl TryFrom<Record> for Distribution {
    type Error = RecordError;

    fn try_from(from: Record) -> Result<Self, RecordError> {
        let grid = Grid::new(from.digits, from.highest)?;
        let number = |text: &str, name| text.parse::<u128>().map_err(|_| RecordError::Number(name));
        let (sum, squares) = (number(&from.sum, "sum")?, number(&from.squares, "squares")?);
        let mut held = 0_u64;
        let mut last = None;
        for &(low, count) in &from.buckets {
            let wrong = low > grid.highest()
                || grid.bucket(low).0 != low
                || count == 0
                || last.is_some_and(|last| last >= low);
            held = held
                .checked_add(count)
                .filter(|_| !wrong)
                .ok_or(RecordError::Bucket(low))?;
            last = Some(low);
        }
        if held != from.count {
            return Err(RecordError::Count {
                held,
                count: from.count,
            });
        }
        let (min, max) = (from.min.unwrap_or(u64::MAX), from.max.unwrap_or(0));
        let ends = |value: u64, bucket: Option<&(u64, u64)>| {
            bucket.map(|(low, _)| *low) == Some(grid.bucket(value.min(grid.highest())).0)
        };
        let fit = if from.count == 0 {
            from.min.is_none() && from.max.is_none() && sum == 0
        } else {
            let count = u128::from(from.count);
            ends(min, from.buckets.first())
                && ends(max, from.buckets.last())
                && min <= max
                && (u128::from(min) * count..=u128::from(max) * count).contains(&sum)
        };
        let over = from.buckets.last().map_or(0, |(_, count)| *count);
        if !fit || from.overflow > over {
            return Err(RecordError::Sums);
        }
        Ok(Self {
            grid,
            count: from.count,
            overflow: from.overflow,
            min,
            max,
            sum,
            squares,
            buckets: from.buckets,
        })
    }
}
