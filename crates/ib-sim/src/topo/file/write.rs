//! The writer of net files.

use std::fmt::Write as _;

use super::super::{Kind, Node, Peer, Port, Speeds, Topology, Widths};

/// Writes a topology as a net file, in the form of an `ibnetdiscover` dump, that ibsim loads and
/// [`read`](super::read()) reads back as the same topology.
///
/// Characters that would break a line are replaced in descriptions. Masks that are not what a
/// rate's name stands for are written as `w=`, `s=` and `e=`, which cannot say FDR10 and XDR.
#[must_use]
pub fn write(topology: &Topology) -> String {
    let mut out = String::from(
        "# Net file: nodes with their ports and cables, as ibsim and ibnetdiscover have them\n",
    );
    for node in topology.nodes() {
        // Writing to a String cannot fail.
        let _ = write_node(&mut out, topology, node);
    }
    out
}

fn write_node(out: &mut String, topology: &Topology, node: &Node) -> std::fmt::Result {
    writeln!(
        out,
        "\nvendid={:#x}\ndevid={:#x}",
        node.vendor_id, node.device_id
    )?;
    if node.system_guid != node.guid {
        writeln!(out, "sysimgguid={:#x}", node.system_guid)?;
    }
    let word = node.kind.word();
    let description = Line(&node.description);
    match node.kind {
        Kind::Switch => {
            writeln!(out, "switchguid={0:#x}({0:x})", node.guid)?;
            write!(
                out,
                "{word}\t{} \"{}\"\t\t# \"{description}\"",
                node.port_count, node.id
            )?;
            match node.enhanced_port_zero {
                Some(true) => out.push_str(" enhanced port 0"),
                Some(false) => out.push_str(" base port 0"),
                None => {}
            }
            let (lid, lmc) = node.port(0).map_or((0, 0), |p| (p.lid, p.lmc));
            writeln!(out, " lid {lid} lmc {lmc}")?;
        }
        Kind::Ca | Kind::Router => {
            let key = if node.kind == Kind::Ca {
                "caguid"
            } else {
                "rtguid"
            };
            writeln!(out, "{key}={:#x}", node.guid)?;
            writeln!(
                out,
                "{word}\t{} \"{}\"\t\t# \"{description}\"",
                node.port_count, node.id
            )?;
        }
    }
    for port in node.ports() {
        if let Some((peer, far)) = port
            .peer
            .and_then(|peer| Some((peer, topology.node(peer.node)?)))
        {
            write_port(out, node, port, peer, far)?;
        }
    }
    Ok(())
}

fn write_port(
    out: &mut String,
    node: &Node,
    port: &Port,
    peer: Peer,
    far: &Node,
) -> std::fmt::Result {
    write!(out, "[{}]", port.number)?;
    if !node.is_switch() {
        write!(out, "({:x}) ", node.port_guid(port.number))?;
    }
    write!(out, "\t\"{}\"[{}]", far.id, peer.port)?;
    if !far.is_switch() {
        write!(out, "({:x}) ", far.port_guid(peer.port))?;
    }
    let rate = label(port);
    if rate.is_none() {
        write!(
            out,
            " w={} s={} e={}",
            port.widths.mask(),
            port.speeds.base_mask(),
            port.speeds.ext_mask()
        )?;
    }
    out.push_str("\t\t#");
    if !node.is_switch() {
        write!(out, " lid {} lmc {}", port.lid, port.lmc)?;
    }
    let far_lid = far
        .port(if far.is_switch() { 0 } else { peer.port })
        .map_or(0, |p| p.lid);
    write!(out, " \"{}\" lid {far_lid}", Line(&far.description))?;
    if let Some((widths, speeds)) = rate {
        write!(out, " {widths}{speeds}")?;
    }
    out.push('\n');
    Ok(())
}

/// The name of the port's enabled rates, where a name stands for just these.
fn label(port: &Port) -> Option<(Widths, Speeds)> {
    let widths = Widths::up_to(&port.widths.to_string())?;
    let speeds = Speeds::up_to(&port.speeds.to_string())?;
    (widths == port.widths && speeds == port.speeds).then_some((widths, speeds))
}

/// A description on one line.
struct Line<'a>(&'a str);

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for c in self.0.chars() {
            f.write_char(if c.is_control() { '?' } else { c })?;
        }
        Ok(())
    }
}
