//! What routing gives: forwarding tables, service levels and their mapping to virtual lanes.

use std::collections::BTreeMap;

use super::fabric::{Fabric, Place};

/// What a forwarding table says of a LID that it has no way to.
pub const NO_PORT: u8 = 0xff;

/// LIDs in a block of a forwarding table, as SMPs carry it.
pub const BLOCK: usize = 64;

/// The service level of a path.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Sl {
    /// The same for all: 0.
    #[default]
    Zero,
    /// By the destination LID alone.
    Destination(Vec<u8>),
    /// By the switch of the source and the destination LID.
    Pair {
        /// By LID: the column of it.
        column: Vec<u16>,
        /// Columns in all.
        columns: usize,
        /// Row by row: source switch, then column.
        levels: Vec<u8>,
    },
}

impl Sl {
    /// The level for a packet from a source at `switch` to `lid`.
    #[must_use]
    pub fn get(&self, switch: u32, lid: u16) -> u8 {
        match self {
            Self::Zero => 0,
            Self::Destination(levels) => levels.get(usize::from(lid)).copied().unwrap_or(0),
            Self::Pair {
                column,
                columns,
                levels,
            } => column
                .get(usize::from(lid))
                .and_then(|&column| levels.get(switch as usize * columns + usize::from(column)))
                .copied()
                .unwrap_or(0),
        }
    }
}

impl Sl {
    /// Levels in use, from 0: one more than the highest.
    #[must_use]
    pub fn levels(&self) -> u8 {
        let highest = match self {
            Self::Zero => None,
            Self::Destination(levels) | Self::Pair { levels, .. } => levels.iter().copied().max(),
        };
        highest.unwrap_or(0).saturating_add(1)
    }
}

/// How switches map service levels to virtual lanes.
///
/// IBTA lets every pair of an in-port and an out-port have a map of its own. Here ports have
/// classes, and every pair of classes has a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sl2Vl {
    classes: u8,
    /// By switch and port, from the first port 0 on; empty where there is one class.
    class: Vec<u8>,
    base: Vec<u32>,
    maps: Vec<[u8; 16]>,
    /// Where every pair of ports has a map of its own: by switch, in-port and out-port, which one.
    pairs: Vec<u16>,
    /// Where each switch begins in that, and how many ports it has with port 0.
    rows: Vec<(u32, u32)>,
}

impl Sl2Vl {
    /// All on lane 0.
    #[must_use]
    pub fn zero() -> Self {
        Self::uniform([0; 16])
    }

    /// One map for all ports.
    #[must_use]
    pub fn uniform(map: [u8; 16]) -> Self {
        Self {
            classes: 1,
            class: Vec::new(),
            base: Vec::new(),
            maps: vec![map],
            pairs: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// A map for each pair of ports, as they are told: switch, in-port, out-port, lanes by level.
    /// Of what is not told, levels stay on the lanes of their numbers.
    #[must_use]
    pub fn by_pair(
        fabric: &Fabric,
        told: impl IntoIterator<Item = (u32, u8, u8, [u8; 16])>,
    ) -> Self {
        let mut rows = Vec::new();
        let mut total = 0;
        for it in fabric.switches() {
            let ports = u32::from(it.ports) + 1;
            rows.push((total, ports));
            total += ports * ports;
        }
        let Self { mut maps, .. } = Self::identity(16);
        let mut known = BTreeMap::from([(maps.first().copied().unwrap_or_default(), 0_u16)]);
        let mut pairs = vec![0; total as usize];
        for (switch, input, output, map) in told {
            let next = u16::try_from(maps.len()).unwrap_or(0);
            let number = *known.entry(map).or_insert_with(|| {
                // More maps than 16 bits count are none that a fabric has.
                if next > 0 {
                    maps.push(map);
                }
                next
            });
            let Some(&(base, ports)) = rows.get(switch as usize) else {
                continue;
            };
            let (input, output) = (u32::from(input), u32::from(output));
            if input < ports
                && output < ports
                && let Some(slot) = pairs.get_mut((base + input * ports + output) as usize)
            {
                *slot = number;
            }
        }
        Self {
            classes: 1,
            class: Vec::new(),
            base: Vec::new(),
            maps,
            pairs,
            rows,
        }
    }

    /// Every level on the lane of its number, as far as there are lanes; the rest on the last one.
    #[must_use]
    pub fn identity(vls: u8) -> Self {
        let mut map = [0; 16];
        for (lane, level) in map.iter_mut().zip(0_u8..) {
            *lane = level.min(vls.max(1) - 1);
        }
        Self::uniform(map)
    }

    /// The same between switches; towards end ports on as many lanes as all of their cables have.
    #[must_use]
    pub fn layered(fabric: &Fabric, vls: u8) -> Self {
        let ends = (0_u32..).take(fabric.ends().len());
        let least = ends
            .filter_map(|end| Some(fabric.plug_of(end)?.link.vls))
            .min();
        let least = least.unwrap_or(vls).max(1);
        if least >= vls {
            return Self::identity(vls);
        }
        let lanes = |count: u8| {
            let Self { maps, .. } = Self::identity(count);
            maps.first().copied().unwrap_or_default()
        };
        let class = |switch: u32, port: u8| {
            let peer = fabric.port(switch, port).map(|it| it.peer);
            u8::from(matches!(peer, Some(Place::Switch { .. })))
        };
        Self::by_class(fabric, 2, class, |_, output| {
            lanes(if output == 1 { vls } else { least })
        })
    }

    /// By classes of ports: `class` is asked for each switch and port, `map` for each pair of
    /// classes of in-port and out-port.
    #[must_use]
    pub fn by_class(
        fabric: &Fabric,
        classes: u8,
        class: impl Fn(u32, u8) -> u8,
        map: impl Fn(u8, u8) -> [u8; 16],
    ) -> Self {
        let mut all = Vec::new();
        let mut base = Vec::new();
        for (switch, it) in (0_u32..).zip(fabric.switches()) {
            base.push(u32::try_from(all.len()).unwrap_or(u32::MAX));
            all.extend((0..=it.ports).map(|port| class(switch, port).min(classes - 1)));
        }
        let maps = (0..classes)
            .flat_map(|a| (0..classes).map(move |b| (a, b)))
            .map(|(a, b)| map(a, b))
            .collect();
        Self {
            classes,
            class: all,
            base,
            maps,
            pairs: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn class_of(&self, switch: u32, port: u8) -> u8 {
        self.base
            .get(switch as usize)
            .and_then(|&base| self.class.get(base as usize + usize::from(port)))
            .copied()
            .unwrap_or(0)
    }

    /// The map of a switch for packets that come in at one port and go out at another: by service
    /// level, the lane.
    #[must_use]
    pub fn map(&self, switch: u32, input: u8, output: u8) -> &[u8; 16] {
        const ZERO: [u8; 16] = [0; 16];
        if let Some(&(base, ports)) = self.rows.get(switch as usize) {
            let at = base + u32::from(input) * ports + u32::from(output);
            let number = self.pairs.get(at as usize).copied().unwrap_or(0);
            return self.maps.get(usize::from(number)).unwrap_or(&ZERO);
        }
        let at = usize::from(self.class_of(switch, input)) * usize::from(self.classes)
            + usize::from(self.class_of(switch, output));
        self.maps.get(at).unwrap_or(&ZERO)
    }

    /// Whether all switches have the same map for all pairs of ports.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.maps
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a == b))
    }

    /// Lanes that are used by the levels below `levels`.
    #[must_use]
    pub fn lanes(&self, levels: u8) -> u8 {
        let used = self
            .maps
            .iter()
            .flat_map(|map| map.iter().take(usize::from(levels.max(1))));
        used.copied().max().unwrap_or(0) + 1
    }
}

/// What an engine saw in the fabric, and what it made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Account {
    /// The engine that made the tables.
    pub engine: String,
    /// What the fabric was recognised as, in words.
    pub shape: String,
    /// Service levels in use.
    pub sls: u8,
    /// Virtual lanes in use.
    pub vls: u8,
    /// What is worth knowing: why another engine was passed over, what was missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Forwarding tables of all switches, with what belongs to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    /// What was recognised.
    pub account: Account,
    /// Service levels of paths.
    pub sl: Sl,
    /// What switches map them to. End ports may map them as they like: what enters the fabric
    /// there waits for nothing before.
    pub sl2vl: Sl2Vl,
    top: u16,
    stride: usize,
    lft: Vec<u8>,
}

impl Tables {
    /// Tables without a single way, for a fabric.
    #[must_use]
    pub fn empty(fabric: &Fabric) -> Self {
        Self::blank(fabric.switches().len(), fabric.top_lid())
    }

    /// Tables without a single way, for so many switches and LIDs up to `top`.
    #[must_use]
    pub fn blank(switches: usize, top: u16) -> Self {
        let stride = (usize::from(top) + 1).next_multiple_of(BLOCK);
        Self {
            account: Account::default(),
            sl: Sl::Zero,
            sl2vl: Sl2Vl::zero(),
            top,
            stride,
            lft: vec![NO_PORT; switches * stride],
        }
    }

    /// The highest LID that there is an entry for.
    #[must_use]
    pub const fn top_lid(&self) -> u16 {
        self.top
    }

    /// The forwarding table of a switch: a port for each LID from 0, [`NO_PORT`] where there is no
    /// way. Its length is a multiple of [`BLOCK`].
    #[must_use]
    pub fn lft(&self, switch: u32) -> &[u8] {
        let from = switch as usize * self.stride;
        self.lft.get(from..from + self.stride).unwrap_or(&[])
    }

    /// The same, to be written to.
    pub fn lft_mut(&mut self, switch: u32) -> &mut [u8] {
        let from = switch as usize * self.stride;
        self.lft
            .get_mut(from..from + self.stride)
            .unwrap_or(&mut [])
    }

    /// The port by which a switch sends on to a LID.
    #[must_use]
    pub fn port(&self, switch: u32, lid: u16) -> u8 {
        self.lft(switch)
            .get(usize::from(lid))
            .copied()
            .unwrap_or(NO_PORT)
    }

    /// Sets it; a LID above [`top_lid`](Self::top_lid) is passed over.
    pub fn set_port(&mut self, switch: u32, lid: u16, port: u8) {
        if let Some(slot) = self.lft_mut(switch).get_mut(usize::from(lid)) {
            *slot = port;
        }
    }

    /// The way of a packet from a source at `switch` to `lid`: switch and out-port, one by one. Ends
    /// at the destination, where there is no way on, or after as many hops as there are switches.
    #[must_use]
    pub fn walk(&self, fabric: &Fabric, switch: u32, lid: u16) -> Vec<(u32, u8)> {
        let mut way = Vec::new();
        let mut at = switch;
        while way.len() <= fabric.switches().len() {
            let port = self.port(at, lid);
            if port == NO_PORT {
                break;
            }
            way.push((at, port));
            match fabric.port(at, port).map(|port| port.peer) {
                Some(Place::Switch { switch, .. }) => at = switch,
                _ => break,
            }
        }
        way
    }

    /// Turns columns, one for each of `lids` and in each a port for every switch, into the
    /// switches' tables.
    pub(super) fn fill(&mut self, lids: &[u16], columns: &[u8], switches: usize) {
        // Tiles, so that neither side is read or written with a cache miss for each byte.
        const TILE: usize = 64;
        for (lids, columns) in lids.chunks(TILE).zip(columns.chunks(TILE * switches)) {
            for first in (0..switches).step_by(TILE) {
                for switch in first..(first + TILE).min(switches) {
                    let row = switch * self.stride;
                    let Some(row) = self.lft.get_mut(row..row + self.stride) else {
                        continue;
                    };
                    for (&lid, column) in lids.iter().zip(columns.chunks(switches)) {
                        if let (Some(slot), Some(&port)) =
                            (row.get_mut(usize::from(lid)), column.get(switch))
                        {
                            *slot = port;
                        }
                    }
                }
            }
        }
    }
}
