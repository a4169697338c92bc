//! The subnet management agent: what a node answers to SMPs (IBTA 14.2.5).

use ib_mad::header::{AttributeId, Method};
use ib_mad::id::Guid;
use ib_mad::smp::{GuidInfo, NodeDescription, PortInfo, Smp, SwitchFlags, SwitchInfo, SwitchLife};
use rdma_wire::Be16;

use super::port_info::{self, INVALID_FIELD};
use super::{Effect, Node, Port, Switch, Verdict};

/// The class version is not known.
const BAD_VERSION: u16 = 1 << 2;
/// The method is not known.
const BAD_METHOD: u16 = 2 << 2;
/// The attribute is not known, or not with this method.
const BAD_ATTRIBUTE: u16 = 3 << 2;

/// Unicast LIDs that a switch has room for.
pub(crate) const LINEAR_CAP: u16 = 0xc000;
/// Multicast LIDs that a switch has room for.
const MULTICAST_CAP: u16 = 1024;
/// Entries of a partition table: of CAs and of the ports of switches; of a switch's port 0.
const PKEYS: (u16, u16) = (64, 8);

/// What each VL may send before others come, in the low-priority table; as ibsim has it.
const DEFAULT_SL_TO_VL: [u8; 8] = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xe7];

/// A switch before any subnet manager has come.
pub(crate) fn switch(enhanced: bool) -> Switch {
    let mut info: SwitchInfo = bytemuck::Zeroable::zeroed();
    info.linear_fdb_cap = Be16::new(LINEAR_CAP);
    info.multicast_fdb_cap = Be16::new(MULTICAST_CAP);
    info.partition_enforcement_cap = Be16::new(PKEYS.0);
    info.life = SwitchLife::new().with_life_time(8);
    info.flags = SwitchFlags::new()
        .with_inbound_enforcement(true)
        .with_outbound_enforcement(true)
        .with_enhanced_port0(enhanced);
    Switch {
        info,
        lft: Vec::new(),
    }
}

/// Entries of a node's own partition table, as NodeInfo tells.
pub(crate) const fn partition_cap(switch: bool) -> u16 {
    if switch { PKEYS.1 } else { PKEYS.0 }
}

/// Answers a request that came in by `in_port`: writes the answer into it.
pub(crate) fn answer(
    node: &mut Node,
    ports: &mut [Port],
    in_port: u8,
    smp: &mut Smp,
    effect: &mut Option<Effect>,
) -> Verdict {
    let header = smp.header;
    if header.base_version != 1 || header.class_version != 1 {
        return Verdict::Answer(BAD_VERSION);
    }
    if header.attribute_id == AttributeId::SM_INFO || header.method.is_response() {
        return Verdict::Forward;
    }
    let set = match header.method {
        Method::GET => false,
        Method::SET => true,
        Method::TRAP_REPRESS => {
            let tid = header.tid.get();
            node.trap = node
                .trap
                .filter(|told| told.tid & 0xffff_ffff != tid & 0xffff_ffff);
            return Verdict::Taken;
        }
        Method::TRAP | Method::SEND => return Verdict::Forward,
        _ => return Verdict::Answer(BAD_METHOD),
    };
    // Port 0 speaks for a switch, the port itself for the others.
    let agent = if node.switch.is_some() { 0 } else { in_port };
    let mut hide = false;
    if let Some(port) = ports.get_mut(usize::from(agent)) {
        let key = port.info.m_key.get();
        let protect = port.info.mkey_lmc.protect();
        if key != 0 && smp.m_key.get() != key {
            if set || protect >= 2 {
                port_info::count_violation(&mut port.info);
                return Verdict::WrongKey;
            }
            hide = protect == 1;
        }
    }
    let status = match header.attribute_id {
        AttributeId::NODE_INFO if !set => node_info(node, ports, in_port, smp),
        AttributeId::NODE_DESCRIPTION if !set => {
            smp.set_attribute::<NodeDescription>(&node.description);
            Ok(())
        }
        AttributeId::SWITCH_INFO => switch_info(node, set, smp),
        AttributeId::PORT_INFO => port_attribute(node, ports, in_port, set, hide, smp, effect),
        AttributeId::MLNX_EXT_PORT_INFO if !set => port_number(node, in_port, smp)
            .and_then(|n| ports.get(usize::from(n)).ok_or(INVALID_FIELD))
            .map(|port| {
                smp.set_attribute(&port.vendor);
            }),
        AttributeId::GUID_INFO if !set => guid_info(ports, agent, smp),
        AttributeId::PKEY_TABLE => pkey_table(node, agent, set, smp),
        AttributeId::SL_TO_VL => sl_to_vl(node, agent, set, smp),
        AttributeId::VL_ARBITRATION => vl_arbitration(node, agent, set, smp),
        AttributeId::LINEAR_FORWARDING => linear(node, set, smp),
        AttributeId::MULTICAST_FORWARDING => multicast(node, set, smp),
        _ => Err(BAD_ATTRIBUTE),
    };
    Verdict::Answer(status.err().unwrap_or(0))
}

type Answer = Result<(), u16>;

fn modifier(smp: &Smp) -> u32 {
    smp.header.attribute_modifier.get()
}

/// The port that a modifier means: the top bit is a flag, 0 on a CA is the port asked through.
fn port_number(node: &Node, in_port: u8, smp: &Smp) -> Result<u8, u16> {
    let number = u8::try_from(modifier(smp) & 0x7fff_ffff).map_err(|_| INVALID_FIELD)?;
    match number {
        0 if node.switch.is_none() => Ok(in_port),
        _ if number <= node.ports => Ok(number),
        _ => Err(INVALID_FIELD),
    }
}

fn node_info(node: &Node, ports: &[Port], in_port: u8, smp: &mut Smp) -> Answer {
    let mut info = node.info;
    if node.switch.is_none() {
        info.port_guid = ports
            .get(usize::from(in_port))
            .map_or(info.node_guid, |p| Guid::new(p.guid));
    }
    info.num_ports = node.fault.port_count.unwrap_or(info.num_ports);
    info.local_port = in_port.wrapping_add(node.fault.local_port_offset);
    smp.set_attribute(&info);
    Ok(())
}

fn switch_info(node: &mut Node, set: bool, smp: &mut Smp) -> Answer {
    let switch = node.switch.as_mut().ok_or(BAD_ATTRIBUTE)?;
    if set {
        let wanted: SwitchInfo = *smp.attribute();
        if wanted.linear_fdb_top.get() >= LINEAR_CAP {
            return Err(INVALID_FIELD);
        }
        let info = &mut switch.info;
        info.linear_fdb_top = wanted.linear_fdb_top;
        info.multicast_fdb_top = wanted.multicast_fdb_top;
        info.default_port = wanted.default_port;
        info.default_multicast_primary = wanted.default_multicast_primary;
        info.default_multicast_not_primary = wanted.default_multicast_not_primary;
        info.life.set_life_time(wanted.life.life_time());
        if wanted.life.port_state_change() {
            info.life.set_port_state_change(false);
        }
    }
    smp.set_attribute(&switch.info);
    Ok(())
}

fn port_attribute(
    node: &Node,
    ports: &mut [Port],
    in_port: u8,
    set: bool,
    hide: bool,
    smp: &mut Smp,
    effect: &mut Option<Effect>,
) -> Answer {
    let number = port_number(node, in_port, smp)?;
    let is_switch = node.switch.is_some();
    // A CA's port is set through itself only.
    if set && !is_switch && number != in_port {
        return Err(INVALID_FIELD);
    }
    let port = ports.get_mut(usize::from(number)).ok_or(INVALID_FIELD)?;
    if set {
        let wanted: PortInfo = *smp.attribute();
        *effect = port_info::set(port, number, &wanted, !is_switch || number == 0)?;
    }
    let mut info = port.info;
    info.local_port = in_port;
    if hide {
        info.m_key = rdma_wire::Be64::ZERO;
    }
    smp.set_attribute(&info);
    Ok(())
}

fn guid_info(ports: &[Port], agent: u8, smp: &mut Smp) -> Answer {
    let port = ports.get(usize::from(agent)).ok_or(INVALID_FIELD)?;
    let block = modifier(smp);
    if block >= u32::from(port.info.guid_cap).div_ceil(8) {
        return Err(INVALID_FIELD);
    }
    let mut guids = [Guid::ZERO; 8];
    if let (0, Some(first)) = (block, guids.first_mut()) {
        *first = Guid::new(port.guid);
    }
    smp.set_attribute(&GuidInfo(guids));
    Ok(())
}

/// A block of a table that is kept as it was last written.
fn block(node: &mut Node, set: bool, key: u32, smp: &mut Smp, default: impl FnOnce() -> [u8; 64]) {
    let key = (smp.header.attribute_id.get(), key);
    if set {
        node.tables.insert(key, smp.data);
    } else {
        smp.data = node.tables.get(&key).copied().unwrap_or_else(default);
    }
}

/// A block that starts with these bytes.
fn starting(head: &[u8]) -> [u8; 64] {
    let mut block = [0; 64];
    block
        .iter_mut()
        .zip(head)
        .for_each(|(to, from)| *to = *from);
    block
}

fn pkey_table(node: &mut Node, agent: u8, set: bool, smp: &mut Smp) -> Answer {
    let (port, number) = (modifier(smp) >> 16, modifier(smp) & 0xffff);
    let is_switch = node.switch.is_some();
    let port = if is_switch { port } else { u32::from(agent) };
    let cap = if is_switch && port != 0 {
        PKEYS.0
    } else {
        partition_cap(is_switch)
    };
    if port > u32::from(node.ports) || number * 32 >= u32::from(cap) {
        return Err(INVALID_FIELD);
    }
    block(node, set, port << 16 | number, smp, || {
        if number == 0 {
            starting(&[0xff, 0xff])
        } else {
            [0; 64]
        }
    });
    Ok(())
}

fn sl_to_vl(node: &mut Node, agent: u8, set: bool, smp: &mut Smp) -> Answer {
    let (input, output) = (modifier(smp) >> 8 & 0xff, modifier(smp) & 0xff);
    let is_switch = node.switch.is_some();
    let (input, output) = if is_switch {
        (input, output)
    } else {
        (0, u32::from(agent))
    };
    if input.max(output) > u32::from(node.ports) {
        return Err(INVALID_FIELD);
    }
    block(node, set, input << 8 | output, smp, || {
        starting(&DEFAULT_SL_TO_VL)
    });
    Ok(())
}

fn vl_arbitration(node: &mut Node, agent: u8, set: bool, smp: &mut Smp) -> Answer {
    let (part, port) = (modifier(smp) >> 16, modifier(smp) & 0xffff);
    let port = if node.switch.is_some() {
        port
    } else {
        u32::from(agent)
    };
    // Eight entries a table fit into the lower halves, 1 and 3.
    if port > u32::from(node.ports) || !matches!(part, 1 | 3) {
        return Err(INVALID_FIELD);
    }
    // Pairs of VL and weight. As ibsim has it: VL 0 by the high table, the others by the low one.
    let low = part == 1;
    let pairs: Vec<u8> = (0..8)
        .flat_map(|vl| [vl, if low == (vl > 0) { 4 } else { 0 }])
        .collect();
    block(node, set, part << 16 | port, smp, || starting(&pairs));
    Ok(())
}

fn linear(node: &mut Node, set: bool, smp: &mut Smp) -> Answer {
    let switch = node.switch.as_mut().ok_or(BAD_ATTRIBUTE)?;
    let number = usize::try_from(modifier(smp)).map_err(|_| INVALID_FIELD)?;
    if number >= usize::from(LINEAR_CAP) / 64 {
        return Err(INVALID_FIELD);
    }
    let (start, end) = (number * 64, number * 64 + 64);
    if set {
        if switch.lft.len() < end {
            switch.lft.resize(end, 0xff);
        }
        if let Some(place) = switch.lft.get_mut(start..end) {
            place.copy_from_slice(&smp.data);
        }
    }
    match switch.lft.get(start..end) {
        Some(entries) => smp.data.copy_from_slice(entries),
        None => smp.data = [0xff; 64],
    }
    Ok(())
}

fn multicast(node: &mut Node, set: bool, smp: &mut Smp) -> Answer {
    if node.switch.is_none() {
        return Err(BAD_ATTRIBUTE);
    }
    let (position, number) = (modifier(smp) >> 28, modifier(smp) & 0x1ff);
    if number >= u32::from(MULTICAST_CAP) / 32 || position > u32::from(node.ports) / 16 {
        return Err(INVALID_FIELD);
    }
    block(node, set, position << 28 | number, smp, || [0; 64]);
    Ok(())
}
