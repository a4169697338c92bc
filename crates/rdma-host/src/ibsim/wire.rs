//! What stands on ibsim's sockets.

use bytemuck::{Pod, Zeroable};
use ib_mad::MAD_LEN;
use ib_mad::id::Lid;
use rdma_wire::{Be32, Be64, assert_layout};

/// What every control message starts with.
pub(super) const MAGIC: u32 = 0xdead_beef;

/// Bytes of a control message that its type gives a meaning.
pub(super) const CTL_DATA_LEN: usize = 64;

/// Types of control messages.
pub(super) mod ctl {
    pub(crate) const ERROR: u32 = 0;
    pub(crate) const CONNECT: u32 = 1;
    pub(crate) const DISCONNECT: u32 = 2;
    pub(crate) const GET_NODE_INFO: u32 = 7;
    pub(crate) const GET_PORT_INFO: u32 = 8;
    pub(crate) const SET_IS_SM: u32 = 9;
}

/// A control message, in the host's byte order, the same both ways.
#[doc(alias = "sim_ctl")]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Ctl {
    pub(super) magic: u32,
    pub(super) client_id: u32,
    pub(super) kind: u32,
    pub(super) len: u32,
    pub(super) data: [u8; CTL_DATA_LEN],
}

/// Data of a connect, both ways.
#[doc(alias = "sim_client_info")]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ClientInfo {
    /// There: what our data socket is called. Back: which client we are.
    pub(super) id: u32,
    pub(super) qp: u32,
    pub(super) is_sm: u32,
    /// There: the node's id or description. Back: its id.
    pub(super) node: [u8; 32],
}

/// A MAD on its way.
///
/// ```text
/// 0 dlid   4 slid (each big-endian in its first two bytes)
/// 8 destination QP   12 source QP   16 status   20 padding   24 length   32 MAD
/// ```
#[doc(alias = "sim_request")]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct SimPacket {
    pub(super) dlid: Lid,
    pub(super) pad0: [u8; 2],
    pub(super) slid: Lid,
    pub(super) pad1: [u8; 2],
    pub(super) dqp: Be32,
    pub(super) sqp: Be32,
    pub(super) status: Be32,
    pub(super) pad2: [u8; 4],
    pub(super) length: Be64,
    pub(super) mad: [u8; MAD_LEN],
}
assert_layout!(SimPacket, 288);
