//! The descriptors of an MFA2 archive: type, length, value.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be32, Reader, assert_layout, open_enum};

use crate::Result;

open_enum! {
    /// What a TLV is.
    pub struct TlvType: u8 {
        /// Groups the TLVs that follow.
        MULTI_PART = 0x01,
        PACKAGE = 0x02,
        DEVICE = 0x03,
        COMPONENT = 0x04,
        USER_DATA = 0x05,
        /// A comment, or where the archive comes from.
        SOURCE = 0x20,
        VERSION = 0x21,
        COMPONENT_POINTER = 0x22,
        SHA256 = 0x27,
        PSID = 0x2a,
    }
}

/// The head of a TLV; the next one starts at a multiple of 4.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct TlvHeader {
    pub version: u8,
    pub kind: TlvType,
    /// Without this head.
    pub length: Be16,
}
assert_layout!(TlvHeader, 4);

/// What a [`TlvType::MULTI_PART`] carries.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct MultiPart {
    pub reserved: u8,
    /// How many TLVs follow the first one of the group.
    pub extensions: u8,
    /// The bytes of the group, counted without the padding between TLVs.
    pub total_length: Be16,
}
assert_layout!(MultiPart, 4);

/// What a [`TlvType::PACKAGE`] carries.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "mfa2_package_descriptor")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct PackageDescriptor {
    pub components: Be16,
    pub devices: Be16,
    /// Where the compressed block starts.
    pub block_offset: Be32,
    /// How long it is in the file.
    pub block_size: Be32,
    /// How long it says that it is unpacked; not to be trusted.
    pub unpacked_high: Be32,
    pub unpacked_low: Be32,
    /// 1 for xz.
    pub compression: u8,
    pub reserved: [u8; 3],
    pub user_data_offset: Be32,
}
assert_layout!(PackageDescriptor, 0x1c);

/// What a [`TlvType::COMPONENT`] carries.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "mfa2_component_descriptor")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct ComponentDescriptor {
    pub pldm_classification: Be16,
    /// 1 for firmware.
    pub identifier: Be16,
    pub offset_high: Be32,
    pub offset_low: Be32,
    pub size: Be32,
}
assert_layout!(ComponentDescriptor, 0x10);

/// What a [`TlvType::VERSION`] carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "version_extension")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct VersionTag {
    pub major: u8,
    /// The low byte of the minor: 2014 is 222.
    pub minor: u8,
    pub subminor: Be16,
    /// Decimal in newer packages, binary-coded decimal in components.
    pub year: Be16,
    /// From 1 in a component, from 0 in a package.
    pub month: u8,
    pub day: u8,
    pub hour: u8,
    pub minutes: u8,
    pub seconds: u8,
    pub reserved: u8,
}
assert_layout!(VersionTag, 0xc);

/// What a [`TlvType::COMPONENT_POINTER`] carries.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct ComponentPointer {
    pub reserved: u8,
    pub storage: u8,
    pub index: Be16,
    pub address: Be32,
}
assert_layout!(ComponentPointer, 8);

/// A TLV.
#[derive(Clone, Copy, Debug)]
pub struct Tlv<'a> {
    /// What it is.
    pub kind: TlvType,
    /// Where its value stands in the file.
    pub offset: u64,
    /// Its value.
    pub value: &'a [u8],
}

impl<'a> Tlv<'a> {
    /// Reads the next TLV and passes over the padding after it.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) where it is cut short.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self> {
        let header: &TlvHeader = reader.read("TLV")?;
        let offset = reader.offset();
        let value = reader.bytes("value of a TLV", header.length.get().into())?;
        reader.align(4);
        Ok(Self {
            kind: header.kind,
            offset,
            value,
        })
    }

    /// The value as a `T`.
    ///
    /// # Errors
    /// [`Error::Decode`](crate::Error::Decode) where it is too short for one.
    pub fn get<T: Pod>(&self, what: &'static str) -> Result<&'a T> {
        Ok(Reader::at(self.value, self.offset).read(what)?)
    }
}
