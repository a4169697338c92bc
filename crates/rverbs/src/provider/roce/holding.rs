//! Whether an acknowledgement waits for a request to travel with.

use super::proto::Time;

/// Acknowledgements held back, and what became of them.
///
/// Who learns of a message most often answers at once, and one burst then carries both. Who does not would
/// only make the peer wait, so that is tried more seldom each time it was in vain.
#[derive(Debug, Default)]
pub(super) struct Holding {
    since: Option<Time>,
    /// How many are sent at once before one is held again.
    skip: u32,
    /// What `skip` is after one that was held in vain.
    penalty: u32,
}

impl Holding {
    /// A request that leaves within this time was worth waiting for.
    const SHORT_NS: u64 = 500_000;
    const LONGEST_PENALTY: u32 = 1023;

    /// Whether one is held now.
    pub(super) const fn is_held(&self) -> bool {
        self.since.is_some()
    }

    /// Whether to hold the one that is owed now.
    pub(super) fn hold(&mut self, now: Time) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.since.get_or_insert(now);
        true
    }

    /// It leaves, `carried` by a request or by itself.
    pub(super) fn release(&mut self, now: Time, carried: bool) {
        let Some(since) = self.since.take() else {
            return;
        };
        if carried && now.since(since) <= Self::SHORT_NS {
            self.penalty = 0;
        } else if now.since(since) > Self::SHORT_NS {
            self.penalty = (2 * self.penalty + 1).min(Self::LONGEST_PENALTY);
            self.skip = self.penalty;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_vain_is_tried_more_seldom() {
        let mut holding = Holding::default();
        let mut held = 0;
        for round in 0..1000 {
            let now = Time(round * 1_000_000);
            if holding.hold(now) {
                held += 1;
                holding.release(now.after(700_000), false);
            }
        }
        assert_eq!(held, 9);
    }

    #[test]
    fn what_was_carried_at_once_is_held_again() {
        let mut holding = Holding::default();
        for round in 0..100 {
            let now = Time(round * 1_000_000);
            assert!(holding.hold(now) && holding.is_held());
            holding.release(now.after(5_000), true);
            assert!(!holding.is_held());
        }
    }
}
