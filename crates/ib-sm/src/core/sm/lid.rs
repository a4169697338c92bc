//! Which port has which LIDs, for good.
//!
//! A LID that was once given to a port stays its own, over restarts, moves and absences, as long as
//! there are others to give. The file is OpenSM's `guid2lid`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ib_mad::id::Guid;

use crate::routing::MAX_LID;

/// A port that is to have LIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The port's GUID.
    pub guid: Guid,
    /// It is to have 2^lmc of them.
    pub lmc: u8,
    /// The base LID that it says to have; 0: none.
    pub current: u16,
}

/// Ranges of LIDs by port GUID; no two overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LidMap {
    ranges: BTreeMap<Guid, (u16, u16)>,
}

/// A line of a guid2lid file says nothing that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LidMapFault {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// Which LIDs are in use.
struct Used(Vec<bool>);

impl Used {
    fn is_free(&self, first: u16, count: u32) -> bool {
        let (from, to) = (usize::from(first), usize::from(first) + count as usize);
        first != 0
            && self
                .0
                .get(from..to)
                .is_some_and(|range| range.iter().all(|used| !used))
    }

    fn set(&mut self, first: u16, last: u16, used: bool) {
        for slot in self
            .0
            .iter_mut()
            .take(usize::from(last) + 1)
            .skip(usize::from(first))
        {
            *slot = used;
        }
    }
}

impl LidMap {
    /// How many ports have LIDs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether no port has any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// First and last LID of a port.
    #[must_use]
    pub fn get(&self, guid: Guid) -> Option<(u16, u16)> {
        self.ranges.get(&guid).copied()
    }

    /// Reads a guid2lid file: `0x<guid> 0x<first> 0x<last>` a line. Lines that cannot be used are
    /// returned as faults; the others count.
    #[must_use]
    pub fn parse(text: &str) -> (Self, Vec<LidMapFault>) {
        let mut map = Self::default();
        let mut used = map.used();
        let mut faults = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            match map.take_line(text, &mut used) {
                Ok(()) => {}
                Err(problem) => faults.push(LidMapFault { line, problem }),
            }
        }
        (map, faults)
    }

    fn take_line(&mut self, text: &str, used: &mut Used) -> Result<(), &'static str> {
        let mut words = text.split_ascii_whitespace();
        let (Some(guid), Some(first), Some(last), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("a GUID and two LIDs are wanted");
        };
        let guid: Guid = guid.parse().map_err(|_| "the first word is no GUID")?;
        let lid = |word: &str| match word.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        };
        let (first, last) = lid(first).zip(lid(last)).ok_or("a word is no LID")?;
        let count = u32::from(last)
            .wrapping_sub(u32::from(first))
            .wrapping_add(1);
        if first == 0 || last < first || last > MAX_LID {
            return Err("these are no unicast LIDs");
        }
        if !count.is_power_of_two() || count > 128 || !u32::from(first).is_multiple_of(count) {
            return Err("2^LMC LIDs from a multiple of that are wanted");
        }
        if self.ranges.contains_key(&guid) {
            return Err("the GUID has LIDs already");
        }
        if !used.is_free(first, count) {
            return Err("another GUID has one of these LIDs");
        }
        used.set(first, last, true);
        self.ranges.insert(guid, (first, last));
        Ok(())
    }

    /// The file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (guid, (first, last)) in &self.ranges {
            // Writing to a string does not fail. The blank line is OpenSM's.
            let _ = writeln!(text, "{guid} 0x{first:04x} 0x{last:04x}\n");
        }
        text
    }

    fn used(&self) -> Used {
        let mut used = Used(vec![false; usize::from(MAX_LID) + 1]);
        for &(first, last) in self.ranges.values() {
            used.set(first, last, true);
        }
        used
    }

    /// Gives LIDs to the ports that are there: first LIDs, in the order of the claims; 0 for a
    /// second claim of the same GUID, and where there are no LIDs left.
    ///
    /// A port keeps what is remembered, then what it says to have where nobody else has that, and
    /// else gets the lowest that is free. Only where none is free do the LIDs of ports that are
    /// not there become free.
    pub fn assign(&mut self, claims: &[Claim]) -> Vec<u16> {
        let mut used = self.used();
        let mut given: Vec<Option<u16>> = vec![None; claims.len()];
        let mut present = BTreeSet::new();
        for (claim, given) in claims.iter().zip(&mut given) {
            if !present.insert(claim.guid) || claim.guid.is_zero() {
                *given = Some(0);
                continue;
            }
            let Some((first, last)) = self.get(claim.guid) else {
                continue;
            };
            if u32::from(last) - u32::from(first) + 1 == 1 << claim.lmc {
                *given = Some(first);
            } else {
                used.set(first, last, false);
                self.ranges.remove(&claim.guid);
            }
        }
        for (claim, given) in claims.iter().zip(&mut given) {
            let count = 1_u32 << claim.lmc.min(7);
            if given.is_none()
                && u32::from(claim.current).is_multiple_of(count)
                && used.is_free(claim.current, count)
            {
                *given = Some(self.take(claim, claim.current, &mut used));
            }
        }
        let mut cursor = 1_u32;
        let mut recycled = false;
        for (claim, given) in claims.iter().zip(&mut given) {
            if given.is_some() {
                continue;
            }
            let mut found = lowest(&used, cursor, claim.lmc);
            if found.is_none() && !recycled {
                recycled = true;
                let ranges = &mut self.ranges;
                ranges.retain(|guid, &mut (first, last)| {
                    let keep = present.contains(guid);
                    if !keep {
                        used.set(first, last, false);
                    }
                    keep
                });
                cursor = 1;
                found = lowest(&used, cursor, claim.lmc);
            }
            *given = Some(match found {
                None => 0,
                Some(first) => {
                    if claim.lmc == 0 {
                        cursor = u32::from(first) + 1;
                    }
                    self.take(claim, first, &mut used)
                }
            });
        }
        given.into_iter().map(Option::unwrap_or_default).collect()
    }

    fn take(&mut self, claim: &Claim, first: u16, used: &mut Used) -> u16 {
        let last = first + ((1_u16 << claim.lmc.min(7)) - 1);
        used.set(first, last, true);
        self.ranges.insert(claim.guid, (first, last));
        first
    }
}

/// The lowest aligned range that is free, from `from` on.
fn lowest(used: &Used, from: u32, lmc: u8) -> Option<u16> {
    let count = 1_u32 << lmc.min(7);
    let mut at = from.next_multiple_of(count).max(count);
    while at + count - 1 <= u32::from(MAX_LID) {
        let first = u16::try_from(at).ok()?;
        if used.is_free(first, count) {
            return Some(first);
        }
        at += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(guid: u64, lmc: u8, current: u16) -> Claim {
        Claim {
            guid: Guid::new(guid),
            lmc,
            current,
        }
    }

    #[test]
    fn what_was_given_stays() {
        let mut map = LidMap::default();
        assert_eq!(map.assign(&[claim(7, 0, 0), claim(8, 0, 0)]), [1, 2]);
        // 7 is away, 9 comes; then 7 is back.
        assert_eq!(map.assign(&[claim(9, 0, 0), claim(8, 0, 0)]), [3, 2]);
        assert_eq!(map.assign(&[claim(9, 0, 1), claim(7, 0, 0)]), [3, 1]);
        let (again, faults) = LidMap::parse(&map.to_text());
        assert_eq!((again, faults), (map, Vec::new()));
    }

    #[test]
    fn what_ports_say_is_believed_once() {
        let mut map = LidMap::default();
        // Two say that they have 5; a third one's LID is not aligned.
        let claims = [
            claim(1, 0, 5),
            claim(2, 0, 5),
            claim(3, 2, 6),
            claim(1, 0, 9),
        ];
        assert_eq!(map.assign(&claims), [5, 1, 8, 0]);
        assert_eq!(map.get(Guid::new(3)), Some((8, 11)));
    }

    #[test]
    fn the_absent_give_way_only_when_all_is_taken() {
        let mut map = LidMap::default();
        let all: Vec<Claim> = (1..=u64::from(MAX_LID))
            .map(|guid| claim(guid, 0, 0))
            .collect();
        assert_eq!(map.assign(&all).last(), Some(&MAX_LID));
        let mut fewer = all.clone();
        fewer.truncate(10);
        fewer.push(claim(0x10_0000, 0, 0));
        assert_eq!(map.assign(&fewer).last(), Some(&11));
        assert_eq!(map.len(), 11);
    }

    #[test]
    fn bad_lines_are_told() {
        let text =
            "0x1 0x1 0x1\n0x2 0x1 0x2\n0x3 0xc000 0xc000\nrubbish\n0x4 0x4 0x7\n0x5 0x6 0x6\n";
        let (map, faults) = LidMap::parse(text);
        assert_eq!(map.len(), 2);
        let lines: Vec<usize> = faults.iter().map(|fault| fault.line).collect();
        assert_eq!(lines, [2, 3, 4, 6]);
    }
}
