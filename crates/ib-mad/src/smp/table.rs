//! Tables of switches and ports, block by block (IBTA 14.2.5.7 to 14.2.5.12), and the attribute
//! modifiers that choose a block.

use bytemuck::{Pod, Zeroable};
use rdma_wire::assert_layout;

use crate::id::PKey;

/// A block of a linear forwarding table: out-ports of 64 LIDs; 255 is none.
#[doc(alias = "IB_LINEAR_FORW_TBL_F")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct LinearForwarding(pub [u8; 64]);
assert_layout!(LinearForwarding, 64);

/// A block of a multicast forwarding table: 16 ports of 32 multicast LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct MulticastForwarding(pub [rdma_wire::Be16; 32]);
assert_layout!(MulticastForwarding, 64);

impl MulticastForwarding {
    /// The modifier: ports from `16 · position` on, of the 32 multicast LIDs of a block.
    #[must_use]
    pub const fn modifier(position: u8, block: u16) -> u32 {
        (position as u32) << 28 | block as u32 & 0x1ff
    }
}

/// Which virtual lane packets of a service level take, from one port of a switch to another.
#[doc(alias = "ib_slvl_table")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct SlToVl([u8; 8]);
assert_layout!(SlToVl, 8);

impl SlToVl {
    /// Lanes by service level.
    #[must_use]
    pub fn new(lanes: &[u8; 16]) -> Self {
        let mut bytes = [0; 8];
        for (byte, pair) in bytes.iter_mut().zip(lanes.chunks_exact(2)) {
            if let [high, low] = pair {
                *byte = (high & 15) << 4 | low & 15;
            }
        }
        Self(bytes)
    }

    /// Lanes by service level.
    #[must_use]
    pub fn lanes(&self) -> [u8; 16] {
        let mut lanes = [0; 16];
        for (pair, byte) in lanes.chunks_exact_mut(2).zip(self.0) {
            if let [high, low] = pair {
                (*high, *low) = (byte >> 4, byte & 15);
            }
        }
        lanes
    }

    /// The modifier for packets that come in at one port of a switch and go out at another.
    #[must_use]
    pub const fn modifier(input: u8, output: u8) -> u32 {
        (input as u32) << 8 | output as u32
    }
}

/// A lane's share of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct VlWeight {
    /// The lane; the upper half of the byte is reserved.
    pub vl: u8,
    /// In units of 64 bytes.
    pub weight: u8,
}

/// Half of an arbitration table.
#[doc(alias = "ib_vl_arb_table")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct VlArbitration(pub [VlWeight; 32]);
assert_layout!(VlArbitration, 64);

impl VlArbitration {
    /// The modifier: lower half 1 and upper half 2 of the low-priority table, 3 and 4 of the
    /// high-priority one.
    #[must_use]
    pub const fn modifier(part: u8, port: u8) -> u32 {
        (part as u32) << 16 | port as u32
    }
}

/// A block of a partition table.
#[doc(alias = "ib_pkey_table")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct PKeyTable(pub [PKey; 32]);
assert_layout!(PKeyTable, 64);

impl PKeyTable {
    /// The modifier: a block of a port of a switch; the port is 0 elsewhere.
    #[must_use]
    pub const fn modifier(port: u8, block: u16) -> u32 {
        (port as u32) << 16 | block as u32
    }
}
