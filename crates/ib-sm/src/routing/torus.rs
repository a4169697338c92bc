//! Grids in the order of their dimensions: `dor`, and `torus`, which has no credit loops.

#![expect(
    clippy::cast_possible_truncation,
    reason = "a fabric has fewer switches and channels than 32 bits count, and LIDs have 16"
)]

use super::fabric::Fabric;
use super::graph::{Graph, NONE, Targets, route_all};
use super::grid::{Dimension, Grid};
use super::tables::{NO_PORT, Sl, Sl2Vl, Tables};
use super::{Engine, Options, RouteError, lanes};

/// The engine `dor`: one dimension after the other, the shorter way round. Without credit loops on
/// meshes and hypercubes only, as in OpenSM.
#[derive(Debug)]
pub struct Dor;

impl Engine for Dor {
    fn name(&self) -> &'static str {
        "dor"
    }

    fn reference(&self) -> &'static str {
        "H. Sullivan and T. R. Bashkow, A large scale, homogeneous, fully distributed parallel machine, 1977"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        run(fabric, &Graph::new(fabric), options, Rings::Open, "dor")
    }
}

/// The engine `torus`: as `dor`, and a bit of the service level for each ring tells whether a path
/// crosses its date line, and so which of two lanes it takes there. With one lane no path crosses
/// the line.
#[derive(Debug)]
pub struct Torus;

impl Engine for Torus {
    fn name(&self) -> &'static str {
        "torus"
    }

    fn reference(&self) -> &'static str {
        "W. J. Dally and C. L. Seitz, Deadlock-free message routing in multiprocessor interconnection \
         networks, 1987; J. Schutt, torus-2QoS, in OpenSM"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        let rings = if lanes(fabric, options) >= 2 {
            Rings::DateLine
        } else {
            Rings::Cut
        };
        run(fabric, &Graph::new(fabric), options, rings, "torus")
    }
}

/// What is done about rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rings {
    /// Nothing.
    Open,
    /// Two lanes.
    DateLine,
    /// No path goes over the cable between last and first.
    Cut,
}

/// A ring in which a path can be two hops long, so that hops in it depend on each other.
fn turns_round(dimension: Dimension) -> bool {
    dimension.wraps && dimension.size > 3
}

pub(super) fn run(
    fabric: &Fabric,
    graph: &Graph,
    options: &Options,
    rings: Rings,
    engine: &'static str,
) -> Result<Tables, RouteError> {
    let grid = Grid::find(graph).map_err(|why| RouteError::Shape { engine, why })?;
    let lines: Vec<usize> = (0..grid.dimensions.len())
        .filter(|&it| rings == Rings::DateLine && turns_round(grid.dimensions[it]))
        .collect();
    if lines.len() > 4 {
        return Err(RouteError::Shape {
            engine,
            why: "16 service levels tell of 4 rings at most".to_owned(),
        });
    }
    let targets = Targets::new(fabric, graph);
    let mut tables = Tables::empty(fabric);
    route_all(
        graph,
        &targets,
        options.workers,
        &mut tables,
        || (),
        |(), target, columns| {
            for (number, it) in targets.at(target).iter().enumerate() {
                let column = &mut columns[number * graph.n..][..graph.n];
                let spread = u32::from(it.port) + u32::from(it.path);
                for (switch, slot) in (0_u32..).zip(column.iter_mut()) {
                    *slot = if switch == target {
                        it.port
                    } else {
                        step(graph, &grid, rings, switch, target, spread)
                            .map_or(NO_PORT, |hop| hop.2)
                    };
                }
            }
        },
    );
    if !lines.is_empty() {
        tables.sl = levels(graph, &grid, &targets, fabric, &lines);
        let class = |switch: u32, port: u8| {
            let channel = graph.channel(switch, port);
            if channel == NONE {
                return 0;
            }
            let on = |dim: usize| {
                [false, true].into_iter().any(|back| {
                    let (from, to) = grid.way(switch, dim, back);
                    (from..to).contains(&channel)
                })
            };
            lines
                .iter()
                .position(|&dim| on(dim))
                .map_or(0, |it| it as u8 + 1)
        };
        tables.sl2vl = Sl2Vl::by_class(fabric, lines.len() as u8 + 1, class, |_, output| {
            let mut map = [0; 16];
            for (lane, level) in map.iter_mut().zip(0_u8..) {
                *lane = if output == 0 {
                    0
                } else {
                    (level >> (output - 1)) & 1
                };
            }
            map
        });
    }
    tables.account.engine = engine.to_owned();
    tables.account.shape = grid.words();
    tables.account.sls = 1 << lines.len();
    tables.account.vls = if lines.is_empty() { 1 } else { 2 };
    Ok(tables)
}

/// The next hop: dimension, whether back, port.
fn step(
    graph: &Graph,
    grid: &Grid,
    rings: Rings,
    switch: u32,
    target: u32,
    spread: u32,
) -> Option<(usize, bool, u8)> {
    let (here, there) = (grid.at(switch), grid.at(target));
    let dim = (0..here.len()).find(|&it| here[it] != there[it])?;
    let back = goes_back(grid.dimensions[dim], rings, here[dim], there, dim, spread);
    let (from, to) = grid.way(switch, dim, back);
    if from == to {
        return None;
    }
    let turn = spread + there.iter().sum::<u32>();
    Some((
        dim,
        back,
        graph.port[(from + (turn + turn / 2) % (to - from)) as usize],
    ))
}

fn goes_back(
    dimension: Dimension,
    rings: Rings,
    here: u32,
    there: &[u32],
    dim: usize,
    spread: u32,
) -> bool {
    if !dimension.wraps || (rings == Rings::Cut && turns_round(dimension)) {
        return there[dim] < here;
    }
    let on = (there[dim] + dimension.size - here) % dimension.size;
    match (on * 2).cmp(&dimension.size) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        // Both ways are as long: half of the destinations take each.
        std::cmp::Ordering::Equal => (spread + there.iter().sum::<u32>()) % 2 == 1,
    }
}

/// By switch of the source and destination: which date lines are crossed.
fn levels(graph: &Graph, grid: &Grid, targets: &Targets, fabric: &Fabric, lines: &[usize]) -> Sl {
    let columns = targets.all.len();
    let mut column = vec![0_u16; usize::from(fabric.top_lid()) + 1];
    for (at, it) in targets.all.iter().enumerate() {
        column[usize::from(it.lid)] = at as u16;
    }
    let mut levels = vec![0_u8; graph.n * columns];
    for (switch, row) in (0_u32..).zip(levels.chunks_mut(columns.max(1))) {
        let here = grid.at(switch);
        for (level, it) in row.iter_mut().zip(&targets.all) {
            let there = grid.at(it.switch);
            for (bit, &dim) in lines.iter().enumerate() {
                if here[dim] == there[dim] {
                    continue;
                }
                let spread = u32::from(it.port) + u32::from(it.path);
                let back = goes_back(
                    grid.dimensions[dim],
                    Rings::DateLine,
                    here[dim],
                    there,
                    dim,
                    spread,
                );
                // Going on to a lower number, or back to a higher one, leads over the line.
                if (there[dim] < here[dim]) != back {
                    *level |= 1 << bit;
                }
            }
        }
    }
    Sl::Pair {
        column,
        columns,
        levels,
    }
}
