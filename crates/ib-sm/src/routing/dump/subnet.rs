//! `opensm-subnet.lst`: every cable of a subnet, from both ends.

use std::collections::BTreeMap;
use std::fmt::Write;

use ib_mad::id::Guid;

use super::lft::plain;
use super::{DumpError, hex};
use crate::routing::fabric::{End, EndKind, Fabric, Link, MAX_LID, Owner, Place, Switch};

/// Whether a text looks like one.
#[must_use]
pub fn is_subnet(text: &str) -> bool {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .is_some_and(|line| line.starts_with("{ ") && line.contains("NodeGUID:"))
}

/// One end of a cable as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    kind: Kind,
    ports: u8,
    node: Guid,
    port_guid: Guid,
    name: String,
    lid: u16,
    port: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    Adapter,
    Router,
}

/// Reads a subnet.
///
/// LMCs are not written down: every port has its base LID only.
///
/// # Errors
/// Where a line is not understood, or lines contradict each other.
pub fn read(text: &str) -> Result<Fabric, DumpError> {
    let mut fabric = Fabric::new();
    let mut switches: BTreeMap<Guid, u32> = BTreeMap::new();
    let mut ends: BTreeMap<Guid, u32> = BTreeMap::new();
    let mut cables: BTreeMap<Place, Place> = BTreeMap::new();
    let mut last = 0;
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        last = number;
        let bad = |what| DumpError::new(number, what, line);
        let (a, rest) = side(line.trim()).ok_or_else(|| bad("no cable"))?;
        let (b, _) = side(rest.trim_start()).ok_or_else(|| bad("no other end of the cable"))?;
        if switches.len() > usize::from(MAX_LID) {
            return Err(bad("more switches than there are LIDs"));
        }
        let mut places = Vec::with_capacity(2);
        for it in [a, b] {
            let place = if it.kind == Kind::Switch {
                let port = it.port;
                let switch = *switches.entry(it.node).or_insert_with(|| {
                    fabric.add_switch(Switch {
                        guid: it.node,
                        name: it.name,
                        lid: it.lid,
                        lmc: 0,
                        ports: it.ports,
                    })
                });
                Place::Switch { switch, port }
            } else {
                Place::End(*ends.entry(it.port_guid).or_insert_with(|| {
                    fabric.add_end(End {
                        kind: if it.kind == Kind::Router {
                            EndKind::Router
                        } else {
                            EndKind::Adapter
                        },
                        node_guid: it.node,
                        port_guid: it.port_guid,
                        name: it.name,
                        port: it.port,
                        lid: it.lid,
                        lmc: 0,
                    })
                }))
            };
            places.push(place);
        }
        if let [a, b] = places[..] {
            for (from, to) in [(a, b), (b, a)] {
                if *cables.entry(from).or_insert(to) != to {
                    return Err(bad("another cable in a port that holds one"));
                }
            }
        }
    }
    for (&a, &b) in cables.iter().filter(|(a, b)| a <= b) {
        fabric.connect(a, b, Link::default());
    }
    fabric.finish().map_err(|error| {
        DumpError::new(last, "the whole does not fit together", &error.to_string())
    })
}

/// The end of a cable at the start of a text, and what follows.
fn side(text: &str) -> Option<(Side, &str)> {
    let text = text.strip_prefix('{')?.trim_start();
    let (head, rest) = text.split_once('{')?;
    // A name may hold any character but what ends it.
    let (name, rest) = rest.split_once("} LID:")?;
    let (tail, rest) = rest.split_once('}')?;
    let mut words = head.split_whitespace();
    let kind = match words.next()? {
        "SW" => Kind::Switch,
        "RT" | "Rt" => Kind::Router,
        word if word == "CA" || word.starts_with("CA-") => Kind::Adapter,
        word if word.starts_with("SW-") => Kind::Switch,
        _ => return None,
    };
    let (mut ports, mut node, mut port_guid) = (None, None, None);
    for word in words {
        let (key, value) = word.split_once(':')?;
        match key {
            "Ports" => ports = hex::<u8>(value),
            "NodeGUID" => node = hex::<u64>(value),
            "PortGUID" => port_guid = hex::<u64>(value),
            _ => {}
        }
    }
    let (lid, port) = tail.trim().split_once(' ')?;
    let port = port.trim().strip_prefix("PN:")?;
    let side = Side {
        kind,
        ports: ports?,
        node: Guid::new(node?),
        port_guid: Guid::new(port_guid?),
        name: name.to_owned(),
        lid: hex(lid)?,
        port: hex(port)?,
    };
    Some((side, rest))
}

/// Writes a subnet as OpenSM does, so that ibdmchk reads it.
///
/// # Errors
/// As the writer.
pub fn write(fabric: &Fabric, out: &mut dyn Write) -> std::fmt::Result {
    let side = |place: Place, out: &mut dyn Write| -> std::fmt::Result {
        match place {
            Place::Switch { switch, port } => {
                let Some(it) = fabric.switches().get(switch as usize) else {
                    return Ok(());
                };
                let guid = it.guid.get();
                write!(
                    out,
                    "{{ SW Ports:{:02x} SystemGUID:{guid:016x} NodeGUID:{guid:016x} PortGUID:{guid:016x} \
                     VenID:000000 DevID:0000 Rev:00000000 {{{}}} LID:{:04x} PN:{port:02x} }}",
                    it.ports,
                    plain(&it.name),
                    it.lid
                )
            }
            Place::End(end) => {
                let Some(it) = fabric.ends().get(end as usize) else {
                    return Ok(());
                };
                let kind = match it.kind {
                    EndKind::Adapter => "CA",
                    EndKind::Router => "RT",
                };
                let node = it.node_guid.get();
                write!(
                    out,
                    "{{ {kind} Ports:{:02x} SystemGUID:{node:016x} NodeGUID:{node:016x} PortGUID:{:016x} \
                     VenID:000000 DevID:0000 Rev:00000000 {{{}}} LID:{:04x} PN:{:02x} }}",
                    it.port,
                    it.port_guid.get(),
                    plain(&it.name),
                    it.lid,
                    it.port
                )
            }
        }
    };
    let mut line = |from: Place, to: Place| -> std::fmt::Result {
        side(from, out)?;
        out.write_char(' ')?;
        side(to, out)?;
        out.write_str(" PHY=4x LOG=ACT SPD=2.5\n")
    };
    for end in (0_u32..).take(fabric.ends().len()) {
        if let Some(plug) = fabric.plug_of(end) {
            line(Place::End(end), plug.peer)?;
        }
    }
    for switch in (0_u32..).take(fabric.switches().len()) {
        for (port, slot) in (0_u8..=255).zip(fabric.ports_of(switch)) {
            if let Some(it) = slot {
                line(Place::Switch { switch, port }, it.peer)?;
            }
        }
    }
    debug_assert!(fabric.owner(0).is_none_or(|it| it == Owner::Switch(0)));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "{ CA-SM Ports:01 SystemGUID:0000000000001000 NodeGUID:0000000000001000 \
        PortGUID:0000000000001001 VenID:000000 DevID:CB20 Rev:000000A1 {host {a}} LID:0001 PN:01 } \
        { SW Ports:08 SystemGUID:0000000000002003 NodeGUID:0000000000002000 PortGUID:0000000000002000 \
        VenID:000002C9 DevID:CB200000 Rev:000000A1 {leaf a} LID:0002 PN:01 } PHY=4x LOG=ACT SPD=2.5";

    #[test]
    fn a_cable_of_opensm_is_read_and_written_again() {
        let fabric = read(LINE).unwrap();
        assert_eq!((fabric.switches().len(), fabric.ends().len()), (1, 1));
        assert_eq!(fabric.ends()[0].name, "host {a}");
        assert_eq!(fabric.attachment(0), Some((0, 1)));
        let mut text = String::new();
        write(&fabric, &mut text).unwrap();
        assert_eq!(text.lines().count(), 2);
        assert_eq!(read(&text).unwrap().switches(), fabric.switches());
    }

    #[test]
    fn contradictions_are_refused() {
        let other = LINE
            .replace("1001 VenID", "1002 VenID")
            .replace("LID:0001", "LID:0003");
        let error = read(&format!("{LINE}\n{other}\n")).unwrap_err();
        assert_eq!(
            (error.line, error.what),
            (2, "another cable in a port that holds one")
        );
        assert!(read("{ CA Ports:01 }").is_err());
    }
}
