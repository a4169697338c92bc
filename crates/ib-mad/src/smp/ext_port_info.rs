//! The vendor attribute that tells FDR10 from QDR.

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::assert_layout;

/// Link speeds that only this attribute knows.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct MlnxLinkSpeed {
    #[bits(7)]
    __: u8,
    /// 10.3125 Gb/s a lane.
    pub fdr10: bool,
}

/// Mellanox ExtendedPortInfo, attribute 0xff90, where asked about one port.
///
/// ```text
/// 3  state change enable
/// 7  link speed supported   11 link speed enabled   15 link speed active
/// ```
#[doc(alias = "ib_mlnx_ext_port_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct MlnxExtPortInfo {
    /// Reserved.
    pub reserved0: [u8; 3],
    /// 1: a Set changes what is enabled.
    pub state_change_enable: u8,
    /// Reserved.
    pub reserved1: [u8; 3],
    /// What the port can.
    pub supported: MlnxLinkSpeed,
    /// Reserved.
    pub reserved2: [u8; 3],
    /// What it may.
    pub enabled: MlnxLinkSpeed,
    /// Reserved.
    pub reserved3: [u8; 3],
    /// What it does.
    pub active: MlnxLinkSpeed,
    /// Reserved.
    pub reserved4: [u8; 48],
}
assert_layout!(MlnxExtPortInfo, 64);
