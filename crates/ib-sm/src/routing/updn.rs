//! Up and then down: `updn`, and `dnup`, which is the same with the other end up.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count"
)]

use super::balance::{Loads, Ways, turns_of};
use super::fabric::Fabric;
use super::graph::{Graph, NONE, Targets, is_end};
use super::layer::centre;
use super::tables::Tables;
use super::tree::FatTree;
use super::{Engine, Options, RouteError, switches_of};

/// The engine `updn`.
#[derive(Debug)]
pub struct Updn;

impl Engine for Updn {
    fn name(&self) -> &'static str {
        "updn"
    }

    fn reference(&self) -> &'static str {
        "M. D. Schroeder and others, Autonet: a high-speed, self-configuring local area network using \
         point-to-point links, 1991"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        run(fabric, options, false)
    }
}

/// The engine `dnup`.
#[derive(Debug)]
pub struct Dnup;

impl Engine for Dnup {
    fn name(&self) -> &'static str {
        "dnup"
    }

    fn reference(&self) -> &'static str {
        "OpenSM, osm_ucast_dnup.c: updn with its directions exchanged, for fabrics with hosts on their \
         highest switches"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        run(fabric, options, true)
    }
}

fn run(fabric: &Fabric, options: &Options, reversed: bool) -> Result<Tables, RouteError> {
    let graph = Graph::new(fabric);
    let targets = Targets::new(fabric, &graph);
    let given = switches_of(fabric, &options.roots);
    let middle = || (vec![centre(&graph)], "a switch in the middle");
    let mut choices = Vec::new();
    if !given.is_empty() {
        choices.push((given, "the given switches"));
    } else {
        if let Ok(tree) = FatTree::find(fabric, &graph, &[]) {
            choices.push((
                tree.by_rank[usize::from(tree.top)].clone(),
                "the highest rank",
            ));
        }
        choices.push(middle());
    }
    for (roots, how) in choices {
        let mut heights = heights(&graph, &roots);
        if reversed {
            for height in &mut heights {
                *height = graph.n as u32 - *height;
            }
        }
        let mut ways = Ways::new(graph.n, targets.all.len());
        let mut loads = Loads::new(&graph);
        if !up_down(&graph, &targets, &heights, 0, &mut ways, &mut loads) {
            continue;
        }
        let mut tables = tables_of(fabric, &graph, &targets, &ways);
        tables.account.engine = if reversed { "dnup" } else { "updn" }.to_owned();
        tables.account.shape = format!("ranks from {how}");
        (tables.account.sls, tables.account.vls) = (1, 1);
        return Ok(tables);
    }
    Err(RouteError::Shape {
        engine: if reversed { "dnup" } else { "updn" },
        why: "some hosts have no such way to others".to_owned(),
    })
}

/// A place for every switch, lower is up: by distance from the roots, then by number.
pub(super) fn heights(graph: &Graph, roots: &[u32]) -> Vec<u32> {
    let mut height = vec![NONE; graph.n];
    let mut queue = Vec::with_capacity(graph.n);
    let mut at = 0;
    for start in roots
        .iter()
        .copied()
        .filter(|&it| (it as usize) < graph.n)
        .chain(0..graph.n as u32)
    {
        if height[start as usize] != NONE {
            continue;
        }
        if !roots.contains(&start) {
            // A part on its own: what hangs with the roots has been numbered by now.
            while at < queue.len() {
                walk(graph, &mut height, &mut queue, &mut at);
            }
            if height[start as usize] != NONE {
                continue;
            }
        }
        height[start as usize] = queue.len() as u32;
        queue.push(start);
    }
    while at < queue.len() {
        walk(graph, &mut height, &mut queue, &mut at);
    }
    height
}

fn walk(graph: &Graph, height: &mut [u32], queue: &mut Vec<u32>, at: &mut usize) {
    let switch = queue[*at];
    *at += 1;
    for channel in graph.out(switch) {
        let there = graph.to[channel];
        if height[there as usize] == NONE {
            height[there as usize] = queue.len() as u32;
            queue.push(there);
        }
    }
}

/// Ways that go up, to lower places, and then down. Every switch that can goes down at once, even
/// where up and down were shorter: only so do ways by destination fit together.
///
/// Switches that have no such way to another switch's own LID take the fewest hops to one that has.
/// Answers whether all switches with hosts have a way to all end ports that they hang together with.
pub(super) fn up_down(
    graph: &Graph,
    targets: &Targets,
    height: &[u32],
    again: usize,
    ways: &mut Ways,
    loads: &mut Loads,
) -> bool {
    let all = turns_of(targets);
    up_down_of(graph, targets, &all, height, again, ways, loads)
}

/// The same for some destinations, by their columns.
pub(super) fn up_down_of(
    graph: &Graph,
    targets: &Targets,
    columns: &[u32],
    height: &[u32],
    again: usize,
    ways: &mut Ways,
    loads: &mut Loads,
) -> bool {
    let mut whole = true;
    let mut by_height: Vec<u32> = (0..graph.n as u32).collect();
    by_height.sort_unstable_by_key(|&it| height[it as usize]);
    let mut hops = vec![u32::MAX; graph.n];
    let mut cost = vec![0_u64; graph.n];
    let (mut queue, mut sorted): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for round in 0..=again {
        for &column in columns {
            let it = &targets.all[column as usize];
            let end = is_end(it);
            let next = ways.of_mut(column as usize);
            let target = it.switch;
            if round > 0 {
                if !end {
                    continue;
                }
                ordered(graph, next, target, &mut hops, &mut sorted);
                loads.remove(graph, next, &sorted);
            }
            hops.fill(u32::MAX);
            next.fill(NONE);
            hops[target as usize] = 0;
            cost[target as usize] = 0;
            queue.clear();
            queue.push(target);
            let mut at = 0;
            // Downwards: breadth first against the channels that go down to the target.
            while let Some(&switch) = queue.get(at) {
                at += 1;
                if switch != target {
                    choose(graph, loads, &hops, &mut cost, next, switch, |there| {
                        height[there as usize] > height[switch as usize]
                    });
                }
                for channel in graph.out(switch) {
                    let there = graph.to[channel];
                    if height[there as usize] < height[switch as usize]
                        && hops[there as usize] == u32::MAX
                    {
                        hops[there as usize] = hops[switch as usize] + 1;
                        queue.push(there);
                    }
                }
            }
            // All others upwards, the highest first.
            for &switch in &by_height {
                if hops[switch as usize] != u32::MAX {
                    continue;
                }
                let up = |there: u32| height[there as usize] < height[switch as usize];
                let best = graph
                    .out(switch)
                    .map(|channel| graph.to[channel])
                    .filter(|&there| up(there))
                    .map(|there| hops[there as usize])
                    .min()
                    .unwrap_or(u32::MAX);
                if best != u32::MAX {
                    hops[switch as usize] = best + 1;
                    choose(graph, loads, &hops, &mut cost, next, switch, up);
                }
            }
            // The rest by the fewest hops.
            queue.clear();
            queue.extend((0..graph.n as u32).filter(|&it| hops[it as usize] != u32::MAX));
            queue.sort_by_key(|&it| hops[it as usize]);
            let mut at = 0;
            while let Some(&switch) = queue.get(at) {
                at += 1;
                for channel in graph.out(switch) {
                    let there = graph.to[channel];
                    if hops[there as usize] == u32::MAX {
                        hops[there as usize] = hops[switch as usize] + 1;
                        next[there as usize] = graph.back[channel];
                        whole &= !end || graph.hosts[there as usize] == 0;
                        queue.push(there);
                    }
                }
            }
            if end {
                ordered(graph, next, target, &mut hops, &mut sorted);
                loads.add(graph, next, &sorted);
            }
        }
    }
    whole
}

/// The least loaded channel to a switch that is one hop nearer.
fn choose(
    graph: &Graph,
    loads: &Loads,
    hops: &[u32],
    cost: &mut [u64],
    next: &mut [u32],
    switch: u32,
    admits: impl Fn(u32) -> bool,
) {
    let mut best = (u64::MAX, NONE);
    for channel in graph.out(switch) {
        let there = graph.to[channel];
        if admits(there)
            && hops[there as usize] != u32::MAX
            && hops[there as usize] + 1 == hops[switch as usize]
        {
            let load = loads.of[channel];
            let sum = cost[there as usize].saturating_add(load.saturating_mul(load));
            best = best.min((sum, channel as u32));
        }
    }
    cost[switch as usize] = best.0;
    next[switch as usize] = best.1;
}

/// The switches of a way, the nearest to its target first.
pub(super) fn ordered(
    graph: &Graph,
    next: &[u32],
    target: u32,
    hops: &mut Vec<u32>,
    sorted: &mut Vec<u32>,
) {
    hops.clear();
    hops.resize(graph.n, u32::MAX);
    hops[target as usize] = 0;
    let mut trail = Vec::new();
    for start in 0..graph.n as u32 {
        let mut at = start;
        while hops[at as usize] == u32::MAX && next[at as usize] != NONE && trail.len() <= graph.n {
            trail.push(at);
            at = graph.to[next[at as usize] as usize];
        }
        let mut known = hops[at as usize];
        while let Some(switch) = trail.pop() {
            known = known.saturating_add(1);
            hops[switch as usize] = known;
        }
    }
    sorted.clear();
    sorted.extend((0..graph.n as u32).filter(|&it| hops[it as usize] != u32::MAX));
    sorted.sort_unstable_by_key(|&it| hops[it as usize]);
}

/// Ways as tables.
pub(super) fn tables_of(fabric: &Fabric, graph: &Graph, targets: &Targets, ways: &Ways) -> Tables {
    let mut tables = Tables::empty(fabric);
    let mut columns = Vec::new();
    let mut lids = Vec::new();
    for (column, it) in targets.all.iter().enumerate() {
        lids.push(it.lid);
        columns.extend(
            ways.of(column)
                .iter()
                .enumerate()
                .map(|(switch, &channel)| {
                    if switch as u32 == it.switch {
                        it.port
                    } else if channel == NONE {
                        super::NO_PORT
                    } else {
                        graph.port[channel as usize]
                    }
                }),
        );
        if lids.len() == 64 || column + 1 == targets.all.len() {
            tables.fill(&lids, &columns, graph.n);
            lids.clear();
            columns.clear();
        }
    }
    tables
}
