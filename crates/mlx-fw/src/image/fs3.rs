//! FS3: one table of contents, found by scanning, for the image and for the device's data.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be32, assert_layout};

use super::{Check, Layout, SECTOR, Section, TocEntry, boot2, get, read_toc, toc, view};
use crate::Result;

/// Where BOOT2 stands.
pub(super) const BOOT2: u64 = 0x38;
/// How far the table of contents is looked for: a slot is not larger.
const SCAN: u64 = 0x100_0000;
/// The slot of images that do not say it.
const DEFAULT_LOG2_SLOT: u8 = 21;

/// The head of an image up to BOOT2.
///
/// | offset | field |
/// |---|---|
/// | 0x00 | magic |
/// | 0x24 | format (24-31), log2 of the slot (16-23), binary version major (8-15), minor (0-7) |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Head {
    pub(super) magic: [u8; 16],
    pub(super) boot: [Be32; 5],
    pub(super) format: u8,
    pub(super) log2_slot: u8,
    pub(super) major: u8,
    pub(super) minor: u8,
    pub(super) reserved: [Be32; 4],
}
assert_layout!(Head, 0x38);

/// Reads the skeleton of the image that starts at `start`.
pub(super) fn read(bytes: &[u8], start: u64) -> Result<Layout> {
    let head: &Head = view("the head of the image", bytes, start)?;
    let boot2 = boot2(bytes, start, BOOT2);
    let len = bytes.len() as u64;

    // The table of contents starts at a sector after BOOT2; the first that is there counts.
    let after = boot2.as_ref().map_or(BOOT2, |boot2| BOOT2 + boot2.size);
    let first = start + after.next_multiple_of(SECTOR);
    let last = len.min(start.saturating_add(SCAN));
    let mut itoc = None;
    let mut place = first;
    while place < last && itoc.is_none() {
        if get(bytes, place, 16).is_some_and(|bytes| bytes == toc::ITOC_SIGNATURE) {
            itoc = read_toc(bytes, place, toc::ITOC_SIGNATURE, |place, entry| {
                section(start, place, entry)
            });
            if let Some(toc) = &mut itoc {
                toc.is_copy = place != first;
            }
        }
        place += SECTOR;
    }

    let end = itoc.iter().flat_map(|toc| &toc.sections);
    let end = end
        .filter(|section| !section.device_data)
        .map(|section| section.offset + section.size)
        .max()
        .unwrap_or(start + after);
    Ok(Layout {
        binary_version: (head.major, head.minor),
        log2_slot: match head.log2_slot {
            0 => DEFAULT_LOG2_SLOT,
            log2 => log2,
        }
        .into(),
        hw_pointers: None,
        tools_area: None,
        boot2,
        hashes_table: None,
        itoc,
        dtoc: None,
        encrypted: false,
        end,
        expects_device_data: false,
    })
}

fn section(start: u64, entry_offset: u64, entry: &TocEntry) -> Section {
    // The lowest bit of the mode is no_crc, the next is device_data.
    let mode = entry.check.mode();
    let base = if entry.address.relative() { start } else { 0 };
    Section {
        kind: entry.section(),
        entry_offset,
        offset: base + entry.flash_address(),
        size: entry.size(),
        check: if mode & 1 != 0 {
            Check::None
        } else {
            Check::Entry(entry.check.crc())
        },
        device_data: mode & 2 != 0,
        cache_line_crc: entry.param0.cache_line_crc(),
        zipped: entry.param0.zipped(),
        encrypted: false,
        entry: *entry,
    }
}
