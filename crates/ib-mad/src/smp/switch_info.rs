//! What a switch can hold (IBTA 14.2.5.4).

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, assert_layout};

/// Byte 11 of SwitchInfo.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct SwitchLife {
    /// How long a packet may live in the switch: 4.096 µs · 2^value; from 20 on for ever.
    #[bits(5)]
    pub life_time: u8,
    /// A port changed its state since this bit was cleared; writing 1 clears it.
    pub port_state_change: bool,
    /// Whether and how SL to VL tables may be written for many ports at once.
    #[bits(2)]
    pub optimized_sl_to_vl: u8,
}

/// Byte 16 of SwitchInfo.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct SwitchFlags {
    /// Can drop packets of foreign partitions that come in.
    pub inbound_enforcement: bool,
    /// Can drop packets of foreign partitions that go out.
    pub outbound_enforcement: bool,
    /// Can drop raw packets that come in.
    pub filter_raw_inbound: bool,
    /// Can drop raw packets that go out.
    pub filter_raw_outbound: bool,
    /// Port 0 is a port like any other, with a GUID table and data traffic.
    pub enhanced_port0: bool,
    #[bits(3)]
    __: u8,
}

/// SwitchInfo.
///
/// ```text
/// 0  LinearFDBCap   2  RandomFDBCap   4  MulticastFDBCap   6  LinearFDBTop
/// 8  DefaultPort    9  DefaultMulticastPrimaryPort   10 DefaultMulticastNotPrimaryPort   11 life time, change
/// 12 LIDsPerPort    14 PartitionEnforcementCap   16 flags   17 reserved   18 MulticastFDBTop
/// ```
#[doc(alias = "ib_switch_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SwitchInfo {
    /// Unicast LIDs that the linear table has room for.
    pub linear_fdb_cap: Be16,
    /// Entries of the random table; 0 where there is none.
    pub random_fdb_cap: Be16,
    /// Multicast LIDs that the multicast table has room for.
    pub multicast_fdb_cap: Be16,
    /// The last LID of the linear table that counts.
    pub linear_fdb_top: Be16,
    /// For the random table.
    pub default_port: u8,
    /// Where multicast goes that has no entry.
    pub default_multicast_primary: u8,
    /// The same, for what came in through the primary port.
    pub default_multicast_not_primary: u8,
    /// Life time and the change bit.
    pub life: SwitchLife,
    /// For the random table.
    pub lids_per_port: Be16,
    /// Entries of a partition enforcement table.
    pub partition_enforcement_cap: Be16,
    /// What it can.
    pub flags: SwitchFlags,
    /// Reserved.
    pub reserved: u8,
    /// The last multicast LID of the table that counts.
    pub multicast_fdb_top: Be16,
}
assert_layout!(SwitchInfo, 20);
