//! Fat trees of two and three levels.

use super::plant::Plant;
use super::spec::{Args, SpecError};
use crate::error::TopologyError;

/// A k-ary fat tree: every switch has `ports` ports.
///
/// Two levels: `pods` leaf switches with `hosts` hosts each, `spines` spine switches, `parallel`
/// cables between each leaf and each spine.
///
/// Three levels: `pods` pods of `ports / 2` edge and `ports / 2` aggregation switches with one
/// cable between each two of them; each edge switch has `hosts` hosts. Aggregation switch *i* of
/// every pod reaches the `spines` core switches of group *i*, by `parallel` cables each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FatTree {
    /// Ports of every switch.
    pub ports: u8,
    /// 2 or 3.
    pub levels: u8,
    /// Two levels: leaves. Three levels: pods.
    pub pods: u8,
    /// Hosts at each leaf (edge) switch.
    pub hosts: u8,
    /// Two levels: spines. Three levels: cores in each group.
    pub spines: u8,
    /// Cables between a leaf and a spine, or an aggregation and a core switch.
    pub parallel: u8,
}

impl FatTree {
    /// The trees that go by their number of hosts; the same wiring as the nets that OpenSM was
    /// measured on.
    const NAMED: [(&'static str, Self); 5] = [
        (
            "108",
            Self {
                ports: 36,
                levels: 2,
                pods: 6,
                hosts: 18,
                spines: 3,
                parallel: 6,
            },
        ),
        (
            "648",
            Self {
                ports: 36,
                levels: 2,
                pods: 36,
                hosts: 18,
                spines: 18,
                parallel: 1,
            },
        ),
        (
            "1728",
            Self {
                ports: 24,
                levels: 3,
                pods: 12,
                hosts: 12,
                spines: 6,
                parallel: 2,
            },
        ),
        (
            "5184",
            Self {
                ports: 36,
                levels: 3,
                pods: 16,
                hosts: 18,
                spines: 9,
                parallel: 2,
            },
        ),
        (
            "11664",
            Self {
                ports: 36,
                levels: 3,
                pods: 36,
                hosts: 18,
                spines: 18,
                parallel: 1,
            },
        ),
    ];

    /// A tree by its number of hosts: 108, 648, 1728, 5184 or 11664.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED
            .into_iter()
            .find(|(n, _)| *n == name)
            .map(|(_, tree)| tree)
    }

    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, SpecError> {
        if let Some(word) = args.word() {
            return Self::named(word).ok_or_else(|| {
                args.bad(
                    "number of hosts",
                    word,
                    "one of 108, 648, 1728, 5184, 11664, or k=PORTS,levels=2|3",
                )
            });
        }
        let ports = args.number("k", 2, 254)?.ok_or_else(|| args.missing("k"))?;
        let levels = args.number("levels", 2, 3)?.unwrap_or(2);
        let half = ports / 2;
        let hosts = args.number("hosts", 0, ports)?.unwrap_or(half);
        let up = if levels == 2 { ports - hosts } else { half };
        let (pods_key, spines_key) = if levels == 2 {
            ("leaves", "spines")
        } else {
            ("pods", "cores")
        };
        let spines = match args.number(spines_key, 1, 254)? {
            Some(spines) => spines,
            None => up.max(1),
        };
        let parallel = up / spines;
        if parallel == 0 || parallel * spines != up {
            return Err(args.conflict(format!(
                "{up} cables up from a switch cannot be spread evenly over {spines} {spines_key}"
            )));
        }
        let most = ports / parallel;
        let pods = args.number(pods_key, 1, 254)?.unwrap_or(most);
        if pods > most {
            return Err(args.conflict(format!("{pods} {pods_key} of {parallel} cables need more than the {ports} ports of a switch on top")));
        }
        if levels == 3 && hosts > ports - half {
            return Err(args.conflict(format!("{hosts} hosts and {half} cables up need more than the {ports} ports of an edge switch")));
        }
        Ok(Self {
            ports,
            levels,
            pods,
            hosts,
            spines,
            parallel,
        })
    }

    pub(super) fn build(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        if self.levels == 3 {
            self.three(plant)
        } else {
            self.two(plant)
        }
    }

    fn two(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        let hosts = many(usize::from(self.pods) * usize::from(self.hosts), |_| {
            plant.host()
        })?;
        let leaves = many(usize::from(self.pods), |i| {
            plant.switch(format!("leaf-{i}"), self.ports)
        })?;
        let spines = many(usize::from(self.spines), |i| {
            plant.switch(format!("spine-{i}"), self.ports)
        })?;
        self.seat(plant, &leaves, &hosts)?;
        for leaf in &leaves {
            for spine in &spines {
                for _ in 0..self.parallel {
                    plant.cable(*leaf, *spine)?;
                }
            }
        }
        Ok(())
    }

    fn three(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        let half = usize::from(self.ports / 2);
        let in_all = usize::from(self.pods) * half;
        let hosts = many(in_all * usize::from(self.hosts), |_| plant.host())?;
        let edges = many(in_all, |i| {
            plant.switch(format!("edge-{}-{}", i / half, i % half), self.ports)
        })?;
        let aggs = many(in_all, |i| {
            plant.switch(format!("agg-{}-{}", i / half, i % half), self.ports)
        })?;
        let per_group = usize::from(self.spines);
        let cores = many(half * per_group, |i| {
            plant.switch(
                format!("core-{}-{}", i / per_group, i % per_group),
                self.ports,
            )
        })?;
        self.seat(plant, &edges, &hosts)?;
        for (edges, aggs) in edges.chunks(half).zip(aggs.chunks(half)) {
            for edge in edges {
                for agg in aggs {
                    plant.cable(*edge, *agg)?;
                }
            }
        }
        for aggs in aggs.chunks(half) {
            for (agg, group) in aggs.iter().zip(cores.chunks(per_group)) {
                for core in group {
                    for _ in 0..self.parallel {
                        plant.cable(*agg, *core)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Plugs the hosts into their leaf switches.
    fn seat(
        &self,
        plant: &mut Plant,
        leaves: &[usize],
        hosts: &[usize],
    ) -> Result<(), TopologyError> {
        if self.hosts == 0 {
            return Ok(());
        }
        for (leaf, hosts) in leaves.iter().zip(hosts.chunks(usize::from(self.hosts))) {
            for host in hosts {
                plant.cable(*leaf, *host)?;
            }
        }
        Ok(())
    }
}

/// Makes `count` nodes and returns their indices.
fn many(
    count: usize,
    mut make: impl FnMut(usize) -> Result<usize, TopologyError>,
) -> Result<Vec<usize>, TopologyError> {
    (0..count).map(&mut make).collect()
}
