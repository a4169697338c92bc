//! Text for people.

use std::fmt::{self, Write as _};

use rdma_cli::{BAD, GOOD, Table, Text, paint, printable};

use crate::diagnosis::DiagnosisReport;
use crate::report::{DevicesReport, GidReport, GidsReport, InfoReport, PingReport};

pub(super) fn devices(report: &DevicesReport, out: &mut Text<'_>) -> fmt::Result {
    let mut table = Table::new(["DEVICE", "PROVIDER", "NODE GUID"]);
    for device in &report.devices {
        table.row([
            printable(&device.name).to_string(),
            device.provider.clone(),
            device.guid.clone(),
        ]);
    }
    out.table(&table)?;
    for failure in &report.failures {
        writeln!(
            out,
            "{}: none: {}",
            failure.provider,
            printable(&failure.why)
        )?;
    }
    Ok(())
}

pub(super) fn info(report: &InfoReport, out: &mut Text<'_>) -> fmt::Result {
    out.heading(printable(&report.name))?;
    out.field("provider", &report.provider)?;
    out.field("fw_ver", printable(&report.fw_ver))?;
    out.field("node_guid", &report.node_guid)?;
    out.field("sys_image_guid", &report.sys_image_guid)?;
    out.field("vendor_id", format_args!("0x{:04x}", report.vendor_id))?;
    out.field("vendor_part_id", report.vendor_part_id)?;
    out.field("hw_ver", format_args!("0x{:x}", report.hw_ver))?;
    out.field("atomic_cap", &report.atomic_cap)?;
    for limit in &report.limits {
        out.field(&limit.name, limit.value)?;
    }
    for port in &report.ports {
        writeln!(out)?;
        out.heading(format_args!("port {}", port.port))?;
        out.field("state", &port.state)?;
        out.field("link_layer", &port.link_layer)?;
        out.field("max_mtu", port.max_mtu)?;
        out.field("active_mtu", port.active_mtu)?;
        out.field("lid", port.lid)?;
        out.field("sm_lid", port.sm_lid)?;
        out.field("max_msg_sz", port.max_msg_sz)?;
        table(&port.gids, None, out)?;
    }
    Ok(())
}

fn table(gids: &[GidReport], choice: Option<u32>, out: &mut Text<'_>) -> fmt::Result {
    let mut table = Table::new(["INDEX", "GID", "IPV4", "KIND", "INTERFACE", ""]).right(0);
    for gid in gids {
        table.row([
            gid.index.to_string(),
            gid.gid.clone(),
            gid.ipv4.clone().unwrap_or_default(),
            gid.kind.clone(),
            gid.ifindex
                .map(|index| index.to_string())
                .unwrap_or_default(),
            if choice == Some(gid.index) {
                "use this"
            } else {
                ""
            }
            .into(),
        ]);
    }
    out.table(&table)
}

pub(super) fn gids(report: &GidsReport, out: &mut Text<'_>) -> fmt::Result {
    out.heading(format_args!(
        "{} port {}",
        printable(&report.name),
        report.port
    ))?;
    out.field("provider", &report.provider)?;
    table(&report.gids, report.choice, out)?;
    if let Some(reason) = &report.reason {
        writeln!(out, "{reason}")?;
    }
    Ok(())
}

pub(super) fn explain(report: &DiagnosisReport, out: &mut Text<'_>) -> fmt::Result {
    for check in &report.checks {
        let mark = if check.ok {
            paint(GOOD, "ok")
        } else {
            paint(BAD, "no")
        };
        writeln!(out, "{mark}  {}: {}", check.name, printable(&check.found))?;
        if let Some(step) = &check.step {
            writeln!(out, "    {step}")?;
        }
    }
    writeln!(
        out,
        "Devices in software need none of this: shm0 is on every machine."
    )
}

pub(super) fn ping(report: &PingReport, out: &mut Text<'_>) -> fmt::Result {
    write!(
        out,
        "{} {}: {} round trips of {} bytes",
        report.provider,
        printable(&report.device),
        report.round_trips,
        report.size
    )?;
    if report.validated {
        out.write_str(", every byte compared")?;
    }
    if let Some(peer) = &report.peer {
        write!(out, ", with {}", printable(peer))?;
    }
    writeln!(out)?;
    if let Some(times) = &report.times {
        writeln!(
            out,
            "{}: round trip min {:.1} µs, median {:.1} µs, 99 % {:.1} µs, max {:.1} µs, average {:.1} µs",
            report.provider, times.min, times.median, times.p99, times.max, times.average
        )?;
    }
    Ok(())
}
