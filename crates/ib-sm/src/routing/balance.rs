//! Ways to every destination by the fewest hops, spread over the channels.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count"
)]

use super::graph::{Graph, NONE, Targets, is_end};

/// Ways to all destinations, as columns of channels.
#[derive(Debug)]
pub(super) struct Ways {
    n: usize,
    /// Column by column, in the order of `Targets::all`: by switch, the channel to go on by.
    next: Vec<u32>,
}

impl Ways {
    pub(super) fn new(n: usize, columns: usize) -> Self {
        Self {
            n,
            next: vec![NONE; n * columns],
        }
    }

    pub(super) fn of(&self, column: usize) -> &[u32] {
        &self.next[column * self.n..][..self.n]
    }

    pub(super) fn of_mut(&mut self, column: usize) -> &mut [u32] {
        &mut self.next[column * self.n..][..self.n]
    }
}

/// The order in which destinations are routed: end ports first, one of each switch in turn.
pub(super) fn turns_of(targets: &Targets) -> Vec<u32> {
    let mut order: Vec<u32> = (0..targets.all.len() as u32).collect();
    order.sort_by_key(|&at| {
        let it = &targets.all[at as usize];
        let round = at - targets.first[it.switch as usize];
        (!is_end(it), round, it.switch)
    });
    order
}

/// Loads of channels, in pairs of end ports.
#[derive(Debug)]
pub(super) struct Loads {
    pub(super) of: Vec<u64>,
    flow: Vec<u64>,
}

impl Loads {
    pub(super) fn new(graph: &Graph) -> Self {
        Self {
            of: vec![0; graph.channels()],
            flow: vec![0; graph.n],
        }
    }

    /// Adds the traffic of all end ports along ways whose switches are given the nearest first.
    pub(super) fn add(&mut self, graph: &Graph, next: &[u32], order: &[u32]) {
        self.each(graph, next, order, |load, flow| *load += flow);
    }

    /// Takes it away again.
    pub(super) fn remove(&mut self, graph: &Graph, next: &[u32], order: &[u32]) {
        self.each(graph, next, order, |load, flow| *load -= flow);
    }

    fn each(&mut self, graph: &Graph, next: &[u32], order: &[u32], what: impl Fn(&mut u64, u64)) {
        for &switch in order {
            self.flow[switch as usize] = u64::from(graph.hosts[switch as usize]);
        }
        for &switch in order.iter().rev() {
            let channel = next[switch as usize];
            if channel != NONE {
                let flow = self.flow[switch as usize];
                what(&mut self.of[channel as usize], flow);
                self.flow[graph.to[channel as usize] as usize] += flow;
            }
        }
    }

    pub(super) fn max(&self) -> u64 {
        self.of.iter().copied().max().unwrap_or(0)
    }
}

/// Fills the ways by the fewest hops: first one destination after the other, then `again` times each
/// once more with the loads of all others known.
pub(super) fn shortest(
    graph: &Graph,
    targets: &Targets,
    again: usize,
    ways: &mut Ways,
    loads: &mut Loads,
) {
    let order = turns_of(targets);
    let mut cost = vec![0_u64; graph.n];
    let mut rings: Vec<Option<Rings>> = (0..graph.n).map(|_| None).collect();
    for round in 0..=again {
        for &column in &order {
            let target = &targets.all[column as usize];
            let rings = rings[target.switch as usize]
                .get_or_insert_with(|| Rings::around(graph, target.switch));
            let next = ways.of_mut(column as usize);
            let end = is_end(target);
            if round > 0 {
                if !end {
                    continue;
                }
                loads.remove(graph, next, &rings.order);
            }
            cost[target.switch as usize] = 0;
            for &switch in rings.order.iter().skip(1) {
                let nearer = rings.hops[switch as usize].wrapping_sub(1);
                let mut best = (u64::MAX, NONE);
                for channel in graph.out(switch) {
                    let there = graph.to[channel] as usize;
                    if rings.hops[there] == nearer {
                        let load = loads.of[channel];
                        // The square, so that a busy channel weighs more than two half as busy.
                        let sum = cost[there].saturating_add(load.saturating_mul(load));
                        if sum < best.0 {
                            best = (sum, channel as u32);
                        }
                    }
                }
                cost[switch as usize] = best.0;
                next[switch as usize] = best.1;
            }
            if end {
                loads.add(graph, next, &rings.order);
            }
        }
    }
}

/// The switches around one, the nearest first. Hops are kept modulo 256, which tells neighbours
/// apart all the same.
struct Rings {
    order: Vec<u32>,
    hops: Vec<u8>,
}

impl Rings {
    fn around(graph: &Graph, target: u32) -> Self {
        let (mut hops, mut order) = (Vec::new(), Vec::new());
        graph.hops_to(target, &mut hops, &mut order);
        Self {
            hops: hops.iter().map(|it| it % 256).map(|it| it as u8).collect(),
            order,
        }
    }
}
