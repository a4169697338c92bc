//! The hosts and devices of a measurement.

use core::fmt;

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

impl Side {
    /// What is known of a side, as names and values; `unknown` where it is not.
    #[must_use]
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        fn known<T: fmt::Display>(value: Option<&T>) -> String {
            value.map_or_else(|| "unknown".into(), T::to_string)
        }
        let Self { host, device } = self;
        let Host {
            name,
            boot: _,
            kernel,
            cpu,
            cpus,
            cores,
            numa_node,
            governor,
            idle_states,
            load_hundredths: _,
        } = host;
        let cores = cores
            .iter()
            .map(u32::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let states: Vec<String> = idle_states
            .iter()
            .map(|state| format!("{} ({} µs)", state.name, state.exit_microseconds))
            .collect();
        let list = |text: String| Some(text).filter(|text| !text.is_empty());
        let Device {
            name: _,
            provider: _,
            software: _,
            firmware,
            driver,
            port,
            link_layer,
            mtu,
            link_megabits,
            pcie_megabits,
            gid_index,
            numa_node: device_node,
        } = device;
        let rate =
            |megabits: &Option<u64>| megabits.map(|rate| format!("{} Gb/s", rate as f64 / 1e3));
        vec![
            ("host", known(name.as_ref())),
            ("kernel", known(kernel.as_ref())),
            ("processor", known(cpu.as_ref())),
            ("processors", known(cpus.as_ref())),
            ("used processors", known(list(cores).as_ref())),
            ("NUMA node", known(numa_node.as_ref())),
            ("governor", known(governor.as_ref())),
            ("idle states", known(list(states.join(", ")).as_ref())),
            ("device", device.label()),
            ("firmware", known(firmware.as_ref())),
            ("driver", known(driver.as_ref())),
            ("port", known(port.as_ref())),
            ("link", known(link_layer.as_ref())),
            ("path MTU", known(mtu.as_ref())),
            ("link rate", known(rate(link_megabits).as_ref())),
            ("PCIe rate", known(rate(pcie_megabits).as_ref())),
            ("GID index", known(gid_index.as_ref())),
            ("device NUMA node", known(device_node.as_ref())),
        ]
    }
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
