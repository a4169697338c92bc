//! Which subnet manager is it, and does it rule (IBTA 14.2.5.13, 14.4.1).

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be32, Be64, assert_layout, open_enum};

use crate::id::Guid;

open_enum! {
    /// What a subnet manager is doing.
    #[doc(alias = "IB_SMINFO_STATE_MASTER")]
    pub struct SmState: u8 {
        NOT_ACTIVE = 0 => "not active",
        DISCOVERING = 1 => "discovering",
        STANDBY = 2 => "standby",
        MASTER = 3 => "master",
    }
}

open_enum! {
    /// What a Set of SMInfo means: its attribute modifier.
    #[doc(alias = "IB_SMINFO_ATTR_MOD_HANDOVER")]
    pub struct SmControl: u8 {
        /// The sender was master and offers to be no longer.
        HANDOVER = 1 => "handover",
        /// The sender has taken over.
        ACKNOWLEDGE = 2 => "acknowledge",
        /// The sender is master; the standby is not to poll any more.
        DISABLE = 3 => "disable",
        /// The sender is master; one that is not active is to be a standby.
        STANDBY = 4 => "standby",
        /// The sender is master; the standby is to discover.
        DISCOVER = 5 => "discover",
    }
}

/// Byte 20 of SMInfo.
#[bitfield(u8, order = Msb)]
#[derive(PartialEq, Eq, Pod, Zeroable)]
pub struct PriorityState {
    /// 0 to 15; the highest rules.
    #[bits(4)]
    pub priority: u8,
    #[bits(4)]
    pub state: u8,
}

/// SMInfo.
///
/// ```text
/// 0  port GUID of the manager   8 SM_Key   16 ActCount   20 Priority(4) SMState(4)
/// ```
#[doc(alias = "ib_sm_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct SmInfo {
    /// The port that it sits on.
    pub guid: Guid,
    /// What managers of one subnet share.
    pub sm_key: Be64,
    /// Goes up while it is alive.
    pub act_count: Be32,
    /// See [`SmInfo::state`].
    pub priority_state: PriorityState,
}
assert_layout!(SmInfo, 21);

impl SmInfo {
    /// What it is doing.
    #[must_use]
    pub const fn state(&self) -> SmState {
        SmState::new(self.priority_state.state())
    }

    /// Its priority.
    #[must_use]
    pub const fn priority(&self) -> u8 {
        self.priority_state.priority()
    }

    /// Whether it is to rule rather than `other`: by priority, and by the lower GUID where that is
    /// equal.
    #[must_use]
    pub fn outranks(&self, other: &Self) -> bool {
        (self.priority(), other.guid.get()) > (other.priority(), self.guid.get())
    }
}
