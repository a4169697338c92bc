//! A virtual lane as a set of turns without a circle, kept in a topological order that is repaired
//! as turns come in (Pearce and Kelly, A dynamic topological sort algorithm for directed acyclic
//! graphs, 2006).

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer channels than 32 bits count"
)]

use super::graph::{Graph, NONE};

/// The turns of a lane.
#[derive(Debug)]
pub(super) struct Layer<'a> {
    graph: &'a Graph,
    turns: &'a [u32],
    /// By channel: its place in the order. A turn leads to a later place.
    place: Vec<u32>,
    present: Vec<u64>,
    /// Turns that are known to close a circle. Turns that are taken back make none of them
    /// possible that was marked before, as long as marks are only made on what stays.
    blocked: Vec<u64>,
    seen: Vec<u32>,
    stamp: u32,
    forward: Vec<u32>,
    backward: Vec<u32>,
    stack: Vec<u32>,
    /// Turns looked at so far, to know when it is too much.
    pub(super) work: u64,
}

fn get(bits: &[u64], bit: usize) -> bool {
    bits[bit / 64] & (1 << (bit % 64)) != 0
}

fn set(bits: &mut [u64], bit: usize) {
    bits[bit / 64] |= 1 << (bit % 64);
}

impl<'a> Layer<'a> {
    pub(super) fn new(graph: &'a Graph, turns: &'a [u32]) -> Self {
        let words = (turns.last().copied().unwrap_or(0) as usize).div_ceil(64);
        Self {
            graph,
            turns,
            place: (0..graph.channels() as u32).collect(),
            present: vec![0; words],
            blocked: vec![0; words],
            seen: vec![0; graph.channels()],
            stamp: 0,
            forward: Vec::new(),
            backward: Vec::new(),
            stack: Vec::new(),
            work: 0,
        }
    }

    fn turn(&self, input: u32, output: u32) -> usize {
        let at = self.graph.to[input as usize];
        (self.turns[input as usize] + output - self.graph.first[at as usize]) as usize
    }

    /// Whether a turn is in.
    pub(super) fn has(&self, input: u32, output: u32) -> bool {
        get(&self.present, self.turn(input, output))
    }

    /// Takes a turn out again.
    pub(super) fn remove(&mut self, input: u32, output: u32) {
        let turn = self.turn(input, output);
        self.present[turn / 64] &= !(1 << (turn % 64));
    }

    /// Takes a turn in, unless it closes a circle. `lasting` says that all turns in it are to stay,
    /// so that a refusal is for good.
    pub(super) fn add(&mut self, input: u32, output: u32, lasting: bool) -> bool {
        let turn = self.turn(input, output);
        if get(&self.present, turn) {
            return true;
        }
        if get(&self.blocked, turn) || self.graph.back[input as usize] == output {
            return false;
        }
        let (low, high) = (self.place[output as usize], self.place[input as usize]);
        if low < high && !self.reorder(input, output, low, high) {
            if lasting {
                set(&mut self.blocked, turn);
            }
            return false;
        }
        set(&mut self.present, turn);
        true
    }

    fn reorder(&mut self, input: u32, output: u32, low: u32, high: u32) -> bool {
        let graph = self.graph;
        self.stamp += 1;
        self.forward.clear();
        self.stack.push(output);
        self.seen[output as usize] = self.stamp;
        while let Some(channel) = self.stack.pop() {
            self.forward.push(channel);
            self.work += graph.out(graph.to[channel as usize]).len() as u64;
            for next in graph.out(graph.to[channel as usize]) {
                let next = next as u32;
                if self.place[next as usize] > high
                    || self.seen[next as usize] == self.stamp
                    || !self.has(channel, next)
                {
                    continue;
                }
                if next == input {
                    self.stack.clear();
                    return false;
                }
                self.seen[next as usize] = self.stamp;
                self.stack.push(next);
            }
        }
        self.stamp += 1;
        self.backward.clear();
        self.stack.push(input);
        self.seen[input as usize] = self.stamp;
        while let Some(channel) = self.stack.pop() {
            self.backward.push(channel);
            self.work += graph.out(graph.from[channel as usize]).len() as u64;
            for out in graph.out(graph.from[channel as usize]) {
                let before = graph.back[out];
                if before == NONE
                    || self.place[before as usize] < low
                    || self.seen[before as usize] == self.stamp
                    || !self.has(before, channel)
                {
                    continue;
                }
                self.seen[before as usize] = self.stamp;
                self.stack.push(before);
            }
        }
        let place = &self.place;
        self.forward.sort_unstable_by_key(|&it| place[it as usize]);
        self.backward.sort_unstable_by_key(|&it| place[it as usize]);
        let moved = || self.backward.iter().chain(&self.forward);
        let mut places: Vec<u32> = moved().map(|&it| place[it as usize]).collect();
        places.sort_unstable();
        let channels: Vec<u32> = moved().copied().collect();
        for (channel, to) in channels.into_iter().zip(places) {
            self.place[channel as usize] = to;
        }
        true
    }

    /// Becomes like another.
    pub(super) fn copy(&mut self, other: &Self) {
        self.place.clone_from(&other.place);
        self.present.clone_from(&other.present);
        self.blocked.clone_from(&other.blocked);
        self.work = 0;
    }

    /// Takes in the turns of a spanning tree, by which everything stays reachable.
    pub(super) fn escape(&mut self, tree: &Escape) {
        for channel in 0..self.graph.channels() as u32 {
            if !tree.has(channel) {
                continue;
            }
            for next in self.graph.out(self.graph.to[channel as usize]) {
                if tree.has(next as u32) {
                    self.add(channel, next as u32, true);
                }
            }
        }
    }
}

/// A spanning tree: from every switch the channel towards the root.
#[derive(Debug)]
pub(super) struct Escape {
    /// By switch: the channel to its parent; [`NONE`] at the root.
    pub(super) up: Vec<u32>,
    /// By switch: its part of a fabric that does not hang together.
    pub(super) part: Vec<u32>,
    /// By part: its switches.
    pub(super) parts: Vec<u32>,
    member: Vec<bool>,
}

impl Escape {
    /// A shortest-path tree from a switch in the middle.
    pub(super) fn new(graph: &Graph) -> Self {
        let root = centre(graph);
        let mut up = vec![NONE; graph.n];
        let mut member = vec![false; graph.channels()];
        let mut seen = vec![false; graph.n];
        let mut order = Vec::new();
        let (mut part, mut parts) = (vec![0; graph.n], Vec::new());
        // Parts that do not hang together have a tree each.
        for start in std::iter::once(root).chain(0..graph.n as u32) {
            if (start as usize) >= graph.n || seen[start as usize] {
                continue;
            }
            seen[start as usize] = true;
            let from = order.len();
            let mut at = from;
            order.push(start);
            while let Some(&switch) = order.get(at) {
                at += 1;
                part[switch as usize] = parts.len() as u32;
                for (there, range) in graph.neighbours(switch) {
                    if !std::mem::replace(&mut seen[there as usize], true) {
                        up[there as usize] = graph.back[range.start];
                        member[range.start] = true;
                        member[graph.back[range.start] as usize] = true;
                        order.push(there);
                    }
                }
            }
            parts.push((order.len() - from) as u32);
        }
        Self {
            up,
            part,
            parts,
            member,
        }
    }

    fn has(&self, channel: u32) -> bool {
        self.member[channel as usize]
    }

    /// The way to a switch along the tree, from all switches.
    pub(super) fn route(&self, graph: &Graph, target: u32, next: &mut [u32]) {
        next.copy_from_slice(&self.up);
        let mut at = target;
        next[at as usize] = NONE;
        while self.up[at as usize] != NONE {
            let channel = self.up[at as usize];
            let parent = graph.to[channel as usize];
            next[parent as usize] = graph.back[channel as usize];
            at = parent;
        }
    }
}

/// A switch that is not far from any, with many cables.
pub(super) fn centre(graph: &Graph) -> u32 {
    let (mut hops, mut queue) = (Vec::new(), Vec::new());
    // From one rim to the other, and half of the way back.
    let mut ends = Vec::new();
    let mut at = 0;
    for _ in 0..2 {
        if graph.n == 0 {
            return 0;
        }
        graph.hops_to(at, &mut hops, &mut queue);
        at = queue.last().copied().unwrap_or(0);
        ends.push(hops.clone());
    }
    graph.hops_to(at, &mut hops, &mut queue);
    ends.push(hops);
    (0..graph.n as u32)
        .min_by_key(|&it| {
            let far = ends.iter().skip(1).map(|of| of[it as usize]).max();
            (far, std::cmp::Reverse(graph.out(it).len()), it)
        })
        .unwrap_or(0)
}
