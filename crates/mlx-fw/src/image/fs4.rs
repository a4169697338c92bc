//! FS4: hardware pointers to everything, a table of contents for the image, and one for the
//! device's data at the end of the flash.

use rdma_wire::Be32;

use super::hw_pointers::{self, HwPointers, ToolsArea};
use super::image_info::ImageInfo;
use super::{Check, HashesTable, Layout, SECTOR, Section, SectionType, Toc, TocEntry};
use super::{boot2, get, read_toc, toc, view};
use crate::Result;

/// Reads the skeleton of the image that starts at `start`.
pub(super) fn read(bytes: &[u8], start: u64) -> Result<Layout> {
    let pointers: &HwPointers = view(
        "the block of hardware pointers",
        bytes,
        start + hw_pointers::OFFSET,
    )?;
    let len = bytes.len() as u64;
    let at = |pointer: hw_pointers::HwPointer| start + u64::from(pointer.value());

    let tools_offset = at(pointers.tools_area);
    let tools_area: &ToolsArea = view("the tools area", bytes, tools_offset)?;
    let boot2 = boot2(bytes, start, pointers.boot2.value().into());

    let itoc_offset = at(pointers.itoc);
    let find = |offset| {
        read_toc(bytes, offset, toc::ITOC_SIGNATURE, |place, entry| {
            section(start, false, place, entry)
        })
    };
    let itoc = find(itoc_offset).or_else(|| {
        let mut copy = find(itoc_offset + SECTOR)?;
        copy.is_copy = true;
        Some(copy)
    });

    let info = image_info(bytes, start, pointers, itoc.as_ref());
    let mut end = itoc
        .iter()
        .flat_map(|toc| &toc.sections)
        .map(|section| section.offset + section.size)
        .max()
        .unwrap_or(itoc_offset);
    let encrypted = itoc.is_none()
        && info.is_some_and(|info| info.flags.major_version() == 0 && is_text(&info.psid));
    if encrypted {
        end = info.map_or(end, |info| start + u64::from(info.burn_image_size.get()));
    }

    // The table of the device's data stands at the end of the flash, or of a part of it.
    let mut dtoc = None;
    let parts = info.map_or(0, |info| u64::from(info.dtoc_offset));
    let mut expects_device_data = false;
    if len > end {
        let whole = if parts == 0 { len } else { len / (parts * 2) };
        dtoc = whole.checked_sub(SECTOR).and_then(|offset| {
            read_toc(bytes, offset, toc::DTOC_SIGNATURE, |place, entry| {
                section(0, true, place, entry)
            })
        });
        // What follows may also be mere padding of an image without such data.
        expects_device_data = dtoc.is_some() || !is_padding(bytes, end);
    }

    Ok(Layout {
        binary_version: tools_area.binary_version(),
        log2_slot: tools_area.log2_slot(),
        hw_pointers: Some(*pointers),
        tools_area: Some((tools_offset, *tools_area)),
        boot2,
        hashes_table: pointers.hashes_table.target().map(|offset| HashesTable {
            offset: start + offset,
            size: hashes_table_size(bytes, start + offset),
        }),
        itoc,
        dtoc,
        encrypted,
        end,
        expects_device_data,
    })
}

fn section(start: u64, device_data: bool, entry_offset: u64, entry: &TocEntry) -> Section {
    Section {
        kind: entry.section(),
        entry_offset,
        offset: start + entry.flash_address(),
        size: entry.size(),
        check: match entry.check.mode() {
            0 => Check::Entry(entry.check.crc()),
            2 => Check::InSection,
            _ => Check::None,
        },
        device_data,
        cache_line_crc: entry.param0.cache_line_crc(),
        zipped: entry.param0.zipped(),
        encrypted: entry.check.encrypted(),
        entry: *entry,
    }
}

/// IMAGE_INFO, as far as the skeleton depends on it.
fn image_info<'a>(
    bytes: &'a [u8],
    start: u64,
    pointers: &HwPointers,
    itoc: Option<&Toc>,
) -> Option<&'a ImageInfo> {
    let by_table = itoc
        .iter()
        .flat_map(|toc| &toc.sections)
        .find(|section| section.kind == SectionType::IMAGE_INFO)
        .map(|section| section.offset);
    let by_pointer = || pointers.image_info.target().map(|offset| start + offset);
    view("IMAGE_INFO", bytes, by_table.or_else(by_pointer)?).ok()
}

/// Whether bytes are printable ASCII, padded with NUL, and not empty.
fn is_text(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| *byte == 0);
    let (text, padding) = bytes.split_at(end.unwrap_or(bytes.len()));
    !text.is_empty()
        && text.iter().all(|byte| (0x20..0x7f).contains(byte))
        && padding.iter().all(|byte| *byte == 0)
}

/// Whether what stands from `end` on is less than a flash would hold, and all zero or all ones.
fn is_padding(bytes: &[u8], end: u64) -> bool {
    const LARGEST: u64 = 0x1_0000;
    let len = bytes.len() as u64;
    let Some(rest) = get(bytes, end, len.saturating_sub(end)) else {
        return true;
    };
    let same = |value: u8| rest.iter().all(|byte| *byte == value);
    rest.len() as u64 <= LARGEST && (same(0) || same(0xff))
}

/// The length of the table of hashes: its header, the header of its table of contents, an entry
/// and a hash for each section that it can have, and its tail.
fn hashes_table_size(bytes: &[u8], offset: u64) -> u64 {
    const HEADER: u64 = 0xc;
    const HTOC_HEADER: u64 = 0x10;
    const HTOC_ENTRY: u64 = 8;
    const TAIL: u64 = 8;
    let dword = |place| view::<Be32>("HTOC header", bytes, place).map_or(0, |value| value.get());
    let [_, _, _, version] = dword(offset + HEADER).to_be_bytes();
    let [size_high, size_low, _, _] = dword(offset + HEADER + 4).to_be_bytes();
    let hash_size = u64::from(u16::from_be_bytes([size_high, size_low]));
    let entries = if version == 1 { 64 } else { 28 };
    HEADER + HTOC_HEADER + entries * (HTOC_ENTRY + hash_size) + TAIL
}
