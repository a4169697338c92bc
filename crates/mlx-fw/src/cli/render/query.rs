//! The text of `mlx-fw query`.

use std::fmt;

use rdma_cli::units::Bytes;
use rdma_cli::{Table, Text, printable};

use crate::report::{QueryReport, UidRange};

pub(crate) fn text(report: &QueryReport, out: &mut Text<'_>) -> fmt::Result {
    let optional = |out: &mut Text<'_>, label: &str, value: &Option<String>| match value {
        Some(value) => out.field(label, printable(value)),
        None => Ok(()),
    };
    let kind = match (report.complete, report.encrypted) {
        (true, false) => "complete, as in a flash",
        (true, true) => "complete, encrypted",
        (false, false) => "reduced, as in an update",
        (false, true) => "reduced, encrypted",
    };
    out.field("Image", format_args!("{} ({kind})", report.format))?;
    if report.start != 0 {
        out.field("Starts at", format_args!("{:#x}", report.start))?;
    }
    out.field("Version", &report.fw_version)?;
    optional(out, "Branch", &report.branch)?;
    optional(out, "Date", &report.release_date)?;
    optional(out, "Product version", &report.product_version)?;
    if let Some(issu) = report.issu_version {
        out.field("ISSU version", issu)?;
    }
    out.field("PSID", printable(&report.psid))?;
    if let Some(psid) = &report.orig_psid
        && *psid != report.psid
    {
        out.field("Original PSID", printable(psid))?;
    }
    optional(out, "Part number", &report.part_number)?;
    optional(out, "Description", &report.description)?;
    let hardware: Vec<String> = report
        .hardware
        .iter()
        .map(|chip| {
            let revision = match chip.revision {
                0 => String::new(),
                revision => format!(" revision {revision:#x}"),
            };
            match &chip.name {
                Some(name) => format!("{name} ({:#x}{revision})", chip.id),
                None => format!("{:#x}{revision}", chip.id),
            }
        })
        .collect();
    if !hardware.is_empty() {
        out.field("Hardware", hardware.join(", "))?;
    }
    for (index, rom) in report.roms.iter().flatten().enumerate() {
        out.field(
            if index == 0 { "ROM" } else { "" },
            printable(rom.text.trim_end()),
        )?;
    }
    if report.roms.as_ref().is_some_and(Vec::is_empty) {
        out.field("ROM", "there, without a version")?;
    }

    for uid in &report.uids {
        let label = match uid.name.split_at_checked(4) {
            Some(("guid", port)) => format!("GUID{}{port}", sep(port)),
            _ => format!(
                "MAC{}{}",
                sep(uid.name.trim_start_matches("mac")),
                uid.name.trim_start_matches("mac")
            ),
        };
        out.field(&label, range(&uid.current))?;
        if let Some(original) = &uid.original {
            out.field(&format!("{label}, original"), range(original))?;
        }
    }
    if report.uids.is_empty() {
        out.field("GUIDs, MACs", "none: they are the device's own")?;
    }
    optional(out, "VSD of the image", &report.image_vsd)?;
    optional(out, "VSD of the device", &report.device_vsd)?;

    let security = &report.security;
    let attributes = match security.attributes.is_empty() {
        true => "none".to_owned(),
        false => security.attributes.join(", "),
    };
    out.field("Security", attributes)?;
    if let Some(version) = security.version {
        out.field("Security version", version)?;
    }
    out.field(
        "Signature",
        match (security.signature, security.public_keys) {
            (true, true) => "there, with public keys",
            (true, false) => "there, without public keys",
            (false, _) => "none",
        },
    )?;
    out.field(
        "Update",
        match security.firmware_controlled_update {
            true => "by the firmware itself (MCC)",
            false => "by writing the flash",
        },
    )?;

    if let Some(sections) = &report.sections {
        optional(out, "MIC version", &report.mic_version)?;
        optional(out, "PRS", &report.prs_name)?;
        optional(out, "Original PRS", &report.orig_prs_name)?;
        optional(out, "PCI id", &report.pci_id)?;
        out.field("Image size", Bytes(report.image_size))?;
        out.field("File size", Bytes(report.file_size))?;
        out.heading("Sections")?;
        let mut table = Table::new(["Start", "Bytes", "Type", "Name", "Of"]).right(1);
        for section in sections {
            table.row([
                format!("{:#010x}", section.offset),
                section.size.to_string(),
                format!("{:#04x}", section.section_type),
                section.name.clone(),
                if section.device_data {
                    "device"
                } else {
                    "image"
                }
                .to_owned(),
            ]);
        }
        out.table(&table)?;
    }
    Ok(())
}

/// What stands between a name and its port.
const fn sep(port: &str) -> &'static str {
    if port.is_empty() { "" } else { " " }
}

fn range(range: &UidRange) -> String {
    let Some(first) = &range.first else {
        return "none".to_owned();
    };
    let step = match range.step {
        0 => String::new(),
        step => format!(", step {step}"),
    };
    match range.count {
        0 => format!("{first}{step}"),
        count => format!("{first} and following, {count} in all{step}"),
    }
}
