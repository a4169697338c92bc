//! Any connected fabric, in any number of lanes, without credit loops: the engine `general`, which
//! `auto` falls back on, and `dfsssp` and `nue`, which are made of the same parts.
//!
//! 1. Ways by the fewest hops are spread over the channels, every destination on its own, and once
//!    more with the loads of all others known.
//! 2. Each path goes into the first lane that stays without a circle with it. A spanning tree is in
//!    every lane from the start.
//! 3. Destinations with a path that no lane takes are routed anew inside of one lane, on its turns
//!    and on such as close no circle. Where a switch finds no turn, a way is changed beside it; where
//!    that does not help, the destination is reached along the spanning tree, which always can be.
//!
//! Other attempts route every destination inside of one lane, which takes in the turns that the ways
//! of the first step use most before; and go up and down in every lane from another switch, which is
//! always quick. The attempt with the least load on its busiest channel is taken. Keeping a lane
//! without circles can take long in big fabrics without a shape; an attempt that does is given up.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count, and LIDs have 16"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::balance::{Loads, Ways, shortest, turns_of};
use super::credit_loops::turns;
use super::fabric::Fabric;
use super::graph::{Graph, NONE, Targets, is_end};
use super::layer::{Escape, Layer, centre};
use super::tables::{Sl, Sl2Vl, Tables};
use super::updn::{heights, ordered, tables_of, up_down_of};
use super::{Engine, Options, RouteError, lanes};

/// The engine `general`.
#[derive(Debug)]
pub struct General;

impl Engine for General {
    fn name(&self) -> &'static str {
        "general"
    }

    fn reference(&self) -> &'static str {
        "made of parts of J. Domke and others: DFSSSP, 2011, and Nue, 2016"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        Ok(general(fabric, &Graph::new(fabric), options))
    }
}

/// The engine `dfsssp`.
#[derive(Debug)]
pub struct Dfsssp;

impl Engine for Dfsssp {
    fn name(&self) -> &'static str {
        "dfsssp"
    }

    fn reference(&self) -> &'static str {
        "J. Domke, T. Hoefler and W. E. Nagel, Deadlock-free oblivious routing for arbitrary topologies, 2011"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        let graph = Graph::new(fabric);
        let all_turns = turns(&graph);
        let have = lanes(fabric, options);
        let mut router = Router::new(&graph, fabric, &all_turns, have);
        shortest(
            &graph,
            &router.targets,
            0,
            &mut router.ways,
            &mut router.loads,
        );
        if router.layers_of_paths().is_none_or(|it| !it.is_empty()) {
            return Err(RouteError::Lanes {
                engine: "dfsssp",
                have,
            });
        }
        Ok(router.finish(fabric, "dfsssp"))
    }
}

/// The engine `nue`.
#[derive(Debug)]
pub struct Nue;

impl Engine for Nue {
    fn name(&self) -> &'static str {
        "nue"
    }

    fn reference(&self) -> &'static str {
        "J. Domke, T. Hoefler and S. Matsuoka, Routing on the dependency graph, 2016"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        let graph = Graph::new(fabric);
        let all_turns = turns(&graph);
        let mut router = Router::new(&graph, fabric, &all_turns, lanes(fabric, options));
        let all = turns_of(&router.targets);
        let count = router.layers.len();
        for layer in &mut router.layers {
            layer.escape(&router.escape);
        }
        for (number, column) in all.into_iter().enumerate() {
            router.confine(column as usize, number % count, true);
            router.level(column as usize, number % count);
        }
        Ok(router.finish(fabric, "nue"))
    }
}

/// What may be spent on trying, in channels looked at.
const BUDGET: u64 = 1_500_000_000;

/// What may be spent on keeping lanes without circles, in turns looked at, before an attempt is
/// given up.
const PATIENCE: u64 = 400_000_000;

/// Routes any fabric.
pub(super) fn general(fabric: &Fabric, graph: &Graph, options: &Options) -> Tables {
    let all_turns = turns(graph);
    let mut router = Router::new(graph, fabric, &all_turns, lanes(fabric, options));
    shortest(
        graph,
        &router.targets,
        1,
        &mut router.ways,
        &mut router.loads,
    );
    let sum: u64 = router.loads.of.iter().sum();
    router.scale = (sum / graph.channels().max(1) as u64).max(1);
    let first = router.layers_of_paths();
    if first.as_ref().is_some_and(Vec::is_empty) {
        return router.finish(fabric, "general");
    }
    let weights = router.turn_weights();
    let whole = router.targets.all.len() as u64 * graph.channels() as u64 * 2;
    let mut left = BUDGET;
    let mut best: Option<Attempt> = None;
    let mut consider = |attempt: Option<Attempt>| {
        let done = attempt.is_some();
        if let Some(attempt) = attempt
            && best
                .as_ref()
                .is_none_or(|best| attempt.score() < best.score())
        {
            best = Some(attempt);
        }
        done
    };
    let fits = first.is_none() || router.layers.len() == 1 || consider(router.mixed());
    consider(Some(router.rooted()));
    // Where one attempt was given up, others would be, too.
    let shares = if fits && first.is_some() {
        &[100, 0, 50, 80, 25][..]
    } else {
        &[0]
    };
    for percent in shares {
        if left < whole {
            break;
        }
        let some = &weights[..weights.len() * percent / 100];
        if !consider(router.confined(&all_turns, some)) {
            break;
        }
        // A turn costs about as much as some channels.
        let work: u64 = router.layers.iter().map(|it| it.work).sum();
        left = left.saturating_sub(whole + work * 4);
    }
    if let Some(best) = best {
        (router.ways, router.levels) = (best.ways, best.levels);
        let mut tables = router.finish(fabric, "general");
        tables.account.notes.push(best.how);
        return tables;
    }
    router.finish(fabric, "general")
}

/// One way of doing it.
struct Attempt {
    ways: Ways,
    levels: Vec<u8>,
    max: u64,
    total: u64,
    how: String,
}

impl Attempt {
    const fn score(&self) -> (u64, u64) {
        (self.max, self.total)
    }
}

struct Router<'a> {
    graph: &'a Graph,
    turns: &'a [u32],
    targets: Targets,
    layers: Vec<Layer<'a>>,
    escape: Escape,
    ways: Ways,
    loads: Loads,
    /// By source switch and column: the lane; 255 where none is given yet.
    levels: Vec<u8>,
    /// What a hop costs, in the unit of loads.
    scale: u64,
    /// Destinations that are reached along the tree.
    escaped: usize,
    cost: Vec<u64>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    hops: Vec<u32>,
    order: Vec<u32>,
}

const NO_LEVEL: u8 = 0xff;

impl<'a> Router<'a> {
    fn new(graph: &'a Graph, fabric: &Fabric, turns: &'a [u32], lanes: u8) -> Self {
        let targets = Targets::new(fabric, graph);
        let escape = Escape::new(graph);
        let layers = (0..lanes.max(1))
            .map(|_| Layer::new(graph, turns))
            .collect();
        let columns = targets.all.len();
        Self {
            graph,
            turns,
            layers,
            escape,
            ways: Ways::new(graph.n, columns),
            loads: Loads::new(graph),
            levels: vec![NO_LEVEL; graph.n * columns],
            scale: 1,
            escaped: 0,
            cost: vec![0; graph.n],
            heap: BinaryHeap::new(),
            hops: Vec::new(),
            order: Vec::new(),
            targets,
        }
    }

    /// Gives every path a lane; returns the columns with a path that none takes. None where that was
    /// too much work.
    fn layers_of_paths(&mut self) -> Option<Vec<u32>> {
        let graph = self.graph;
        let columns = self.targets.all.len();
        let mut hard = Vec::new();
        let mut added = Vec::new();
        for column in turns_of(&self.targets) {
            let next = self.ways.of(column as usize);
            let mut fits = true;
            for source in 0..graph.n {
                if graph.hosts[source] == 0 {
                    continue;
                }
                let mut given = NO_LEVEL;
                for (level, layer) in (0_u8..).zip(&mut self.layers) {
                    added.clear();
                    let mut at = next[source];
                    let mut refused = None;
                    while at != NONE {
                        let onward = next[graph.to[at as usize] as usize];
                        if onward != NONE && !layer.has(at, onward) {
                            if !layer.add(at, onward, added.is_empty()) {
                                refused = Some((at, onward));
                                break;
                            }
                            added.push((at, onward));
                        }
                        at = onward;
                    }
                    let Some((input, output)) = refused else {
                        given = level;
                        break;
                    };
                    for &(input, output) in &added {
                        layer.remove(input, output);
                    }
                    // What is refused by what stays need not be asked for again.
                    if !added.is_empty() && layer.add(input, output, true) {
                        layer.remove(input, output);
                    }
                }
                self.levels[source * columns + column as usize] = given;
                if given == NO_LEVEL {
                    fits = false;
                    break;
                }
            }
            if !fits {
                hard.push(column);
            }
            if self.is_tired() {
                return None;
            }
        }
        Some(hard)
    }

    fn is_tired(&self) -> bool {
        self.layers.iter().map(|it| it.work).sum::<u64>() > PATIENCE
    }

    /// How much traffic takes each turn, the most used first.
    fn turn_weights(&self) -> Vec<(Reverse<u64>, u32, u32)> {
        let graph = self.graph;
        let index = turns(graph);
        let mut weight = vec![0_u64; index.last().copied().unwrap_or(0) as usize];
        let mut flow = vec![0_u64; graph.n];
        let (mut hops, mut order) = (Vec::new(), Vec::new());
        for (column, it) in self
            .targets
            .all
            .iter()
            .enumerate()
            .filter(|(_, it)| is_end(it))
        {
            let next = self.ways.of(column);
            ordered(graph, next, it.switch, &mut hops, &mut order);
            for (flow, &hosts) in flow.iter_mut().zip(&graph.hosts) {
                *flow = u64::from(hosts);
            }
            for &switch in order.iter().rev() {
                let input = next[switch as usize];
                if input == NONE {
                    continue;
                }
                let there = graph.to[input as usize];
                flow[there as usize] += flow[switch as usize];
                let output = next[there as usize];
                if output != NONE {
                    let turn = index[input as usize] + output - graph.first[there as usize];
                    weight[turn as usize] += flow[switch as usize];
                }
            }
        }
        let mut all = Vec::new();
        for input in 0..graph.channels() as u32 {
            let there = graph.to[input as usize];
            for output in graph.out(there) {
                let turn = index[input as usize] + output as u32 - graph.first[there as usize];
                if weight[turn as usize] > 0 {
                    all.push((Reverse(weight[turn as usize]), input, output as u32));
                }
            }
        }
        all.sort_unstable();
        all
    }

    /// Paths by the fewest hops as far as they fit; other destinations each inside of one lane.
    /// The last lane has the spanning tree in it.
    fn mixed(&mut self) -> Option<Attempt> {
        let graph = self.graph;
        let index = self.turns;
        for layer in &mut self.layers {
            *layer = Layer::new(graph, index);
        }
        let last = self.layers.len() - 1;
        self.layers[last].escape(&self.escape);
        self.escaped = 0;
        let hard = self.layers_of_paths()?;
        let columns = self.targets.all.len();
        for (number, &column) in hard.iter().enumerate() {
            let column = column as usize;
            if is_end(&self.targets.all[column]) {
                self.unload(column);
            }
            let count = self.layers.len();
            let mut order: Vec<usize> = (0..count).map(|step| (number + step) % count).collect();
            // Where nothing else helps, the lane with the tree.
            order.push(last);
            let tries = order.len();
            let done = order
                .iter()
                .enumerate()
                .find(|&(at, &level)| self.confine(column, level, at + 1 == tries))
                .map_or(last, |(_, &level)| level);
            self.level(column, done);
            if self.is_tired() {
                return None;
            }
        }
        let how = format!(
            "{} of {columns} destinations were routed inside of a lane",
            hard.len()
        );
        Some(self.attempt(how))
    }

    /// Up and down in every lane from another switch, every destination in the lane whose switch is
    /// nearest: most ways to it only go up.
    fn rooted(&mut self) -> Attempt {
        let graph = self.graph;
        let count = self.layers.len();
        let mut ways = Ways::new(graph.n, self.targets.all.len());
        let mut loads = Loads::new(graph);
        let (mut hops, mut queue) = (Vec::new(), Vec::new());
        // By switch: hops to the nearest root, and which.
        let mut near = vec![(u16::MAX, 0_usize); graph.n];
        let mut roots = Vec::with_capacity(count);
        let mut root = centre(graph);
        for lane in 0..count {
            roots.push(root);
            graph.hops_to(root, &mut hops, &mut queue);
            for (near, &hops) in near.iter_mut().zip(&hops) {
                *near = (*near).min((hops, lane));
            }
            let far = |it: &u32| (near[*it as usize].0, graph.out(*it).len(), Reverse(*it));
            root = (0..graph.n as u32).max_by_key(far).unwrap_or(root);
        }
        let columns = turns_of(&self.targets);
        for (lane, &root) in roots.iter().enumerate() {
            let mine: Vec<u32> = columns
                .iter()
                .copied()
                .filter(|&it| near[self.targets.all[it as usize].switch as usize].1 == lane)
                .collect();
            let height = heights(graph, &[root]);
            up_down_of(
                graph,
                &self.targets,
                &mine,
                &height,
                1,
                &mut ways,
                &mut loads,
            );
            for column in mine {
                self.level(column as usize, lane);
            }
        }
        Attempt {
            ways,
            levels: self.levels.clone(),
            max: loads.max(),
            total: loads.of.iter().sum(),
            how: format!("up and down from {count} switches, one for each lane"),
        }
    }

    /// Every destination inside of one lane. The turns that are given are taken in first.
    fn confined(
        &mut self,
        index: &'a [u32],
        seeds: &[(Reverse<u64>, u32, u32)],
    ) -> Option<Attempt> {
        let graph = self.graph;
        let mut first = Layer::new(graph, index);
        first.escape(&self.escape);
        for &(_, input, output) in seeds {
            first.add(input, output, true);
            if first.work > PATIENCE {
                return None;
            }
        }
        for layer in &mut self.layers {
            layer.copy(&first);
        }
        self.loads = Loads::new(graph);
        let count = self.layers.len();
        self.escaped = 0;
        for again in [false, true] {
            for (number, column) in turns_of(&self.targets).into_iter().enumerate() {
                let column = column as usize;
                if again {
                    if !is_end(&self.targets.all[column]) {
                        continue;
                    }
                    self.unload(column);
                }
                let level = number % count;
                self.confine(column, level, true);
                self.level(column, level);
                if self.is_tired() {
                    return None;
                }
            }
        }
        let how = format!(
            "all destinations were routed inside of a lane, {} turns of the best ways first",
            seeds.len()
        );
        Some(self.attempt(how))
    }

    fn attempt(&mut self, mut how: String) -> Attempt {
        if self.escaped > 0 {
            how.push_str(&format!("; {} times along a spanning tree", self.escaped));
        }
        let columns = self.targets.all.len();
        Attempt {
            ways: std::mem::replace(&mut self.ways, Ways::new(self.graph.n, columns)),
            levels: std::mem::replace(&mut self.levels, vec![NO_LEVEL; self.graph.n * columns]),
            max: self.loads.max(),
            total: self.loads.of.iter().sum(),
            how,
        }
    }

    /// All paths to a destination are in this lane.
    fn level(&mut self, column: usize, level: usize) {
        let columns = self.targets.all.len();
        for source in 0..self.graph.n {
            self.levels[source * columns + column] = level as u8;
        }
    }

    fn unload(&mut self, column: usize) {
        let target = self.targets.all[column].switch;
        ordered(
            self.graph,
            self.ways.of(column),
            target,
            &mut self.hops,
            &mut self.order,
        );
        self.loads
            .remove(self.graph, self.ways.of(column), &self.order);
    }

    /// Routes a destination inside of a lane. Where that does not work out, along the tree, if
    /// `finally`; if not, answers no, and the destination has no ways.
    fn confine(&mut self, column: usize, level: usize, finally: bool) -> bool {
        let graph = self.graph;
        let it = self.targets.all[column];
        let target = it.switch;
        let reachable = self.reachable(target);
        let next = self.ways.of_mut(column);
        next.fill(NONE);
        self.cost.fill(u64::MAX);
        self.cost[target as usize] = 0;
        self.heap.clear();
        let layer = &mut self.layers[level];
        let mut settled = 1;
        let scale = self.scale;
        let loads = &self.loads.of;
        let price = |channel: u32| {
            let load = loads[channel as usize];
            scale + load.saturating_mul(load) / scale
        };
        let mut open = vec![target];
        loop {
            while let Some(switch) = open.pop() {
                for out in graph.out(switch) {
                    let channel = graph.back[out];
                    if channel != NONE && self.cost[graph.to[out] as usize] == u64::MAX {
                        let cost = self.cost[switch as usize].saturating_add(price(channel));
                        self.heap.push(Reverse((cost, channel)));
                    }
                }
            }
            if let Some(Reverse((cost, channel))) = self.heap.pop() {
                let (from, to) = (graph.from[channel as usize], graph.to[channel as usize]);
                if self.cost[from as usize] != u64::MAX {
                    continue;
                }
                let onward = next[to as usize];
                if onward == NONE || layer.add(channel, onward, true) {
                    self.cost[from as usize] = cost;
                    next[from as usize] = channel;
                    settled += 1;
                    open.push(from);
                }
                continue;
            }
            if settled == reachable {
                break;
            }
            match detour(graph, layer, &self.cost, next, target) {
                Some((from, channel)) => {
                    let to = graph.to[channel as usize] as usize;
                    self.cost[from as usize] = self.cost[to].saturating_add(price(channel));
                    next[from as usize] = channel;
                    settled += 1;
                    open.push(from);
                }
                None => break,
            }
        }
        if settled < reachable {
            if !finally {
                next.fill(NONE);
                return false;
            }
            self.escaped += 1;
            self.escape.route(graph, target, next);
        }
        if is_end(&it) {
            ordered(
                graph,
                self.ways.of(column),
                target,
                &mut self.hops,
                &mut self.order,
            );
            self.loads.add(graph, self.ways.of(column), &self.order);
        }
        true
    }

    /// Switches that hang together with one, by the tree.
    fn reachable(&self, target: u32) -> usize {
        self.escape.parts[self.escape.part[target as usize] as usize] as usize
    }

    fn finish(&mut self, fabric: &Fabric, engine: &str) -> Tables {
        let columns = self.targets.all.len();
        for level in &mut self.levels {
            if *level == NO_LEVEL {
                *level = 0;
            }
        }
        let mut tables = tables_of(fabric, self.graph, &self.targets, &self.ways);
        let lanes = self.layers.len() as u8;
        let used = self.levels.iter().copied().max().unwrap_or(0) + 1;
        if used > 1 {
            let mut column = vec![0_u16; usize::from(fabric.top_lid()) + 1];
            for (at, it) in self.targets.all.iter().enumerate() {
                column[usize::from(it.lid)] = at as u16;
            }
            tables.sl = Sl::Pair {
                column,
                columns,
                levels: std::mem::take(&mut self.levels),
            };
            tables.sl2vl = Sl2Vl::layered(fabric, used.min(lanes));
        }
        tables.account.engine = engine.to_owned();
        tables.account.shape = format!(
            "graph of {} switches and {} cables",
            self.graph.n,
            self.graph.channels() / 2
        );
        (tables.account.sls, tables.account.vls) = (used, used);
        tables
    }
}

/// A switch without a way, and a channel by which it has one after a neighbour has changed its own.
fn detour(
    graph: &Graph,
    layer: &mut Layer<'_>,
    cost: &[u64],
    next: &mut [u32],
    target: u32,
) -> Option<(u32, u32)> {
    for lost in 0..graph.n as u32 {
        if cost[lost as usize] != u64::MAX {
            continue;
        }
        for channel in graph.out(lost) {
            let (channel, beside) = (channel as u32, graph.to[channel]);
            if cost[beside as usize] == u64::MAX || beside == target {
                continue;
            }
            layer.work += graph.out(beside).len() as u64;
            for other in graph.out(beside) {
                let (other, there) = (other as u32, graph.to[other]);
                let known = cost[there as usize] != u64::MAX && other != next[beside as usize];
                if !known || leads_over(graph, next, there, beside) {
                    continue;
                }
                let onward = next[there as usize];
                if onward != NONE && !layer.add(other, onward, true) {
                    continue;
                }
                let all = graph.out(beside).all(|out| {
                    let user = graph.back[out];
                    let from = graph.from[user as usize] as usize;
                    next[from] != user || layer.add(user, other, true)
                });
                if all && layer.add(channel, other, true) {
                    next[beside as usize] = other;
                    return Some((lost, channel));
                }
            }
        }
    }
    None
}

/// Whether the way from a switch comes by another.
fn leads_over(graph: &Graph, next: &[u32], from: u32, over: u32) -> bool {
    let mut at = from;
    loop {
        if at == over {
            return true;
        }
        match next[at as usize] {
            NONE => return false,
            channel => at = graph.to[channel as usize],
        }
    }
}
