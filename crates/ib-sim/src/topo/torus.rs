//! Tori of one to five dimensions.

use super::Peer;
use super::plant::Plant;
use super::spec::{Args, SpecError};
use crate::error::TopologyError;

/// Switches in a grid that closes on itself.
///
/// Ports of dimension *d* come first, the way up and the way down, `links` cables each, in the
/// same places on every switch, as dimension-order routing wants them; then the hosts. A
/// dimension of two switches has one way only, so that no two cables join the same pair twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torus {
    /// Switches in each dimension.
    pub sizes: Vec<u8>,
    /// Hosts at each switch.
    pub hosts: u8,
    /// Parallel cables between neighbours.
    pub links: u8,
    /// Ports of every switch.
    pub ports: u8,
}

impl Torus {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, SpecError> {
        let want = "sizes such as 6x6 or 6x6x6";
        let word = args.word().ok_or_else(|| args.missing("SIZExSIZE…"))?;
        let sizes: Vec<u8> = word
            .split('x')
            .map(|s| s.parse().ok().filter(|n| *n > 0))
            .collect::<Option<_>>()
            .filter(|sizes: &Vec<u8>| sizes.len() <= 5)
            .ok_or_else(|| args.bad("size", word, want))?;
        let hosts = args.number("hosts", 0, 200)?.unwrap_or(1);
        let links = args.number("links", 1, 20)?.unwrap_or(1);
        let used = 2 * u16::try_from(sizes.len()).unwrap_or(u16::MAX) * u16::from(links)
            + u16::from(hosts);
        let ports = ports_for(args, used)?;
        Ok(Self {
            sizes,
            hosts,
            links,
            ports,
        })
    }

    pub(super) fn build(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        // Counted wide and stopped early: five sizes of 255 are more than memory.
        let count = self
            .sizes
            .iter()
            .try_fold(1_usize, |all, n| all.checked_mul(usize::from(*n)));
        let count =
            count
                .filter(|n| *n <= super::MAX_NODES)
                .ok_or(TopologyError::TooManyNodes {
                    limit: super::MAX_NODES,
                })?;
        let hosts: Vec<usize> = (0..count * usize::from(self.hosts))
            .map(|_| plant.host())
            .collect::<Result<_, _>>()?;
        let switches: Vec<usize> = (0..count)
            .map(|i| plant.switch(self.label(i), self.ports))
            .collect::<Result<_, _>>()?;
        let mut stride = 1;
        for (d, size) in (0_u8..).zip(&self.sizes) {
            let size = usize::from(*size);
            for (i, switch) in switches.iter().enumerate() {
                let at = i / stride % size;
                if size == 1 || (size == 2 && at == 1) {
                    continue;
                }
                let there = i - at * stride + (at + 1) % size * stride;
                let Some(there) = switches.get(there) else {
                    continue;
                };
                for link in 0..self.links {
                    let up = 1 + 2 * d * self.links + link;
                    plant.plug(
                        Peer {
                            node: *switch,
                            port: up,
                        },
                        Peer {
                            node: *there,
                            port: up + self.links,
                        },
                    )?;
                }
            }
            stride *= size;
        }
        if self.hosts > 0 {
            let first = 1 + 2 * u8::try_from(self.sizes.len()).unwrap_or(u8::MAX) * self.links;
            for (switch, hosts) in switches.iter().zip(hosts.chunks(usize::from(self.hosts))) {
                for (port, host) in (first..).zip(hosts) {
                    plant.plug(
                        Peer {
                            node: *switch,
                            port,
                        },
                        Peer {
                            node: *host,
                            port: 1,
                        },
                    )?;
                }
            }
        }
        Ok(())
    }

    /// `sw-0-3-1`: the place in the grid.
    fn label(&self, mut index: usize) -> String {
        let mut label = String::from("sw");
        for size in &self.sizes {
            let size = usize::from(*size);
            label += &format!("-{}", index % size);
            index /= size;
        }
        label
    }
}

/// Ports of a switch that uses this many: what `ports=` says, or 36, or as many as needed.
pub(super) fn ports_for(args: &mut Args<'_>, used: u16) -> Result<u8, SpecError> {
    let needed = u8::try_from(used)
        .ok()
        .filter(|n| *n <= 254)
        .ok_or_else(|| {
            args.conflict(format!(
                "a switch would need {used} ports, and can have 254"
            ))
        })?;
    let ports = args
        .number("ports", 1, 254)?
        .unwrap_or_else(|| needed.max(36));
    if ports < needed {
        return Err(args.conflict(format!("a switch needs {needed} ports, and ports={ports}")));
    }
    Ok(ports)
}
