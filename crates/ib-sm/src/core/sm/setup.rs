//! What a port's settings are to be.

use ib_mad::id::Lid;
use ib_mad::smp::{PhysState, PortInfo, PortState};
use rdma_wire::{Be16, Be64};

/// What all ports of a subnet have in common. The names in brackets are OpenSM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSettings {
    /// Upper half of all GIDs (`subnet_prefix`).
    pub subnet_prefix: u64,
    /// The key that ports ask for (`m_key`); 0: none.
    pub m_key: u64,
    /// What is answered without it (`m_key_protection_level`), 0 to 3.
    pub m_key_protection: u8,
    /// Seconds after which a key that nobody uses lapses (`m_key_lease_period`); 0: never.
    pub m_key_lease: u16,
    /// End ports have 2^lmc LIDs (`lmc`).
    pub lmc: u8,
    /// Data virtual lanes at most, as in PortInfo: 1, 2, 4, 8 or 15 lanes are 1 to 5 (`max_op_vls`).
    pub max_vls: u8,
    /// MTU at most, as in PortInfo; 5 is 4096 bytes.
    pub max_mtu: u8,
    /// 4.096 µs · 2^value (`subnet_timeout`).
    pub subnet_timeout: u8,
    /// How long a packet may stand at the head of a queue (`head_of_queue_lifetime`).
    pub hoq_life: u8,
    /// The same for ports that lead to adapters (`leaf_head_of_queue_lifetime`).
    pub leaf_hoq_life: u8,
    /// (`vl_stall_count`)
    pub vl_stall: u8,
    /// (`leaf_vl_stall_count`)
    pub leaf_vl_stall: u8,
    /// (`local_phy_errors_threshold`)
    pub phy_errors: u8,
    /// (`overrun_errors_threshold`)
    pub overrun_errors: u8,
    /// How long a packet may stay in a switch (`packet_life_time`).
    pub packet_life: u8,
    /// Service level that is used to reach the subnet manager (`sm_sl`).
    pub sm_sl: u8,
}

impl Default for PortSettings {
    fn default() -> Self {
        Self {
            subnet_prefix: ib_mad::id::Gid::DEFAULT_PREFIX,
            m_key: 0,
            m_key_protection: 0,
            m_key_lease: 0,
            lmc: 0,
            max_vls: 5,
            max_mtu: 5,
            subnet_timeout: 18,
            hoq_life: 0x12,
            leaf_hoq_life: 0x10,
            vl_stall: 7,
            leaf_vl_stall: 7,
            phy_errors: 8,
            overrun_errors: 8,
            packet_life: 0x12,
            sm_sl: 0,
        }
    }
}

/// What is to be known of a port to set it up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    /// The port has an agent of its own: port 0 of a switch, any port of another node.
    pub agent: bool,
    /// An external port of a switch.
    pub of_switch: bool,
    /// Its base LID.
    pub lid: u16,
    /// The subnet manager's.
    pub sm_lid: u16,
    /// What the other end says; none without a cable.
    pub far: Option<PortInfo>,
    /// The other end belongs to an adapter.
    pub far_is_end: bool,
}

/// What is to be sent to a port: settings, and ARMED where the link is in INIT. Nothing where it is
/// as it is to be.
pub(super) fn wanted(have: &PortInfo, it: Situation, settings: &PortSettings) -> Option<PortInfo> {
    let mut want = *have;
    if it.agent {
        want.m_key = Be64::new(settings.m_key);
        want.gid_prefix = Be64::new(settings.subnet_prefix);
        want.lid = Lid::new(it.lid);
        want.master_sm_lid = Lid::new(it.sm_lid);
        want.m_key_lease_period = Be16::new(settings.m_key_lease);
        want.mkey_lmc.set_protect(settings.m_key_protection);
        // Port 0 of a base switch has one LID; enhanced ports are left at that, too.
        let lmc = if it.far.is_some() {
            settings.lmc
        } else {
            have.mkey_lmc.lmc()
        };
        want.mkey_lmc.set_lmc(lmc);
        want.subnet_timeout.set_timeout(settings.subnet_timeout);
        want.mtu_smsl.set_master_sm_sl(settings.sm_sl);
    }
    want.error_thresholds
        .set_local_phy_errors(settings.phy_errors);
    want.error_thresholds
        .set_overrun_errors(settings.overrun_errors);
    if let Some(far) = it.far {
        let mtu = have.mtu_cap.mtu_cap().min(far.mtu_cap.mtu_cap());
        want.mtu_smsl
            .set_neighbor_mtu(mtu.min(settings.max_mtu).max(1));
        let vls = have.vl_cap.vl_cap().min(far.vl_cap.vl_cap());
        want.vl_enforce
            .set_operational_vls(vls.min(settings.max_vls).max(1));
        if it.of_switch {
            let (hoq, stall) = if it.far_is_end {
                (settings.leaf_hoq_life, settings.leaf_vl_stall)
            } else {
                (settings.hoq_life, settings.vl_stall)
            };
            want.stall_life.set_hoq_life(hoq);
            want.stall_life.set_vl_stall_count(stall);
        }
    }
    let arm = it.far.is_some() && have.state() == PortState::INIT;
    // A port may hide its key; that it then differs says nothing.
    let hidden = have.m_key.get() == 0 && settings.m_key != 0 && have.mkey_lmc.protect() != 0;
    let mut compared = want;
    if hidden {
        compared.m_key = have.m_key;
    }
    if compared == *have && !arm {
        return None;
    }
    let state = if arm {
        PortState::ARMED
    } else {
        PortState::NO_CHANGE
    };
    let moved = have.lid != want.lid || have.master_sm_lid != want.master_sm_lid;
    let mut want = leave_the_rest(want, state);
    if it.agent && !it.of_switch && (arm || moved) && have.capability_mask.client_reregistration() {
        want.subnet_timeout.set_client_reregister(true);
    }
    Some(want)
}

/// What is to be sent to make a port ACTIVE.
pub(super) fn activate(have: &PortInfo) -> PortInfo {
    leave_the_rest(*have, PortState::ACTIVE)
}

/// What is to be sent to take a port out of service.
pub(super) fn disable(have: &PortInfo) -> PortInfo {
    let mut info = leave_the_rest(*have, PortState::DOWN);
    info.phys.set_phys_state(PhysState::DISABLED.get());
    info
}

/// Zero is "no change" for what is not ours to set: widths, speeds, the physical state.
fn leave_the_rest(mut info: PortInfo, state: PortState) -> PortInfo {
    info.state.set_port_state(state.get());
    info.phys.set_phys_state(PhysState::NO_CHANGE.get());
    info.phys.set_down_default(0);
    info.link_width_enabled = 0;
    info.link_speed.set_enabled(0);
    info.ext_speed_enabled.set_enabled(0);
    info.ext_speed2.set_enabled(0);
    // Violations are counted from zero again only where all ones are not written.
    info.subnet_timeout.set_client_reregister(false);
    info
}
