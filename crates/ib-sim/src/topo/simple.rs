//! The smallest shapes: a ring, one switch, two hosts.

use super::plant::Plant;
use super::spec::{Args, SpecError};
use super::torus::ports_for;
use crate::error::TopologyError;

/// Switches in a circle, with hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ring {
    /// How many switches.
    pub switches: u16,
    /// Hosts at each switch.
    pub hosts: u8,
    /// Ports of every switch.
    pub ports: u8,
}

impl Ring {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, SpecError> {
        let switches = args
            .number16("switches", 1, 4096)?
            .ok_or_else(|| args.missing("switches"))?;
        let hosts = args.number("hosts", 0, 200)?.unwrap_or(1);
        let ports = ports_for(args, 2 + u16::from(hosts))?;
        Ok(Self {
            switches,
            hosts,
            ports,
        })
    }

    pub(super) fn build(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        let count = usize::from(self.switches) * usize::from(self.hosts);
        let hosts: Vec<usize> = (0..count).map(|_| plant.host()).collect::<Result<_, _>>()?;
        let switches: Vec<usize> = (0..self.switches)
            .map(|i| plant.switch(format!("sw-{i}"), self.ports))
            .collect::<Result<_, _>>()?;
        if self.hosts > 0 {
            for (switch, hosts) in switches.iter().zip(hosts.chunks(usize::from(self.hosts))) {
                for host in hosts {
                    plant.cable(*switch, *host)?;
                }
            }
        }
        for pair in switches.windows(2) {
            if let [a, b] = pair {
                plant.cable(*a, *b)?;
            }
        }
        if let [first, _, .., last] = switches.as_slice() {
            plant.cable(*last, *first)?;
        }
        Ok(())
    }
}

/// One switch, with hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SingleSwitch {
    /// How many hosts.
    pub hosts: u8,
    /// Ports of the switch.
    pub ports: u8,
}

impl SingleSwitch {
    pub(super) fn parse(args: &mut Args<'_>) -> Result<Self, SpecError> {
        let hosts = args.number("hosts", 1, 254)?.unwrap_or(4);
        let ports = ports_for(args, u16::from(hosts))?;
        Ok(Self { hosts, ports })
    }

    pub(super) fn build(&self, plant: &mut Plant) -> Result<(), TopologyError> {
        let hosts: Vec<usize> = (0..self.hosts)
            .map(|_| plant.host())
            .collect::<Result<_, _>>()?;
        let switch = plant.switch("switch".to_owned(), self.ports)?;
        for host in hosts {
            plant.cable(switch, host)?;
        }
        Ok(())
    }
}

/// Two hosts and a cable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackToBack;

impl BackToBack {
    pub(super) fn build(plant: &mut Plant) -> Result<(), TopologyError> {
        let (a, b) = (plant.host()?, plant.host()?);
        plant.cable(a, b)
    }
}
