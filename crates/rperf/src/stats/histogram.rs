//! Where the hot path records.

use super::{Distribution, Grid};

/// A log-linear histogram of times: what it costs to record does not depend on how many there are,
/// and nothing is allocated while recording.
///
/// Count, least, greatest, sum and deviation are exact; only quantiles are rounded to buckets.
#[derive(Debug, Clone)]
pub struct Histogram {
    grid: Grid,
    counts: Box<[u64]>,
    count: u64,
    overflow: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

impl Histogram {
    /// An empty one.
    #[must_use]
    pub fn new(grid: Grid) -> Self {
        Self {
            grid,
            counts: vec![0; grid.buckets()].into_boxed_slice(),
            count: 0,
            overflow: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            squares: 0,
        }
    }

    /// Records a value.
    ///
    /// One above the highest of the grid counts in the last bucket and as overflow.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let index = self.grid.index(value.min(self.grid.highest()));
        // The bound always holds: the compiler wants to hear it, the processor guesses it right.
        if let Some(count) = usize::try_from(index)
            .ok()
            .and_then(|index| self.counts.get_mut(index))
        {
            *count += 1;
        }
        self.count += 1;
        self.overflow += u64::from(value > self.grid.highest());
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let value = u128::from(value);
        self.sum += value;
        // Exact for 10^16 times of three minutes; where it saturates the deviation is a lower bound.
        self.squares = self.squares.saturating_add(value * value);
    }

    /// How many were recorded.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.overflow) = (0, 0);
        (self.min, self.max) = (u64::MAX, 0);
        (self.sum, self.squares) = (0, 0);
    }

    /// What was recorded.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        let buckets = (0..)
            .zip(&self.counts)
            .filter(|(_, count)| **count > 0)
            .map(|(index, count)| (self.grid.low(index), *count))
            .collect();
        Distribution {
            grid: self.grid,
            count: self.count,
            overflow: self.overflow,
            min: self.min,
            max: self.max,
            sum: self.sum,
            squares: self.squares,
            buckets,
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new(Grid::LATENCY)
    }
}

impl Extend<u64> for Histogram {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, values: I) {
        for value in values {
            self.record(value);
        }
    }
}
