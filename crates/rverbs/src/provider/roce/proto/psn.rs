//! Packet sequence numbers: 24 bits that wrap.

use core::fmt;

/// A packet sequence number.
///
/// Which of two comes first is only defined within half of the space: see [`Psn::cmp_to`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// How many there are.
    pub const SPACE: u32 = 1 << 24;

    /// Keeps the low 24 bits.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        Self(value & 0x00ff_ffff)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `n` further on.
    #[must_use]
    pub const fn plus(self, n: u32) -> Self {
        Self::new(self.0.wrapping_add(n))
    }

    /// The number before.
    #[must_use]
    pub const fn prev(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// How far on from `other`: negative if it lies within the half space behind.
    #[must_use]
    pub const fn cmp_to(self, other: Self) -> i32 {
        // The sign of the 24-bit difference, by shifting it to the top of an i32.
        (self.0.wrapping_sub(other.0) << 8).cast_signed() >> 8
    }

    /// How many numbers lie from `earlier` up to this one.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & 0x00ff_ffff
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn distance_is_what_was_added(start in 0..Psn::SPACE, n in 0u32..1 << 23) {
            let a = Psn::new(start);
            let b = a.plus(n);
            prop_assert_eq!(b.since(a), n);
            prop_assert_eq!(b.cmp_to(a), n.cast_signed());
            prop_assert_eq!(a.cmp_to(b), -n.cast_signed());
        }
    }

    #[test]
    fn wraps() {
        assert_eq!(Psn::new(0xff_ffff).plus(1), Psn::new(0));
        assert_eq!(Psn::new(0).prev(), Psn::new(0xff_ffff));
    }
}
