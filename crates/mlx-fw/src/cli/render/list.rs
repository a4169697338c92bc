//! The text of `mlx-fw list`.

use std::fmt::{self, Write as _};

use rdma_cli::units::Bytes;
use rdma_cli::{BAD, GOOD, Table, Text, paint, printable};

use crate::report::{DigestState, ListReport};

pub(crate) fn text(report: &ListReport, out: &mut Text<'_>) -> fmt::Result {
    out.field("Archive", &report.format)?;
    out.field("Package version", &report.package_version)?;
    out.field("Created", &report.created)?;
    if let Some(source) = &report.source {
        out.field("Source", printable(source))?;
    }
    out.field("Size", Bytes(report.file_size))?;
    out.field(
        "Images",
        format_args!(
            "{} for {} boards, {} unpacked",
            report.components,
            report.devices.len(),
            Bytes(report.unpacked_size)
        ),
    )?;
    out.field("SHA-256 contents", digest(report.digests.all))?;
    out.field("SHA-256 descriptors", digest(report.digests.descriptors))?;
    writeln!(out)?;

    let mut table = Table::new([
        "PSID",
        "Version",
        "Tag",
        "Date",
        "Format",
        "Bytes",
        "Part number",
        "Description",
    ])
    .right(5);
    for device in &report.devices {
        let cell = |cell: &Option<String>| cell.clone().unwrap_or_else(|| "-".to_owned());
        table.row([
            device.psid.clone(),
            cell(&device.fw_version),
            device.tag.clone(),
            cell(&device.release_date),
            cell(&device.format),
            device.size.to_string(),
            cell(&device.part_number),
            cell(&device.description),
        ]);
    }
    out.table(&table)?;
    for device in &report.devices {
        if let Some(problem) = &device.problem {
            writeln!(
                out,
                "{} {}: {}",
                paint(BAD, "wrong:"),
                device.psid,
                printable(problem)
            )?;
        }
    }
    Ok(())
}

fn digest(state: DigestState) -> impl fmt::Display {
    match state {
        DigestState::Ok => paint(GOOD, "OK"),
        DigestState::Wrong => paint(BAD, "WRONG"),
        DigestState::Absent => paint(rdma_cli::WARN, "absent"),
    }
}
