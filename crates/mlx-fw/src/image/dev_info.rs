//! DEV_INFO: the addresses and the VSD of one device.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be32, Be64, assert_layout};

use super::{crc, toc::low_half};

/// What a valid DEV_INFO of FS4 starts with. Of its two copies one carries it.
pub const SIGNATURE: [u8; 16] = *b"mDevInfo\x23\x42\xca\xfa\xba\xca\xfe\x00";

/// A range of addresses: GUIDs or MACs.
///
/// | offset | field |
/// |---|---|
/// | 0x0 | high byte of the number (16-23), step (8-15), number (0-7) |
/// | 0x8 | the first address |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_uid_entry")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct UidEntry {
    pub reserved0: u8,
    pub num_allocated_msb: u8,
    pub step: u8,
    pub num_allocated: u8,
    pub reserved1: Be32,
    pub uid: Be64,
}
assert_layout!(UidEntry, 16);

impl UidEntry {
    /// A range of `count` addresses from `uid` on.
    #[must_use]
    pub const fn new(uid: u64, count: u16, step: u8) -> Self {
        let [num_allocated_msb, num_allocated] = count.to_be_bytes();
        Self {
            reserved0: 0,
            num_allocated_msb,
            step,
            num_allocated,
            reserved1: Be32::ZERO,
            uid: Be64::new(uid),
        }
    }

    /// How many addresses there are, with the high byte that newer images have.
    #[must_use]
    pub const fn count(&self) -> u16 {
        u16::from_be_bytes([self.num_allocated_msb, self.num_allocated])
    }
}

/// The addresses of a device, all 64 bytes of them; which form they have is said elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_guids")]
pub struct UidBlock(pub [UidEntry; 4]);
assert_layout!(UidBlock, 0x40);

/// The addresses of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uids {
    /// One base each; all ports count from it. ConnectX-4 and later.
    Base {
        /// The GUIDs.
        guid: UidEntry,
        /// The MACs.
        mac: UidEntry,
    },
    /// A base for each of two ports. Connect-IB and Switch-IB.
    PerPort {
        /// The GUIDs of port 1 and 2.
        guids: [UidEntry; 2],
        /// The MACs of port 1 and 2.
        macs: [UidEntry; 2],
    },
}

impl UidBlock {
    /// Read as one base for GUIDs and one for MACs.
    #[must_use]
    pub const fn base(&self) -> Uids {
        let Self([guid, mac, ..]) = *self;
        Uids::Base { guid, mac }
    }

    /// Read as a base for each port.
    #[must_use]
    pub const fn per_port(&self) -> Uids {
        let Self([guid1, guid2, mac1, mac2]) = *self;
        Uids::PerPort {
            guids: [guid1, guid2],
            macs: [mac1, mac2],
        }
    }
}

/// The section DEV_INFO.
///
/// | offset | field |
/// |---|---|
/// | 0x000 | signature |
/// | 0x010 | major (8-15), minor (0-7) |
/// | 0x020 | addresses |
/// | 0x06c | VSD vendor (0-15) |
/// | 0x070 | VSD |
/// | 0x160 | operation keys |
/// | 0x1fc | CRC of all before (0-15) |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_device_info")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct DevInfo {
    pub signature: [u8; 16],
    pub reserved0: Be16,
    pub major_version: u8,
    pub minor_version: u8,
    pub reserved1: [Be32; 3],
    pub uids: UidBlock,
    pub reserved2: [Be32; 3],
    pub reserved3: Be16,
    pub vsd_vendor_id: Be16,
    pub vsd: [u8; 208],
    pub reserved4: [Be32; 8],
    pub keys: [Be32; 16],
    pub reserved5: [Be32; 23],
    pub crc: Be32,
}
assert_layout!(DevInfo, 0x200);

impl DevInfo {
    /// Whether it is the copy that counts (FS4).
    #[must_use]
    pub fn is_signed(&self) -> bool {
        self.signature == SIGNATURE
    }

    /// The addresses, or nothing for a version that isn't known.
    #[must_use]
    pub const fn uids(&self) -> Option<Uids> {
        match self.major_version {
            1 => Some(self.uids.per_port()),
            2 => Some(self.uids.base()),
            _ => None,
        }
    }

    /// Its own CRC: computed, stored.
    #[must_use]
    pub fn crcs(&self) -> (u16, u16) {
        let [head @ .., _, _, _, _] = bytemuck::bytes_of(self) else {
            return (0, 1);
        };
        (crc::sw(head), low_half(self.crc))
    }

    /// The section with its CRC set right.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.crc = Be32::new(u32::from(self.crcs().0));
        self
    }
}
