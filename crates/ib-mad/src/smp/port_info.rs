//! The state of a port (IBTA 14.2.5.6).

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be24, Be32, Be64, assert_layout, open_enum};

use crate::id::Lid;

use super::{LinkSpeed, LinkWidth};

open_enum! {
    /// The logical state of a port.
    #[doc(alias = "IB_PORT_ACTIVE")]
    pub struct PortState: u8 {
        NO_CHANGE = 0 => "no change",
        DOWN = 1 => "Down",
        INIT = 2 => "Init",
        ARMED = 3 => "Armed",
        ACTIVE = 4 => "Active",
    }
}

open_enum! {
    /// The physical state of a port.
    #[doc(alias = "IB_PORT_PHYS_STATE_LINKUP")]
    pub struct PhysState: u8 {
        NO_CHANGE = 0 => "no change",
        SLEEP = 1 => "Sleep",
        POLLING = 2 => "Polling",
        DISABLED = 3 => "Disabled",
        TRAINING = 4 => "Training",
        LINK_UP = 5 => "LinkUp",
        LINK_ERROR_RECOVERY = 6 => "LinkErrorRecovery",
        PHY_TEST = 7 => "PhyTest",
    }
}

/// What a port's agent can, bits 0 to 31 as the specification numbers them.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
#[doc(alias = "IB_PORT_CAP_HAS_EXT_SPEEDS")]
pub struct CapabilityMask {
    pub hierarchy_info: bool,
    pub multicast_fdb_top: bool,
    pub multicast_pkey_trap_suppression: bool,
    pub vendor_mads_table: bool,
    pub link_speed_width_pairs: bool,
    pub other_local_changes_notice: bool,
    pub client_reregistration: bool,
    pub link_round_trip_latency: bool,
    pub boot_management: bool,
    pub cap_mask_notice: bool,
    pub dr_notice: bool,
    pub vendor_class: bool,
    pub device_management: bool,
    pub reinit: bool,
    pub snmp_tunneling: bool,
    pub communication_management: bool,
    /// [`CapabilityMask2`] means something.
    pub cap_mask2: bool,
    /// The extended speeds mean something.
    pub extended_speeds: bool,
    pub cable_info: bool,
    pub pkey_switch_external_port_trap: bool,
    pub system_image_guid: bool,
    pub sm_disabled: bool,
    pub led_info: bool,
    pub pkey_nvram: bool,
    pub mkey_nvram: bool,
    pub sl_mapping: bool,
    pub automatic_migration: bool,
    pub optional_ipd: bool,
    pub trap: bool,
    pub notice: bool,
    /// A subnet manager runs here.
    pub sm: bool,
    __: bool,
}

/// More of what a port's agent can.
#[bitfield(u16, repr = Be16, from = Be16::new, into = Be16::get, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
#[doc(alias = "IB_PORT_CAP2_IS_EXT_SPEEDS_2_SUPPORTED")]
pub struct CapabilityMask2 {
    #[bits(3)]
    __: u8,
    pub xdr: bool,
    /// The second set of extended speeds means something.
    pub extended_speeds2: bool,
    pub ndr: bool,
    #[bits(4)]
    __: u8,
    pub hdr: bool,
    pub width_2x: bool,
    pub switch_port_state_table: bool,
    pub virtualization: bool,
    pub port_info_extended: bool,
    pub set_node_description: bool,
}

/// Byte 32.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct StateByte {
    /// SDR 1, DDR 2, QDR 4, added up.
    #[bits(4)]
    pub speed_supported: u8,
    #[bits(4)]
    pub port_state: u8,
}

/// Byte 33.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct PortStateByte {
    #[bits(4)]
    pub phys_state: u8,
    /// Where the port goes when its link goes: sleep 1, polling 2.
    #[bits(4)]
    pub down_default: u8,
}

/// Byte 34.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct MkeyLmc {
    /// What is answered without the right M_Key.
    #[bits(2)]
    pub protect: u8,
    #[bits(3)]
    __: u8,
    /// The port has 2^LMC LIDs.
    #[bits(3)]
    pub lmc: u8,
}

/// Byte 35.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct LinkSpeeds {
    #[bits(4)]
    pub active: u8,
    #[bits(4)]
    pub enabled: u8,
}

/// Byte 36.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct MtuSmSl {
    /// 256 B 1, 512 B 2, 1024 B 3, 2048 B 4, 4096 B 5.
    #[bits(4)]
    pub neighbor_mtu: u8,
    #[bits(4)]
    pub master_sm_sl: u8,
}

/// Byte 37.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct VlCap {
    /// VL0 1, VL0-1 2, VL0-3 3, VL0-7 4, VL0-14 5.
    #[bits(4)]
    pub vl_cap: u8,
    #[bits(4)]
    pub init_type: u8,
}

/// Byte 41.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct MtuCap {
    #[bits(4)]
    pub init_type_reply: u8,
    #[bits(4)]
    pub mtu_cap: u8,
}

/// Byte 42.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct StallLife {
    #[bits(3)]
    pub vl_stall_count: u8,
    #[bits(5)]
    pub hoq_life: u8,
}

/// Byte 43.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct VlEnforce {
    /// As in [`VlCap`].
    #[bits(4)]
    pub operational_vls: u8,
    pub enforce_inbound: bool,
    pub enforce_outbound: bool,
    pub filter_raw_inbound: bool,
    pub filter_raw_outbound: bool,
}

/// Byte 51.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct SubnetTimeout {
    /// The SM asks its clients to register again.
    pub client_reregister: bool,
    #[bits(2)]
    pub multicast_pkey_trap_suppression: u8,
    /// 4.096 µs · 2^value.
    #[bits(5)]
    pub timeout: u8,
}

/// Byte 52.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct RespTime {
    #[bits(3)]
    __: u8,
    /// 4.096 µs · 2^value.
    #[bits(5)]
    pub value: u8,
}

/// Byte 53.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct ErrorThresholds {
    #[bits(4)]
    pub local_phy_errors: u8,
    #[bits(4)]
    pub overrun_errors: u8,
}

/// Byte 56: speeds beyond NDR.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct ExtSpeed2 {
    __: bool,
    /// XDR 1.
    #[bits(2)]
    pub active: u8,
    #[bits(2)]
    pub supported: u8,
    #[bits(3)]
    pub enabled: u8,
}

/// Byte 62.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct ExtSpeedActive {
    /// FDR 1, EDR 2, HDR 4, NDR 8; 0: look at the other speeds.
    #[bits(4)]
    pub active: u8,
    #[bits(4)]
    pub supported: u8,
}

/// Byte 63.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct ExtSpeedEnabled {
    #[bits(3)]
    __: u8,
    /// As in [`ExtSpeedActive`]; 30: none.
    #[bits(5)]
    pub enabled: u8,
}

/// PortInfo.
///
/// ```text
/// 0  M_Key                       8  GidPrefix
/// 16 LID     18 MasterSMLID     20 CapabilityMask
/// 24 DiagCode   26 M_KeyLeasePeriod   28 LocalPortNum
/// 29 LinkWidthEnabled   30 LinkWidthSupported   31 LinkWidthActive
/// 32 LinkSpeedSupported(4) PortState(4)       33 PortPhysicalState(4) LinkDownDefaultState(4)
/// 34 M_KeyProtectBits(2) -(3) LMC(3)          35 LinkSpeedActive(4) LinkSpeedEnabled(4)
/// 36 NeighborMTU(4) MasterSMSL(4)             37 VLCap(4) InitType(4)
/// 38 VLHighLimit   39 VLArbitrationHighCap   40 VLArbitrationLowCap   41 InitTypeReply(4) MTUCap(4)
/// 42 VLStallCount(3) HOQLife(5)               43 OperationalVLs(4) enforcement(4)
/// 44 M_KeyViolations   46 P_KeyViolations   48 Q_KeyViolations
/// 50 GUIDCap   51 ClientReregister(1) trap suppression(2) SubnetTimeOut(5)   52 -(3) RespTimeValue(5)
/// 53 LocalPhyErrors(4) OverrunErrors(4)   54 MaxCreditHint
/// 56 -(1) ExtActive2(2) ExtSupported2(2) ExtEnabled2(3)   57 LinkRoundTripLatency(24)
/// 60 CapabilityMask2   62 LinkSpeedExtActive(4) LinkSpeedExtSupported(4)   63 -(3) LinkSpeedExtEnabled(5)
/// ```
#[doc(alias = "ib_port_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PortInfo {
    /// The key that the port asks for; 0 where it does not tell.
    pub m_key: Be64,
    /// The upper half of its GIDs.
    pub gid_prefix: Be64,
    /// Its base LID.
    pub lid: Lid,
    /// Where its subnet manager is.
    pub master_sm_lid: Lid,
    /// What it can.
    pub capability_mask: CapabilityMask,
    /// 0 where all is well.
    pub diag_code: Be16,
    /// Seconds after which an unused M_Key lapses; 0: never.
    pub m_key_lease_period: Be16,
    /// Through which port the request came in.
    pub local_port: u8,
    /// 1x 1, 4x 2, 8x 4, 12x 8, 2x 16, added up.
    pub link_width_enabled: u8,
    /// As above.
    pub link_width_supported: u8,
    /// As above, one of them.
    pub link_width_active: u8,
    /// See [`PortInfo::state`].
    pub state: StateByte,
    /// See [`PortInfo::phys_state`].
    pub phys: PortStateByte,
    /// Protection and LMC.
    pub mkey_lmc: MkeyLmc,
    /// SDR, DDR and QDR.
    pub link_speed: LinkSpeeds,
    /// MTU in use, and the SM's service level.
    pub mtu_smsl: MtuSmSl,
    /// Virtual lanes that the port has.
    pub vl_cap: VlCap,
    /// Blocks of high priority that may pass before one of low.
    pub vl_high_limit: u8,
    /// Entries of the high-priority table.
    pub vl_arb_high_cap: u8,
    /// Entries of the low-priority table.
    pub vl_arb_low_cap: u8,
    /// The largest MTU.
    pub mtu_cap: MtuCap,
    /// When packets in the way are dropped.
    pub stall_life: StallLife,
    /// Virtual lanes in use, and enforcement.
    pub vl_enforce: VlEnforce,
    /// Requests with a wrong M_Key.
    pub m_key_violations: Be16,
    /// Packets with a wrong P_Key.
    pub p_key_violations: Be16,
    /// Packets with a wrong Q_Key.
    pub q_key_violations: Be16,
    /// Entries of the GUID table.
    pub guid_cap: u8,
    /// How long a packet may be on its way.
    pub subnet_timeout: SubnetTimeout,
    /// How long the agent may take to answer.
    pub resp_time: RespTime,
    /// When errors become a notice.
    pub error_thresholds: ErrorThresholds,
    /// What multicast wants of credits.
    pub max_credit_hint: Be16,
    /// Speeds beyond NDR.
    pub ext_speed2: ExtSpeed2,
    /// In units of 4 ns; all ones where not measured.
    pub link_round_trip_latency: Be24,
    /// More of what it can.
    pub capability_mask2: CapabilityMask2,
    /// FDR to NDR.
    pub ext_speed: ExtSpeedActive,
    /// FDR to NDR.
    pub ext_speed_enabled: ExtSpeedEnabled,
}
assert_layout!(PortInfo, 64);

impl PortInfo {
    /// The logical state.
    #[must_use]
    pub const fn state(&self) -> PortState {
        PortState::new(self.state.port_state())
    }

    /// The physical state.
    #[must_use]
    pub const fn phys_state(&self) -> PhysState {
        PhysState::new(self.phys.phys_state())
    }

    /// Whether the link is up, so that somebody answers behind it.
    #[must_use]
    pub fn is_link_up(&self) -> bool {
        self.phys_state() == PhysState::LINK_UP
    }

    /// The width in use.
    #[must_use]
    pub const fn width(&self) -> LinkWidth {
        LinkWidth::of(self.link_width_active)
    }

    /// FDR to XDR as one number: what [`ExtSpeedActive`] says, or what [`ExtSpeed2`] says times
    /// 32. `node` is the port that says what the node can: port 0 of a switch, otherwise the port
    /// itself. 0 where it can none of it.
    #[must_use]
    #[doc(alias = "ibnd_get_agg_linkspeedext")]
    pub fn ext_speed_code(&self, node: &Self) -> u8 {
        let mask = node.capability_mask;
        if !mask.extended_speeds() {
            return 0;
        }
        let second = if mask.cap_mask2() && node.capability_mask2.extended_speeds2() {
            self.ext_speed2.active() << 5
        } else {
            0
        };
        if second == 0 {
            self.ext_speed.active()
        } else {
            second
        }
    }

    /// The speed in use. `node` is as in [`PortInfo::ext_speed_code`]; `fdr10` is what
    /// [`MlnxExtPortInfo`](super::MlnxExtPortInfo) says, where the port was asked.
    #[must_use]
    pub fn speed(&self, node: &Self, fdr10: bool) -> LinkSpeed {
        match self.ext_speed_code(node) {
            0 => LinkSpeed::of(self.link_speed.active(), fdr10),
            code => LinkSpeed::of_ext(code),
        }
    }

    /// The MTU in use, in bytes; none where the code has no meaning.
    #[must_use]
    pub const fn mtu(&self) -> Option<u16> {
        match self.mtu_smsl.neighbor_mtu() {
            code @ 1..=5 => Some(128 << code),
            _ => None,
        }
    }
}
