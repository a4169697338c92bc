//! Service levels and lanes, in the files that ibdmchk takes with `-c` and `-d`.

use std::fmt::Write;

use crate::routing::fabric::{Fabric, Owner};
use crate::routing::tables::Tables;

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
