//! Which MAD devices the host has.

use ib_mad::id::{Guid, Lid};

use crate::SysRoot;
use crate::error::{Error, Result};

/// A port that MADs can be sent from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UmadDevice {
    /// `umad0`.
    pub name: String,
    /// `mlx5_0`.
    pub device: String,
    /// 1 and up; 0 is a switch's own.
    pub port: u8,
    /// `InfiniBand` or `Ethernet`; none where the kernel does not say.
    pub link_layer: Option<String>,
    /// `ACTIVE` and so on, as the kernel says.
    pub state: Option<String>,
    /// `100 Gb/sec (4X EDR)`, as the kernel says.
    pub rate: Option<String>,
    /// Its base LID.
    pub lid: Option<Lid>,
    /// Where its subnet manager is.
    pub sm_lid: Option<Lid>,
    /// The node's GUID.
    pub node_guid: Option<Guid>,
    /// The port's GUID: the lower half of its first GID.
    pub port_guid: Option<Guid>,
}

impl UmadDevice {
    /// Whether it has a subnet.
    #[must_use]
    pub fn is_infiniband(&self) -> bool {
        self.link_layer
            .as_deref()
            .is_none_or(|it| it == "InfiniBand")
    }

    /// Whether a subnet manager has brought it up.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state.as_deref() == Some("ACTIVE")
    }
}

const MAD_CLASS: &str = "sys/class/infiniband_mad";
const DEVICE_CLASS: &str = "sys/class/infiniband";

/// All MAD devices, in the order of their numbers. A file that is missing leaves its field empty.
///
/// # Errors
/// [`Error::NoDevice`] or [`Error::NoUmad`] where there are none.
pub fn list(root: &SysRoot) -> Result<Vec<UmadDevice>> {
    let names = root.list(MAD_CLASS).unwrap_or_default();
    let mut numbers: Vec<u32> = names
        .iter()
        .filter_map(|name| name.strip_prefix("umad")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    let devices: Vec<UmadDevice> = numbers
        .into_iter()
        .filter_map(|number| read(root, &format!("umad{number}")))
        .collect();
    if !devices.is_empty() {
        return Ok(devices);
    }
    match root.list(DEVICE_CLASS) {
        Ok(devices) if !devices.is_empty() => Err(Error::NoUmad),
        _ => Err(Error::NoDevice),
    }
}

fn read(root: &SysRoot, name: &str) -> Option<UmadDevice> {
    let device = root.read(format!("{MAD_CLASS}/{name}/ibdev")).ok()?;
    let port: u8 = root
        .read(format!("{MAD_CLASS}/{name}/port"))
        .ok()?
        .parse()
        .ok()?;
    let base = format!("{DEVICE_CLASS}/{device}");
    let of_port = |file: &str| root.read(format!("{base}/ports/{port}/{file}")).ok();
    Some(UmadDevice {
        name: name.to_owned(),
        link_layer: of_port("link_layer"),
        // "4: ACTIVE"
        state: of_port("state").map(|text| match text.split_once(':') {
            Some((_, word)) => word.trim().to_owned(),
            None => text,
        }),
        rate: of_port("rate"),
        lid: of_port("lid").and_then(|text| number(&text)).map(Lid::new),
        sm_lid: of_port("sm_lid")
            .and_then(|text| number(&text))
            .map(Lid::new),
        node_guid: root
            .read(format!("{base}/node_guid"))
            .ok()
            .and_then(|text| text.parse().ok()),
        port_guid: of_port("gids/0").and_then(|text| lower_half(&text)),
        device,
        port,
    })
}

/// `0x1f`, or decimal.
fn number(text: &str) -> Option<u16> {
    match text.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// `fe80:0000:0000:0000:0002:c903:0012:3456`.
fn lower_half(gid: &str) -> Option<Guid> {
    let groups: Vec<&str> = gid.split(':').collect();
    groups.get(4..8)?.concat().parse().ok()
}

/// The device that a user means: `umad0`, `mlx5_0` or `mlx5_0:1`; without a name the first that is
/// up, or else the first that is no Ethernet port.
///
/// # Errors
/// [`Error::UnknownDevice`], [`Error::Ethernet`] and [`Error::OnlyEthernet`].
pub fn pick(devices: &[UmadDevice], name: Option<&str>, port: Option<u8>) -> Result<UmadDevice> {
    let fits = |device: &&UmadDevice| {
        name.is_none_or(|name| name == device.name || name == device.device)
            && port.is_none_or(|port| port == device.port)
    };
    let mut found: Vec<&UmadDevice> = devices.iter().filter(fits).collect();
    let Some(&first) = found.first() else {
        let name = name.unwrap_or("any");
        return Err(Error::UnknownDevice {
            name: match port {
                Some(port) => format!("{name}:{port}"),
                None => name.to_owned(),
            },
            have: devices
                .iter()
                .map(|device| format!("{}:{} ({})", device.device, device.port, device.name))
                .collect(),
        });
    };
    found.retain(|device| device.is_infiniband());
    found
        .iter()
        .find(|device| device.is_active())
        .or_else(|| found.first())
        .map(|&device| device.clone())
        .ok_or_else(|| match name {
            Some(_) => Error::Ethernet {
                device: first.device.clone(),
                port: first.port,
            },
            None => Error::OnlyEthernet,
        })
}
