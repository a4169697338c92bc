//! Tables of contents: ITOC for the image, DTOC for the device's own data (FS4).

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be32, assert_layout};

use super::{SectionType, crc};

/// What an ITOC starts with, "ITOC" and three fixed words.
pub const ITOC_SIGNATURE: [u8; 16] = *b"ITOC\x04\x08\x15\x16\x23\x42\xca\xfa\xba\xca\xfe\x00";
/// What a DTOC starts with, "DTOC" and the same three words.
pub const DTOC_SIGNATURE: [u8; 16] = *b"DTOC\x04\x08\x15\x16\x23\x42\xca\xfa\xba\xca\xfe\x00";
/// How many entries a table has at most, counting the one that ends it.
pub const MAX_ENTRIES: usize = 64;
/// Header and entries have the same size, in bytes.
pub const ENTRY_SIZE: u64 = 0x20;

/// The head of a table of contents.
///
/// | offset | field |
/// |---|---|
/// | 0x00 | signature |
/// | 0x10 | flash layout version (24-31), version (0-7) |
/// | 0x14 | number of entries (0-7), FS4 only |
/// | 0x1c | CRC of all before (0-15) |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_itoc_header")]
pub struct TocHeader {
    /// [`ITOC_SIGNATURE`] or [`DTOC_SIGNATURE`].
    pub signature: [u8; 16],
    /// Flash layout version in the high byte, table version in the low one.
    pub versions: Be32,
    /// The number of entries in the low byte; FS3 leaves it 0.
    pub entries: Be32,
    /// Not used.
    pub reserved: Be32,
    /// The CRC in the low half.
    pub crc: Be32,
}
assert_layout!(TocHeader, 0x20);

/// Type and size of an entry.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
pub struct TypeAndSize {
    /// The type of the section.
    #[bits(8)]
    pub section: u8,
    /// The size in dwords.
    #[bits(22)]
    pub dwords: u32,
    #[bits(2)]
    __: u8,
}

/// Where a section is loaded to, and how it is stored.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
pub struct Param0 {
    /// Whether it is a zlib stream.
    pub zipped: bool,
    /// Whether each 64 bytes are followed by 4 bytes of CRC or authentication tag.
    pub cache_line_crc: bool,
    /// The load address.
    #[bits(30)]
    pub load_address: u32,
}

/// Where a section stands.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
pub struct FlashAddress {
    /// FS3: whether the address counts from the start of the image.
    pub relative: bool,
    /// The address in dwords.
    #[bits(29)]
    pub dwords: u32,
    #[bits(2)]
    __: u8,
}

/// How a section is checked.
///
/// FS3 has two flags, no_crc and device_data; FS4 has a mode of three bits in the same place.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
pub struct Check {
    /// FS4: whether the section is encrypted.
    pub encrypted: bool,
    #[bits(12)]
    __: u16,
    /// FS4: 0 the CRC is here, 1 none, 2 in the last dword of the section. FS3: no_crc in the
    /// lowest bit, device_data in the next.
    #[bits(3)]
    pub mode: u8,
    /// The CRC of the section.
    #[bits(16)]
    pub crc: u16,
}

/// One entry of a table of contents.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_itoc_entry")]
#[doc(alias = "cibfw_itoc_entry")]
pub struct TocEntry {
    /// 0x00: type and size.
    pub type_and_size: TypeAndSize,
    /// 0x04: load address and how it is stored.
    pub param0: Param0,
    /// 0x08: the entry point.
    pub param1: Be32,
    /// 0x0c: not used.
    pub reserved: Be32,
    /// 0x10: FS4: version in the low half.
    pub version: Be32,
    /// 0x14: the address.
    pub address: FlashAddress,
    /// 0x18: CRC and how to check.
    pub check: Check,
    /// 0x1c: CRC of the entry in the low half.
    pub crc: Be32,
}
assert_layout!(TocEntry, 0x20);

impl TocHeader {
    /// Whether the CRC of the header is what it must be: computed, stored.
    #[must_use]
    pub fn crcs(&self) -> (u16, u16) {
        let [head @ .., _, _, _, _] = bytemuck::bytes_of(self) else {
            return (0, 1);
        };
        (crc::sw(head), low_half(self.crc))
    }
}

impl TocEntry {
    /// The type of the section.
    #[must_use]
    pub const fn section(&self) -> SectionType {
        SectionType::new(self.type_and_size.section())
    }

    /// The size of the section in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        u64::from(self.type_and_size.dwords()) * 4
    }

    /// The address of the section in bytes.
    #[must_use]
    pub fn flash_address(&self) -> u64 {
        u64::from(self.address.dwords()) * 4
    }

    /// The CRC of the entry: computed, stored.
    #[must_use]
    pub fn crcs(&self) -> (u16, u16) {
        let [head @ .., _, _, _, _] = bytemuck::bytes_of(self) else {
            return (0, 1);
        };
        (crc::sw(head), low_half(self.crc))
    }

    /// The entry that ends a table.
    #[must_use]
    pub const fn end() -> Self {
        const ONES: Be32 = Be32::new(u32::MAX);
        Self {
            type_and_size: TypeAndSize::from_bits(ONES),
            param0: Param0::from_bits(ONES),
            param1: ONES,
            reserved: ONES,
            version: ONES,
            address: FlashAddress::from_bits(ONES),
            check: Check::from_bits(ONES),
            crc: ONES,
        }
    }

    /// The entry with its CRC set right.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.crc = Be32::new(u32::from(self.crcs().0));
        self
    }
}

impl TocHeader {
    /// The header with its CRC set right.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.crc = Be32::new(u32::from(self.crcs().0));
        self
    }
}

/// The low 16 bits of a dword.
pub(crate) const fn low_half(dword: Be32) -> u16 {
    let [_, _, high, low] = dword.to_bytes();
    u16::from_be_bytes([high, low])
}
