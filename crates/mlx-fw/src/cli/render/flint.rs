//! The texts of mstflint 4.36, as they are: `-i FILE query [full]`, `verify`, `checksum`.
//!
//! Each function returns the text and whether mstflint ends well (exit code 0) or not (1). Where
//! something is wrong, mstflint stops at the first table with an error; this does too.

use std::fmt::Write as _;

use crate::image::{Format, Image, SectionType, Toc};
use crate::report::{PartReport, PartState, QueryReport, UidRange, VerifyReport};
use crate::{Error, Result};

/// What mstflint says where there is no value.
const NONE: &str = "N/A";
/// The column of values.
const COLUMN: usize = 23;

/// `mstflint -i FILE query [full]`.
#[must_use]
pub fn query(bytes: &[u8], file: &str, full: bool) -> (String, bool) {
    let answer = Image::parse(bytes).map(|image| {
        let (_, fault) = lines(&image, &crate::verify(&image), Scope::Query);
        match fault {
            Some(fault) => Err(fault),
            None => Ok(crate::query(&image, full)),
        }
    });
    match answer {
        Ok(Ok(Ok(report))) => (query_text(&report, full), true),
        Ok(Ok(Err(error))) => (query_failed(file, &error.to_string()), false),
        Ok(Err(fault)) => (query_failed(file, &fault), false),
        Err(error) => (not_opened(file, &error), false),
    }
}

fn query_failed(file: &str, why: &str) -> String {
    format!("-E- Failed to query image: {file}. {why}\n")
}

fn not_opened(file: &str, error: &Error) -> String {
    match error {
        Error::WrongKind { .. } => {
            format!("-E- Cannot open Image: {file}. Invalid Image signature.\n")
        }
        error => format!("-E- Cannot open Image: {file}. {error}\n"),
    }
}

/// `mstflint -i FILE verify`.
#[must_use]
pub fn verify(bytes: &[u8], file: &str) -> (String, bool) {
    let image = match Image::parse(bytes) {
        Ok(image) => image,
        Err(error) => return (not_opened(file, &error), false),
    };
    let (mut text, fault) = lines(&image, &crate::verify(&image), Scope::Verify);
    match &fault {
        None => {
            text.push_str("\n-I- FW image verification succeeded. Image is bootable.\n\n");
        }
        Some(fault) => {
            let _ = writeln!(
                text,
                "-E- FW image verification failed: {fault}. AN HCA DEVICE CAN NOT BOOT FROM THIS \
                 IMAGE."
            );
        }
    }
    (text, fault.is_none())
}

/// `mstflint -i FILE checksum`.
#[must_use]
pub fn checksum(bytes: &[u8], file: &str) -> (String, bool) {
    let image = match Image::parse(bytes) {
        Ok(image) => image,
        Err(error) => return (not_opened(file, &error), false),
    };
    let mut text = "-I- Calculating Checksum ...\n".to_owned();
    let (_, fault) = lines(&image, &crate::verify(&image), Scope::Checksum);
    let sum: Result<_, String> = match fault {
        Some(fault) => Err(fault),
        None => crate::checksum(&image).map_err(|error| error.to_string()),
    };
    let good = sum.is_ok();
    let _ = match sum {
        Ok(sum) => writeln!(text, "Checksum: {}", sum.checksum),
        Err(fault) => writeln!(text, "-E- Failed to calculate checksum on image: {fault}"),
    };
    (text, good)
}

/// What mstflint reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Everything.
    Verify,
    /// Everything, without asking first whether the image is encrypted.
    Checksum,
    /// The frame, the tables, and the sections that a query answers from.
    Query,
}

impl Scope {
    fn reads(self, kind: SectionType) -> bool {
        self != Self::Query
            || matches!(
                kind,
                SectionType::IMAGE_INFO
                    | SectionType::MFG_INFO
                    | SectionType::DEV_INFO
                    | SectionType::ROM_CODE
                    | SectionType::IMAGE_SIGNATURE_256
                    | SectionType::IMAGE_SIGNATURE_512
            )
    }
}

/// The lines of `verify` as far as mstflint goes, and why it stops, if it does.
fn lines(image: &Image<'_>, report: &VerifyReport, scope: Scope) -> (String, Option<String>) {
    let mut text = String::new();
    let fault = walk(image, report, scope, &mut text).err();
    (text, fault)
}

fn walk(
    image: &Image<'_>,
    report: &VerifyReport,
    scope: Scope,
    text: &mut String,
) -> Result<(), String> {
    let layout = image.layout();
    // Whether it is encrypted is asked before anything is printed, and that takes the pointers.
    let broken_pointer = report.parts.iter().any(|part| {
        part.section_type == Some(SectionType::HW_POINTERS.get()) && !part.state.is_good()
    });
    if broken_pointer && scope != Scope::Checksum {
        return Err("InitHwPtrs: HW pointers not found.\n".to_owned());
    }
    let mut parts = report.parts.iter().peekable();
    // Of an image whose table can't be found, FS4 checks nothing but the device's data.
    let hidden = image.format() == Format::Fs4 && layout.itoc.is_none();
    if !hidden {
        let _ = write!(text, "\n{} failsafe image\n\n", image.format());
    }

    let is_table = |part: &PartReport| {
        [SectionType::ITOC_HEADER, SectionType::DTOC_HEADER]
            .iter()
            .any(|kind| part.section_type == Some(kind.get()))
    };
    while let Some(part) = parts.next_if(|part| !is_table(part)) {
        if hidden {
            continue;
        }
        // BOOT2 is shown where it is in the image, all else where it is in the file.
        let base = if part.section_type.is_none() {
            image.start()
        } else {
            0
        };
        line(text, part, part.offset - base)?;
    }
    if layout.boot2.is_err() && !hidden {
        return Err("Boot2 invalid size\n".to_owned());
    }

    match &layout.itoc {
        Some(toc) => table(image, toc, false, scope, &mut parts, text)?,
        None if image.format() == Format::Fs3 => {
            return Err("No valid ITOC was found.".to_owned());
        }
        None => {}
    }
    match &layout.dtoc {
        Some(toc) => table(image, toc, true, scope, &mut parts, text)?,
        None if image.format() == Format::Fs4 && image.len() > layout.end => {
            return Err("No valid DTOC Header was found.".to_owned());
        }
        None => {}
    }
    Ok(())
}

fn table<'a>(
    image: &Image<'_>,
    toc: &Toc,
    is_dtoc: bool,
    scope: Scope,
    parts: &mut impl Iterator<Item = &'a PartReport>,
    text: &mut String,
) -> Result<(), String> {
    let fs3 = image.format() == Format::Fs3;
    let mut fault = Ok(());
    if let Some(header) = parts.next() {
        let result = line(text, header, header.offset);
        if result.is_err() && !fs3 {
            let name = if is_dtoc { "DTOC" } else { "ITOC" };
            return Err(format!("No valid {name} Header was found."));
        }
        fault = result;
    }
    let name = match (fs3, is_dtoc) {
        (true, _) => "Itoc",
        (false, false) => "IToc",
        (false, true) => "DToc",
    };
    let mut device_infos = 0;
    for section in &toc.sections {
        let (computed, stored) = section.entry.crcs();
        if computed != stored {
            return Err(format!(
                "Bad {name} Entry CRC. Expected: {stored:#x} , Actual: {computed:#x}"
            ));
        }
        let Some(part) = parts.next() else { break };
        if part.state == PartState::Spare || !scope.reads(section.kind) {
            continue;
        }
        if part.state == PartState::OutOfFile {
            return Err("Section - read error ()\n".to_owned());
        }
        let result = line(text, part, part.offset);
        device_infos += usize::from(section.kind == SectionType::DEV_INFO && result.is_ok());
        fault = fault.and(result);
    }
    if !toc.ended {
        return Err(format!(
            "Internal error: number of ITOCs {} is greater than allowed 64",
            toc.sections.len()
        ));
    }
    let has_made = toc
        .sections
        .iter()
        .any(|section| section.kind == SectionType::MFG_INFO);
    if (fs3 || is_dtoc) && !has_made {
        return Err("No \"MFG_INFO\" info section.".to_owned());
    }
    if is_dtoc {
        match device_infos {
            0 => return Err("No \"DEV_INFO\" info section.".to_owned()),
            1 => {}
            _ => return Err("Two \"DEV_INFO\" info sections.".to_owned()),
        }
    }
    fault
}

/// A line of `verify`; an error where the CRC is wrong.
fn line(text: &mut String, part: &PartReport, address: u64) -> Result<(), String> {
    let last = (address + part.size).wrapping_sub(1) & 0xffff_ffff;
    let _ = write!(
        text,
        "     /{address:#010x}-{last:#010x} ({:#08x})/ ({})",
        part.size, part.name
    );
    let _ = match part.state {
        PartState::Ok | PartState::Spare => writeln!(text, " - OK"),
        PartState::CrcIgnored => writeln!(text, " - CRC IGNORED"),
        PartState::OutOfFile => return Err("Section - read error ()\n".to_owned()),
        PartState::WrongCrc => {
            let _ = writeln!(
                text,
                " /{address:#010x}/ - wrong CRC (exp:{:#x}, act:{:#x})",
                part.computed_crc.unwrap_or_default(),
                part.stored_crc.unwrap_or_default()
            );
            return Err("Bad CRC.".to_owned());
        }
    };
    Ok(())
}

fn query_text(report: &QueryReport, full: bool) -> String {
    let mut text = String::new();
    let mut field = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<COLUMN$}{value}");
    };
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(|| NONE.to_owned());

    field("Image type:", &report.format);
    if let Some(issu) = report.issu_version {
        field("FW ISSU Version:", &issu.to_string());
    }
    let version = report.branch.as_ref().unwrap_or(&report.fw_version);
    if version != "0.0.0000" {
        field("FW Version:", version);
    }
    if let Some(date) = &report.release_date {
        field("FW Release Date:", &flint_date(date));
    }
    if full {
        for (label, value) in [
            ("MIC Version:", &report.mic_version),
            ("PRS Name:", &report.prs_name),
            ("Orig PRS Name:", &report.orig_prs_name),
            ("Part Number:", &report.part_number),
            ("Description:", &report.description),
        ] {
            if let Some(value) = value {
                field(label, value);
            }
        }
    }
    if let Some(version) = &report.product_version {
        field("Product Version:", version);
    }
    if let Some(roms) = &report.roms {
        for (index, rom) in roms.iter().enumerate() {
            field(if index == 0 { "Rom Info:" } else { "" }, &rom.text);
        }
        if roms.is_empty() {
            field(
                "Rom Info:",
                "N/A (-E- Cannot get ROM version. Signature not found.)",
            );
        }
    }
    uids(&mut text, report);
    let mut field = |label: &str, value: &str| {
        let _ = writeln!(text, "{label:<COLUMN$}{value}");
    };
    if report.vsd_vendor_id == 0 || report.vsd_vendor_id == 0x15b3 {
        field("Image VSD:", &optional(&report.image_vsd));
        field("Device VSD:", &optional(&report.device_vsd));
        field("PSID:", &report.psid);
        let original = report.orig_psid.as_deref().unwrap_or_default();
        let head = |psid: &str| psid.bytes().take(13).collect::<Vec<u8>>();
        if head(&report.psid) != head(original) {
            field("Orig PSID:", &optional(&report.orig_psid));
        }
    }
    let attributes = match report.security.attributes.is_empty() {
        true => NONE.to_owned(),
        false => report.security.attributes.join(", "),
    };
    field("Security Attributes:", &attributes);
    if let Some(version) = report.security.version {
        field("Security Ver:", &version.to_string());
    }
    if full {
        let method = match report.security.firmware_controlled_update {
            true => "fw_ctrl",
            false => "Legacy",
        };
        field("Default Update Method:", method);
    }
    text
}

/// Day, month and year without leading zeros, from year-month-day.
fn flint_date(date: &str) -> String {
    let mut parts: Vec<&str> = date.split('-').collect();
    parts.reverse();
    let short = |part: &&str| match part.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits => digits.to_owned(),
    };
    parts.iter().map(short).collect::<Vec<_>>().join(".")
}

fn uids(text: &mut String, report: &QueryReport) {
    let base = report.uid_form.as_deref() == Some("base");
    let title = if base {
        "Description:           UID                GuidsNumber"
    } else {
        "Description:           UID                GuidsNumber  Step"
    };
    let _ = writeln!(text, "{title}");
    if base {
        for (uid, label) in report.uids.iter().zip(["Base GUID:", "Base MAC:"]) {
            uid_line(text, label, &uid.current, false);
            if let Some(original) = &uid.original {
                uid_line(text, &format!("Orig {label}"), original, false);
            }
        }
        return;
    }
    // The switches of the first generation have one port.
    let single = report
        .hardware
        .first()
        .is_some_and(|chip| crate::image::hw_id::HwId::new(chip.id).is_switch_ib());
    let none = UidRange {
        first: None,
        count: 0,
        step: 0,
    };
    for (index, (kind, port)) in [("GUID", 1), ("GUID", 2), ("MAC", 1), ("MAC", 2)]
        .into_iter()
        .enumerate()
    {
        if single && port == 2 {
            continue;
        }
        let label = if single {
            format!("Base {kind}:")
        } else {
            format!("Base {kind}{port}:")
        };
        let uid = report.uids.get(index);
        uid_line(text, &label, uid.map_or(&none, |uid| &uid.current), true);
        if let Some(original) = uid.and_then(|uid| uid.original.as_ref()) {
            uid_line(text, &format!("Orig {label}"), original, true);
        }
    }
}

fn uid_line(text: &mut String, label: &str, range: &UidRange, step: bool) {
    let number = |number: u16| match number {
        0 => format!("       {NONE}"),
        number => format!("        {number}"),
    };
    let first = range
        .first
        .as_deref()
        .map_or(NONE, |first| first.trim_start_matches("0x"));
    let _ = write!(text, "{label:<18}     {first:<16}{}", number(range.count));
    if step {
        let _ = write!(text, "{}", number(range.step.into()));
    }
    let _ = writeln!(text);
}
