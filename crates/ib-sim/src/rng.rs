//! The only source of chance: a seeded generator, so that a run can be repeated.

/// A small seeded generator (SplitMix64, Steele, Lea and Flood 2014).
///
/// The same seed gives the same numbers on every machine. Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// A generator that starts at `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; 0 where `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product: unbiased enough for a simulator, and without a division.
        let wide = u128::from(self.next()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// An index below `len`; 0 where `len` is 0.
    pub fn index(&mut self, len: usize) -> usize {
        let bound = u64::try_from(len).unwrap_or(u64::MAX);
        usize::try_from(self.below(bound)).unwrap_or(0)
    }

    /// True in `parts` of a million cases.
    pub fn chance(&mut self, parts: u32) -> bool {
        // Without a draw where the answer is certain, so that switching a fault off does not
        // shift the numbers that other faults see.
        match parts {
            0 => false,
            1_000_000.. => true,
            _ => self.below(1_000_000) < u64::from(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn the_numbers_never_change() {
        let mut rng = Rng::new(1);
        assert_eq!(rng.next(), 0x910a_2dec_8902_5cc1);
        let mut rng = Rng::new(0);
        assert_eq!(rng.next(), 0xe220_a839_7b1d_cdaf);
    }

    #[test]
    fn a_bound_is_kept() {
        let mut rng = Rng::new(7);
        assert!((0..1000).all(|_| rng.below(3) < 3));
        assert_eq!(rng.below(0), 0);
        let hits = (0..100_000).filter(|_| rng.chance(250_000)).count();
        assert!((24_000..26_000).contains(&hits), "{hits}");
    }
}
