//! Recognises grids: meshes, tori, hypercubes, of any number of dimensions, without names or port
//! numbers.
//!
//! Two neighbours of a switch in different dimensions have another neighbour in common: the fourth
//! corner of a square. Two in one dimension have none, unless the ring has four switches, and then
//! it is two dimensions of two. So one switch tells its dimensions, and squares carry them on.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches than 32 bits count"
)]

use super::graph::{Graph, NONE};

/// A dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    /// Switches along it.
    pub(super) size: u32,
    /// Whether it closes on itself.
    pub(super) wraps: bool,
}

/// Coordinates of switches.
#[derive(Debug)]
pub(super) struct Grid {
    pub(super) dimensions: Vec<Dimension>,
    /// By switch, then by dimension.
    coordinates: Vec<u32>,
    /// By switch, then dimension, then direction (on, back): channels from..to.
    ways: Vec<(u32, u32)>,
}

/// A way out of a switch: twice its dimension, plus 1 for back.
type Way = usize;

impl Grid {
    pub(super) fn find(graph: &Graph) -> Result<Self, String> {
        let near: Vec<Vec<(u32, (u32, u32))>> = (0..graph.n as u32)
            .map(|switch| {
                graph
                    .neighbours(switch)
                    .map(|(there, range)| (there, (range.start as u32, range.end as u32)))
                    .collect()
            })
            .collect();
        let origin = (0..graph.n)
            .max_by_key(|&it| (near[it].len(), std::cmp::Reverse(it)))
            .filter(|&it| (1..=20).contains(&near[it].len()))
            .ok_or("a switch has no or more than 20 neighbours")? as u32;
        let (opposite, ways) = Self::start(&near, origin)?;
        let dims = ways.iter().map(|(_, way)| way / 2 + 1).max().unwrap_or(0);
        let mut label: Vec<Vec<u32>> = vec![Vec::new(); graph.n];
        label[origin as usize] = vec![NONE; dims * 2];
        for (there, way) in ways {
            label[origin as usize][way] = there;
        }
        let not = || "squares do not close".to_owned();
        let mut queue = vec![origin];
        let mut at = 0;
        while let Some(&switch) = queue.get(at) {
            at += 1;
            for way in 0..dims * 2 {
                let there = label[switch as usize][way];
                if there == NONE || !label[there as usize].is_empty() {
                    continue;
                }
                label[there as usize] = carry(
                    &near,
                    &label[switch as usize],
                    &opposite,
                    switch,
                    way,
                    there,
                )
                .ok_or_else(not)?;
                queue.push(there);
            }
        }
        if queue.len() != graph.n {
            return Err("it does not hang together".to_owned());
        }
        Self::measure(graph, &near, &label, &opposite, origin, dims).ok_or_else(not)
    }

    /// The ways of the first switch: which is opposite to which (itself, where a dimension has two
    /// switches), and to whom they lead.
    #[expect(clippy::type_complexity, reason = "it is taken apart at once")]
    fn start(
        near: &[Vec<(u32, (u32, u32))>],
        origin: u32,
    ) -> Result<(Vec<Way>, Vec<(u32, Way)>), String> {
        let around: Vec<u32> = near[origin as usize].iter().map(|&(it, _)| it).collect();
        let has = |a: u32, b: u32| {
            near[a as usize]
                .binary_search_by_key(&b, |&(it, _)| it)
                .is_ok()
        };
        let joined = |a: u32, b: u32| {
            near[a as usize]
                .iter()
                .any(|&(it, _)| it != origin && has(b, it))
        };
        let mut left = around;
        let (mut opposite, mut ways) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let one = left.remove(0);
            let mut partners = left
                .iter()
                .copied()
                .filter(|&it| has(one, it) || !joined(one, it));
            let partner = partners.next();
            if partners.next().is_some() {
                return Err("a switch has no clear dimensions".to_owned());
            }
            let way = opposite.len();
            ways.push((one, way));
            match partner {
                Some(other) => {
                    left.retain(|&it| it != other);
                    ways.push((other, way + 1));
                    opposite.extend([way + 1, way]);
                }
                // Of two switches, or an edge of a mesh: the second way is empty.
                None => opposite.extend([way, NONE as usize]),
            }
        }
        Ok((opposite, ways))
    }

    fn measure(
        graph: &Graph,
        near: &[Vec<(u32, (u32, u32))>],
        label: &[Vec<u32>],
        opposite: &[Way],
        origin: u32,
        dims: usize,
    ) -> Option<Self> {
        let mut dimensions = Vec::new();
        let mut start = vec![0_u32; dims];
        for (dim, start) in start.iter_mut().enumerate() {
            if opposite[dim * 2] == dim * 2 {
                dimensions.push(Dimension {
                    size: 2,
                    wraps: false,
                });
                continue;
            }
            let walk = |way: usize| {
                let (mut at, mut steps) = (origin, 0_u32);
                loop {
                    at = label[at as usize][way];
                    if at == NONE {
                        return (steps, false);
                    }
                    steps += 1;
                    if at == origin || steps as usize > graph.n {
                        return (steps, true);
                    }
                }
            };
            let (on, wraps) = walk(dim * 2);
            if wraps {
                dimensions.push(Dimension {
                    size: on,
                    wraps: true,
                });
            } else {
                let (back, _) = walk(dim * 2 + 1);
                *start = back;
                dimensions.push(Dimension {
                    size: on + back + 1,
                    wraps: false,
                });
            }
        }
        let whole = dimensions
            .iter()
            .try_fold(1_usize, |all, it| all.checked_mul(it.size as usize))?;
        if whole != graph.n {
            return None;
        }
        let mut coordinates = vec![NONE; graph.n * dims];
        coordinates[origin as usize * dims..][..dims].copy_from_slice(&start);
        let mut seen = vec![false; whole];
        let mut queue = vec![origin];
        let mut at = 0;
        let place = |of: &[u32]| {
            of.iter().zip(&dimensions).fold(0, |all, (&it, dimension)| {
                all * dimension.size as usize + it as usize
            })
        };
        seen[place(&start)] = true;
        let mut ways = vec![(0, 0); graph.n * dims * 2];
        while let Some(&switch) = queue.get(at) {
            at += 1;
            let here = coordinates[switch as usize * dims..][..dims].to_vec();
            let labels = &label[switch as usize];
            if labels.iter().filter(|&&it| it != NONE).count() != near[switch as usize].len() {
                return None;
            }
            for (way, &there) in labels.iter().enumerate() {
                if there == NONE {
                    continue;
                }
                let (dim, Dimension { size, wraps }) = (way / 2, dimensions[way / 2]);
                let mut next = here.clone();
                next[dim] = if opposite[way] == way {
                    1 - here[dim]
                } else if way % 2 == 0 {
                    here[dim] + 1
                } else {
                    here[dim].wrapping_add(size).wrapping_sub(1)
                };
                let inside = if way % 2 == 0 {
                    next[dim] < size
                } else {
                    here[dim] > 0
                };
                if !inside && !wraps && opposite[way] != way {
                    return None;
                }
                next[dim] %= size;
                let known = &mut coordinates[there as usize * dims..][..dims];
                if known[0] == NONE {
                    known.copy_from_slice(&next);
                    if std::mem::replace(&mut seen[place(&next)], true) {
                        return None;
                    }
                    queue.push(there);
                } else if known != next {
                    return None;
                }
                // With two switches a step on and a step back are the same.
                let at = (switch as usize * dims + dim) * 2;
                let found = near[switch as usize]
                    .binary_search_by_key(&there, |&(it, _)| it)
                    .ok()?;
                let range = near[switch as usize][found].1;
                ways[at + way % 2] = range;
                if opposite[way] == way {
                    ways[at + 1] = range;
                }
            }
        }
        // A grid that lacks a cable is none: a way in the order of dimensions may need it.
        let whole = ways
            .chunks(2)
            .zip(&coordinates)
            .enumerate()
            .all(|(number, (ways, &at))| {
                let Dimension { size, wraps } = dimensions[number % dims];
                let open = |way: usize, edge: u32| {
                    ways[way].0 < ways[way].1 || (!wraps && size > 2 && at == edge)
                };
                open(0, size - 1) && open(1, 0)
            });
        whole.then_some(Self {
            dimensions,
            coordinates,
            ways,
        })
    }

    /// Where a switch stands.
    pub(super) fn at(&self, switch: u32) -> &[u32] {
        let dims = self.dimensions.len();
        &self.coordinates[switch as usize * dims..][..dims]
    }

    /// The channels out of a switch along a dimension, on or back.
    pub(super) fn way(&self, switch: u32, dim: usize, back: bool) -> (u32, u32) {
        self.ways[(switch as usize * self.dimensions.len() + dim) * 2 + usize::from(back)]
    }

    /// In words: `6x6x6 torus`.
    pub(super) fn words(&self) -> String {
        let sizes: Vec<String> = self
            .dimensions
            .iter()
            .map(|it| it.size.to_string())
            .collect();
        let wraps = self.dimensions.iter().filter(|it| it.wraps).count();
        let kind = if self.dimensions.iter().all(|it| it.size == 2) {
            "hypercube"
        } else if wraps == 0 {
            "mesh"
        } else if self.dimensions.iter().all(|it| it.wraps || it.size == 2) {
            "torus"
        } else {
            "torus with open dimensions"
        };
        let halves = self.dimensions.iter().filter(|it| it.size == 2).count();
        let fours = if halves > 1 && kind != "hypercube" {
            " (rings of 4 as 2x2)"
        } else {
            ""
        };
        format!("{} {kind}{fours}", sizes.join("x"))
    }
}

/// The ways out of `there`, one step from `switch`.
fn carry(
    near: &[Vec<(u32, (u32, u32))>],
    labels: &[u32],
    opposite: &[Way],
    switch: u32,
    way: Way,
    there: u32,
) -> Option<Vec<u32>> {
    let mut ours = vec![NONE; labels.len()];
    let mut left: Vec<u32> = near[there as usize].iter().map(|&(it, _)| it).collect();
    let has = |a: u32, b: u32| {
        near[a as usize]
            .binary_search_by_key(&b, |&(it, _)| it)
            .is_ok()
    };
    ours[opposite[way]] = switch;
    left.retain(|&it| it != switch);
    for (other, &beside) in labels.iter().enumerate() {
        if beside == NONE || other / 2 == way / 2 {
            continue;
        }
        let mut corners = left.iter().copied().filter(|&it| has(beside, it));
        let corner = corners.next()?;
        if corners.next().is_some() {
            return None;
        }
        ours[other] = corner;
        left.retain(|&it| it != corner);
    }
    match left[..] {
        [] => {}
        // Straight on. Not from a dimension of two switches.
        [ahead] if opposite[way] != way => ours[way] = ahead,
        _ => return None,
    }
    Some(ours)
}
