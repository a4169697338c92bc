//! Credit loops: circles in the channel dependency graph.
//!
//! A packet that holds a buffer of one channel and waits for a buffer of the next makes the first
//! depend on the second. Buffers are per virtual lane, so the nodes of the graph are pairs of a
//! channel and a lane. Routing is free of deadlocks if and, for forwarding by destination, only if
//! the graph has no circle (Dally and Seitz 1987). The answer here is exact: every turn that some
//! pair takes is in the graph, on the lanes that its service level is mapped to, and no other.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer channels than 32 bits count"
)]

use super::fabric::Fabric;
use super::graph::{Graph, NONE};

/// A channel and a lane of it, as a step of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The switch that sends.
    pub switch: u32,
    /// Its port.
    pub port: u8,
    /// The lane.
    pub vl: u8,
}

/// The channel dependency graph, as far as it has been marked.
#[derive(Debug)]
pub(super) struct Dependencies<'a> {
    graph: &'a Graph,
    /// Where the turns out of each channel begin.
    turns: Vec<u32>,
    lanes: usize,
    marked: Vec<u64>,
    /// By channel: the lanes that carry anything.
    used: Vec<u16>,
}

/// The turns of a graph, numbered: from a channel to one that leaves where it arrives.
pub(super) fn turns(graph: &Graph) -> Vec<u32> {
    let mut turns = Vec::with_capacity(graph.channels() + 1);
    let mut total = 0;
    turns.push(0);
    for &to in &graph.to {
        total += graph.out(to).len() as u32;
        turns.push(total);
    }
    turns
}

impl<'a> Dependencies<'a> {
    pub(super) fn new(graph: &'a Graph, lanes: u8) -> Self {
        let turns = turns(graph);
        let lanes = usize::from(lanes.max(1));
        let count = turns.last().copied().unwrap_or(0) as usize * lanes * lanes;
        Self {
            graph,
            turns,
            lanes,
            marked: vec![0; count.div_ceil(64)],
            used: vec![0; graph.channels()],
        }
    }

    /// Something goes over a channel on these lanes.
    pub(super) fn carry(&mut self, channel: u32, lanes: u16) {
        self.used[channel as usize] |= lanes;
    }

    /// Something comes in by a channel on a lane and goes out by another on another.
    pub(super) fn turn(&mut self, input: u32, in_vl: u8, output: u32, out_vl: u8) {
        let bit = self.bit(input, usize::from(in_vl), output, usize::from(out_vl));
        self.marked[bit / 64] |= 1 << (bit % 64);
    }

    fn bit(&self, input: u32, in_vl: usize, output: u32, out_vl: usize) -> usize {
        let at = self.graph.to[input as usize];
        let turn = self.turns[input as usize] + (output - self.graph.first[at as usize]);
        (turn as usize * self.lanes + in_vl) * self.lanes + out_vl
    }

    /// Channels and lanes that carry anything.
    pub(super) fn carrying(&self) -> usize {
        self.used
            .iter()
            .map(|lanes| lanes.count_ones() as usize)
            .sum()
    }

    /// Lanes that carry anything, on whatever channel; 1 where nothing is carried.
    pub(super) fn lanes(&self) -> u8 {
        let all = self.used.iter().fold(0, |all, lanes| all | lanes);
        all.count_ones().max(1) as u8
    }

    fn successors(&self, node: usize, mut each: impl FnMut(usize)) {
        let (channel, lane) = ((node / self.lanes) as u32, node % self.lanes);
        for output in self.graph.out(self.graph.to[channel as usize]) {
            for out_vl in 0..self.lanes {
                let bit = self.bit(channel, lane, output as u32, out_vl);
                if self.marked[bit / 64] & (1 << (bit % 64)) != 0 {
                    each(output * self.lanes + out_vl);
                }
            }
        }
    }

    /// A loop, and how many channels with their lanes stand in or between loops; none where there
    /// is no loop.
    pub(super) fn find(&self) -> Option<(Vec<Step>, usize)> {
        let nodes = self.graph.channels() * self.lanes;
        let mut degree = vec![0_u32; nodes];
        for node in 0..nodes {
            self.successors(node, |next| degree[next] += 1);
        }
        // What nothing depends on is in no loop, and can be taken away; then its successors.
        let mut free: Vec<usize> = (0..nodes).filter(|&node| degree[node] == 0).collect();
        let mut left = nodes;
        let mut gone = vec![false; nodes];
        while let Some(node) = free.pop() {
            gone[node] = true;
            left -= 1;
            self.successors(node, |next| {
                degree[next] -= 1;
                if degree[next] == 0 {
                    free.push(next);
                }
            });
        }
        if left == 0 {
            return None;
        }
        // The same from the other side, so that every node that is left has a successor left.
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); nodes];
        let mut onward = vec![0_u32; nodes];
        for node in (0..nodes).filter(|&node| !gone[node]) {
            self.successors(node, |next| {
                if !gone[next] {
                    before[next].push(node as u32);
                    onward[node] += 1;
                }
            });
        }
        let mut free: Vec<usize> = (0..nodes)
            .filter(|&it| !gone[it] && onward[it] == 0)
            .collect();
        while let Some(node) = free.pop() {
            gone[node] = true;
            left -= 1;
            for &earlier in &before[node] {
                let earlier = earlier as usize;
                onward[earlier] -= 1;
                if onward[earlier] == 0 {
                    free.push(earlier);
                }
            }
        }
        let start = gone.iter().position(|&gone| !gone)?;
        let mut seen = vec![NONE; nodes];
        let mut way = Vec::new();
        let mut node = start;
        while seen[node] == NONE {
            seen[node] = way.len() as u32;
            way.push(node);
            let mut next = None;
            self.successors(node, |it| {
                if next.is_none() && !gone[it] {
                    next = Some(it);
                }
            });
            node = next?;
        }
        let steps = way[seen[node] as usize..].iter().map(|&node| {
            let channel = node / self.lanes;
            Step {
                switch: self.graph.from[channel],
                port: self.graph.port[channel],
                vl: (node % self.lanes) as u8,
            }
        });
        Some((steps.collect(), left))
    }
}

/// A step in words: `0x… "name" port 3 VL 0`.
#[must_use]
pub fn name_step(fabric: &Fabric, step: Step) -> String {
    let switch = fabric.switches().get(step.switch as usize);
    let (guid, name) = switch.map_or_else(Default::default, |it| (it.guid, it.name.clone()));
    format!("{guid} \"{name}\" port {} VL {}", step.port, step.vl)
}
