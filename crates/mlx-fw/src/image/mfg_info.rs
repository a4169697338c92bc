//! MFG_INFO: what the device was made as.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be32, assert_layout};

use super::dev_info::{UidBlock, Uids};
use crate::Psid;

/// The section MFG_INFO.
///
/// | offset | field |
/// |---|---|
/// | 0x00 | PSID |
/// | 0x1c | major (24-31), minor (16-23), guids_override_en (0) |
/// | 0x20 | addresses |
/// | 0x60 | PRS name, where minor is 1 |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_mfg_info")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct MfgInfo {
    pub psid: [u8; 16],
    pub reserved0: [Be32; 3],
    pub major_version: u8,
    pub minor_version: u8,
    pub reserved1: u8,
    /// guids_override_en in the lowest bit.
    pub flags: u8,
    pub uids: UidBlock,
    pub prs_name: [u8; 96],
    pub reserved2: [Be32; 32],
}
assert_layout!(MfgInfo, 0x140);

impl MfgInfo {
    /// The PSID that the device was made with.
    #[must_use]
    pub fn psid(&self) -> Psid {
        Psid::from_bytes(self.psid)
    }

    /// The addresses that the device was made with, or nothing for a version that isn't known.
    #[must_use]
    pub const fn uids(&self) -> Option<Uids> {
        match self.major_version {
            0 => Some(self.uids.per_port()),
            1 => Some(self.uids.base()),
            _ => None,
        }
    }
}
