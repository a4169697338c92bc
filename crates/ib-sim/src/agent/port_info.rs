//! PortInfo: what a port starts with, what a link gives it, and what a Set changes.

use bytemuck::Zeroable;
use ib_mad::id::Lid;
use ib_mad::smp::{
    CapabilityMask, CapabilityMask2, ExtSpeed2, ExtSpeedActive, ExtSpeedEnabled, MkeyLmc,
    MlnxExtPortInfo, MlnxLinkSpeed, MtuCap, MtuSmSl, PhysState, PortInfo, PortState, PortStateByte,
    RespTime, StallLife, StateByte, SubnetTimeout, VlCap, VlEnforce,
};
use rdma_wire::{Be16, Be64};

use super::{Effect, Port};
use crate::topo;
use crate::topo::{Speeds, Widths};

/// A field of the attribute is not valid.
pub(super) const INVALID_FIELD: u16 = 7 << 2;

/// fe80::, the prefix of a subnet that was given none.
const PREFIX: u64 = ib_mad::id::Gid::DEFAULT_PREFIX;

/// A port before any subnet manager has come: links are in Init, all others are down.
pub(crate) fn initial(node: &topo::Node, number: u8, fastest: Speeds) -> Port {
    let plain = topo::Port::new(number);
    let known = node.port(number).unwrap_or(&plain);
    let own = node.is_switch() && number == 0;
    let mut info = PortInfo::zeroed();
    // A switch tells the abilities of its agent at port 0 only.
    if own || !node.is_switch() {
        info.gid_prefix = Be64::new(PREFIX);
        info.lid = Lid::new(known.lid);
        info.capability_mask = CapabilityMask::new()
            .with_cap_mask2(true)
            .with_extended_speeds(true)
            .with_sl_mapping(true)
            .with_trap(true)
            .with_cap_mask_notice(!own);
        let xdr = fastest.contains(Speeds::XDR);
        info.capability_mask2 = CapabilityMask2::new()
            .with_width_2x(true)
            .with_hdr(fastest.contains(Speeds::HDR))
            .with_ndr(fastest.contains(Speeds::NDR))
            .with_extended_speeds2(xdr)
            .with_xdr(xdr);
        info.guid_cap = if own { 1 } else { 32 };
        info.subnet_timeout = SubnetTimeout::new().with_timeout(18);
        info.resp_time = RespTime::new().with_value(16);
    }
    info.mkey_lmc = MkeyLmc::new().with_lmc(known.lmc);
    info.link_width_supported = Widths::ALL.mask();
    // 4096 bytes, 8 data VLs, as most of today's devices have.
    info.mtu_smsl = MtuSmSl::new().with_neighbor_mtu(5);
    info.mtu_cap = MtuCap::new().with_mtu_cap(5);
    info.vl_cap = VlCap::new().with_vl_cap(4);
    info.vl_enforce = VlEnforce::new().with_operational_vls(4);
    info.vl_arb_high_cap = 8;
    info.vl_arb_low_cap = 8;
    info.stall_life = StallLife::new().with_vl_stall_count(7).with_hoq_life(16);
    let mut port = Port {
        info,
        vendor: MlnxExtPortInfo::zeroed(),
        guid: node.port_guid(number),
        peer: known.peer,
        widths: known.widths,
        speeds: known.speeds,
        counters: super::pma::Counters::default(),
        disabled: false,
    };
    enabled(&mut port);
    if own {
        link(&mut port, Widths::X4, known.speeds.fastest());
        set_state(&mut port.info, PortState::ACTIVE, PhysState::LINK_UP);
    } else {
        down(&mut port);
    }
    port
}

/// Writes what is enabled and supported into the attributes.
fn enabled(port: &mut Port) {
    let speeds = port.speeds;
    port.info.link_width_enabled = port.widths.mask();
    port.info.state.set_speed_supported(7);
    port.info.link_speed.set_enabled(speeds.base_mask());
    let supported = Speeds::up_to(&speeds.to_string()).unwrap_or(speeds);
    port.info.ext_speed.set_supported(supported.ext_mask());
    port.info.ext_speed_enabled = ExtSpeedEnabled::new().with_enabled(speeds.ext_mask());
    let xdr = u8::from(speeds.contains(Speeds::XDR));
    port.info.ext_speed2 = ExtSpeed2::new().with_supported(xdr).with_enabled(xdr);
    let fdr10 = MlnxLinkSpeed::new().with_fdr10(speeds.contains(Speeds::FDR10));
    port.vendor.supported = fdr10;
    port.vendor.enabled = fdr10;
}

/// Writes a link's width and speed into the attributes.
fn link(port: &mut Port, width: Widths, speed: Speeds) {
    port.info.link_width_active = width.mask();
    let base = if speed == Speeds::SDR || speed == Speeds::DDR {
        speed.base_mask()
    } else {
        4
    };
    port.info.link_speed.set_active(base);
    port.info.ext_speed = ExtSpeedActive::new()
        .with_active(speed.ext_mask())
        .with_supported(port.info.ext_speed.supported());
    port.info
        .ext_speed2
        .set_active(u8::from(speed == Speeds::XDR));
    port.vendor.active = MlnxLinkSpeed::new().with_fdr10(speed == Speeds::FDR10);
}

fn set_state(info: &mut PortInfo, state: PortState, phys: PhysState) {
    info.state = StateByte::new()
        .with_speed_supported(info.state.speed_supported())
        .with_port_state(state.get());
    info.phys = PortStateByte::new()
        .with_phys_state(phys.get())
        .with_down_default(2);
}

/// The link comes up: Init, until a subnet manager does more.
pub(crate) fn up(port: &mut Port, width: Widths, speed: Speeds) {
    link(port, width, speed);
    set_state(&mut port.info, PortState::INIT, PhysState::LINK_UP);
}

/// The link goes down.
pub(crate) fn down(port: &mut Port) {
    // What a port without a link shows as active, as ibsim does.
    link(port, Widths::X4, Speeds::SDR);
    let phys = if port.disabled {
        PhysState::DISABLED
    } else {
        PhysState::POLLING
    };
    set_state(&mut port.info, PortState::DOWN, phys);
}

/// Does what a Set asks for. Returns what happens to the link, or the status of a refusal.
/// `agent` says whether the port is one that an agent stands behind: any of a CA, port 0 of a switch.
///
/// IBTA 14.2.5.6: zero or "no change" leaves a field alone where the field has such a value.
pub(super) fn set(
    port: &mut Port,
    number: u8,
    wanted: &PortInfo,
    agent: bool,
) -> Result<Option<Effect>, u16> {
    let old_state = port.info.state();
    let state = wanted.state();
    let legal = match state {
        PortState::NO_CHANGE | PortState::DOWN => true,
        PortState::ARMED => old_state == PortState::INIT || old_state == PortState::ARMED,
        PortState::ACTIVE => old_state == PortState::ARMED || old_state == PortState::ACTIVE,
        _ => false,
    };
    let vls = wanted.vl_enforce.operational_vls();
    let mtu = wanted.mtu_smsl.neighbor_mtu();
    if !legal || vls > port.info.vl_cap.vl_cap() || mtu > port.info.mtu_cap.mtu_cap() {
        return Err(INVALID_FIELD);
    }
    if agent {
        port.info.m_key = wanted.m_key;
        port.info.m_key_lease_period = wanted.m_key_lease_period;
        port.info.mkey_lmc = wanted.mkey_lmc;
        port.info.gid_prefix = wanted.gid_prefix;
        port.info.lid = wanted.lid;
        port.info.master_sm_lid = wanted.master_sm_lid;
        port.info.subnet_timeout =
            SubnetTimeout::new().with_timeout(wanted.subnet_timeout.timeout());
        port.info.m_key_violations = wanted.m_key_violations;
    }
    port.info.p_key_violations = wanted.p_key_violations;
    port.info.q_key_violations = wanted.q_key_violations;
    if mtu != 0 {
        port.info.mtu_smsl.set_neighbor_mtu(mtu);
    }
    port.info
        .mtu_smsl
        .set_master_sm_sl(wanted.mtu_smsl.master_sm_sl());
    port.info.vl_high_limit = wanted.vl_high_limit;
    port.info.stall_life = wanted.stall_life;
    let kept = if vls == 0 {
        port.info.vl_enforce.operational_vls()
    } else {
        vls
    };
    port.info.vl_enforce = VlEnforce::from(u8::from(wanted.vl_enforce)).with_operational_vls(kept);
    port.info.error_thresholds = wanted.error_thresholds;
    enable(port, wanted);

    let effect = match (wanted.phys_state(), state) {
        (PhysState::DISABLED, _) => Some(Effect::Disable(number)),
        (PhysState::POLLING, _) => Some(Effect::Enable(number)),
        (_, PortState::DOWN) if port.is_up() => Some(Effect::Bounce(number)),
        (_, PortState::ARMED | PortState::ACTIVE) => {
            port.info.state.set_port_state(state.get());
            None
        }
        _ => None,
    };
    Ok(effect)
}

/// What a Set enables holds from the next training of the link.
fn enable(port: &mut Port, wanted: &PortInfo) {
    match wanted.link_width_enabled {
        0 => {}
        0xff => port.widths = Widths::ALL,
        mask => port.widths = Widths::from_mask(mask & Widths::ALL.mask()).unwrap_or(port.widths),
    }
    let base = match wanted.link_speed.enabled() {
        0 => port.speeds.base_mask(),
        15 => 7,
        mask => mask & 7,
    };
    let ext = match wanted.ext_speed_enabled.enabled() {
        0 => port.speeds.ext_mask(),
        31 => port.info.ext_speed.supported(),
        mask => mask & port.info.ext_speed.supported(),
    };
    if let Some(speeds) = Speeds::from_masks(base, ext) {
        // What the two masks do not speak of stays as it is.
        let other = port.speeds.and(Speeds::FDR10.or(Speeds::XDR));
        port.speeds = speeds.or(other);
    }
    enabled(port);
}

/// Two ports' counters of wrong keys stop at the top.
pub(super) fn count_violation(info: &mut PortInfo) {
    info.m_key_violations = Be16::new(info.m_key_violations.get().saturating_add(1));
}
