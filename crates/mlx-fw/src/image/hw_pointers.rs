//! The hardware pointers of FS4: where the parts are that are found before any table is read.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be32, assert_layout};

use super::{crc, toc::low_half};

/// Where the pointers stand, from the start of the image.
pub const OFFSET: u64 = 0x18;

/// A pointer and its CRC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_hw_pointer_entry")]
pub struct HwPointer {
    /// The address, from the start of the image; 0 or all ones where there is nothing.
    pub address: Be32,
    /// The CRC in the low half.
    pub crc: Be32,
}
assert_layout!(HwPointer, 8);

/// All sixteen pointers, in the order of the "carmel" layout. ConnectX-5 and its like leave those
/// from [`HwPointers::fw_window_start`] on empty.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_hw_pointers_carmel")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct HwPointers {
    pub boot_record: HwPointer,
    pub boot2: HwPointer,
    pub itoc: HwPointer,
    pub tools_area: HwPointer,
    pub authentication_start: HwPointer,
    pub authentication_end: HwPointer,
    pub digest: HwPointer,
    pub digest_recovery_key: HwPointer,
    pub fw_window_start: HwPointer,
    pub fw_window_end: HwPointer,
    pub image_info: HwPointer,
    pub image_signature: HwPointer,
    pub public_key: HwPointer,
    pub fw_security_version: HwPointer,
    pub gcm_iv_delta: HwPointer,
    pub hashes_table: HwPointer,
}
assert_layout!(HwPointers, 16 * 8);

impl HwPointer {
    /// A pointer with the CRC that the hardware checks.
    #[must_use]
    pub fn new(address: u32) -> Self {
        let [a, b, c, d] = address.to_be_bytes();
        Self {
            address: Be32::new(address),
            crc: Be32::new(u32::from(crc::hw([a, b, c, d, 0, 0]))),
        }
    }

    /// The address, where there is one.
    #[must_use]
    pub fn target(self) -> Option<u64> {
        match self.value() {
            0 => None,
            address => Some(u64::from(address)),
        }
    }

    /// The address as a number; all ones count as 0.
    #[must_use]
    pub const fn value(self) -> u32 {
        match self.address.get() {
            u32::MAX => 0,
            address => address,
        }
    }

    /// The CRC: computed, stored. Of the two ways to compute it, the one that fits; an empty
    /// pointer of all ones has none.
    #[must_use]
    pub fn crcs(self) -> (u32, u32) {
        if self.address.get() == u32::MAX {
            return (0, 0);
        }
        let stored = self.crc.get();
        let address = self.address.to_bytes();
        let sw = u32::from(crc::sw(&address));
        if sw == stored {
            return (sw, stored);
        }
        let [a, b, c, d] = address;
        let [e, f, ..] = self.crc.to_bytes();
        (u32::from(crc::hw([a, b, c, d, e, f])), stored)
    }
}

impl HwPointers {
    /// The pointers with their names, in their order.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, HwPointer); 16] {
        [
            ("boot_record", self.boot_record),
            ("boot2", self.boot2),
            ("itoc", self.itoc),
            ("tools_area", self.tools_area),
            ("authentication_start", self.authentication_start),
            ("authentication_end", self.authentication_end),
            ("digest", self.digest),
            ("digest_recovery_key", self.digest_recovery_key),
            ("fw_window_start", self.fw_window_start),
            ("fw_window_end", self.fw_window_end),
            ("image_info", self.image_info),
            ("image_signature", self.image_signature),
            ("public_key", self.public_key),
            ("fw_security_version", self.fw_security_version),
            ("gcm_iv_delta", self.gcm_iv_delta),
            ("hashes_table", self.hashes_table),
        ]
    }
}

/// The tools area: which slot of the flash the image was made for.
///
/// | offset | field |
/// |---|---|
/// | 0x04 | log2 of the slot (16-31), binary version major (8-15), minor (0-7) |
/// | 0x3c | CRC of all before (0-15) |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_tools_area")]
pub struct ToolsArea {
    /// Version of the area: major (8-15), minor (0-7).
    pub version: Be32,
    /// log2 of the slot (16-31), binary version major (8-15), minor (0-7).
    pub slot_and_binary_version: Be32,
    /// Not used.
    pub reserved: [Be32; 13],
    /// The CRC in the low half.
    pub crc: Be32,
}
assert_layout!(ToolsArea, 0x40);

impl ToolsArea {
    /// log2 of the slot that the image takes in a failsafe flash.
    #[must_use]
    pub const fn log2_slot(&self) -> u16 {
        let [high, low, ..] = self.slot_and_binary_version.to_bytes();
        u16::from_be_bytes([high, low])
    }

    /// The version of the binary format: major, minor.
    #[must_use]
    pub const fn binary_version(&self) -> (u8, u8) {
        let [_, _, major, minor] = self.slot_and_binary_version.to_bytes();
        (major, minor)
    }

    /// The CRC: computed, stored.
    #[must_use]
    pub fn crcs(&self) -> (u16, u16) {
        let [head @ .., _, _, _, _] = bytemuck::bytes_of(self) else {
            return (0, 1);
        };
        (crc::sw(head), low_half(self.crc))
    }

    /// The area with its CRC set right.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.crc = Be32::new(u32::from(self.crcs().0));
        self
    }
}
