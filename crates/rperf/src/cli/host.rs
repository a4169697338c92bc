//! What files say of this host and of a device.

use rdma_host::SysRoot;
use rverbs::Context;
use rverbs::provider::Kind;

use crate::result::{Device, Host, IdleState, Side};
use crate::run::Local;
use crate::whole;

/// This side of a measurement.
pub(super) fn side(root: &SysRoot, context: &Context, local: &Local, mtu: u32) -> Side {
    Side {
        host: host(root),
        device: device(root, context, local, mtu),
    }
}

/// The first line of a file, where it has one.
fn line(root: &SysRoot, path: &str) -> Option<String> {
    let text = root.read(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// What stands behind a label in a file of lines `label : value`.
fn field(text: &str, label: &str) -> Option<String> {
    let found = text.lines().filter_map(|line| line.split_once(':'));
    let mut found = found.filter(|(name, _)| name.trim() == label);
    Some(found.next()?.1.trim().to_owned())
}

/// `0-2,5` as its numbers.
fn numbers(list: &str) -> Vec<u32> {
    let ranges = list.trim().split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some((from.parse().ok()?, to.parse().ok()?))
    });
    ranges
        .flat_map(|(from, to): (u32, u32)| from..=to.min(from.saturating_add(4095)))
        .collect()
}

fn host(root: &SysRoot) -> Host {
    let cores = root.read("proc/self/status").ok();
    let cores = cores.and_then(|text| field(&text, "Cpus_allowed_list"));
    let cores = cores.map(|list| numbers(&list)).unwrap_or_default();
    let online = line(root, "sys/devices/system/cpu/online").map(|list| numbers(&list).len());
    let first = cores.first().copied().unwrap_or(0);
    let cpu = format!("sys/devices/system/cpu/cpu{first}");
    let idle = root.list(format!("{cpu}/cpuidle")).unwrap_or_default();
    let idle_states = idle.iter().filter_map(|state| {
        let file = |name: &str| line(root, &format!("{cpu}/cpuidle/{state}/{name}"));
        let enabled = file("disable").is_none_or(|disabled| disabled == "0");
        let exit_microseconds = file("latency")?.parse().ok()?;
        enabled.then(|| IdleState {
            name: file("name").unwrap_or_else(|| state.clone()),
            exit_microseconds,
        })
    });
    let node = root.list(&cpu).unwrap_or_default();
    let node = node
        .iter()
        .find_map(|name| name.strip_prefix("node")?.parse().ok());
    let load = line(root, "proc/loadavg");
    let load = load.as_deref().and_then(|load| load.split(' ').next());
    let load = load.and_then(|load| {
        let (whole, part) = load.split_once('.')?;
        let (whole, part): (u32, u32) = (whole.parse().ok()?, part.parse().ok()?);
        Some(whole * 100 + part)
    });
    let about = root.read("proc/cpuinfo").unwrap_or_default();
    Host {
        name: line(root, "proc/sys/kernel/hostname"),
        boot: line(root, "proc/sys/kernel/random/boot_id"),
        kernel: line(root, "proc/sys/kernel/osrelease"),
        cpu: field(&about, "model name"),
        cpus: online.and_then(|count| u32::try_from(count).ok()),
        cores,
        numa_node: node,
        governor: line(root, &format!("{cpu}/cpufreq/scaling_governor")),
        idle_states: idle_states.collect(),
        load_hundredths: load,
    }
}

fn device(root: &SysRoot, context: &Context, local: &Local, mtu: u32) -> Device {
    let software = context.kind() != Kind::Verbs;
    let name = context.name();
    let class = format!("sys/class/infiniband/{name}");
    let file = |path: &str| {
        (!software)
            .then(|| line(root, &format!("{class}/{path}")))
            .flatten()
    };
    let uevent = root
        .read(format!("{class}/device/uevent"))
        .unwrap_or_default();
    let driver = uevent.lines().find_map(|line| line.strip_prefix("DRIVER="));
    let rate = file(&format!("ports/{}/rate", local.port));
    let rate = rate.and_then(|rate| rate.split(' ').next()?.parse::<f64>().ok());
    let port = context.query_port(local.port).ok();
    let ethernet = port.map(|port| port.link_layer == 2);
    let speed = file("device/current_link_speed");
    let speed = speed.and_then(|speed| speed.split(' ').next()?.parse::<f64>().ok());
    let lanes = file("device/current_link_width").and_then(|lanes| lanes.parse::<f64>().ok());
    // The kernel's rxe and siw have no PCI device beneath them.
    let emulated = driver.is_none() && !software;
    Device {
        name: Some(name.to_owned()),
        provider: Some(context.kind().name().to_owned()),
        software: software || emulated,
        firmware: file("fw_ver"),
        driver: driver.map(str::to_owned),
        port: Some(local.port.into()),
        link_layer: ethernet.map(|is| if is { "Ethernet" } else { "InfiniBand" }.to_owned()),
        mtu: Some(mtu),
        link_megabits: rate.map(|gigabits| whole(gigabits * 1000.0)),
        pcie_megabits: speed.zip(lanes).map(|(speed, lanes)| pcie(speed, lanes)),
        gid_index: local.gid_index.map(u32::from),
        numa_node: file("device/numa_node").and_then(|node| node.parse().ok()),
    }
}

/// 10⁶ bits a second that a slot carries, of 10⁹ transfers a second of each lane: 8 of 10 bits are data
/// up to the second generation, 128 of 130 from the third on.
fn pcie(speed: f64, lanes: f64) -> u64 {
    let share = if speed < 8.0 { 0.8 } else { 128.0 / 130.0 };
    whole(speed * lanes * share * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        assert_eq!(numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(numbers(""), [0_u32; 0]);
        assert_eq!(
            field("a: 1\nmodel name\t: X y\n", "model name").unwrap(),
            "X y"
        );
        assert_eq!(pcie(16.0, 16.0), 252_061);
    }
}
