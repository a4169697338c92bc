//! What the queries of a whole device give, for people and machines.

use serde::Serialize;

use crate::Error;
use crate::device::{Context, Device, Found};
use crate::gid::{GidEntry, GidKind, PeerGid, choose};
use crate::provider::Kind;

/// The devices of all providers.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DevicesReport {
    /// Devices.
    pub devices: Vec<DeviceReport>,
    /// Providers that could not look for devices.
    pub failures: Vec<FailureReport>,
}

/// A device that can be opened.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DeviceReport {
    /// Its name.
    pub name: String,
    /// Its provider; `soft-…` for those in software.
    pub provider: String,
    /// GUID of the node.
    pub guid: String,
}

/// A provider that could not look for devices.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FailureReport {
    /// The provider.
    pub provider: String,
    /// Why.
    pub why: String,
}

fn guid(value: u64) -> String {
    format!("0x{value:016x}")
}

fn chain(error: &Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

impl From<&Found> for DevicesReport {
    fn from(found: &Found) -> Self {
        Self {
            devices: found.devices.iter().map(DeviceReport::from).collect(),
            failures: found
                .failures
                .iter()
                .map(|(kind, error)| FailureReport {
                    provider: kind.name().into(),
                    why: chain(error),
                })
                .collect(),
        }
    }
}

impl From<&Device> for DeviceReport {
    fn from(device: &Device) -> Self {
        Self {
            name: device.name().into(),
            provider: device.info().provider.name().into(),
            guid: guid(device.info().guid),
        }
    }
}

/// An open device.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct InfoReport {
    /// Its name.
    pub name: String,
    /// Its provider; `soft-…` for those in software.
    pub provider: String,
    /// Version of the firmware, or of the software.
    pub fw_ver: String,
    /// GUID of the node.
    pub node_guid: String,
    /// GUID of the system.
    pub sys_image_guid: String,
    /// PCI vendor.
    pub vendor_id: u32,
    /// Part of the vendor's.
    pub vendor_part_id: u32,
    /// Revision of the hardware.
    pub hw_ver: u32,
    /// Limits, by C's names.
    pub limits: Vec<LimitReport>,
    /// Whether atomic operations are atomic against other devices: `none`, `hca` or `global`.
    pub atomic_cap: String,
    /// Ports.
    pub ports: Vec<PortReport>,
}

/// A limit of a device.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LimitReport {
    /// Its name, as in `ibv_device_attr`.
    pub name: String,
    /// Its value.
    pub value: u64,
}

/// A port.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PortReport {
    /// Its number, from 1.
    pub port: u8,
    /// `down`, `init`, `armed`, `active`, …
    pub state: String,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Bytes of the largest MTU.
    pub max_mtu: u32,
    /// Bytes of the MTU in use.
    pub active_mtu: u32,
    /// LID, 0 on Ethernet.
    pub lid: u16,
    /// LID of the subnet manager.
    pub sm_lid: u16,
    /// Bytes of the longest message.
    pub max_msg_sz: u32,
    /// GIDs that are not empty.
    pub gids: Vec<GidReport>,
}

/// An entry of a GID table.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GidReport {
    /// Its index.
    pub index: u32,
    /// The address.
    pub gid: String,
    /// The IPv4 address that it stands for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ipv4: Option<String>,
    /// `IB`, `RoCE v1` or `RoCE v2`.
    pub kind: String,
    /// Index of the network interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ifindex: Option<u32>,
}

impl From<&GidEntry> for GidReport {
    fn from(entry: &GidEntry) -> Self {
        let ip = entry.gid.ip();
        Self {
            index: entry.index,
            gid: entry.gid.to_string(),
            ipv4: (entry.kind != GidKind::Ib && ip.is_ipv4()).then(|| ip.to_string()),
            kind: entry.kind.to_string(),
            ifindex: (entry.ifindex != 0).then_some(entry.ifindex),
        }
    }
}

/// A GID table, and which entry to use.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GidsReport {
    /// The device.
    pub name: String,
    /// Its provider; `soft-…` for those in software.
    pub provider: String,
    /// The port.
    pub port: u8,
    /// Entries that are not empty.
    pub gids: Vec<GidReport>,
    /// Index of the one to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<u32>,
    /// Why that one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl GidsReport {
    /// The table of a port.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn query(context: &Context, port: u8) -> Result<Self, Error> {
        let gids = context.gids(port)?;
        let choice = choose(&gids, &PeerGid::default());
        Ok(Self {
            name: context.name().into(),
            provider: context.kind().name().into(),
            port,
            gids: gids.iter().map(GidReport::from).collect(),
            choice: choice.as_ref().map(|choice| choice.entry.index),
            reason: choice.map(|choice| choice.reason.into()),
        })
    }
}

fn mtu(code: u32) -> u32 {
    match code {
        1..=5 => 128 << code,
        _ => 0,
    }
}

fn state(code: u32) -> String {
    let name = match code {
        1 => "down",
        2 => "init",
        3 => "armed",
        4 => "active",
        5 => "active-defer",
        _ => return format!("state {code}"),
    };
    name.into()
}

impl InfoReport {
    /// Everything about a device.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn query(context: &Context) -> Result<Self, Error> {
        let attr = context.query_device()?.orig_attr;
        let ports = (1..=attr.phys_port_cnt)
            .map(|port| PortReport::query(context, port))
            .collect::<Result<_, _>>()?;
        let limit = |name: &str, value: u64| LimitReport {
            name: name.into(),
            value,
        };
        let count = |name: &str, value: i32| limit(name, u64::from(value.unsigned_abs()));
        Ok(Self {
            name: context.name().into(),
            provider: context.kind().name().into(),
            fw_ver: text(&attr.fw_ver),
            node_guid: guid(u64::from_be(attr.node_guid)),
            sys_image_guid: guid(u64::from_be(attr.sys_image_guid)),
            vendor_id: attr.vendor_id,
            vendor_part_id: attr.vendor_part_id,
            hw_ver: attr.hw_ver,
            limits: vec![
                limit("max_mr_size", attr.max_mr_size),
                count("max_qp", attr.max_qp),
                count("max_qp_wr", attr.max_qp_wr),
                count("max_sge", attr.max_sge),
                count("max_cq", attr.max_cq),
                count("max_cqe", attr.max_cqe),
                count("max_mr", attr.max_mr),
                count("max_pd", attr.max_pd),
                count("max_qp_rd_atom", attr.max_qp_rd_atom),
                count("max_qp_init_rd_atom", attr.max_qp_init_rd_atom),
                count("max_mw", attr.max_mw),
                count("max_ah", attr.max_ah),
                count("max_srq", attr.max_srq),
                count("max_srq_wr", attr.max_srq_wr),
                count("max_srq_sge", attr.max_srq_sge),
                limit("max_pkeys", attr.max_pkeys.into()),
            ],
            atomic_cap: match attr.atomic_cap {
                0 => "none".into(),
                1 => "hca".into(),
                2 => "global".into(),
                other => format!("value {other}"),
            },
            ports,
        })
    }
}

fn text(chars: &[core::ffi::c_char]) -> String {
    let bytes: Vec<u8> = chars
        .iter()
        .map(|c| c.cast_unsigned())
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

impl PortReport {
    fn query(context: &Context, port: u8) -> Result<Self, Error> {
        let attr = context.query_port(port)?;
        Ok(Self {
            port,
            state: state(attr.state),
            link_layer: match attr.link_layer {
                2 => "Ethernet".into(),
                1 => "InfiniBand".into(),
                0 if context.kind() == Kind::Verbs => "InfiniBand".into(),
                other => format!("layer {other}"),
            },
            max_mtu: mtu(attr.max_mtu),
            active_mtu: mtu(attr.active_mtu),
            lid: attr.lid,
            sm_lid: attr.sm_lid,
            max_msg_sz: attr.max_msg_sz,
            gids: context.gids(port)?.iter().map(GidReport::from).collect(),
        })
    }
}

/// What pinging was like.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PingReport {
    /// The device.
    pub device: String,
    /// Its provider; `soft-…` for those in software, whose figures say nothing of an adapter's.
    pub provider: String,
    /// `client`, `server`, or `loopback` for both.
    pub role: String,
    /// Address of the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// How many rounds there were.
    pub round_trips: u64,
    /// Bytes of the text that was asked for.
    pub size: u32,
    /// Whether what came back was compared, byte by byte.
    pub validated: bool,
    /// How long rounds took: of a client four messages, a READ and a WRITE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<PingTimes>,
}

/// How long rounds took, in microseconds.
#[derive(Debug, Clone, Copy, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PingTimes {
    /// The shortest.
    pub min: f64,
    /// Half of them took no longer.
    pub median: f64,
    /// All but one in a hundred took no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// On the average.
    pub average: f64,
}

impl PingTimes {
    /// From nanoseconds; `None` where there are none.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        reason = "times of rounds are far below 2⁵³ ns"
    )]
    pub fn new(mut nanos: Vec<u64>) -> Option<Self> {
        nanos.sort_unstable();
        let micros = |nanos: u64| nanos as f64 / 1000.0;
        let at = |percent: usize| {
            let rank = (nanos.len() * percent).div_ceil(100).max(1);
            nanos.get(rank - 1).copied().map(micros)
        };
        let sum: u64 = nanos.iter().sum();
        Some(Self {
            min: micros(*nanos.first()?),
            median: at(50)?,
            p99: at(99)?,
            max: micros(*nanos.last()?),
            average: micros(sum) / nanos.len() as f64,
        })
    }
}

impl PingReport {
    /// From who and what, and the time of each round in nanoseconds.
    #[must_use]
    pub fn new(
        (provider, device): (Kind, String),
        (role, peer): (&str, Option<String>),
        (round_trips, size, validated): (u64, u32, bool),
        nanos: Vec<u64>,
    ) -> Self {
        Self {
            device,
            provider: provider.name().to_owned(),
            role: role.to_owned(),
            peer,
            round_trips,
            size,
            validated,
            // A server's rounds begin with the client's pause.
            times: (role != "server").then(|| PingTimes::new(nanos)).flatten(),
        }
    }
}
