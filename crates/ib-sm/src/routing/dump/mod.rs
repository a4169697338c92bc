//! The files in which tables and fabrics are written down.
//!
//! | file | of | read | written |
//! |---|---|---|---|
//! | `opensm.fdbs`, `ibdiagnet.fdbs` | OpenSM with `-D 0x40`, ibdiagnet | yes | yes |
//! | `opensm-lfts.dump` | OpenSM, and for its engine `file` | yes | yes |
//! | output of `dump_fts`, `ibroute` | infiniband-diags | yes | |
//! | `opensm-subnet.lst`, `ibdiagnet.lst` | OpenSM, ibdiagnet | yes | yes |
//! | path SL and SL2VL files | ibdmchk's `-c` and `-d` | yes | yes |
//! | `.mcfdbs` | OpenSM, ibdiagnet | passed over | empty |

#![warn(clippy::indexing_slicing)]

mod lanes;
mod lft;
mod subnet;

use std::collections::BTreeMap;

use ib_mad::id::Guid;

use super::fabric::Fabric;
use super::tables::Tables;

pub use lanes::{path_sl, read_path_sl, read_slvl, slvl};
pub use lft::{read, write_fdbs, write_lfts};
pub use subnet::{is_subnet, read as read_subnet, write as write_subnet};

/// A dump does not say what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}: {text:?}")]
#[non_exhaustive]
pub struct DumpError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
    /// What stands there, its first 80 characters.
    pub text: String,
}

impl DumpError {
    fn new(line: usize, what: &'static str, text: &str) -> Self {
        Self {
            line,
            what,
            text: text.trim_end().chars().take(80).collect(),
        }
    }
}

/// Forwarding tables as they were written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// By switch: LIDs with their ports, in the order of the file.
    pub switches: BTreeMap<Guid, Vec<(u16, u8)>>,
}

/// What of a dump did not fit the fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    /// Switches of the dump that the fabric does not have.
    pub unknown: Vec<Guid>,
    /// Switches of the fabric of which the dump says nothing.
    pub missing: Vec<Guid>,
}

impl Dump {
    /// Entries in all.
    #[must_use]
    pub fn len(&self) -> usize {
        self.switches.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// As tables for a fabric.
    #[must_use]
    pub fn tables(&self, fabric: &Fabric) -> (Tables, Unfit) {
        let highest = self.switches.values().flatten().map(|&(lid, _)| lid).max();
        let top = highest.unwrap_or(0).max(fabric.top_lid());
        let mut tables = Tables::blank(fabric.switches().len(), top);
        tables.account.engine = "file".to_owned();
        tables.account.shape = format!("{} entries of a file", self.len());
        (tables.account.sls, tables.account.vls) = (1, 1);
        let mut unfit = Unfit::default();
        let mut known = BTreeMap::new();
        for (number, switch) in (0_u32..).zip(fabric.switches()) {
            known.insert(switch.guid, number);
            if !self.switches.contains_key(&switch.guid) {
                unfit.missing.push(switch.guid);
            }
        }
        for (guid, entries) in &self.switches {
            match known.get(guid) {
                Some(&switch) => {
                    for &(lid, port) in entries {
                        tables.set_port(switch, lid, port);
                    }
                }
                None => unfit.unknown.push(*guid),
            }
        }
        (tables, unfit)
    }
}

/// A number in hexadecimal, with or without `0x`.
fn hex<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return None;
    }
    T::try_from(u64::from_str_radix(digits, 16).ok()?).ok()
}
