//! Fabrics to be routed offline, and what is told about them in files.

use std::path::Path;

use ib_mad::id::Guid;
use rdma_cli::{Context, Exit, Failure, read_file};

use crate::routing::{Fabric, FabricError, dump};

/// The longest file of a fabric, and of tables.
pub(super) const MAX_FILE: u64 = 1 << 30;

/// Reads or generates a fabric.
pub(super) fn load(ctx: &Context, text: &str) -> Result<Fabric, Failure> {
    let path = Path::new(text);
    if path.is_file() {
        let bytes = read_file(path, MAX_FILE)?;
        let subnet = String::from_utf8_lossy(&bytes);
        if dump::is_subnet(&subnet) {
            return dump::read_subnet(&subnet).map_err(|error| {
                Failure::new(Exit::Input, "subnet-file", format!("{text}: {error}"))
            });
        }
    }
    simulated(ctx, text)
}

#[cfg(feature = "sim")]
fn simulated(ctx: &Context, text: &str) -> Result<Fabric, Failure> {
    let topology = super::device::simulated::topology(ctx, text)?;
    Fabric::of_sim(&topology).map_err(|error| unfit(text, &error))
}

#[cfg(not(feature = "sim"))]
fn simulated(_: &Context, text: &str) -> Result<Fabric, Failure> {
    let _ = unfit;
    Err(Failure::new(
        Exit::Input,
        "subnet-file",
        format!("{text} is no opensm-subnet.lst"),
    ))
}

fn unfit(text: &str, error: &FabricError) -> Failure {
    Failure::new(Exit::Input, "fabric", format!("{text}: {error}"))
}

/// The lines of a file that say anything, with their numbers.
fn lines(path: &Path) -> Result<Vec<(usize, String)>, Failure> {
    let bytes = read_file(path, MAX_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let said = |line: &str| line.split('#').next().unwrap_or("").trim().to_owned();
    Ok((1..)
        .zip(text.lines().map(said))
        .filter(|(_, line)| !line.is_empty())
        .collect())
}

fn bad(path: &Path, line: usize, want: &str) -> Failure {
    let text = format!("{}:{line}: {want} is wanted", path.display());
    Failure::new(Exit::Input, "guid-file", text)
}

/// GUIDs, one a line.
pub(super) fn guids(path: &Path) -> Result<Vec<Guid>, Failure> {
    lines(path)?
        .into_iter()
        .map(|(number, line)| {
            let word = line.split_whitespace().next().unwrap_or("");
            word.parse().map_err(|_| bad(path, number, "a GUID"))
        })
        .collect()
}

/// A GUID and numbers after it, on each line.
pub(super) fn numbered(path: &Path, want: &str) -> Result<Vec<(Guid, Vec<u8>)>, Failure> {
    lines(path)?
        .into_iter()
        .map(|(number, line)| {
            let mut words = line.split_whitespace();
            let guid = words.next().and_then(|it| it.parse().ok());
            let numbers: Option<Vec<u8>> = words.map(|it| it.parse().ok()).collect();
            match (guid, numbers) {
                (Some(guid), Some(numbers)) if !numbers.is_empty() => Ok((guid, numbers)),
                _ => Err(bad(path, number, want)),
            }
        })
        .collect()
}
