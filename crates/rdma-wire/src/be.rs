//! Big-endian integers of alignment 1.

use core::fmt;

use bytemuck::{Pod, Zeroable};

/// Everything but the two conversions, which [`Be24`] does its own way.
macro_rules! be_common {
    ($name:ident, $int:ty, $bytes:literal) => {
        impl $name {
            /// Zero.
            pub const ZERO: Self = Self([0; $bytes]);

            /// Changes the number in place.
            pub const fn set(&mut self, value: $int) {
                *self = Self::new(value);
            }

            /// The bytes as they stand on the wire.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; $bytes] {
                self.0
            }

            /// Takes the bytes as they stand on the wire.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $bytes]) -> Self {
                Self(bytes)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.get(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.get(), f)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.get(), f)
            }
        }

        impl fmt::UpperHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::UpperHex::fmt(&self.get(), f)
            }
        }

        impl From<$int> for $name {
            fn from(value: $int) -> Self {
                Self::new(value)
            }
        }

        impl From<$name> for $int {
            fn from(value: $name) -> Self {
                value.get()
            }
        }

        impl PartialEq<$int> for $name {
            fn eq(&self, other: &$int) -> bool {
                self.get() == *other
            }
        }
    };
}

macro_rules! be {
    ($($name:ident, $int:ty, $bytes:literal, $doc:literal;)*) => {$(
        #[doc = $doc]
        ///
        /// Alignment 1, so any byte slice of the right length can be viewed as one. Ordering and
        /// equality are those of the number.
        #[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
        #[repr(transparent)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// Puts the number into wire order.
            #[must_use]
            pub const fn new(value: $int) -> Self {
                Self(value.to_be_bytes())
            }

            /// The number.
            #[must_use]
            pub const fn get(self) -> $int {
                <$int>::from_be_bytes(self.0)
            }
        }

        be_common!($name, $int, $bytes);
    )*};
}

be! {
    Be16, u16, 2, "A 16-bit big-endian integer.";
    Be32, u32, 4, "A 32-bit big-endian integer.";
    Be64, u64, 8, "A 64-bit big-endian integer.";
    Be128, u128, 16, "A 128-bit big-endian integer, for GIDs.";
}

/// A 24-bit big-endian integer, for QPNs, PSNs and vendor ids.
///
/// Alignment 1. [`Be24::new`] keeps the low 24 bits, as arithmetic on PSNs wants.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Be24([u8; 3]);

impl Be24 {
    /// The largest number that fits.
    pub const MAX: u32 = 0x00ff_ffff;

    /// Puts the low 24 bits of the number into wire order.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        let [_, a, b, c] = value.to_be_bytes();
        Self([a, b, c])
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_be_bytes([0, a, b, c])
    }
}

be_common!(Be24, u32, 3);
