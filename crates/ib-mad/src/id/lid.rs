//! Local identifiers (IBTA 4.1.3).

use core::fmt;

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, assert_layout};

/// A local identifier: the address of a port within its subnet.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Lid(Be16);
assert_layout!(Lid, 2);

/// What a LID may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LidKind {
    /// 0: none has been assigned.
    Reserved,
    /// 1 to 0xbfff: one port.
    Unicast,
    /// 0xc000 to 0xfffe: a multicast group.
    Multicast,
    /// 0xffff: whoever is there, for directed routes.
    Permissive,
}

impl Lid {
    /// None has been assigned.
    pub const RESERVED: Self = Self::new(0);
    /// Whoever is there.
    pub const PERMISSIVE: Self = Self::new(0xffff);

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

    /// What it may be used for.
    #[must_use]
    pub const fn kind(self) -> LidKind {
        match self.get() {
            0 => LidKind::Reserved,
            0xffff => LidKind::Permissive,
            0xc000.. => LidKind::Multicast,
            _ => LidKind::Unicast,
        }
    }
}

impl From<u16> for Lid {
    fn from(value: u16) -> Self {
        Self::new(value)
    }
}

impl fmt::Display for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.get(), f)
    }
}

impl fmt::Debug for Lid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.get(), f)
    }
}
