//! What the kernel wants to read and write (`rdma/ib_user_mad.h`, ABI version 5).

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be32};

/// `_IO(0x1b, 3)`: the header has a P_Key index from here on.
pub(super) const ENABLE_PKEY: libc::c_ulong = 0x1b03;
/// `_IOWR(0x1b, 1, struct ib_user_mad_reg_req)`.
pub(super) const REGISTER_AGENT: libc::c_ulong = 0xc01c_1b01;
/// `_IOWR(0x1b, 4, struct ib_user_mad_reg_req2)`.
pub(super) const REGISTER_AGENT2: libc::c_ulong = 0xc028_1b04;
/// `_IOW(0x1b, 2, u32)`.
pub(super) const UNREGISTER_AGENT: libc::c_ulong = 0x4004_1b02;

/// The length of the header before the P_Key index was added to it.
pub(super) const OLD_HEADER_LEN: usize = 56;

/// What stands before every MAD.
#[doc(alias = "ib_user_mad_hdr")]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct UserMadHeader {
    pub(super) agent: u32,
    pub(super) status: u32,
    pub(super) timeout_ms: u32,
    pub(super) retries: u32,
    pub(super) length: u32,
    pub(super) qpn: Be32,
    pub(super) qkey: Be32,
    pub(super) lid: Be16,
    pub(super) sl: u8,
    pub(super) path_bits: u8,
    pub(super) grh_present: u8,
    pub(super) gid_index: u8,
    pub(super) hop_limit: u8,
    pub(super) traffic_class: u8,
    pub(super) gid: [u8; 16],
    pub(super) flow_label: Be32,
    pub(super) pkey_index: u16,
    pub(super) reserved: [u8; 6],
}
const _: () = assert!(size_of::<UserMadHeader>() == 64);

/// Registers for a class of MADs, the old way.
#[doc(alias = "ib_user_mad_reg_req")]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RegisterRequest {
    pub(super) id: u32,
    pub(super) method_mask: [u32; 4],
    pub(super) qpn: u8,
    pub(super) class: u8,
    pub(super) class_version: u8,
    pub(super) oui: [u8; 3],
    pub(super) rmpp_version: u8,
    pub(super) pad: u8,
}
const _: () = assert!(size_of::<RegisterRequest>() == 28);

/// Registers for a class of MADs.
#[doc(alias = "ib_user_mad_reg_req2")]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct RegisterRequest2 {
    pub(super) id: u32,
    pub(super) qpn: u32,
    pub(super) class: u8,
    pub(super) class_version: u8,
    pub(super) reserved: u16,
    pub(super) flags: u32,
    pub(super) method_mask: [u64; 2],
    pub(super) oui: u32,
    pub(super) rmpp_version: u8,
    pub(super) reserved2: [u8; 3],
}
const _: () = assert!(size_of::<RegisterRequest2>() == 40);
