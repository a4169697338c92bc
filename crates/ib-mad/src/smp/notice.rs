//! Notices: what an agent tells unasked, as a trap (IBTA 13.4.8, 14.2.5.1).

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be24, Be32, Be64, assert_layout, open_enum};

use crate::id::{Gid, Guid, Lid};

open_enum! {
    /// What has happened.
    #[doc(alias = "IB_NOTICE_TRAP_NUMBER_F")]
    pub struct TrapNumber: Be16 as u16 {
        /// An address is in service: told by a subnet manager.
        IN_SERVICE = 64 => "address in service",
        OUT_OF_SERVICE = 65 => "address out of service",
        GROUP_CREATED = 66 => "multicast group created",
        GROUP_DELETED = 67 => "multicast group deleted",
        /// A port of a switch has changed its state.
        LINK_STATE = 128 => "link state changed",
        LINK_INTEGRITY = 129 => "local link integrity threshold reached",
        BUFFER_OVERRUN = 130 => "excessive buffer overrun threshold reached",
        FLOW_CONTROL = 131 => "flow control update watchdog expired",
        /// Capability mask, node description or link settings of a port.
        LOCAL_CHANGES = 144 => "local changes",
        SYSTEM_IMAGE_GUID = 145 => "system image GUID changed",
        BAD_M_KEY = 256 => "bad M_Key",
        BAD_P_KEY = 257 => "bad P_Key",
        BAD_Q_KEY = 258 => "bad Q_Key",
        BAD_P_KEY_SWITCH = 259 => "bad P_Key at a switch port",
    }
}

/// Byte 0 of a notice.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct NoticeKind {
    /// A trap of the specification rather than of a vendor.
    pub generic: bool,
    /// Fatal 0, urgent 1, security 2, subnet management 3, informational 4.
    #[bits(7)]
    pub severity: u8,
}

/// Bytes 8 and 9 of a notice.
#[bitfield(u16, repr = Be16, from = Be16::new, into = Be16::get, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct NoticeCount {
    /// Changes with every new notice.
    pub toggle: bool,
    #[bits(15)]
    pub count: u16,
}

/// A notice as an SMP carries it.
///
/// ```text
/// 0 IsGeneric(1) Type(7)   1 ProducerType   4 TrapNumber   6 IssuerLID   8 NoticeToggle(1) NoticeCount(15)
/// 10 details, 54 bytes
/// ```
#[doc(alias = "ib_mad_notice_attr")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Notice {
    /// Who defines it, and how urgent it is.
    pub kind: NoticeKind,
    /// CA 1, switch 2, router 3, class manager 4; or a vendor's OUI.
    pub producer: Be24,
    /// What has happened; or a vendor's device id.
    pub trap: TrapNumber,
    /// Who tells.
    pub issuer: Lid,
    /// Toggle and count.
    pub count: NoticeCount,
    /// What goes with the trap; see [`Notice::details`].
    pub raw_details: [[u8; 27]; 2],
}
assert_layout!(Notice, 64);

/// Traps 64 to 67.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct AddressDetails {
    /// Reserved.
    pub reserved: [u8; 6],
    /// Which address.
    pub gid: Gid,
}
assert_layout!(AddressDetails, 22);

/// Traps 129 to 131.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct PortDetails {
    /// Reserved.
    pub reserved: Be16,
    /// Where.
    pub lid: Lid,
    /// Which port there.
    pub port: u8,
}
assert_layout!(PortDetails, 5);

/// What trap 144 is about, beside the capability mask.
#[bitfield(u16, repr = Be16, from = Be16::new, into = Be16::get, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct LocalChanges {
    #[bits(12)]
    __: u16,
    /// Link speeds enabled, of the extended set.
    pub link_speed_ext: bool,
    pub link_width: bool,
    pub link_speed: bool,
    pub node_description: bool,
}

/// Trap 144.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct LocalChangeDetails {
    /// Reserved.
    pub reserved: Be16,
    /// Where.
    pub lid: Lid,
    /// Reserved.
    pub reserved2: u8,
    /// 1: `changes` means something.
    pub has_changes: u8,
    /// The mask as it is now.
    pub capability_mask: Be32,
    /// What else changed.
    pub changes: LocalChanges,
}
assert_layout!(LocalChangeDetails, 12);

/// Trap 145.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SystemImageDetails {
    /// Reserved.
    pub reserved: Be16,
    /// Where.
    pub lid: Lid,
    /// Reserved.
    pub reserved2: Be16,
    /// The GUID as it is now.
    pub system_image_guid: Guid,
}
assert_layout!(SystemImageDetails, 14);

/// Trap 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct BadMKeyDetails {
    /// Reserved.
    pub reserved: Be16,
    /// Who asked.
    pub lid: Lid,
    /// Who asked, where the request was routed by LID and then by ports.
    pub dr_slid: Lid,
    /// With what method.
    pub method: u8,
    /// Reserved.
    pub reserved2: u8,
    /// About what.
    pub attribute: Be16,
    /// About which part of it.
    pub modifier: Be32,
    /// With which key.
    pub m_key: Be64,
}
assert_layout!(BadMKeyDetails, 22);

impl Notice {
    /// A notice of the specification.
    #[must_use]
    pub fn generic<T: Pod>(
        severity: u8,
        producer: u32,
        trap: TrapNumber,
        issuer: Lid,
        details: &T,
    ) -> Self {
        const { assert!(size_of::<T>() <= 54, "details have 54 bytes at most") };
        let mut raw_details = [[0; 27]; 2];
        for (to, from) in raw_details
            .iter_mut()
            .flatten()
            .zip(bytemuck::bytes_of(details))
        {
            *to = *from;
        }
        Self {
            kind: NoticeKind::new().with_generic(true).with_severity(severity),
            producer: Be24::new(producer),
            trap,
            issuer,
            count: NoticeCount::new(),
            raw_details,
        }
    }

    /// Views the details. Which they are follows from the trap.
    #[must_use]
    pub fn details<T: Pod>(&self) -> &T {
        const {
            assert!(size_of::<T>() <= 54, "details have 54 bytes at most");
            assert!(align_of::<T>() == 1, "a wire structure has alignment 1");
        }
        let (head, _) = self.raw_details.as_flattened().split_at(size_of::<T>());
        bytemuck::from_bytes(head)
    }
}
