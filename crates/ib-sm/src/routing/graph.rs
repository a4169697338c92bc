//! The switches of a fabric as flat arrays: what engines and the verifier walk over.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and ports than 32 bits count, and ports fit in 8"
)]

use std::collections::BTreeMap;

use ib_mad::id::Guid;

use super::fabric::{Fabric, Owner, Place, Target};
use super::tables::{NO_PORT, Tables};

/// No channel, no switch, no column.
pub(super) const NONE: u32 = u32::MAX;

/// Cables between switches, each as two *channels*, one a direction.
///
/// Channels are numbered by their switch, then by their neighbour, then by port, so that parallel
/// cables stand together.
#[derive(Debug)]
pub(super) struct Graph {
    /// Switches.
    pub(super) n: usize,
    /// Where the channels out of each switch begin.
    pub(super) first: Vec<u32>,
    /// Where each channel leads.
    pub(super) to: Vec<u32>,
    /// Where it comes from.
    pub(super) from: Vec<u32>,
    /// By which port it leaves.
    pub(super) port: Vec<u8>,
    /// The channel of the same cable in the other direction.
    pub(super) back: Vec<u32>,
    /// What a hop over it counts.
    pub(super) weight: Vec<u8>,
    /// End ports at each switch that send and receive.
    pub(super) hosts: Vec<u32>,
    base: Vec<u32>,
    by_port: Vec<u32>,
}

impl Graph {
    pub(super) fn new(fabric: &Fabric) -> Self {
        Self::weighted(fabric, &BTreeMap::new())
    }

    /// With hops that count more than one, by switch GUID and port.
    pub(super) fn weighted(fabric: &Fabric, weights: &BTreeMap<(Guid, u8), u8>) -> Self {
        let n = fabric.switches().len();
        let mut base = Vec::with_capacity(n + 1);
        let (mut first, mut to, mut from, mut port) = (vec![0_u32], vec![], vec![], vec![]);
        let mut total = 0_u32;
        for (switch, it) in (0_u32..).zip(fabric.switches()) {
            base.push(total);
            total += u32::from(it.ports) + 1;
            let mut out: Vec<(u32, u8)> = (0_u8..=it.ports)
                .zip(fabric.ports_of(switch))
                .filter_map(|(number, slot)| match slot.as_ref()?.peer {
                    // A cable from a switch to itself leads nowhere.
                    Place::Switch { switch: to, .. } if to != switch => Some((to, number)),
                    _ => None,
                })
                .collect();
            out.sort_unstable();
            for (there, number) in out {
                to.push(there);
                from.push(switch);
                port.push(number);
            }
            first.push(to.len() as u32);
        }
        base.push(total);
        let mut by_port = vec![NONE; total as usize];
        for channel in 0..to.len() {
            by_port[(base[from[channel] as usize] + u32::from(port[channel])) as usize] =
                channel as u32;
        }
        let mut back = vec![NONE; to.len()];
        let mut weight = vec![1; to.len()];
        for channel in 0..to.len() {
            let (switch, number) = (from[channel], port[channel]);
            if let Some(Place::Switch { switch, port }) =
                fabric.port(switch, number).map(|it| it.peer)
            {
                back[channel] = by_port[(base[switch as usize] + u32::from(port)) as usize];
            }
            if !weights.is_empty() {
                let guid = fabric.switches()[switch as usize].guid;
                weight[channel] = weights.get(&(guid, number)).copied().unwrap_or(1).max(1);
            }
        }
        let mut hosts = vec![0; n];
        for (end, it) in (0_u32..).zip(fabric.ends()) {
            if it.lid != 0
                && let Some((switch, _)) = fabric.attachment(end)
            {
                hosts[switch as usize] += 1;
            }
        }
        Self {
            n,
            first,
            to,
            from,
            port,
            back,
            weight,
            hosts,
            base,
            by_port,
        }
    }

    /// Channels in all.
    pub(super) fn channels(&self) -> usize {
        self.to.len()
    }

    /// The channels out of a switch.
    pub(super) fn out(&self, switch: u32) -> std::ops::Range<usize> {
        self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize
    }

    /// The channel that leaves a switch by a port; [`NONE`] where that leads to no switch.
    pub(super) fn channel(&self, switch: u32, port: u8) -> u32 {
        let at = self.base[switch as usize] + u32::from(port);
        if at < self.base[switch as usize + 1] {
            self.by_port[at as usize]
        } else {
            NONE
        }
    }

    /// The different neighbours of a switch, each with its channels.
    pub(super) fn neighbours(&self, switch: u32) -> Neighbours<'_> {
        let range = self.out(switch);
        Neighbours {
            graph: self,
            at: range.start,
            end: range.end,
        }
    }

    /// Hops from every switch to one; `u16::MAX` where there is no way.
    pub(super) fn hops_to(&self, target: u32, hops: &mut Vec<u16>, queue: &mut Vec<u32>) {
        hops.clear();
        hops.resize(self.n, u16::MAX);
        queue.clear();
        queue.push(target);
        hops[target as usize] = 0;
        let mut at = 0;
        while at < queue.len() {
            let switch = queue[at];
            at += 1;
            let next = hops[switch as usize] + 1;
            for channel in self.out(switch) {
                let there = self.to[channel] as usize;
                if hops[there] == u16::MAX {
                    hops[there] = next;
                    queue.push(there as u32);
                }
            }
        }
    }
}

/// Runs over the neighbours of a switch.
#[derive(Debug)]
pub(super) struct Neighbours<'a> {
    graph: &'a Graph,
    at: usize,
    end: usize,
}

impl Iterator for Neighbours<'_> {
    type Item = (u32, std::ops::Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let from = self.at;
        if from >= self.end {
            return None;
        }
        let there = self.graph.to[from];
        while self.at < self.end && self.graph.to[self.at] == there {
            self.at += 1;
        }
        Some((there, from..self.at))
    }
}

/// Destinations, by the switch at which they hang.
#[derive(Debug)]
pub(super) struct Targets {
    /// All, sorted by switch, then by LID.
    pub(super) all: Vec<Target>,
    /// Where those of each switch begin.
    pub(super) first: Vec<u32>,
}

impl Targets {
    pub(super) fn new(fabric: &Fabric, graph: &Graph) -> Self {
        let mut all: Vec<Target> = fabric.targets().collect();
        all.sort_by_key(|it| (it.switch, it.lid));
        let mut first = vec![0; graph.n + 1];
        for target in &all {
            first[target.switch as usize + 1] += 1;
        }
        for at in 0..graph.n {
            first[at + 1] += first[at];
        }
        Self { all, first }
    }

    /// Those at a switch.
    pub(super) fn at(&self, switch: u32) -> &[Target] {
        &self.all[self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize]
    }
}

/// Whether a target is an end port, which others send to, rather than a switch's own port.
pub(super) fn is_end(target: &Target) -> bool {
    matches!(target.owner, Owner::End(_))
}

/// Calls `route` for every switch that has targets, with room for a column of ports for each of
/// them, and puts the columns into the tables. Returns what the calls return.
///
/// With more than one worker, each takes a part of the switches; what comes out is the same.
pub(super) fn route_all<S, R: Send>(
    graph: &Graph,
    targets: &Targets,
    workers: usize,
    tables: &mut Tables,
    scratch: impl Fn() -> S + Sync,
    route: impl Fn(&mut S, u32, &mut [u8]) -> R + Sync,
) -> Vec<R> {
    let switches: Vec<u32> = (0..graph.n as u32)
        .filter(|&it| !targets.at(it).is_empty())
        .collect();
    let part = &|switches: &[u32]| {
        let count: usize = switches.iter().map(|&it| targets.at(it).len()).sum();
        let mut columns = vec![NO_PORT; count * graph.n];
        let mut lids = Vec::with_capacity(count);
        let mut results = Vec::with_capacity(switches.len());
        let mut scratch = scratch();
        let mut from = 0;
        for &switch in switches {
            let here = targets.at(switch);
            let to = from + here.len() * graph.n;
            results.push(route(&mut scratch, switch, &mut columns[from..to]));
            lids.extend(here.iter().map(|it| it.lid));
            from = to;
        }
        (lids, columns, results)
    };
    let mut results = Vec::with_capacity(switches.len());
    // In batches, so that columns and tables are not both whole in memory at once.
    let workers = workers.clamp(1, 64);
    for batch in switches.chunks(256) {
        let share = batch.len().div_ceil(workers);
        let done: Vec<_> = if workers == 1 {
            vec![part(batch)]
        } else {
            std::thread::scope(|scope| {
                let started: Vec<_> = batch
                    .chunks(share)
                    .map(|mine| scope.spawn(move || part(mine)))
                    .collect();
                started
                    .into_iter()
                    .map(|it| {
                        it.join()
                            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    })
                    .collect()
            })
        };
        for (lids, columns, mut more) in done {
            tables.fill(&lids, &columns, graph.n);
            results.append(&mut more);
        }
    }
    results
}
