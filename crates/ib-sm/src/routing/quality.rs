//! What tables are worth.
//!
//! Takes tables of any origin: ours, a subnet's, a dump of OpenSM. Sources and destinations are the
//! end ports that have a LID; loads count pairs, on cables between switches only.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches, ports and channels than 32 bits count"
)]

use super::credit_loops::{Dependencies, Step};
use super::fabric::Fabric;
use super::graph::{Graph, NONE, is_end};
use super::tables::{NO_PORT, Tables};

/// Destinations whose columns are read at once.
const TILE: usize = 32;

/// Pairs without a way that are named.
const NAMED: usize = 10;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scope {
    /// Shift permutations to try: all, or so many, evenly chosen.
    pub shifts: u32,
    /// Random bisections to try.
    pub bisections: u32,
    /// The seed of the bisections.
    pub seed: u64,
    /// Whether switches count as sources and destinations for credit loops, too. What they send and
    /// are sent beside subnet management, which has a lane of its own, is little.
    pub switches: bool,
}

impl Default for Scope {
    fn default() -> Self {
        Self {
            shifts: 200,
            bisections: 200,
            seed: 1,
            switches: false,
        }
    }
}

/// A pair without a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The switch from which it starts.
    pub switch: u32,
    /// The LID that it does not reach.
    pub lid: u16,
    /// The switch at which it ends, or comes by again.
    pub at: u32,
    /// Whether it goes in a circle for ever.
    pub circle: bool,
}

/// How a load spreads over the channels between switches.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Of the channel with most.
    pub max: u64,
    /// Of the channel with least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// Channels that carry nothing.
    pub idle: u64,
}

impl Load {
    /// Most over mean: 1 is even. 0 where nothing is carried.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        if self.mean > 0.0 {
            to_f64(self.max) / self.mean
        } else {
            0.0
        }
    }
}

/// Many flows at once, as permutations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flows {
    /// Permutations tried.
    pub count: u32,
    /// The mean over permutations of the load of the busiest channel, in flows.
    pub mean_max: f64,
    /// The load of the busiest channel of all permutations.
    pub worst: u64,
    /// The mean over flows of what share of a channel they get: 1 is full speed.
    pub bandwidth: f64,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quality {
    /// Pairs of end ports, in each direction.
    pub pairs: u64,
    /// Those without a way.
    pub lost: u64,
    /// Some of them, and of the pairs with a switch on one side.
    pub lost_examples: Vec<Lost>,
    /// Ways from end ports to switches and back: in all, and without a way.
    pub switch_pairs: (u64, u64),
    /// Switches on the way, the mean over pairs with a way, minus 1.
    pub mean_hops: f64,
    /// The most.
    pub max_hops: u32,
    /// Pairs that take more hops than need be.
    pub detours: u64,
    /// Hops beyond the minimum, over the minimum.
    pub extra_hops: f64,
    /// Pairs by hops.
    pub histogram: Vec<u64>,
    /// All end ports send to all others.
    pub all_to_all: Load,
    /// Every end port sends to the one that is so many places further.
    pub shift: Flows,
    /// Half of the end ports, chosen at random, exchange with the other half.
    pub bisection: Flows,
    /// A credit loop; none where there is none.
    pub credit_loop: Option<Vec<Step>>,
    /// Channels with their lanes that stand in loops or between them.
    pub looped: usize,
    /// Channels with their lanes that carry anything.
    pub carrying: usize,
    /// Virtual lanes that carry anything.
    pub vls: u8,
}

impl Quality {
    /// Whether every end port reaches every other, and credits never go in a circle.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.lost == 0 && self.credit_loop.is_none()
    }
}

fn to_f64(value: u64) -> f64 {
    // Exact below 2^53.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of pairs are far below 2^53"
    )]
    let value = value as f64;
    value
}

/// The way to one destination from all switches.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By switch: the channel that it sends on by; [`NONE`] at the target and where there is no way.
    pub(super) next: Vec<u32>,
    /// By switch: hops to the target; `u16::MAX` where there is no way.
    pub(super) hops: Vec<u16>,
    /// The switches with a way, the nearest first.
    pub(super) order: Vec<u32>,
    trail: Vec<u32>,
    count: Vec<u32>,
}

const OPEN: u16 = u16::MAX - 1;
const LOST: u16 = u16::MAX;

impl Tree {
    /// Follows all switches to the target. `next` must be filled.
    pub(super) fn follow(&mut self, graph: &Graph, target: u32, arrives: bool) {
        let n = graph.n;
        self.hops.clear();
        self.hops.resize(n, OPEN);
        if arrives {
            self.hops[target as usize] = 0;
        }
        for start in 0..n as u32 {
            let mut at = start;
            self.trail.clear();
            // A mark of its own on the trail tells a circle from what is known.
            while self.hops[at as usize] == OPEN {
                self.hops[at as usize] = OPEN - 1;
                self.trail.push(at);
                let channel = self.next[at as usize];
                if channel == NONE {
                    break;
                }
                at = graph.to[channel as usize];
            }
            let mut hops = match self.hops[at as usize] {
                known if known < OPEN - 1 => known,
                _ => LOST,
            };
            for &switch in self.trail.iter().rev() {
                hops = if hops == LOST {
                    LOST
                } else {
                    (hops + 1).min(OPEN - 2)
                };
                self.hops[switch as usize] = hops;
            }
        }
        // Counting sort by hops.
        self.count.clear();
        for &hops in self.hops.iter().filter(|&&hops| hops != LOST) {
            if self.count.len() <= usize::from(hops) + 1 {
                self.count.resize(usize::from(hops) + 2, 0);
            }
            self.count[usize::from(hops) + 1] += 1;
        }
        for at in 1..self.count.len() {
            self.count[at] += self.count[at - 1];
        }
        let reached = self.count.last().copied().unwrap_or(0) as usize;
        self.order.clear();
        self.order.resize(reached, 0);
        for (switch, &hops) in (0_u32..).zip(&self.hops) {
            if hops != LOST {
                let slot = &mut self.count[usize::from(hops)];
                self.order[*slot as usize] = switch;
                *slot += 1;
            }
        }
    }
}

/// Judges tables.
#[must_use]
pub fn verify(fabric: &Fabric, tables: &Tables, scope: Scope) -> Quality {
    Judge::new(fabric, tables, scope).run()
}

struct Judge<'a> {
    fabric: &'a Fabric,
    tables: &'a Tables,
    scope: Scope,
    graph: Graph,
    /// End ports with a LID and a switch: switch, port, LID; in the order of leaf and port.
    sources: Vec<(u32, u8, u16)>,
    /// By switch: ports of sources.
    source_ports: Vec<Vec<u8>>,
    load: Vec<u64>,
    quality: Quality,
}

impl<'a> Judge<'a> {
    fn new(fabric: &'a Fabric, tables: &'a Tables, scope: Scope) -> Self {
        let graph = Graph::new(fabric);
        let mut sources = Vec::new();
        let mut source_ports = vec![Vec::new(); graph.n];
        let mut lowest = vec![u64::MAX; graph.n];
        for (end, it) in (0_u32..).zip(fabric.ends()) {
            if let Some((switch, port)) = fabric.attachment(end).filter(|_| it.lid != 0) {
                sources.push((switch, port, it.lid));
                source_ports[switch as usize].push(port);
                let low = &mut lowest[switch as usize];
                *low = (*low).min(it.port_guid.get());
            }
        }
        sources.sort_by_key(|&(switch, port, _)| (lowest[switch as usize], switch, port));
        let load = vec![0; graph.channels()];
        let quality = Quality {
            pairs: 0,
            lost: 0,
            lost_examples: Vec::new(),
            switch_pairs: (0, 0),
            mean_hops: 0.0,
            max_hops: 0,
            detours: 0,
            extra_hops: 0.0,
            histogram: Vec::new(),
            all_to_all: Load::default(),
            shift: Flows::default(),
            bisection: Flows::default(),
            credit_loop: None,
            looped: 0,
            carrying: 0,
            vls: 0,
        };
        Self {
            fabric,
            tables,
            scope,
            graph,
            sources,
            source_ports,
            load,
            quality,
        }
    }

    fn run(mut self) -> Quality {
        self.trees();
        let carried = &self.load;
        self.quality.all_to_all = Load {
            max: carried.iter().copied().max().unwrap_or(0),
            min: carried.iter().copied().min().unwrap_or(0),
            mean: to_f64(carried.iter().sum()) / to_f64(carried.len().max(1) as u64),
            idle: carried.iter().filter(|&&load| load == 0).count() as u64,
        };
        self.quality.shift = self.shifts();
        self.quality.bisection = self.bisections();
        self.quality
    }

    #[expect(
        clippy::too_many_lines,
        reason = "one pass over all destinations, for all that it tells"
    )]
    fn trees(&mut self) {
        let (fabric, tables, graph) = (self.fabric, self.tables, &self.graph);
        let lanes = tables.sl2vl.lanes(tables.sl.levels()).max(1);
        let mut dependencies = Dependencies::new(graph, lanes);
        let mut tree = Tree::default();
        let (mut minimal, mut queue, mut known) = (Vec::new(), Vec::new(), NONE);
        let mut flow = vec![0_u64; graph.n];
        let mut levels = vec![[0_u16; 16]; graph.n];
        let (mut hops_sum, mut least_sum) = (0_u64, 0_u64);
        let mut lids: Vec<_> = fabric.targets().collect();
        lids.sort_by_key(|it| (it.switch, it.lid));
        // Without lanes, what is carried need not be told apart.
        let simple = lanes == 1;
        let mut tile = Vec::new();
        for (number, &target) in lids.iter().enumerate() {
            // Rows are read for some destinations at once: a column is a cache miss for each byte.
            if number % TILE == 0 {
                let some = &lids[number..(number + TILE).min(lids.len())];
                tile.resize(some.len() * graph.n, NO_PORT);
                for switch in 0..graph.n {
                    let row = tables.lft(switch as u32);
                    for (at, it) in some.iter().enumerate() {
                        let port = row.get(usize::from(it.lid)).copied().unwrap_or(NO_PORT);
                        tile[at * graph.n + switch] = port;
                    }
                }
            }
            let ports = &tile[number % TILE * graph.n..][..graph.n];
            tree.next.clear();
            tree.next
                .extend((0_u32..).zip(ports).map(|(switch, &port)| {
                    if port == NO_PORT || (switch == target.switch && port == target.port) {
                        NONE
                    } else {
                        graph.channel(switch, port)
                    }
                }));
            let arrives = ports[target.switch as usize] == target.port;
            tree.follow(graph, target.switch, arrives);
            if known != target.switch {
                known = target.switch;
                graph.hops_to(known, &mut minimal, &mut queue);
            }
            let end = is_end(&target);
            // Pairs and loads are counted once a port, whatever its LMC.
            let counted = target.path == 0;
            for (switch, &fewest) in minimal.iter().enumerate() {
                let mut hosts = u64::from(graph.hosts[switch]);
                if end && switch as u32 == target.switch {
                    hosts -= 1;
                }
                let hops = tree.hops[switch];
                let lost = hops == LOST;
                if lost && (hosts > 0) && self.quality.lost_examples.len() < NAMED {
                    self.quality.lost_examples.push(stray(
                        graph,
                        &tree.next,
                        switch as u32,
                        target.lid,
                    ));
                }
                if !end {
                    self.quality.switch_pairs.0 += hosts;
                    self.quality.switch_pairs.1 += if lost { hosts } else { 0 };
                    continue;
                }
                if !counted {
                    continue;
                }
                self.quality.pairs += hosts;
                if lost {
                    self.quality.lost += hosts;
                    continue;
                }
                let (taken, least) = (u64::from(hops), u64::from(fewest.min(hops)));
                hops_sum += taken * hosts;
                least_sum += least * hosts;
                if taken > least {
                    self.quality.detours += hosts;
                }
                if hosts > 0 {
                    let histogram = &mut self.quality.histogram;
                    if histogram.len() <= usize::from(hops) {
                        histogram.resize(usize::from(hops) + 1, 0);
                    }
                    histogram[usize::from(hops)] += hosts;
                    self.quality.max_hops = self.quality.max_hops.max(u32::from(hops));
                }
            }
            if !end && !self.scope.switches {
                continue;
            }
            // From the farthest switch on, so that all that comes by is known when it is its turn.
            for &switch in &tree.order {
                let at = switch as usize;
                flow[at] = u64::from(graph.hosts[at]);
                levels[at] = [0; 16];
            }
            for &switch in tree.order.iter().rev() {
                let at = switch as usize;
                let output = tree.next[at];
                if output == NONE {
                    continue;
                }
                if simple {
                    let there = graph.to[output as usize] as usize;
                    if flow[at] > 0 || self.scope.switches {
                        dependencies.carry(output, 1);
                        if tree.next[there] != NONE {
                            dependencies.turn(output, 0, tree.next[there], 0);
                        }
                    }
                    if counted && end {
                        self.load[output as usize] += flow[at];
                    }
                    flow[there] += flow[at];
                    continue;
                }
                let out_port = graph.port[output as usize];
                let sl = usize::from(tables.sl.get(switch, target.lid) & 15);
                for &port in &self.source_ports[at] {
                    let vl = tables.sl2vl.map(switch, port, out_port)[sl];
                    levels[at][sl] |= 1 << vl;
                }
                if self.scope.switches {
                    let vl = tables.sl2vl.map(switch, 0, out_port)[sl];
                    levels[at][sl] |= 1 << vl;
                }
                let carried = levels[at];
                let all = carried.iter().fold(0, |all, lanes| all | lanes);
                if all == 0 {
                    continue;
                }
                dependencies.carry(output, all);
                if counted && end {
                    self.load[output as usize] += flow[at];
                }
                let there = graph.to[output as usize];
                let onward = tree.next[there as usize];
                flow[there as usize] += flow[at];
                if onward == NONE {
                    continue;
                }
                let (in_port, next_port) = (
                    graph.port[graph.back[output as usize] as usize],
                    graph.port[onward as usize],
                );
                let map = tables.sl2vl.map(there, in_port, next_port);
                for (sl, &lanes) in carried.iter().enumerate() {
                    if lanes == 0 {
                        continue;
                    }
                    let out_vl = map[sl];
                    levels[there as usize][sl] |= 1 << out_vl;
                    for in_vl in (0..16).filter(|vl| lanes & (1 << vl) != 0) {
                        dependencies.turn(output, in_vl, onward, out_vl);
                    }
                }
            }
        }
        let quality = &mut self.quality;
        let reached = quality.pairs - quality.lost;
        quality.mean_hops = to_f64(hops_sum) / to_f64(reached.max(1));
        quality.extra_hops = to_f64(hops_sum - least_sum) / to_f64(least_sum.max(1));
        quality.carrying = dependencies.carrying();
        quality.vls = dependencies.lanes();
        if let Some((steps, looped)) = dependencies.find() {
            quality.credit_loop = Some(steps);
            quality.looped = looped;
        }
    }

    /// Every k-th shift, so many in all.
    fn shifts(&self) -> Flows {
        let n = self.sources.len();
        let most = n.saturating_sub(1).min(self.scope.shifts as usize);
        let mut meter = Meter::new(self);
        for number in 0..most {
            let step = 1 + number * (n - 1) / most;
            meter.measure((0..n).map(|from| (from, (from + step) % n)));
        }
        meter.flows()
    }

    fn bisections(&self) -> Flows {
        let n = self.sources.len();
        let mut meter = Meter::new(self);
        let mut state = self.scope.seed;
        let mut order: Vec<usize> = (0..n).collect();
        for _ in 0..if n < 2 { 0 } else { self.scope.bisections } {
            for at in (1..n).rev() {
                order.swap(at, draw(&mut state, at + 1));
            }
            let (left, right) = order.split_at(n / 2);
            let there = left.iter().copied().zip(right.iter().copied());
            meter.measure(there.clone().chain(there.map(|(a, b)| (b, a))));
        }
        meter.flows()
    }
}

/// SplitMix64 (Steele, Lea and Flood 2014), below a bound.
pub(super) fn draw(state: &mut u64, bound: usize) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    ((u128::from(z) * bound as u128) >> 64) as usize
}

/// Where a way that is none ends.
fn stray(graph: &Graph, next: &[u32], switch: u32, lid: u16) -> Lost {
    let mut at = switch;
    for _ in 0..graph.n {
        match next[at as usize] {
            NONE => {
                return Lost {
                    switch,
                    lid,
                    at,
                    circle: false,
                };
            }
            channel => at = graph.to[channel as usize],
        }
    }
    Lost {
        switch,
        lid,
        at,
        circle: true,
    }
}

/// Counts the flows of permutations.
struct Meter<'a, 'b> {
    judge: &'a Judge<'b>,
    count: Vec<u32>,
    way: Vec<u32>,
    starts: Vec<usize>,
    permutations: u32,
    max_sum: u64,
    worst: u64,
    share_sum: f64,
    flows: u64,
}

impl<'a, 'b> Meter<'a, 'b> {
    fn new(judge: &'a Judge<'b>) -> Self {
        Self {
            judge,
            count: vec![0; judge.graph.channels()],
            way: Vec::new(),
            starts: Vec::new(),
            permutations: 0,
            max_sum: 0,
            worst: 0,
            share_sum: 0.0,
            flows: 0,
        }
    }

    fn measure(&mut self, pairs: impl Iterator<Item = (usize, usize)>) {
        let (graph, tables) = (&self.judge.graph, self.judge.tables);
        self.count.fill(0);
        self.way.clear();
        self.starts.clear();
        for (from, to) in pairs {
            self.starts.push(self.way.len());
            let (mut at, ..) = self.judge.sources[from];
            let (target, _, lid) = self.judge.sources[to];
            for _ in 0..graph.n {
                if at == target {
                    break;
                }
                let port = tables.port(at, lid);
                let channel = if port == NO_PORT {
                    NONE
                } else {
                    graph.channel(at, port)
                };
                if channel == NONE {
                    break;
                }
                self.count[channel as usize] += 1;
                self.way.push(channel);
                at = graph.to[channel as usize];
            }
        }
        self.starts.push(self.way.len());
        let max = u64::from(self.count.iter().copied().max().unwrap_or(0));
        self.permutations += 1;
        self.max_sum += max;
        self.worst = self.worst.max(max);
        for bounds in self.starts.windows(2) {
            let &[from, to] = bounds else { continue };
            let busiest = self.way[from..to]
                .iter()
                .map(|&it| self.count[it as usize])
                .max();
            self.share_sum += 1.0 / f64::from(busiest.unwrap_or(1).max(1));
            self.flows += 1;
        }
    }

    fn flows(&self) -> Flows {
        Flows {
            count: self.permutations,
            mean_max: to_f64(self.max_sum) / f64::from(self.permutations.max(1)),
            worst: self.worst,
            bandwidth: self.share_sum / to_f64(self.flows.max(1)),
        }
    }
}
