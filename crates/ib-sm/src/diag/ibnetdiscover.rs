//! The text that ibnetdiscover prints, byte for byte, so that what reads it reads ours.
//!
//! Facts are from `infiniband-diags/ibnetdiscover.c` of rdma-core. The tool lists the last node
//! found first; so does this.

use std::fmt::{Result, Write};

use ib_mad::smp::NodeType;

use super::chassis::{Chassis, Grouping, is_adapter, is_xsigo, is_xsigo_hca, is_xsigo_tca};
use crate::core::topology::{Node, NodeIndex, Port, Topology};

/// How it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// `-f`: speed, width and virtual lanes as numbers, too.
    pub full: bool,
    /// `-g`: by the boxes that nodes share.
    pub group: bool,
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
    let mut writer = Writer {
        topology,
        grouping: options.group.then(|| Grouping::new(topology)),
        full: options.full,
        out,
    };
    writer.write()
}

struct Writer<'a, W> {
    topology: &'a Topology,
    grouping: Option<Grouping>,
    full: bool,
    out: &'a mut W,
}

impl<W: Write> Writer<'_, W> {
    fn write(&mut self) -> Result {
        if let Some(grouping) = self.grouping.take() {
            let boxes = grouping.boxes.clone();
            self.grouping = Some(grouping);
            for chassis in boxes.iter().filter(|chassis| chassis.number != 0) {
                self.write_chassis(chassis)?;
            }
            writeln!(self.out, "\nNon-Chassis Nodes")?;
        }
        for kind in [NodeType::SWITCH, NodeType::CA, NodeType::ROUTER] {
            for (index, node) in self.topology.iter().rev() {
                if node.kind() == kind && self.chassis_of(index).is_none() {
                    self.write_node(index, node, None)?;
                }
            }
        }
        Ok(())
    }

    fn chassis_of(&self, index: NodeIndex) -> Option<&Chassis> {
        self.grouping.as_ref()?.chassis_of(index)
    }

    fn write_chassis(&mut self, chassis: &Chassis) -> Result {
        write!(self.out, "\nChassis {}", chassis.number)?;
        if !chassis.guid.is_zero() {
            write!(self.out, " (guid 0x{:x})", chassis.guid.get())?;
        }
        writeln!(self.out)?;
        let topology = self.topology;
        let members = || {
            chassis
                .nodes
                .iter()
                .filter_map(|&index| Some((index, topology.node(index)?)))
        };
        let mut host = None;
        if is_xsigo(chassis.guid) {
            for (_, node) in members().filter(|(_, node)| is_xsigo_hca(node.guid())) {
                writeln!(self.out, "Hostname: {}", node.name())?;
                host = Some(node.name());
            }
        }
        for (title, boards) in [("Spine", &chassis.spines), ("Line", &chassis.lines)] {
            write!(self.out, "\n# {title} Nodes")?;
            // The tool keeps a board whose slot makes no sense in slot 0 and does not print it.
            for (_, &index) in boards.iter().filter(|(slot, _)| **slot > 0) {
                if let Some(node) = topology.node(index) {
                    self.write_node(index, node, host.as_deref())?;
                }
            }
        }
        write!(self.out, "\n# Chassis Switches")?;
        for (index, node) in members().filter(|(_, node)| node.is_switch()) {
            self.write_node(index, node, host.as_deref())?;
        }
        write!(self.out, "\n# Chassis CAs")?;
        for (index, node) in members().filter(|(_, node)| is_adapter(node)) {
            self.write_node(index, node, host.as_deref())?;
        }
        Ok(())
    }

    fn write_ids(&mut self, index: NodeIndex, node: &Node, host: Option<&str>) -> Result {
        let info = &node.info;
        writeln!(self.out, "\nvendid=0x{:x}", info.vendor_id.get())?;
        writeln!(self.out, "devid=0x{:x}", info.device_id.get())?;
        let has_guid = !info.system_image_guid.is_zero();
        if has_guid {
            write!(self.out, "sysimgguid=0x{:x}", info.system_image_guid.get())?;
        }
        let number = self.chassis_of(index).map(|chassis| chassis.number);
        if let Some(number) = number {
            write!(self.out, "\t\t# Chassis {number}")?;
            if let Some(host) = host {
                write!(self.out, " ({host})")?;
            }
            let port = self.topology.port_of(node, 1);
            if let Some((_, far_port)) = port.and_then(|port| self.topology.peer_of(port))
                && is_xsigo_tca(node.guid())
            {
                write!(self.out, " slot {}", far_port.number)?;
            }
        }
        if has_guid || number.is_some() {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn write_node(&mut self, index: NodeIndex, node: &Node, host: Option<&str>) -> Result {
        self.write_ids(index, node, host)?;
        let info = &node.info;
        let guid = info.node_guid.get();
        if node.is_switch() {
            write!(
                self.out,
                "switchguid=0x{guid:x}({:x})",
                info.port_guid.get()
            )?;
            self.write_seat(index)?;
            let enhanced = node.switch.is_some_and(|it| it.flags.enhanced_port0());
            let port0 = self.topology.port_of(node, 0).and_then(|port| port.info);
            writeln!(
                self.out,
                "\nSwitch\t{} {}\t\t# \"{}\" {} port 0 lid {} lmc {}",
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
            let (ports, id, name) = (info.num_ports, id(node), node.name());
            writeln!(self.out, "{long}guid=0x{guid:x}")?;
            write!(self.out, "{short}\t{ports} {id}\t\t# \"{name}\"")?;
            if self.grouping.is_some() && is_xsigo_hca(info.node_guid) {
                write!(self.out, " (scp)")?;
            }
            writeln!(self.out)?;
        }
        for port in self
            .topology
            .ports_of(node)
            .iter()
            .filter(|port| port.number > 0)
        {
            if let Some((far, far_port)) = self.topology.peer_of(port) {
                self.write_port((node, port), (far, far_port))?;
            }
        }
        Ok(())
    }

    /// Model and board, after a switch's GUID.
    fn write_seat(&mut self, index: NodeIndex) -> Result {
        let Some(grouping) = &self.grouping else {
            return Ok(());
        };
        write!(self.out, "\t# ")?;
        let seat = grouping.seat(index).filter(|seat| seat.chassis.is_some());
        if let Some(seat) = seat {
            if let Some(model) = &seat.model {
                write!(self.out, "{model} ")?;
            }
            if let Some((board, slot, chip)) = seat.board {
                write!(self.out, "{} {slot} Chip {chip}", board.name())?;
            }
        }
        Ok(())
    }

    /// What is printed at the box beside the port.
    fn label(&self, node: &Node, port: &Port) -> String {
        let label = self
            .grouping
            .as_ref()
            .and_then(|grouping| grouping.label(self.topology.index_of(node, port)?));
        label.map_or_else(String::new, |label| format!("[ext {label}]"))
    }

    fn write_port(
        &mut self,
        (node, port): (&Node, &Port),
        (far, far_port): (&Node, &Port),
    ) -> Result {
        let topology = self.topology;
        let far_label = self.label(far, far_port);
        write!(self.out, "[{}]", port.number)?;
        if node.is_switch() {
            let label = self.label(node, port);
            write!(
                self.out,
                "{label}\t{}[{}]{far_label}",
                id(far),
                far_port.number
            )?;
            if !far.is_switch() {
                write!(self.out, "({:x}) ", far_port.guid.get())?;
            }
            write!(self.out, "\t\t#")?;
        } else {
            write!(self.out, "({:x}) ", port.guid.get())?;
            write!(self.out, "\t{}[{}]{far_label}", id(far), far_port.number)?;
            if !far.is_switch() {
                write!(self.out, " ({:x}) ", far_port.guid.get())?;
            }
            let (lid, lmc) = (topology.lid_of(node, port), topology.lmc_of(node, port));
            write!(self.out, "\t\t# lid {lid} lmc {lmc}")?;
        }
        write!(
            self.out,
            " \"{}\" lid {} ",
            far.name(),
            topology.lid_of(far, far_port)
        )?;
        match topology.rate_of(node, port) {
            Some((width, speed)) => write!(self.out, "{width}{speed}")?,
            None => write!(self.out, "?????")?,
        }
        if self.full {
            let info = port.info;
            write!(
                self.out,
                " s={} w={} v={}",
                info.map_or(0, |info| info.link_speed.active()),
                info.map_or(0, |info| info.link_width_active),
                info.map_or(0, |info| info.vl_cap.vl_cap()),
            )?;
        }
        if node.is_switch() {
            if is_xsigo_tca(far_port.guid) {
                write!(self.out, " slot {}", port.number)?;
            } else if is_xsigo_hca(far_port.guid) {
                write!(self.out, " (scp)")?;
            }
        }
        writeln!(self.out)
    }
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
