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
    const LONGEST_PENALTY: u32 = 127;

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

    /// It leaves with a request.
    pub(super) fn carried(&mut self, now: Time) {
        match self.since.take() {
            Some(since) if now.since(since) > Self::SHORT_NS => self.penalize(),
            Some(_) => self.penalty = 0,
            None => {}
        }
    }

    /// It leaves by itself, since the user looks for more before it answers.
    pub(super) fn released(&mut self, now: Time) {
        if self
            .since
            .take()
            .is_some_and(|since| now.since(since) > Self::SHORT_NS)
        {
            self.penalize();
        }
    }

    /// It leaves by itself, since there was no answer in time.
    pub(super) fn in_vain(&mut self) {
        if self.since.take().is_some() {
            self.penalize();
        }
    }

    fn penalize(&mut self) {
        self.penalty = (2 * self.penalty + 1).min(Self::LONGEST_PENALTY);
        self.skip = self.penalty;
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
            if holding.hold(Time(round * 1_000_000)) {
                held += 1;
                holding.in_vain();
            }
        }
        assert_eq!(held, 13);
    }

    #[test]
    fn what_was_carried_at_once_is_held_again() {
        let mut holding = Holding::default();
        for round in 0..100 {
            let now = Time(round * 1_000_000);
            assert!(holding.hold(now) && holding.is_held());
            holding.carried(now.after(5_000));
            assert!(!holding.is_held());
        }
    }
}
