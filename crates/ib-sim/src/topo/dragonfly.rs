//! Dragonflies.

use super::Peer;
use super::plant::Plant;
use super::spec::{Args, SpecError};
use super::torus::ports_for;
use crate::error::TopologyError;

/// A dragonfly (Kim, Dally, Scott and Abts 2008): groups of fully meshed switches, and cables
/// between all pairs of groups.
///
/// Ports of a switch: hosts first, then the other switches of its group, then the global cables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dragonfly {
    /// Hosts at each switch.
    pub hosts: u8,
    /// Switches in each group (*a*).
    pub switches: u8,
    /// Global cables of each switch (*h*).
    pub global: u8,
    /// Groups (*g*); at most *a·h + 1*.
    pub groups: u16,
    /// Ports of every switch.
    pub ports: u8,
}

impl Dragonfly {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, SpecError> {
        let hosts = args.number("p", 1, 64)?.ok_or_else(|| args.missing("p"))?;
        let switches = args.number("a", 1, 128)?.unwrap_or(hosts * 2);
        let global = args.number("h", 1, 64)?.unwrap_or(hosts);
        let most = u16::from(switches) * u16::from(global) + 1;
        let groups = args.number16("groups", 2, most)?.unwrap_or(most);
        let used = u16::from(hosts) + u16::from(switches) - 1 + u16::from(global);
        let ports = ports_for(args, used)?;
        Ok(Self {
            hosts,
            switches,
            global,
            groups,
            ports,
        })
    }

    pub(super) fn build(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        let (p, a, h, g) = (
            usize::from(self.hosts),
            usize::from(self.switches),
            usize::from(self.global),
            usize::from(self.groups),
        );
        let hosts: Vec<usize> = (0..g * a * p)
            .map(|_| plant.host())
            .collect::<Result<_, _>>()?;
        let switches: Vec<usize> = (0..g * a)
            .map(|i| plant.switch(format!("sw-{}-{}", i / a, i % a), self.ports))
            .collect::<Result<_, _>>()?;
        for (switch, hosts) in switches.iter().zip(hosts.chunks(p)) {
            for host in hosts {
                plant.cable(*switch, *host)?;
            }
        }
        for group in switches.chunks(a) {
            for (i, left) in group.iter().enumerate() {
                for right in group.iter().skip(i + 1) {
                    plant.cable(*left, *right)?;
                }
            }
        }
        // Global cable k of a group leads `k mod (g-1) + 1` groups further; at the far end it is
        // the cable that leads back by as much. Cables that make no full round stay unplugged.
        let first = p + a;
        let end = |group: usize, k: usize| {
            let node = switches.get(group * a + k / h).copied()?;
            Some(Peer {
                node,
                port: u8::try_from(first + k % h).ok()?,
            })
        };
        let rounds = if g > 1 { a * h / (g - 1) } else { 0 };
        for group in 0..g {
            for round in 0..rounds {
                for step in 1..g {
                    let there = (group + step) % g;
                    if there < group {
                        continue;
                    }
                    let near = end(group, round * (g - 1) + step - 1);
                    let far = end(there, round * (g - 1) + g - step - 1);
                    if let (Some(near), Some(far)) = (near, far) {
                        plant.plug(near, far)?;
                    }
                }
            }
        }
        Ok(())
    }
}
