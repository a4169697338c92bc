//! When a request should start, where the rate is limited.

use core::num::NonZeroU64;

/// A fixed rate of requests.
///
/// Where a slow answer delays the requests after it, their waiting is part of what a user would
/// have seen. Measured from when they were really posted it is lost ("coordinated omission"):
/// measured from [`Pace::start`] it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    per_second: NonZeroU64,
}

impl Pace {
    /// So many requests a second.
    #[must_use]
    pub const fn new(per_second: NonZeroU64) -> Self {
        Self { per_second }
    }

    /// When request `index`, from 0, should start: ns after the first. It does not drift.
    #[must_use]
    pub fn start(self, index: u64) -> u64 {
        let start = u128::from(index) * 1_000_000_000 / u128::from(self.per_second.get());
        u64::try_from(start).unwrap_or(u64::MAX)
    }

    /// How many requests should have started by `now`, in ns after the first.
    #[must_use]
    pub fn due(self, now: u64) -> u64 {
        let due = (u128::from(now) + 1) * u128::from(self.per_second.get());
        u64::try_from(due.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
    }

    /// How long request `index` took as its user sees it, when it was done at `done`.
    #[must_use]
    pub fn latency(self, index: u64, done: u64) -> u64 {
        done.saturating_sub(self.start(index))
    }
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU64;

    use proptest::prelude::*;

    use super::Pace;

    proptest! {
        #[test]
        fn what_is_due_has_started(rate in 1_u64..10_000_000_000, now in 0_u64..1 << 45) {
            let pace = Pace::new(NonZeroU64::new(rate).expect("positive"));
            let due = pace.due(now);
            prop_assert!(pace.start(due - 1) <= now);
            prop_assert!(pace.start(due) > now);
        }
    }

    #[test]
    fn a_stall_is_seen_by_all_who_waited() {
        // 1000 a second; an answer takes 10 µs, but nothing is answered between 10 and 20 ms.
        let pace = Pace::new(NonZeroU64::new(1000).expect("positive"));
        let mut free = 0;
        let mut long = 0;
        for i in 0..100 {
            let posted = pace.start(i).max(free);
            let done = posted + 10_000;
            free = if (10_000_000..20_000_000).contains(&done) {
                20_000_000
            } else {
                done
            };
            long += u32::from(pace.latency(i, free) > 500_000);
        }
        // From when they were posted, one is long.
        assert_eq!(long, 10);
    }
}
