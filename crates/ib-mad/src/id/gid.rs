//! Global identifiers: an IPv6 address made of subnet prefix and port GUID.

use core::fmt;
use core::net::Ipv6Addr;

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be64, assert_layout};

use super::Guid;

/// The address of a port across subnets.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Gid {
    /// The subnet's prefix; `fe80::` where nobody has set one.
    pub prefix: Be64,
    /// The port's GUID, or an alias.
    pub guid: Guid,
}
assert_layout!(Gid, 16);

impl Gid {
    /// The prefix of a subnet that has been given none.
    pub const DEFAULT_PREFIX: u64 = 0xfe80_0000_0000_0000;

    /// From its two halves.
    #[must_use]
    pub const fn new(prefix: u64, guid: Guid) -> Self {
        Self {
            prefix: Be64::new(prefix),
            guid,
        }
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = (u128::from(self.prefix.get()) << 64) | u128::from(self.guid.get());
        fmt::Display::fmt(&Ipv6Addr::from(bits), f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
