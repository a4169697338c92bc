//! Linear forwarding tables: `.fdbs`, `lfts.dump`, and what `dump_fts` prints.

use std::fmt::Write;

use ib_mad::id::Guid;

use super::{Dump, DumpError, hex};
use crate::routing::fabric::{EndKind, Fabric, MAX_LID, Owner};
use crate::routing::graph::{Graph, NONE};
use crate::routing::quality::Tree;
use crate::routing::tables::{NO_PORT, Tables};

/// Reads forwarding tables, whichever of the formats they are in.
///
/// Lines that are none of a table are passed over, so that a log around it does no harm; an
/// entry that is not understood is an error.
///
/// ```
/// let text = "Unicast lids [0-2] of switch Lid 2 guid 0x2000 ('leaf'):\n0x0001 003 # Channel Adapter\n1 lids dumped\n";
/// let dump = ib_sm::routing::dump::read(text).unwrap();
/// assert_eq!(dump.len(), 1);
/// ```
///
/// # Errors
/// Where an entry is not understood, or stands before any switch is named.
pub fn read(text: &str) -> Result<Dump, DumpError> {
    let mut dump = Dump::default();
    let mut current: Option<Guid> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        if trimmed.starts_with("Multicast mlids") || trimmed.contains("mcast") {
            // Multicast tables may follow; their entries look alike.
            current = None;
            continue;
        }
        if let Some(guid) = header(trimmed) {
            let guid =
                guid.ok_or_else(|| DumpError::new(number, "the switch has no GUID", line))?;
            dump.switches.entry(guid).or_default();
            current = Some(guid);
            continue;
        }
        if !trimmed.starts_with("0x") {
            continue;
        }
        let Some(guid) = current else {
            continue;
        };
        let Some(entry) = entry(trimmed) else {
            return Err(DumpError::new(number, "no LID with a port", line));
        };
        let Some((lid, port)) = entry else {
            continue;
        };
        if lid == 0 || lid > MAX_LID {
            return Err(DumpError::new(number, "no unicast LID", line));
        }
        if let Some(entries) = dump.switches.get_mut(&guid) {
            entries.push((lid, port));
        }
    }
    Ok(dump)
}

/// The switch that a line names: none where it names none, and none inside where it fails to.
#[expect(clippy::option_option, reason = "no header, a bad one, a good one")]
fn header(line: &str) -> Option<Option<Guid>> {
    let rest = if let Some((_, rest)) = line.split_once("dump_ucast_routes: Switch ") {
        rest
    } else if line.starts_with("Unicast lids ") {
        line.split_once(" guid ").map_or("", |(_, rest)| rest)
    } else if line.starts_with("Switch ") && line.contains("0x") && !line.contains(',') {
        // ibdiagnet of some ages leaves the function's name out.
        line.strip_prefix("Switch ").unwrap_or("")
    } else {
        return None;
    };
    let word = rest.split([' ', ':', '(', '\t']).find(|it| !it.is_empty());
    Some(word.and_then(hex::<u64>).map(Guid::new))
}

/// An entry; nothing inside where it says that there is no way.
#[expect(
    clippy::option_option,
    reason = "no entry, one without a way, one with"
)]
fn entry(line: &str) -> Option<Option<(u16, u8)>> {
    let mut words = line.split([' ', ':', '\t']).filter(|it| !it.is_empty());
    let lid = hex::<u16>(words.next()?)?;
    let port = words.next()?;
    // `0x0001 : UNREACHABLE`, or a path that is not possible.
    if port.starts_with(|it: char| it.is_ascii_alphabetic() || it == '-') {
        return Some(None);
    }
    let port: u8 = port.parse().ok()?;
    Some((port != NO_PORT).then_some((lid, port)))
}

/// Writes `opensm.fdbs`, which ibdmchk reads.
///
/// # Errors
/// As the writer.
pub fn write_fdbs(fabric: &Fabric, tables: &Tables, out: &mut dyn Write) -> std::fmt::Result {
    let graph = Graph::new(fabric);
    let switches = u32::try_from(fabric.switches().len()).unwrap_or(u32::MAX);
    let (mut least, mut queue, mut known) = (Vec::new(), Vec::new(), NONE);
    let mut tree = Tree::default();
    // Column by column is how hops are counted; row by row is how they are written.
    let mut hops: Vec<Vec<(u16, u8, u16, bool)>> = vec![Vec::new(); fabric.switches().len()];
    for target in fabric.targets() {
        tree.next.clear();
        tree.next.extend(
            (0..switches).map(|switch| match tables.port(switch, target.lid) {
                NO_PORT => NONE,
                _ if switch == target.switch => NONE,
                port => graph.channel(switch, port),
            }),
        );
        tree.follow(&graph, target.switch, true);
        if known != target.switch {
            known = target.switch;
            graph.hops_to(known, &mut least, &mut queue);
        }
        let end = matches!(target.owner, Owner::End(_));
        for ((switch, row), (&taken, &least)) in
            (0_u32..).zip(&mut hops).zip(tree.hops.iter().zip(&least))
        {
            let port = tables.port(switch, target.lid);
            if port != NO_PORT && taken != u16::MAX {
                row.push((target.lid, port, taken + u16::from(end), taken == least));
            }
        }
    }
    for (switch, row) in fabric.switches().iter().zip(hops) {
        writeln!(out, "dump_ucast_routes: Switch {}", switch.guid)?;
        writeln!(out, "LID    : Port : Hops : Optimal")?;
        for (lid, port, hops, best) in row {
            let best = if best { "yes" } else { "No" };
            writeln!(out, "0x{lid:04X} : {port:03}  : {hops:02}   : {best}")?;
        }
    }
    Ok(())
}

/// Writes `opensm-lfts.dump`, which OpenSM's engine `file` reads.
///
/// # Errors
/// As the writer.
pub fn write_lfts(fabric: &Fabric, tables: &Tables, out: &mut dyn Write) -> std::fmt::Result {
    for (number, switch) in (0_u32..).zip(fabric.switches()) {
        let name = plain(&switch.name);
        writeln!(
            out,
            "Unicast lids [0-{}] of switch Lid {} guid {} ('{name}'):",
            fabric.top_lid(),
            switch.lid,
            switch.guid
        )?;
        let mut count = 0;
        for target in fabric.targets() {
            let port = tables.port(number, target.lid);
            if port == NO_PORT {
                continue;
            }
            count += 1;
            let (kind, guid, name) = match target.owner {
                Owner::Switch(at) => fabric
                    .switches()
                    .get(at as usize)
                    .map(|it| ("Switch", it.guid, it.name.as_str())),
                Owner::End(at) => fabric.ends().get(at as usize).map(|it| {
                    let kind = match it.kind {
                        EndKind::Adapter => "Channel Adapter",
                        EndKind::Router => "Router",
                    };
                    (kind, it.port_guid, it.name.as_str())
                }),
            }
            .unwrap_or_default();
            writeln!(
                out,
                "0x{:04x} {port:03} # {kind} portguid {guid}: '{}'",
                target.lid,
                plain(name)
            )?;
        }
        writeln!(out, "{count} lids dumped")?;
    }
    Ok(())
}

/// A name on one line.
pub(super) fn plain(name: &str) -> String {
    name.chars()
        .map(|it| {
            if it.is_control() || matches!(it, '{' | '}') {
                '_'
            } else {
                it
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_opensm_writes_is_read() {
        let text = "dump_ucast_routes: Switch 0x0000000000002000\nLID    : Port : Hops : Optimal\n\
                    0x0001 : 001  : 01   : yes\n0x0003 : 255  : 00   : yes\n0x0004 : UNREACHABLE\n";
        let dump = read(text).unwrap();
        assert_eq!(dump.switches[&Guid::new(0x2000)], [(1, 1)]);
        let text = "Unicast lids [0-5] of switch Lid 2 guid 0x0000000000002000 ('leaf a'):\n\
                    0x0001 001 # Channel Adapter portguid 0x0000000000001001: 'host a'\n5 lids dumped\n";
        assert_eq!(read(text).unwrap(), dump);
        let text = "Unicast lids [0x0-0x6] of switch DR path slid 0; dlid 0; 0,1 guid 0x0000000000002000 (leaf a):\n\
                    \x20 Lid  Out   Destination\n       Port     Info\n0x0001 001 : (Channel Adapter portguid 0x1001: 'a')\n";
        assert_eq!(read(text).unwrap(), dump);
    }

    #[test]
    fn what_is_no_entry_is_refused_with_its_line() {
        let head = "dump_ucast_routes: Switch 0x2000\n";
        for (bad, what) in [
            ("0x0001 : 256  : 01", "no LID with a port"),
            ("0xg : 1", "no LID with a port"),
            ("0xC000 : 001", "no unicast LID"),
            ("0x0000 : 001", "no unicast LID"),
        ] {
            let error = read(&format!("{head}{bad}\n")).unwrap_err();
            assert_eq!((error.line, error.what), (2, what), "{bad}");
        }
        assert!(read("dump_ucast_routes: Switch zero\n").is_err());
    }
}
