//! What happened when.

use core::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::Throughput;

/// A measurement cut into equal intervals.
///
/// However long it runs, it keeps at most [`Timeline::MOST`] of them: when these are full, each
/// two become one and the interval doubles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// The length of an interval, in ns.
    interval: NonZeroU64,
    /// The intervals, from the start.
    slices: Vec<Slice>,
}

/// One interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Slice {
    /// How many messages were completed.
    pub messages: u64,
    /// How many bytes they carried.
    pub bytes: u64,
    /// How the times of those that were timed were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<SliceLatency>,
}

/// The times of an interval, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SliceLatency {
    /// How many were timed.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// The sum.
    pub sum: u64,
}

impl SliceLatency {
    /// The mean; 0 of none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
    }
}

impl Slice {
    fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.bytes += other.bytes;
        match (&mut self.latency, other.latency) {
            (Some(latency), Some(other)) => latency.add(other),
            (latency @ None, other) => *latency = other,
            (Some(_), None) => {}
        }
    }
}

impl Timeline {
    /// The most intervals that are kept.
    pub const MOST: usize = 1024;

    /// An empty one with intervals of so many ns at first.
    #[must_use]
    pub fn new(interval: NonZeroU64) -> Self {
        Self {
            interval,
            slices: Vec::with_capacity(Self::MOST),
        }
    }

    /// Records what was completed at `at` ns after the start: messages of together `bytes`, and
    /// how long one took where that was measured. Nothing is allocated.
    #[inline]
    pub fn record(&mut self, at: u64, messages: u64, bytes: u64, latency: Option<u64>) {
        let slice = Slice {
            messages,
            bytes,
            latency: latency.map(|time| SliceLatency {
                count: 1,
                min: time,
                max: time,
                sum: time,
            }),
        };
        self.slot(at).add(slice);
    }

    /// The interval that `at` lies in.
    fn slot(&mut self, at: u64) -> &mut Slice {
        let most = u64::try_from(Self::MOST).unwrap_or(u64::MAX);
        let mut index = at / self.interval;
        while index >= most {
            self.halve();
            index = at / self.interval;
        }
        // Below MOST.
        let index = usize::try_from(index).unwrap_or(0);
        if index >= self.slices.len() {
            self.slices.resize(index + 1, Slice::default());
        }
        match self.slices.get_mut(index) {
            Some(slice) => slice,
            None => unreachable!("the intervals were just made to reach {index}"),
        }
    }

    /// Makes one of each two intervals.
    fn halve(&mut self) {
        self.interval = self
            .interval
            .saturating_mul(const { NonZeroU64::new(2).unwrap() });
        let mut into = 0;
        for from in (0..self.slices.len()).step_by(2) {
            let mut slice = self.slices[from];
            if let Some(second) = self.slices.get(from + 1) {
                slice.add(*second);
            }
            self.slices[into] = slice;
            into += 1;
        }
        self.slices.truncate(into);
    }

    /// The length of an interval, in ns.
    #[must_use]
    pub const fn interval(&self) -> u64 {
        self.interval.get()
    }

    /// The intervals, from the start. The last is usually cut short by the end.
    #[must_use]
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The throughput of each whole interval: the last one is left out.
    pub fn throughputs(&self) -> impl Iterator<Item = Throughput> + '_ {
        let whole = self.slices.len().saturating_sub(1);
        self.slices.iter().take(whole).map(|slice| Throughput {
            messages: slice.messages,
            bytes: slice.bytes,
            elapsed: self.interval(),
        })
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use super::Timeline;

    #[test]
    fn however_long_it_runs_nothing_is_lost() {
        let mut line = Timeline::new(NonZeroU64::new(10).expect("positive"));
        for at in 0..100_000 {
            line.record(at, 1, 64, (at % 2 == 0).then_some(at));
        }
        assert!(line.slices().len() <= Timeline::MOST);
        assert_eq!(line.interval(), 160);
        assert_eq!(
            line.slices()
                .iter()
                .map(|slice| slice.messages)
                .sum::<u64>(),
            100_000
        );
        let first = line.slices()[0].latency.expect("timed");
        assert_eq!((first.count, first.min, first.max), (80, 0, 158));
        assert_eq!(line.throughputs().count(), 624);
        assert!(line.throughputs().all(|rate| rate.bytes == 160 * 64));
    }

    #[test]
    fn what_comes_after_a_silence_is_in_its_place() {
        let mut line = Timeline::new(NonZeroU64::new(10).expect("positive"));
        line.record(5, 1, 1, None);
        line.record(u64::MAX, 1, 1, None);
        assert!(line.slices().len() <= Timeline::MOST);
        assert_eq!(
            line.slices()
                .iter()
                .filter(|slice| slice.messages == 1)
                .count(),
            2
        );
    }
}
