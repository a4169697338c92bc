//! Service levels and lanes, in the files that ibdmchk takes with `-c` and `-d`.

use std::collections::BTreeMap;
use std::fmt::Write;

use ib_mad::id::Guid;

use super::{DumpError, hex};
use crate::routing::fabric::{Fabric, Owner};
use crate::routing::tables::{Sl, Sl2Vl, Tables};

/// Writes the service level of each path: source node GUID, destination LID, level.
///
/// # Errors
/// As the writer.
pub fn path_sl(fabric: &Fabric, tables: &Tables, out: &mut dyn Write) -> std::fmt::Result {
    let to: Vec<u16> = fabric
        .targets()
        .filter(|it| matches!(it.owner, Owner::End(_)))
        .map(|it| it.lid)
        .collect();
    for (number, end) in (0_u32..).zip(fabric.ends()) {
        let Some((switch, _)) = fabric.attachment(number) else {
            continue;
        };
        for &lid in to.iter().filter(|&&lid| lid != end.lid) {
            let level = tables.sl.get(switch, lid);
            writeln!(out, "{} {lid} {level}", end.node_guid)?;
        }
    }
    Ok(())
}

/// Writes the mapping of levels to lanes: switch GUID, in-port, out-port, 16 lanes.
///
/// # Errors
/// As the writer.
pub fn slvl(fabric: &Fabric, tables: &Tables, out: &mut dyn Write) -> std::fmt::Result {
    for (number, switch) in (0_u32..).zip(fabric.switches()) {
        for input in 0..=switch.ports {
            for output in 1..=switch.ports {
                write!(out, "{} {input} {output}", switch.guid)?;
                for pair in tables.sl2vl.map(number, input, output).chunks(2) {
                    if let &[a, b] = pair {
                        write!(out, " 0x{:02x}", (a << 4) | (b & 15))?;
                    }
                }
                writeln!(out)?;
            }
        }
    }
    Ok(())
}

/// A number, in hexadecimal with `0x` and in decimal without.
fn number(text: &str) -> Option<u16> {
    if text.starts_with("0x") {
        hex(text)
    } else {
        text.parse().ok()
    }
}

fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}

/// Reads the service levels of paths, as [`path_sl`] writes them. What is not told is level 0, and
/// what is told of sources and destinations that the fabric lacks is passed over.
///
/// # Errors
/// Where a line is not understood.
pub fn read_path_sl(fabric: &Fabric, text: &str) -> Result<Sl, DumpError> {
    let mut at: BTreeMap<Guid, u32> = BTreeMap::new();
    for (end, it) in (0_u32..).zip(fabric.ends()) {
        if let Some((switch, _)) = fabric.attachment(end) {
            at.insert(it.node_guid, switch);
        }
    }
    let columns = fabric.targets().count();
    let mut column = vec![0_u16; usize::from(fabric.top_lid()) + 1];
    for (number, target) in (0_u16..).zip(fabric.targets()) {
        if let Some(slot) = column.get_mut(usize::from(target.lid)) {
            *slot = number;
        }
    }
    let mut levels = vec![0_u8; columns * fabric.switches().len()];
    for (number_of, line) in lines(text) {
        let mut words = line.split_whitespace();
        let parsed = (|| {
            let guid = Guid::new(hex::<u64>(words.next()?)?);
            let lid = number(words.next()?)?;
            let level = u8::try_from(number(words.next()?)?)
                .ok()
                .filter(|&it| it < 16)?;
            Some((guid, lid, level))
        })();
        let Some((guid, lid, level)) = parsed else {
            return Err(DumpError::new(
                number_of,
                "no GUID, LID and service level",
                line,
            ));
        };
        if fabric.owner(lid).is_some()
            && let (Some(&switch), Some(&column)) = (at.get(&guid), column.get(usize::from(lid)))
            && let Some(slot) = levels.get_mut(switch as usize * columns + usize::from(column))
        {
            *slot = level;
        }
    }
    Ok(Sl::Pair {
        column,
        columns,
        levels,
    })
}

/// Reads the mapping of levels to lanes, as [`slvl`] writes it.
///
/// # Errors
/// Where a line is not understood.
pub fn read_slvl(fabric: &Fabric, text: &str) -> Result<Sl2Vl, DumpError> {
    let known: BTreeMap<Guid, u32> = fabric
        .switches()
        .iter()
        .map(|it| it.guid)
        .zip(0_u32..)
        .collect();
    let mut told = Vec::new();
    for (number_of, line) in lines(text) {
        let mut words = line.split_whitespace();
        let parsed = (|| {
            let guid = Guid::new(hex::<u64>(words.next()?)?);
            let input: u8 = words.next()?.parse().ok()?;
            let output: u8 = words.next()?.parse().ok()?;
            let mut map = [0_u8; 16];
            for pair in map.chunks_mut(2) {
                let both: u8 = hex(words.next()?)?;
                if let [a, b] = pair {
                    (*a, *b) = (both >> 4, both & 15);
                }
            }
            Some((guid, input, output, map))
        })();
        let Some((guid, input, output, map)) = parsed else {
            return Err(DumpError::new(
                number_of,
                "no GUID, two ports and 16 lanes",
                line,
            ));
        };
        if let Some(&switch) = known.get(&guid) {
            told.push((switch, input, output, map));
        }
    }
    Ok(Sl2Vl::by_pair(fabric, told))
}
