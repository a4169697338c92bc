//! The MD5 sum that `flint checksum` prints.

use md5::{Digest, Md5};

use crate::image::{Image, SectionType, toc};
use crate::report::ChecksumReport;
use crate::{Error, Result};

/// The MD5 sum over an image without its device data: header and BOOT2, the head of the table of
/// contents, then each entry and its section.
///
/// # Errors
/// [`Error::NoSection`] without a table of contents, [`Error::Decode`] without a BOOT2, and
/// [`Error::OutOfFile`] where a section is cut short.
pub fn checksum(image: &Image<'_>) -> Result<ChecksumReport> {
    let layout = image.layout();
    let boot2 = layout.boot2.clone()?;
    let itoc = layout
        .itoc
        .as_ref()
        .ok_or(Error::NoSection(SectionType::ITOC_HEADER))?;
    let part = |kind: SectionType, offset: u64, size: u64| {
        crate::image::get(image.bytes(), offset, size).ok_or(Error::OutOfFile {
            section: kind,
            offset,
            size,
            len: image.len(),
        })
    };

    let mut md5 = Md5::new();
    // The size is that of FS3, where BOOT2 stands at 0x38, for FS4 too.
    md5.update(part(
        SectionType::BOOT_CODE,
        image.start(),
        0x38 + boot2.size,
    )?);
    md5.update(part(
        SectionType::ITOC_HEADER,
        itoc.offset,
        toc::ENTRY_SIZE,
    )?);
    for section in itoc.sections.iter().filter(|section| !section.device_data) {
        md5.update(bytemuck::bytes_of(&section.entry));
        md5.update(image.data(section)?);
    }
    let mut digest = md5.finalize();
    // The vendor's tools print the last byte first.
    digest.reverse();
    Ok(ChecksumReport {
        checksum: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
}
