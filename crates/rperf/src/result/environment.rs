//! The hosts and devices of a measurement.

use serde::{Deserialize, Serialize};

/// One end of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Side {
    /// The host.
    pub host: Host,
    /// The device.
    pub device: Device,
}

/// A host, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Host {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What tells this boot of it from all others (`/proc/sys/kernel/random/boot_id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// Its kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The model of its processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// How many processors it has online.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// The processors that the measurement ran on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
    /// The NUMA node of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// The frequency governor of these, such as `performance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// The idle states that these may enter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub idle_states: Vec<IdleState>,
    /// The average load of the last minute before the measurement, in hundredths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_hundredths: Option<u32>,
}

/// An idle state (C-state) that is enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// How long it takes to leave it, in µs.
    pub exit_microseconds: u32,
}

/// A device, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Device {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it was used through: `ibverbs`, or one of the `soft-…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Whether it is software: what was measured is this host, and no device.
    pub software: bool,
    /// Its firmware.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub firmware: Option<String>,
    /// Its driver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// What the port is: `InfiniBand` or `Ethernet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_layer: Option<String>,
    /// The path MTU, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u32>,
    /// The rate of the link, in 10⁶ bits a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_megabits: Option<u64>,
    /// What its PCIe slot carries, in 10⁶ bits a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pcie_megabits: Option<u64>,
    /// The index of the GID used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gid_index: Option<u32>,
    /// Its NUMA node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
}

impl Device {
    /// How to name it in a line: `rxe0 (software, soft-roce)`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = self.name.as_deref().unwrap_or("unknown device");
        let mut about: Vec<&str> = Vec::new();
        if self.software {
            about.push("software");
        }
        about.extend(self.provider.as_deref());
        if about.is_empty() {
            return name.to_owned();
        }
        format!("{name} ({})", about.join(", "))
    }
}
