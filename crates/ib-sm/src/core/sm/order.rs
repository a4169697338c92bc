//! In which order blocks of forwarding tables are written, so that no packet ever goes in a circle.
//!
//! For one LID: a switch is written after every switch that changes and stands behind it on the
//! new way. A packet that meets a switch that has been written then follows the new way to its end,
//! and one that has not yet met any follows the old way. Neither is a circle, so no mixture is.
//!
//! A block holds 64 LIDs whose orders may contradict each other. Where they do, the entries that
//! cannot come in time are first written as "no way", in all switches that are left, and then with
//! what they are to be: until then a packet is dropped, which is no circle either. Both rounds
//! keep the rule: old or nothing, then nothing or new.

use std::collections::BTreeMap;

use crate::routing::{BLOCK, Fabric, NO_PORT, Place, Tables};

/// A block of a switch, as it is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockWrite {
    /// Place in the fabric.
    pub switch: u32,
    /// Which block.
    pub block: u16,
    /// What it is to hold.
    pub entries: [u8; BLOCK],
}

/// Rounds of writes. All of a round must have been done before one of the next begins; within a
/// round the order does not matter.
///
/// `have` says what a switch holds in a block now, by its place; none where that is not in use.
/// `changed` are the blocks to be written.
#[must_use]
pub fn rounds(
    fabric: &Fabric,
    want: &Tables,
    changed: &BTreeMap<u16, Vec<u32>>,
    have: impl Fn(u32, u16) -> [u8; BLOCK],
) -> Vec<Vec<BlockWrite>> {
    let mut rounds: Vec<Vec<BlockWrite>> = Vec::new();
    for (&block, switches) in changed {
        let mine = block_rounds(fabric, want, block, switches, &have);
        for (at, writes) in mine.into_iter().enumerate() {
            if rounds.len() <= at {
                rounds.resize_with(at + 1, Vec::new);
            }
            if let Some(round) = rounds.get_mut(at) {
                round.extend(writes);
            }
        }
    }
    rounds
}

fn wanted(want: &Tables, switch: u32, block: u16) -> [u8; BLOCK] {
    let from = usize::from(block) * BLOCK;
    let mut entries = [NO_PORT; BLOCK];
    let row = want.lft(switch).get(from..from + BLOCK).unwrap_or(&[]);
    for (to, from) in entries.iter_mut().zip(row) {
        *to = *from;
    }
    entries
}

fn block_rounds(
    fabric: &Fabric,
    want: &Tables,
    block: u16,
    switches: &[u32],
    have: &impl Fn(u32, u16) -> [u8; BLOCK],
) -> Vec<Vec<BlockWrite>> {
    let place: BTreeMap<u32, usize> = switches.iter().copied().zip(0..).collect();
    let old: Vec<[u8; BLOCK]> = switches.iter().map(|&it| have(it, block)).collect();
    let new: Vec<[u8; BLOCK]> = switches.iter().map(|&it| wanted(want, it, block)).collect();
    let changes = |at: usize, entry: usize| -> bool {
        let pair = old.get(at).zip(new.get(at));
        pair.is_some_and(|(old, new)| old.get(entry) != new.get(entry))
    };
    // For each entry of each switch: the first switch behind it on the new way that changes too.
    let first = u32::from(block) * 64;
    let behind = |at: usize, entry: usize| -> Option<usize> {
        let lid = u16::try_from(first + u32::try_from(entry).ok()?).ok()?;
        let mut switch = *switches.get(at)?;
        for _ in 0..=fabric.switches().len() {
            let port = want.port(switch, lid);
            match fabric.port(switch, port)?.peer {
                Place::Switch { switch: next, .. } => switch = next,
                Place::End(_) => return None,
            }
            if let Some(&next) = place.get(&switch)
                && changes(next, entry)
            {
                return Some(next);
            }
        }
        None
    };
    let count = switches.len();
    let mut done = vec![false; count];
    // By switch: entries and who must come before, for entries that wait for somebody.
    let waits: Vec<Vec<(usize, usize)>> = (0..count)
        .map(|at| {
            (0..BLOCK)
                .filter(|&entry| changes(at, entry))
                .filter_map(|entry| Some((entry, behind(at, entry)?)))
                .collect()
        })
        .collect();
    let write = |at: usize, entries: [u8; BLOCK]| BlockWrite {
        switch: switches.get(at).copied().unwrap_or(0),
        block,
        entries,
    };
    let mut rounds = Vec::new();
    let mut left = count;
    while left > 0 {
        let ready: Vec<usize> = (0..count)
            .filter(|&at| {
                let is_done = |it: usize| done.get(it).copied().unwrap_or(true);
                let all = waits.get(at).map_or(&[][..], Vec::as_slice);
                !is_done(at) && all.iter().all(|&(_, it)| is_done(it))
            })
            .collect();
        if !ready.is_empty() {
            let round = ready
                .iter()
                .filter_map(|&at| Some(write(at, *new.get(at)?)));
            rounds.push(round.collect());
            for at in ready {
                if let Some(slot) = done.get_mut(at) {
                    *slot = true;
                    left -= 1;
                }
            }
            continue;
        }
        // The orders contradict each other: what waits is taken out first, then put in.
        let rest: Vec<usize> = (0..count)
            .filter(|&at| !done.get(at).copied().unwrap_or(true))
            .collect();
        let mut without = Vec::new();
        let mut with = Vec::new();
        for &at in &rest {
            let (Some(new), Some(waits)) = (new.get(at), waits.get(at)) else {
                continue;
            };
            let mut entries = *new;
            for &(entry, it) in waits {
                if !done.get(it).copied().unwrap_or(true)
                    && let Some(slot) = entries.get_mut(entry)
                {
                    *slot = NO_PORT;
                }
            }
            without.push(write(at, entries));
            with.push(write(at, *new));
        }
        rounds.push(without);
        rounds.push(with);
        break;
    }
    rounds
}
