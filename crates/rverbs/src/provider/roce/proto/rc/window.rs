//! How many packets may be under way: our answer to loss and to congestion notifications.

use super::super::time::Time;

/// Halves on loss, shrinks on a notification, grows by one each time it went round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    size: u32,
    max: u32,
    credit: u32,
    last_cut: Time,
}

impl Window {
    /// Notifications closer together than this count as one.
    const CUT_INTERVAL_NS: u64 = 50_000;

    pub(super) const fn new(max: u32) -> Self {
        let max = if max == 0 { 1 } else { max };
        Self {
            size: max,
            max,
            credit: 0,
            last_cut: Time::ZERO,
        }
    }

    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn acked(&mut self, packets: u32) {
        if self.size < self.max {
            self.credit = self.credit.saturating_add(packets);
            if self.credit >= self.size {
                self.credit = 0;
                self.size += 1;
            }
        }
    }

    pub(super) fn lost(&mut self) {
        self.size = (self.size / 2).max(4.min(self.max));
        self.credit = 0;
    }

    pub(super) fn congested(&mut self, now: Time) {
        if now.since(self.last_cut) >= Self::CUT_INTERVAL_NS || self.last_cut == Time::ZERO {
            self.size = (self.size * 3 / 4).max(1);
            self.credit = 0;
            self.last_cut = now;
        }
    }
}
