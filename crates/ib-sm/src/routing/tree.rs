//! Recognises fat trees: complete or not, with parallel cables, with faults, without root files.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches than 32 bits count"
)]

use std::collections::BTreeMap;

use super::fabric::Fabric;
use super::graph::{Graph, NONE};

/// A fat tree: ranks from the leaves, 0, upwards, and for each switch its place among its like.
#[derive(Debug)]
pub(super) struct FatTree {
    /// By switch.
    pub(super) rank: Vec<u8>,
    /// The highest.
    pub(super) top: u8,
    /// By switch: its place among those that a switch below may choose from. The same number means
    /// the same part of the tree in all of it: the aggregation switches that share their cores
    /// have the same.
    pub(super) slot: Vec<u32>,
    /// By rank: how many places there are above it.
    pub(super) width: Vec<u32>,
    /// By rank: the product of the widths below.
    pub(super) divider: Vec<u64>,
    /// All switches in the order of the tree, leaves of a pod side by side.
    pub(super) order: Vec<u32>,
    /// By rank: how many switches.
    pub(super) count: Vec<u32>,
    /// By rank: which ones.
    pub(super) by_rank: Vec<Vec<u32>>,
    /// How many leaves.
    pub(super) leaves: usize,
    /// Whether every two neighbouring ranks are joined evenly.
    pub(super) complete: bool,
}

/// How often another number of hosts is tried as what makes a leaf.
const TRIES: usize = 16;

impl FatTree {
    /// Recognises one; the error says what is in the way.
    pub(super) fn find(fabric: &Fabric, graph: &Graph, roots: &[u32]) -> Result<Self, String> {
        if graph.n == 0 {
            return Err("there is no switch".to_owned());
        }
        let rank = if roots.is_empty() {
            ranks_from_leaves(graph)?
        } else {
            ranks_from_roots(graph, roots)?
        };
        let top = rank.iter().copied().max().unwrap_or(0);
        let ordinal = ordinals(fabric, graph);
        let mut tree = Self {
            rank,
            top,
            slot: vec![0; graph.n],
            width: vec![1; usize::from(top) + 1],
            divider: vec![1; usize::from(top) + 1],
            order: Vec::new(),
            count: vec![0; usize::from(top) + 1],
            by_rank: vec![Vec::new(); usize::from(top) + 1],
            leaves: 0,
            complete: true,
        };
        for (switch, &rank) in (0_u32..).zip(&tree.rank) {
            tree.count[usize::from(rank)] += 1;
            tree.by_rank[usize::from(rank)].push(switch);
        }
        tree.leaves = tree.count[0] as usize;
        tree.place(graph, &ordinal);
        tree.complete = tree.is_complete(graph);
        Ok(tree)
    }

    fn place(&mut self, graph: &Graph, ordinal: &[u32]) {
        let by_ordinal = {
            let mut all: Vec<u32> = (0..graph.n as u32).collect();
            all.sort_by_key(|&it| ordinal[it as usize]);
            all
        };
        let above: Vec<Vec<u32>> = (0..=self.top)
            .map(|low| components(graph, ordinal, |it| self.rank[it as usize] >= low))
            .collect();
        let below: Vec<Vec<u32>> = (0..=self.top)
            .map(|high| components(graph, ordinal, |it| self.rank[it as usize] <= high))
            .collect();
        for rank in 0..self.top {
            let (low, high) = (usize::from(rank), usize::from(rank) + 1);
            // Switches one rank up that are joined from above stand for each other in different
            // pods; those of one pod that are joined are told apart by a number.
            let mut members: BTreeMap<(u32, u32, u32), Vec<u32>> = BTreeMap::new();
            for &switch in &by_ordinal {
                let at = switch as usize;
                if self.rank[at] == rank + 1 {
                    let key = (above[low][at], above[high][at], below[high][at]);
                    members.entry(key).or_default().push(switch);
                }
            }
            let mut parents: BTreeMap<u32, BTreeMap<u32, (Vec<u32>, usize)>> = BTreeMap::new();
            for (&(parent, group, pod), switches) in &members {
                let entry = parents.entry(parent).or_default().entry(group).or_default();
                entry.0.push(pod);
                entry.1 = entry.1.max(switches.len());
            }
            let mut width = 1;
            let mut offset: BTreeMap<(u32, u32), u32> = BTreeMap::new();
            for (&parent, groups) in &parents {
                // Groups without a pod in common may share a colour: one that has lost its way up
                // takes the place that it leaves empty in its pod.
                let mut colours: Vec<(Vec<u32>, usize, Vec<u32>)> = Vec::new();
                for (&group, (pods, size)) in groups {
                    let free = colours.iter().position(|(taken, ..)| {
                        pods.iter().all(|pod| taken.binary_search(pod).is_err())
                    });
                    match free {
                        Some(colour) => {
                            let (taken, most, of) = &mut colours[colour];
                            taken.extend(pods);
                            taken.sort_unstable();
                            *most = (*most).max(*size);
                            of.push(group);
                        }
                        None => colours.push((pods.clone(), *size, vec![group])),
                    }
                }
                let mut at = 0;
                for (_, size, of) in colours {
                    for group in of {
                        offset.insert((parent, group), at);
                    }
                    at += size as u32;
                }
                width = width.max(at);
            }
            for ((parent, group, _), switches) in &members {
                let first = offset.get(&(*parent, *group)).copied().unwrap_or(0);
                for (number, &switch) in (0_u32..).zip(switches) {
                    self.slot[switch as usize] = first + number;
                }
            }
            self.width[low] = width;
            self.divider[high] = self.divider[low].saturating_mul(u64::from(width));
        }
        // By the biggest part first, then by the smaller ones inside of it.
        let mut order = by_ordinal;
        order.sort_by_key(|&it| {
            let mut key: Vec<u32> = below.iter().rev().map(|of| of[it as usize]).collect();
            key.push(ordinal[it as usize]);
            key
        });
        self.order = order;
    }

    /// Whether every switch of a rank has as many cables up, and down, as its like.
    fn is_complete(&self, graph: &Graph) -> bool {
        let mut like: Vec<Option<(usize, usize)>> = vec![None; usize::from(self.top) + 1];
        (0..graph.n as u32).all(|switch| {
            let rank = self.rank[switch as usize];
            let up = graph
                .out(switch)
                .filter(|&it| self.rank[graph.to[it] as usize] > rank)
                .count();
            let cables = (up, graph.out(switch).len() - up);
            *like[usize::from(rank)].get_or_insert(cables) == cables
        })
    }

    /// In words.
    pub(super) fn words(&self) -> String {
        if self.top == 0 {
            return "one switch".to_owned();
        }
        let counts: Vec<String> = self.count.iter().map(u32::to_string).collect();
        let whole = if self.complete { "" } else { "uneven " };
        format!(
            "{whole}fat tree of {} levels, {} switches from the leaves up",
            counts.len(),
            counts.join("+")
        )
    }
}

/// The numbers of switches in an order that does not depend on how they were found: leaves by
/// their lowest port GUID, then the rest by GUID.
pub(super) fn ordinals(fabric: &Fabric, graph: &Graph) -> Vec<u32> {
    let mut lowest = vec![u64::MAX; graph.n];
    for (end, it) in (0_u32..).zip(fabric.ends()) {
        if let Some((switch, _)) = fabric.attachment(end) {
            let low = &mut lowest[switch as usize];
            *low = (*low).min(it.port_guid.get());
        }
    }
    let mut all: Vec<u32> = (0..graph.n as u32).collect();
    all.sort_by_key(|&it| (lowest[it as usize], fabric.switches()[it as usize].guid));
    let mut ordinal = vec![0; graph.n];
    for (number, switch) in (0_u32..).zip(all) {
        ordinal[switch as usize] = number;
    }
    ordinal
}

/// By switch: the lowest ordinal of those that it is joined with, among those that `has` admits.
fn components(graph: &Graph, ordinal: &[u32], has: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut of = vec![NONE; graph.n];
    let mut stack = Vec::new();
    let mut by_ordinal: Vec<u32> = (0..graph.n as u32).filter(|&it| has(it)).collect();
    by_ordinal.sort_by_key(|&it| ordinal[it as usize]);
    for start in by_ordinal {
        if of[start as usize] != NONE {
            continue;
        }
        let name = ordinal[start as usize];
        of[start as usize] = name;
        stack.push(start);
        while let Some(switch) = stack.pop() {
            for channel in graph.out(switch) {
                let there = graph.to[channel];
                if of[there as usize] == NONE && has(there) {
                    of[there as usize] = name;
                    stack.push(there);
                }
            }
        }
    }
    of
}

fn distances(graph: &Graph, from: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut hops = vec![NONE; graph.n];
    let mut queue: Vec<u32> = from.collect();
    for &start in &queue {
        hops[start as usize] = 0;
    }
    let mut at = 0;
    while let Some(&switch) = queue.get(at) {
        at += 1;
        for channel in graph.out(switch) {
            let there = graph.to[channel] as usize;
            if hops[there] == NONE {
                hops[there] = hops[switch as usize] + 1;
                queue.push(there as u32);
            }
        }
    }
    hops
}

fn is_levelled(graph: &Graph, rank: &[u32]) -> bool {
    (0..graph.channels()).all(|it| {
        let (a, b) = (rank[graph.from[it] as usize], rank[graph.to[it] as usize]);
        a.abs_diff(b) == 1
    })
}

fn narrow(rank: Vec<u32>) -> Result<Vec<u8>, String> {
    rank.into_iter()
        .map(|rank| u8::try_from(rank).ok().filter(|&rank| rank < 16))
        .collect::<Option<_>>()
        .ok_or_else(|| "it has parts that do not hang together, or more than 16 levels".to_owned())
}

fn ranks_from_leaves(graph: &Graph) -> Result<Vec<u8>, String> {
    if graph.n == 1 {
        return Ok(vec![0]);
    }
    let mut counts: Vec<u32> = graph.hosts.iter().copied().filter(|&it| it > 0).collect();
    let all: u64 = counts.iter().map(|&it| u64::from(it)).sum();
    counts.sort_unstable();
    counts.dedup();
    for least in counts.into_iter().take(TRIES) {
        let leaf = |it: &u32| graph.hosts[*it as usize] >= least;
        let leaves = || (0..graph.n as u32).filter(leaf);
        let on_leaves: u64 = leaves().map(|it| u64::from(graph.hosts[it as usize])).sum();
        if leaves().count() < 2 || on_leaves * 2 < all {
            break;
        }
        let rank = distances(graph, leaves());
        if is_levelled(graph, &rank) {
            return narrow(rank);
        }
    }
    Err("cables join switches of one level".to_owned())
}

fn ranks_from_roots(graph: &Graph, roots: &[u32]) -> Result<Vec<u8>, String> {
    let depth = distances(graph, roots.iter().copied());
    if !is_levelled(graph, &depth) {
        return Err("cables join switches that are equally far from the given roots".to_owned());
    }
    let deepest = depth.iter().copied().max().unwrap_or(0);
    narrow(
        depth
            .into_iter()
            .map(|it| deepest.wrapping_sub(it))
            .collect(),
    )
}
