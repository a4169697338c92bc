//! Partition keys (IBTA 10.9).

use core::fmt;

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, assert_layout};

/// A partition and whether a port is a full member of it.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct PKey(Be16);
assert_layout!(PKey, 2);

impl PKey {
    /// Full membership of the default partition.
    pub const DEFAULT: Self = Self::new(0xffff);

    /// From the number.
    #[must_use]
    pub const fn new(value: u16) -> Self {
        Self(Be16::new(value))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }

    /// The partition, without the membership bit.
    #[must_use]
    pub const fn partition(self) -> u16 {
        self.get() & 0x7fff
    }

    /// Full members talk to all, limited members to full members only.
    #[must_use]
    pub const fn is_full(self) -> bool {
        self.get() & 0x8000 != 0
    }
}

impl fmt::Display for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.get())
    }
}

impl fmt::Debug for PKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
