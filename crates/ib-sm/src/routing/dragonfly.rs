//! Dragonflies: to the group over one global cable, with a local hop before and after.
//!
//! What comes in by a global cable goes out on lane 1, all else on lane 0: local, global, local are
//! three kinds of channels that can only be used in this order, with one service level and two
//! lanes (Kim, Dally, Scott and Abts 2008, with lanes changed by the in-port, as SL2VL can).

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count"
)]

use super::fabric::Fabric;
use super::graph::{Graph, NONE, Targets, is_end};
use super::tables::{NO_PORT, Sl2Vl, Tables};
use super::{Engine, Options, RouteError, lanes};

/// The engine `dragonfly`.
#[derive(Debug)]
pub struct Dragonfly;

impl Engine for Dragonfly {
    fn name(&self) -> &'static str {
        "dragonfly"
    }

    fn reference(&self) -> &'static str {
        "J. Kim, W. J. Dally, S. Scott and D. Abts, Technology-driven, highly-scalable dragonfly topology, 2008"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        run(fabric, &Graph::new(fabric), options)
    }
}

/// Groups in which all are joined with all, and every group with every other.
struct Groups {
    of: Vec<u32>,
    count: usize,
    /// By ordered pair of groups: the global channels from one to the other.
    global: Vec<Vec<u32>>,
    size: (usize, usize),
}

impl Groups {
    fn find(graph: &Graph) -> Result<Self, String> {
        let near: Vec<Vec<u32>> = (0..graph.n as u32)
            .map(|it| graph.neighbours(it).map(|(there, _)| there).collect())
            .collect();
        let mut of = vec![NONE; graph.n];
        let mut count = 0;
        let mut mark = vec![NONE; graph.n];
        let (mut least, mut most) = (usize::MAX, 0);
        for switch in 0..graph.n as u32 {
            if of[switch as usize] != NONE {
                continue;
            }
            // Local neighbours have most of theirs in common with us.
            mark[switch as usize] = switch;
            for &it in &near[switch as usize] {
                mark[it as usize] = switch;
            }
            let common: Vec<usize> = near[switch as usize]
                .iter()
                .map(|&it| {
                    near[it as usize]
                        .iter()
                        .filter(|&&it| mark[it as usize] == switch)
                        .count()
                })
                .collect();
            let top = common.iter().copied().max().unwrap_or(0);
            let mut group = vec![switch];
            group.extend(
                near[switch as usize]
                    .iter()
                    .zip(common)
                    .filter(|&(_, it)| it * 2 > top && top > 1)
                    .map(|(&it, _)| it),
            );
            group.sort_unstable();
            let whole = group.iter().all(|&a| {
                of[a as usize] == NONE
                    && group
                        .iter()
                        .all(|b| a == *b || near[a as usize].binary_search(b).is_ok())
            });
            if group.len() < 3 || !whole {
                return Err(
                    "there are no groups in which all switches are joined with all".to_owned(),
                );
            }
            for &it in &group {
                of[it as usize] = count;
            }
            (least, most) = (least.min(group.len()), most.max(group.len()));
            count += 1;
        }
        let count = count as usize;
        let mut global = vec![Vec::new(); count * count];
        for channel in 0..graph.channels() {
            let (a, b) = (
                of[graph.from[channel] as usize],
                of[graph.to[channel] as usize],
            );
            if a != b {
                global[a as usize * count + b as usize].push(channel as u32);
            }
        }
        let joined = |a: usize, b: usize| a == b || !global[a * count + b].is_empty();
        if !(0..count).all(|a| (0..count).all(|b| joined(a, b))) {
            return Err("not every group is joined with every other".to_owned());
        }
        Ok(Self {
            of,
            count,
            global,
            size: (least, most),
        })
    }

    fn words(&self) -> String {
        let size = match self.size {
            (a, b) if a == b => a.to_string(),
            (a, b) => format!("{a} to {b}"),
        };
        if self.count == 1 {
            return format!("full mesh of {size} switches");
        }
        format!("dragonfly of {} groups of {size} switches", self.count)
    }
}

pub(super) fn run(fabric: &Fabric, graph: &Graph, options: &Options) -> Result<Tables, RouteError> {
    let groups = Groups::find(graph).map_err(|why| RouteError::Shape {
        engine: "dragonfly",
        why,
    })?;
    let have = lanes(fabric, options);
    if have < 2 && groups.count > 1 {
        return Err(RouteError::Lanes {
            engine: "dragonfly",
            have,
        });
    }
    let mut targets = Targets::new(fabric, graph);
    // One of each switch in turn, so that none has all the good places.
    let firsts = targets.first.clone();
    let mut order: Vec<usize> = (0..targets.all.len()).collect();
    order.sort_by_key(|&at| {
        let it = &targets.all[at];
        (
            !is_end(it),
            at - firsts[it.switch as usize] as usize,
            it.switch,
        )
    });
    targets.all = order.into_iter().map(|at| targets.all[at]).collect();
    let mut tables = Tables::empty(fabric);
    let mut load = vec![0_u64; graph.channels()];
    let mut column = vec![NO_PORT; graph.n];
    for it in &targets.all {
        let target = it.switch;
        let home = groups.of[target as usize];
        // Last hops first, by the bundle of cables that is least loaded.
        let best = |from: u32, to: u32, load: &[u64]| {
            graph
                .out(from)
                .filter(|&channel| graph.to[channel] == to)
                .min_by_key(|&channel| load[channel])
        };
        for switch in 0..graph.n as u32 {
            let weight = if is_end(it) {
                u64::from(graph.hosts[switch as usize])
            } else {
                0
            };
            if switch == target {
                column[switch as usize] = it.port;
                continue;
            }
            let group = groups.of[switch as usize];
            if group == home {
                continue;
            }
            let gates = &groups.global[group as usize * groups.count + home as usize];
            let own = gates
                .iter()
                .copied()
                .filter(|&gate| graph.from[gate as usize] == switch);
            let last = |gate: u32| {
                let arrives = graph.to[gate as usize];
                if arrives == target {
                    None
                } else {
                    best(arrives, target, &load)
                }
            };
            let cost = |gate: u32| load[gate as usize] + last(gate).map_or(0, |it| load[it]);
            let channel = match own.min_by_key(|&gate| cost(gate)) {
                Some(gate) => gate as usize,
                None => {
                    let through = gates.iter().filter_map(|&gate| {
                        let local = best(switch, graph.from[gate as usize], &load)?;
                        Some((cost(gate) + load[local], local))
                    });
                    match through.min() {
                        Some((_, local)) => local,
                        None => continue,
                    }
                }
            };
            column[switch as usize] = graph.port[channel];
            load[channel] += weight;
        }
        for switch in 0..graph.n as u32 {
            if groups.of[switch as usize] == home
                && switch != target
                && let Some(channel) = best(switch, target, &load)
            {
                column[switch as usize] = graph.port[channel];
            }
        }
        if is_end(it) {
            // What goes on from the gates.
            for switch in 0..graph.n as u32 {
                let hosts = u64::from(graph.hosts[switch as usize]);
                let mut at = switch;
                let mut first = groups.of[switch as usize] != home;
                while at != target {
                    let channel = graph.channel(at, column[at as usize]);
                    if channel == NONE {
                        break;
                    }
                    if !first {
                        load[channel as usize] += hosts;
                    }
                    first = false;
                    at = graph.to[channel as usize];
                }
            }
        }
        tables.fill(&[it.lid], &column, graph.n);
    }
    if groups.count > 1 {
        // Neither local nor global: to a host, whose cable may have one lane only.
        let class = |switch: u32, port: u8| match graph.channel(switch, port) {
            NONE => 0,
            channel => {
                let there = graph.to[channel as usize];
                1 + u8::from(groups.of[switch as usize] != groups.of[there as usize])
            }
        };
        tables.sl2vl = Sl2Vl::by_class(fabric, 3, class, |input, output| {
            [u8::from(input == 2 && output != 0); 16]
        });
    }
    tables.account.engine = "dragonfly".to_owned();
    tables.account.shape = groups.words();
    tables.account.sls = 1;
    tables.account.vls = if groups.count > 1 { 2 } else { 1 };
    Ok(tables)
}
