//! The text that ibnetdiscover prints, byte for byte, so that what reads it reads ours.
//!
//! Facts are from `infiniband-diags/ibnetdiscover.c` of rdma-core. The tool lists the last node
//! found first; so does this.

use std::fmt::{Result, Write};

use ib_mad::smp::NodeType;

use crate::core::topology::{Node, Port, Topology};

/// How it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// `-f`: speed, width and virtual lanes as numbers, too.
    pub full: bool,
    /// When the fabric was looked at, as `ctime` prints it, without the line's end.
    pub date: &'a str,
}

/// Writes the fabric.
///
/// # Errors
/// Those of `out`.
pub fn write(topology: &Topology, options: &Options<'_>, out: &mut impl Write) -> Result {
    let Some(local) = topology.local() else {
        return Ok(());
    };
    writeln!(out, "#\n# Topology file: generated on {}\n#", options.date)?;
    writeln!(
        out,
        "# Initiated from node {:016x} port {:016x}",
        local.guid().get(),
        local.info.port_guid.get()
    )?;
    for kind in [NodeType::SWITCH, NodeType::CA, NodeType::ROUTER] {
        for node in topology.nodes().iter().rev().filter(|it| it.kind() == kind) {
            write_node(topology, node, options, out)?;
        }
    }
    Ok(())
}

fn write_node(
    topology: &Topology,
    node: &Node,
    options: &Options<'_>,
    out: &mut impl Write,
) -> Result {
    let info = &node.info;
    writeln!(out, "\nvendid=0x{:x}", info.vendor_id.get())?;
    writeln!(out, "devid=0x{:x}", info.device_id.get())?;
    if !info.system_image_guid.is_zero() {
        writeln!(out, "sysimgguid=0x{:x}", info.system_image_guid.get())?;
    }
    let guid = info.node_guid.get();
    if node.is_switch() {
        writeln!(out, "switchguid=0x{guid:x}({:x})", info.port_guid.get())?;
        let enhanced = node.switch.is_some_and(|it| it.flags.enhanced_port0());
        let port0 = topology.port_of(node, 0).and_then(|port| port.info);
        writeln!(
            out,
            "Switch\t{} {}\t\t# \"{}\" {} port 0 lid {} lmc {}",
            info.num_ports,
            id(node),
            node.name(),
            if enhanced { "enhanced" } else { "base" },
            port0.map_or(0, |info| info.lid.get()),
            port0.map_or(0, |info| info.mkey_lmc.lmc()),
        )?;
    } else {
        let (long, short) = match info.node_type {
            NodeType::ROUTER => ("rt", "Rt"),
            _ => ("ca", "Ca"),
        };
        writeln!(out, "{long}guid=0x{guid:x}")?;
        writeln!(
            out,
            "{short}\t{} {}\t\t# \"{}\"",
            info.num_ports,
            id(node),
            node.name()
        )?;
    }
    for port in topology
        .ports_of(node)
        .iter()
        .filter(|port| port.number > 0)
    {
        let Some((far, far_port)) = topology.peer_of(port) else {
            continue;
        };
        if node.is_switch() {
            write_switch_port(topology, (node, port), (far, far_port), options, out)?;
        } else {
            write_ca_port(topology, (node, port), (far, far_port), options, out)?;
        }
    }
    Ok(())
}

fn write_switch_port(
    topology: &Topology,
    (node, port): (&Node, &Port),
    (far, far_port): (&Node, &Port),
    options: &Options<'_>,
    out: &mut impl Write,
) -> Result {
    write!(out, "[{}]\t{}[{}]", port.number, id(far), far_port.number)?;
    if !far.is_switch() {
        write!(out, "({:x}) ", far_port.guid.get())?;
    }
    write!(
        out,
        "\t\t# \"{}\" lid {} ",
        far.name(),
        topology.lid_of(far, far_port)
    )?;
    write_rate(topology, node, port, options, out)
}

fn write_ca_port(
    topology: &Topology,
    (node, port): (&Node, &Port),
    (far, far_port): (&Node, &Port),
    options: &Options<'_>,
    out: &mut impl Write,
) -> Result {
    write!(
        out,
        "[{}]({:x}) \t{}[{}]",
        port.number,
        port.guid.get(),
        id(far),
        far_port.number
    )?;
    if !far.is_switch() {
        write!(out, " ({:x}) ", far_port.guid.get())?;
    }
    write!(
        out,
        "\t\t# lid {} lmc {} \"{}\" lid {} ",
        topology.lid_of(node, port),
        topology.lmc_of(node, port),
        far.name(),
        topology.lid_of(far, far_port)
    )?;
    write_rate(topology, node, port, options, out)
}

fn write_rate(
    topology: &Topology,
    node: &Node,
    port: &Port,
    options: &Options<'_>,
    out: &mut impl Write,
) -> Result {
    match topology.rate_of(node, port) {
        Some((width, speed)) => write!(out, "{width}{speed}")?,
        None => write!(out, "?????")?,
    }
    if options.full {
        let info = port.info;
        write!(
            out,
            " s={} w={} v={}",
            info.map_or(0, |info| info.link_speed.active()),
            info.map_or(0, |info| info.link_width_active),
            info.map_or(0, |info| info.vl_cap.vl_cap()),
        )?;
    }
    writeln!(out)
}

/// `"S-0002c90000000001"`.
fn id(node: &Node) -> String {
    let letter = match node.kind() {
        NodeType::SWITCH => 'S',
        NodeType::CA => 'H',
        NodeType::ROUTER => 'R',
        _ => '?',
    };
    format!("\"{letter}-{:016x}\"", node.guid().get())
}
