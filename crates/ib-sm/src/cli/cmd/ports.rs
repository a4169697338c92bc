//! `ib-diag ports`.

use std::fmt;

use clap::Args;
use rdma_cli::{Context, Exit, Failure, Report, Table, Text};
use rdma_host::umad::UmadDevice;
use rdma_host::{SysRoot, umad};
use serde::Serialize;

/// Lists the ports of this host that MADs can be sent from
///
/// Exits with 4 where there is none.
#[derive(Debug, Args)]
pub(crate) struct Ports {
    /// Look for /sys under this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide_short_help = true)]
    sysroot: std::path::PathBuf,
}

/// The ports of a host.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct PortsReport {
    /// In the order of their MAD devices.
    pub(crate) ports: Vec<PortReport>,
}

/// A port of the host.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct PortReport {
    /// The adapter.
    pub(crate) device: String,
    /// Its port.
    pub(crate) port: u8,
    /// The MAD device.
    pub(crate) umad: String,
    /// `InfiniBand` or `Ethernet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link_layer: Option<String>,
    /// As the kernel says: `ACTIVE`, `INIT`, `DOWN`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state: Option<String>,
    /// As the kernel says: `100 Gb/sec (4X EDR)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<String>,
    /// Its LID; absent where no subnet manager has given one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lid: Option<u16>,
    /// The port's GUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) port_guid: Option<String>,
    /// Whether it has a subnet that can be looked at.
    pub(crate) usable: bool,
}

impl Report for PortsReport {
    const SCHEMA: &'static str = "ib-diag/ports/1";
}

impl PortReport {
    fn new(device: &UmadDevice) -> Self {
        Self {
            device: device.device.clone(),
            port: device.port,
            umad: device.name.clone(),
            link_layer: device.link_layer.clone(),
            state: device.state.clone(),
            rate: device.rate.clone(),
            lid: device.lid.map(|lid| lid.get()).filter(|&lid| lid != 0),
            port_guid: device.port_guid.map(|guid| guid.to_string()),
            usable: device.is_infiniband(),
        }
    }
}

impl Ports {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let devices = umad::list(&SysRoot::new(self.sysroot))?;
        let report = PortsReport {
            ports: devices.iter().map(PortReport::new).collect(),
        };
        ctx.emit(&report, write)?;
        Ok(Exit::Ok)
    }
}

fn write(report: &PortsReport, out: &mut Text<'_>) -> fmt::Result {
    let mut table =
        Table::new(["Port", "MADs", "Link", "State", "Rate", "LID", "Port GUID"]).right(5);
    for port in &report.ports {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            format!("{}:{}", port.device, port.port),
            port.umad.clone(),
            text(&port.link_layer),
            text(&port.state),
            text(&port.rate),
            port.lid
                .map_or_else(|| "-".to_owned(), |lid| lid.to_string()),
            text(&port.port_guid),
        ]);
    }
    out.table(&table)
}
