//! The GUIDs that a port answers to (IBTA 14.2.5.5).

use bytemuck::{Pod, Zeroable};
use rdma_wire::assert_layout;

use crate::id::Guid;

/// A block of 8 GUIDs; the first of block 0 is the port's own and read-only.
#[doc(alias = "ib_guid_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub struct GuidInfo(pub [Guid; 8]);
assert_layout!(GuidInfo, 64);
