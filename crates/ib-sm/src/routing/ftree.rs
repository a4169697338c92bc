//! Fat trees by a closed formula.
//!
//! Destination number *d*, counted along the leaves, goes up from a switch of rank *r* by the place
//! *(d / Π) mod W* (Zahavi's D-mod-K, with the dividers of Gliksberg and others' Dmodc), and comes
//! down mirrored. So every shift of the hosts in the order of the leaves is without contention in a
//! whole tree. Where the place is missing, what would have taken it is dealt to the places that
//! remain, and nothing else moves: a fault changes few entries.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count"
)]

use std::collections::BTreeSet;

use super::fabric::{Fabric, Owner};
use super::graph::{Graph, Targets, is_end, route_all};
use super::tables::{NO_PORT, Tables};
use super::tree::FatTree;
use super::{Engine, Options, RouteError, switches_of};

/// The engine `ftree`.
#[derive(Debug)]
pub struct Ftree;

impl Engine for Ftree {
    fn name(&self) -> &'static str {
        "ftree"
    }

    fn reference(&self) -> &'static str {
        "E. Zahavi, D-Mod-K routing providing non-blocking traffic for shift permutations on real life \
         fat trees, 2010; J. Gliksberg and others, High-quality fault-resiliency in fat-tree networks, \
         2019"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        let graph = Graph::new(fabric);
        let routed = route(fabric, &graph, options).map_err(|why| RouteError::Shape {
            engine: "ftree",
            why,
        })?;
        Ok(routed.tables)
    }
}

/// Tables of a tree, and how many pairs of leaves and hosts had no way up and down.
pub(super) struct Routed {
    pub(super) tables: Tables,
    /// Switches with hosts from which some host is reached only by going down and up again.
    pub(super) valleys: usize,
}

pub(super) fn route(fabric: &Fabric, graph: &Graph, options: &Options) -> Result<Routed, String> {
    let roots = switches_of(fabric, &options.roots);
    let tree = FatTree::find(fabric, graph, &roots)?;
    let targets = Targets::new(fabric, graph);
    let numbers = numbers(fabric, &tree, &targets, options);
    let ups = Ups::new(graph, &tree);
    let mut tables = Tables::empty(fabric);
    let valleys = route_all(
        graph,
        &targets,
        options.workers,
        &mut tables,
        || Costs::new(graph.n),
        |costs, switch, columns| {
            let valleys = costs.fill(graph, &tree, switch);
            costs.ports(graph, &tree, &ups, switch, &targets, &numbers, columns);
            valleys
        },
    );
    let valleys: usize = valleys.iter().sum();
    if valleys > 0 && tree.leaves * tree.leaves < valleys * 2 {
        return Err("most leaves have no switch above that both hang from".to_owned());
    }
    tables.account.engine = "ftree".to_owned();
    tables.account.shape = tree.words();
    (tables.account.sls, tables.account.vls) = (1, 1);
    Ok(Routed { tables, valleys })
}

/// By place in `targets.all`: the number of the destination among its kind.
fn numbers(fabric: &Fabric, tree: &FatTree, targets: &Targets, options: &Options) -> Vec<u32> {
    let compute: BTreeSet<u64> = options.compute.iter().map(|it| it.get()).collect();
    let io: BTreeSet<u64> = options.io.iter().map(|it| it.get()).collect();
    let among = |set: &BTreeSet<u64>, end: u32| {
        fabric.ends().get(end as usize).is_some_and(|it| {
            set.contains(&it.port_guid.get()) || set.contains(&it.node_guid.get())
        })
    };
    let kind = |owner: Owner| match owner {
        Owner::Switch(_) => 3,
        Owner::End(end) if among(&io, end) => 1,
        Owner::End(end) if !compute.is_empty() && !among(&compute, end) => 2,
        Owner::End(_) => 0,
    };
    let mut next = [0_u32; 4];
    let mut numbers = vec![0; targets.all.len()];
    // Those on leaves first, so that a host on a spine does not shift them.
    let leaves = tree.order.iter().filter(|&&it| tree.rank[it as usize] == 0);
    let others = tree.order.iter().filter(|&&it| tree.rank[it as usize] != 0);
    for &switch in leaves.chain(others) {
        let first = targets.first[switch as usize] as usize;
        let mut here: Vec<(usize, usize)> = (first..first + targets.at(switch).len())
            .map(|at| (kind(targets.all[at].owner), at))
            .collect();
        here.sort_by_key(|&(kind, at)| (kind, targets.all[at].port, targets.all[at].lid));
        for (kind, at) in here {
            // Further LIDs of a port take the places of its neighbours, and so other ways than its
            // first, and each kind of LID is spread evenly.
            let path = targets.all[at].path;
            if path == 0 {
                next[kind] += 1;
            }
            numbers[at] = (next[kind] - 1) + u32::from(path);
        }
    }
    numbers
}

/// By switch: the neighbours above by their slots, and the channels to them.
struct Ups {
    first: Vec<u32>,
    /// Channels from..to; empty where the slot has none.
    range: Vec<(u32, u32)>,
}

impl Ups {
    fn new(graph: &Graph, tree: &FatTree) -> Self {
        let (mut first, mut range) = (vec![0_u32], Vec::new());
        for switch in 0..graph.n as u32 {
            let rank = tree.rank[switch as usize];
            let from = range.len();
            range.resize(from + tree.width[usize::from(rank)] as usize, (0, 0));
            for (there, channels) in graph.neighbours(switch) {
                if tree.rank[there as usize] > rank
                    && let Some(slot) = range.get_mut(from + tree.slot[there as usize] as usize)
                {
                    *slot = (channels.start as u32, channels.end as u32);
                }
            }
            first.push(range.len() as u32);
        }
        Self { first, range }
    }

    fn of(&self, switch: u32) -> &[(u32, u32)] {
        &self.range[self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize]
    }
}

const FAR: u16 = u16::MAX;

/// What it costs to reach one switch from all others, up and then down.
struct Costs {
    cost: Vec<u16>,
    /// Whether the way only goes down.
    down: Vec<bool>,
    /// The channel of switches whose way goes down and then up again.
    valley: Vec<u32>,
    queue: Vec<u32>,
}

impl Costs {
    fn new(n: usize) -> Self {
        Self {
            cost: vec![FAR; n],
            down: vec![false; n],
            valley: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// Returns how many switches with hosts have only a way down and up again.
    fn fill(&mut self, graph: &Graph, tree: &FatTree, target: u32) -> usize {
        self.cost.fill(FAR);
        self.down.fill(false);
        self.valley.clear();
        self.queue.clear();
        self.queue.push(target);
        self.cost[target as usize] = 0;
        self.down[target as usize] = true;
        let mut at = 0;
        while let Some(&switch) = self.queue.get(at) {
            at += 1;
            let next = self.cost[switch as usize] + 1;
            for channel in graph.out(switch) {
                let there = graph.to[channel] as usize;
                if self.cost[there] == FAR && tree.rank[there] > tree.rank[switch as usize] {
                    self.cost[there] = next;
                    self.down[there] = true;
                    self.queue.push(there as u32);
                }
            }
        }
        let mut left = 0;
        for rank in (0..tree.top).rev() {
            for &switch in &tree.by_rank[usize::from(rank)] {
                if self.down[switch as usize] {
                    continue;
                }
                let best = graph
                    .out(switch)
                    .map(|it| graph.to[it] as usize)
                    .filter(|&it| tree.rank[it] > rank)
                    .map(|it| self.cost[it])
                    .min()
                    .unwrap_or(FAR);
                if best != FAR {
                    self.cost[switch as usize] = best + 1;
                } else {
                    left += 1;
                }
            }
        }
        let tops = &tree.by_rank[usize::from(tree.top)];
        left += tops
            .iter()
            .filter(|&&it| self.cost[it as usize] == FAR)
            .count();
        if left == 0 {
            return 0;
        }
        // What is left reaches those that have a way, by the fewest hops.
        self.valley.resize(graph.n, super::graph::NONE);
        self.queue.clear();
        let mut known: Vec<u32> = (0..graph.n as u32)
            .filter(|&it| self.cost[it as usize] != FAR)
            .collect();
        known.sort_by_key(|&it| self.cost[it as usize]);
        self.queue.extend(known);
        let mut valleys = 0;
        let mut at = 0;
        while let Some(&switch) = self.queue.get(at) {
            at += 1;
            for channel in graph.out(switch) {
                let there = graph.to[channel] as usize;
                if self.cost[there] == FAR {
                    self.cost[there] = self.cost[switch as usize].saturating_add(1).min(FAR - 1);
                    self.valley[there] = graph.back[channel];
                    self.queue.push(there as u32);
                    if graph.hosts[there] > 0 && graph.hosts[target as usize] > 0 {
                        valleys += 1;
                    }
                }
            }
        }
        valleys
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one computation")]
    fn ports(
        &self,
        graph: &Graph,
        tree: &FatTree,
        ups: &Ups,
        target: u32,
        targets: &Targets,
        numbers: &[u32],
        columns: &mut [u8],
    ) {
        let here = targets.at(target);
        let first = targets.first[target as usize] as usize;
        let numbers = &numbers[first..first + here.len()];
        // By rank and destination: its turn there, the place that it wants above, and its turn there.
        let turns: Vec<Vec<(u32, u32, u32)>> = tree
            .divider
            .iter()
            .zip(&tree.width)
            .map(|(&divider, &width)| {
                let turn = |&it: &u32| (u64::from(it) / divider) as u32;
                numbers
                    .iter()
                    .map(turn)
                    .map(|it| (it, it % width, it / width))
                    .collect()
            })
            .collect();
        let mut some: Vec<(u32, u32)> = Vec::new();
        for switch in 0..graph.n as u32 {
            let at = switch as usize;
            let cost = self.cost[at];
            let slots = columns[at..].iter_mut().step_by(graph.n);
            if switch == target || cost == FAR {
                for (slot, it) in slots.zip(here) {
                    *slot = if switch == target { it.port } else { NO_PORT };
                }
                continue;
            }
            if let Some(&channel) = self.valley.get(at).filter(|&&it| it != super::graph::NONE) {
                slots.for_each(|slot| *slot = graph.port[channel as usize]);
                continue;
            }
            let rank = tree.rank[at];
            let turns = &turns[usize::from(rank)];
            if self.down[at] {
                some.clear();
                some.extend(
                    graph
                        .neighbours(switch)
                        .filter(|(there, _)| {
                            let there = *there as usize;
                            tree.rank[there] < rank
                                && self.down[there]
                                && self.cost[there] + 1 == cost
                        })
                        .map(|(_, range)| (range.start as u32, range.end as u32)),
                );
                for (slot, &(turn, ..)) in slots.zip(turns) {
                    *slot = pick(graph, &some, turn);
                }
                continue;
            }
            let above = ups.of(switch);
            let good = |&(from, to): &(u32, u32)| {
                from < to && self.cost[graph.to[from as usize] as usize] + 1 == cost
            };
            some.clear();
            for (slot, &(_, place, beyond)) in slots.zip(turns) {
                let wanted = above[place as usize];
                *slot = if good(&wanted) {
                    pick_of(graph, wanted, beyond)
                } else {
                    if some.is_empty() {
                        some.extend(above.iter().copied().filter(|it| good(it)));
                    }
                    // With the place, or all of a leaf with its places lost would take the same.
                    pick(graph, &some, place + beyond)
                };
            }
        }
        // A switch's own LID is dealt with like a host's.
        debug_assert!(here.iter().all(|it| is_end(it) || it.port == 0));
    }
}

/// One of some bundles of parallel cables, and one cable of it.
fn pick(graph: &Graph, bundles: &[(u32, u32)], turn: u32) -> u8 {
    match *bundles {
        [] => NO_PORT,
        [only] => pick_of(graph, only, turn),
        _ => {
            let count = bundles.len() as u32;
            pick_of(graph, bundles[(turn % count) as usize], turn / count)
        }
    }
}

fn pick_of(graph: &Graph, (from, to): (u32, u32), turn: u32) -> u8 {
    let channel = if from + 1 == to {
        from
    } else {
        from + turn % (to - from)
    };
    graph.port[channel as usize]
}
