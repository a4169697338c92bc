//! The fewest hops, each switch on its own: as OpenSM's default does it.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use super::fabric::{Fabric, Owner, Target};
use super::graph::{Graph, Targets, is_end};
use super::quality::draw;
use super::tables::Tables;
use super::{Engine, Options, RouteError};

/// The engine `minhop`.
#[derive(Debug)]
pub struct Minhop;

impl Engine for Minhop {
    fn name(&self) -> &'static str {
        "minhop"
    }

    fn reference(&self) -> &'static str {
        "OpenSM, osm_ucast_mgr.c: each switch deals the LIDs out to its ports with the fewest hops"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        let weights: BTreeMap<_, _> = options
            .weights
            .iter()
            .map(|&(guid, port, weight)| ((guid, port), weight))
            .collect();
        let graph = Graph::weighted(fabric, &weights);
        let targets = Targets::new(fabric, &graph);
        let mut tables = Tables::empty(fabric);
        let mut used: Vec<u32> = vec![0; graph.channels()];
        let mut state = u64::from(options.scatter.unwrap_or(0));
        let order = searched(fabric, &graph, options);
        let mut shift = vec![0_usize; graph.n];
        let mut distances: Vec<Option<Vec<u32>>> = vec![None; graph.n];
        let mut candidates = Vec::new();
        for it in ordered(fabric, &targets, options) {
            let distance =
                &*distances[it.switch as usize].get_or_insert_with(|| reach(&graph, it.switch));
            for switch in 0..graph.n as u32 {
                let at = switch as usize;
                if switch == it.switch {
                    tables.set_port(switch, it.lid, it.port);
                    continue;
                }
                if distance[at] == u32::MAX {
                    continue;
                }
                candidates.clear();
                candidates.extend(order[at].iter().copied().filter(|&channel| {
                    let on = distance[graph.to[channel as usize] as usize];
                    on != u32::MAX && on + u32::from(graph.weight[channel as usize]) == distance[at]
                }));
                if options.port_shifting && !candidates.is_empty() {
                    let by = shift[at] % candidates.len();
                    candidates.rotate_left(by);
                    shift[at] += 1;
                }
                // OpenSM counts end ports only: switches are few and are sent little.
                let least = candidates
                    .iter()
                    .map(|&channel| used[channel as usize])
                    .min();
                let best = || {
                    candidates
                        .iter()
                        .copied()
                        .filter(|&it| Some(used[it as usize]) == least)
                };
                let chosen = if options.scatter.is_some() {
                    let count = best().count();
                    best().nth(draw(&mut state, count.max(1)))
                } else {
                    best().next()
                };
                if let Some(channel) = chosen {
                    tables.set_port(switch, it.lid, graph.port[channel as usize]);
                    used[channel as usize] += u32::from(is_end(&it));
                }
            }
        }
        tables.account.engine = "minhop".to_owned();
        tables.account.shape = format!(
            "graph of {} switches and {} cables",
            graph.n,
            graph.channels() / 2
        );
        (tables.account.sls, tables.account.vls) = (1, 1);
        Ok(tables)
    }
}

/// Destinations in the order in which OpenSM deals them out: those of the given file, then end ports
/// by the switch with most of them, its GUID and its port, then switches by GUID.
fn ordered(fabric: &Fabric, targets: &Targets, options: &Options) -> Vec<Target> {
    let place: BTreeMap<_, _> = options.order.iter().copied().zip(0_u32..).collect();
    let mut many = vec![0_u32; fabric.switches().len()];
    for (end, _) in (0_u32..).zip(fabric.ends()) {
        if let Some((switch, _)) = fabric.attachment(end) {
            many[switch as usize] += 1;
        }
    }
    let mut all = targets.all.clone();
    all.sort_by_key(|it| {
        let at = it.switch as usize;
        let switch = fabric.switches()[at].guid;
        let guid = match it.owner {
            Owner::End(end) => fabric.ends()[end as usize].port_guid,
            Owner::Switch(_) => switch,
        };
        (
            place.get(&guid).copied().unwrap_or(u32::MAX),
            !is_end(it),
            if is_end(it) {
                Reverse(many[at])
            } else {
                Reverse(0)
            },
            switch,
            it.port,
            it.lid,
        )
    });
    all
}

/// By switch: its channels in the order in which they are looked at.
fn searched(fabric: &Fabric, graph: &Graph, options: &Options) -> Vec<Vec<u32>> {
    let given: BTreeMap<_, _> = options
        .port_order
        .iter()
        .map(|(guid, ports)| (*guid, ports))
        .collect();
    (0_u32..)
        .zip(fabric.switches())
        .map(|(switch, it)| {
            let mut channels: Vec<u32> = graph.out(switch).map(|it| it as u32).collect();
            channels.sort_by_key(|&channel| {
                let port = graph.port[channel as usize];
                let place = given
                    .get(&it.guid)
                    .and_then(|ports| ports.iter().position(|&it| it == port));
                (place.unwrap_or(usize::MAX), port)
            });
            channels
        })
        .collect()
}

/// What it costs to reach a switch from all others.
fn reach(graph: &Graph, target: u32) -> Vec<u32> {
    let mut distance = vec![u32::MAX; graph.n];
    let mut heap = BinaryHeap::new();
    distance[target as usize] = 0;
    heap.push(Reverse((0_u32, target)));
    while let Some(Reverse((cost, switch))) = heap.pop() {
        if cost > distance[switch as usize] {
            continue;
        }
        for out in graph.out(switch) {
            let channel = graph.back[out] as usize;
            let there = graph.to[out] as usize;
            let next = cost + u32::from(graph.weight[channel]);
            if next < distance[there] {
                distance[there] = next;
                heap.push(Reverse((next, there as u32)));
            }
        }
    }
    distance
}
