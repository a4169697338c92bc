//! Random fabrics, for tests that must not depend on a regular shape.

use super::plant::Plant;
use super::spec::{Args, SpecError};
use crate::error::TopologyError;
use crate::rng::Rng;

/// Switches joined at random: a random tree first, so that all are reached, then further cables
/// until the mean switch has `degree` of them. Parallel cables happen, as they do in life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    /// How many switches.
    pub switches: u16,
    /// How many hosts, dealt to the switches in turn.
    pub hosts: u16,
    /// Ports of every switch.
    pub ports: u8,
    /// Cables to other switches that a switch has on average.
    pub degree: u8,
    /// The seed.
    pub seed: u64,
}

impl Random {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, SpecError> {
        let switches = args
            .number16("switches", 1, 4096)?
            .ok_or_else(|| args.missing("switches"))?;
        let hosts = args.number16("hosts", 0, 40_000)?.unwrap_or(switches);
        let ports = args.number("ports", 2, 254)?.unwrap_or(36);
        let degree = args.number("degree", 1, 254)?.unwrap_or(4);
        let seed = args.number64("seed")?.unwrap_or(1);
        let each = hosts.div_ceil(switches);
        // Two ports stay for the tree, so that it never runs out of them.
        if each + 2 > u16::from(ports) {
            return Err(args.conflict(format!("{each} hosts on a switch leave fewer than 2 of its {ports} ports for other switches")));
        }
        Ok(Self {
            switches,
            hosts,
            ports,
            degree,
            seed,
        })
    }

    pub(super) fn build(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        let mut rng = Rng::new(self.seed);
        let hosts: Vec<usize> = (0..self.hosts)
            .map(|_| plant.host())
            .collect::<Result<_, _>>()?;
        let switches: Vec<usize> = (0..self.switches)
            .map(|i| plant.switch(format!("sw-{i}"), self.ports))
            .collect::<Result<_, _>>()?;
        for (host, switch) in hosts.iter().zip(switches.iter().cycle()) {
            plant.cable(*switch, *host)?;
        }
        let mut cables = 0_usize;
        for (i, switch) in switches.iter().enumerate().skip(1) {
            // From a random start to the next earlier switch with a port to spare.
            let start = rng.index(i);
            let before = switches.iter().take(i).cycle().skip(start).take(i);
            if let Some(other) = before.copied().find(|s| plant.spare(*s) > 0) {
                plant.cable(*switch, other)?;
                cables += 1;
            }
        }
        let wanted = switches.len() * usize::from(self.degree) / 2;
        // Bounded, since a crowded fabric may have no two ports left.
        let mut attempts = wanted * 20;
        while cables < wanted && attempts > 0 {
            attempts -= 1;
            let (a, b) = (rng.index(switches.len()), rng.index(switches.len()));
            let (Some(a), Some(b)) = (switches.get(a).copied(), switches.get(b).copied()) else {
                continue;
            };
            if a != b && plant.spare(a) > 0 && plant.spare(b) > 0 {
                plant.cable(a, b)?;
                cables += 1;
            }
        }
        Ok(())
    }
}
