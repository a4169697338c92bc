//! Who a node is (IBTA 14.2.5.3).

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be24, Be32, assert_layout, open_enum};

use crate::id::Guid;

open_enum! {
    /// What kind of node it is.
    #[doc(alias = "IB_NODE_TYPE_CA")]
    pub struct NodeType: u8 {
        CA = 1 => "CA",
        SWITCH = 2 => "switch",
        ROUTER = 3 => "router",
    }
}

/// NodeInfo.
///
/// ```text
/// 0  base version   1  class version   2  node type   3  number of ports
/// 4  system image GUID
/// 12 node GUID
/// 20 port GUID: of the port that answers; of a switch, of its port 0
/// 28 partition cap   30 device id
/// 32 revision
/// 36 local port number: through which the request came in   37 vendor id
/// ```
#[doc(alias = "ib_node_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct NodeInfo {
    /// 1.
    pub base_version: u8,
    /// 1.
    pub class_version: u8,
    /// What kind of node it is.
    pub node_type: NodeType,
    /// Physical ports; port 0 of a switch is not counted.
    pub num_ports: u8,
    /// What the nodes of one box share; 0 where there is none.
    pub system_image_guid: Guid,
    /// The node's own.
    pub node_guid: Guid,
    /// The answering port's; of a switch, its port 0's.
    pub port_guid: Guid,
    /// Entries in a port's partition table.
    pub partition_cap: Be16,
    /// The vendor's number for the device.
    pub device_id: Be16,
    /// The vendor's number for its revision.
    pub revision: Be32,
    /// Through which port the request came in.
    pub local_port: u8,
    /// The vendor (an OUI).
    pub vendor_id: Be24,
}
assert_layout!(NodeInfo, 40);
