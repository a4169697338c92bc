//! Firmware images: what a flash holds, or the part of it that an update carries.
//!
//! [`Image::parse`] finds the format by the bytes and reads the skeleton: pointers, tables,
//! entries. It copies nothing and judges little; a damaged image still gives what can be read, and
//! [`verify`](crate::verify::verify) says what is wrong with it.
//!
//! A format is a file of this folder that makes a [`Layout`]. To add one: a file such as `fs5.rs`
//! with `read(bytes, start) -> Result<Layout>`, its arm in [`Image::parse`], and its name in
//! [`Format`].

pub mod build;
pub mod crc;
pub mod dev_info;
mod fs3;
mod fs4;
pub mod hw_id;
pub mod hw_pointers;
pub mod image_info;
pub mod mfg_info;
pub mod rom;
mod section;
pub mod signature;
pub mod toc;

use std::fmt;

use bytemuck::AnyBitPattern;
use rdma_wire::{Be32, DecodeError};

pub use section::SectionType;

use crate::{Error, Result};
use dev_info::DevInfo;
use hw_pointers::{HwPointers, ToolsArea};
use image_info::ImageInfo;
use mfg_info::MfgInfo;
use toc::{TocEntry, TocHeader};

/// What an image of FS2 or FS3 starts with.
pub const MAGIC_FS3: [u8; 16] = *b"MTFW\x8c\xdf\xd0\x00\xde\xad\x92\x70\x41\x54\xbe\xef";
/// What an image of FS4 or FS5 starts with.
pub const MAGIC_FS4: [u8; 16] = *b"MTFW\xab\xcd\xef\x00\xfa\xde\x12\x34\x56\x78\xde\xad";

/// Where in a flash an image can start.
pub const STARTS: [u64; 11] = [
    0, 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000, 0x10_0000, 0x20_0000, 0x40_0000, 0x80_0000,
    0x100_0000, 0x200_0000,
];

/// Tables start at multiples of this.
pub const SECTOR: u64 = 0x1000;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Connect-IB, ConnectX-4, Switch-IB, Spectrum.
    Fs3,
    /// ConnectX-5 to ConnectX-7, BlueField to BlueField-3, Quantum, Spectrum-2 and later.
    Fs4,
}

impl Format {
    /// The name as the vendor's tools print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fs3 => "FS3",
            Self::Fs4 => "FS4",
        }
    }

    /// What an image of the format starts with.
    #[must_use]
    pub const fn magic(self) -> [u8; 16] {
        match self {
            Self::Fs3 => MAGIC_FS3,
            Self::Fs4 => MAGIC_FS4,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a file is, by its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Container {
    /// Nothing is in it.
    Empty,
    /// All bytes are 0xff or all are 0: an erased flash.
    Blank(u8),
    /// An image of a format that is read, and where it starts.
    Image(Format, u64),
    /// An FS2 image: ConnectX-2, ConnectX-3, SwitchX.
    Fs2(u64),
    /// An FS5 image: ConnectX-8 and later.
    Fs5(u64),
    /// An image of a format number that is not known.
    UnknownImage(u8, u64),
    /// What an update carries: an image whose first 16 bytes are masked.
    Masked(Format),
    /// An MFA archive of the first version.
    Mfa1,
    /// An MFA2 archive.
    Mfa2,
    /// A PLDM firmware update package.
    Pldm,
    /// Anything else.
    Unknown,
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Blank(byte) => write!(f, "blank, every byte is {byte:#04x}"),
            Self::Image(format, start) => write!(f, "an {format} image at offset {start:#x}"),
            Self::Fs2(_) => {
                f.write_str("an FS2 image (ConnectX-2, ConnectX-3, SwitchX), which is not read yet")
            }
            Self::Fs5(_) => {
                f.write_str("an FS5 image (ConnectX-8 and later), which is not read yet")
            }
            Self::UnknownImage(format, _) => {
                write!(
                    f,
                    "a firmware image of format number {format}, which is not known"
                )
            }
            Self::Masked(format) => {
                write!(f, "an {format} component whose first 16 bytes are masked")
            }
            Self::Mfa1 => f.write_str("an MFA archive of the first version, which is not read yet"),
            Self::Mfa2 => f.write_str("an MFA2 archive"),
            Self::Pldm => f.write_str("a PLDM firmware package, which is not read yet"),
            Self::Unknown => f.write_str("nothing that is known"),
        }
    }
}

/// What PLDM packages start with: the UUIDs of their header versions 1.0 to 1.3.
const PLDM: [[u8; 16]; 4] = [
    *b"\xf0\x18\x87\x8c\xcb\x7d\x49\x43\x98\x00\xa0\x2f\x05\x9a\xca\x02",
    *b"\x12\x44\xd2\x64\x8d\x7d\x47\x18\xa0\x30\xfc\x8a\x56\x58\x7d\x5a",
    *b"\x31\x19\xce\x2f\xe8\x0a\x4a\x99\xaf\x6d\x46\xf8\xb1\x21\xf6\xbf",
    *b"\x7b\x29\x1c\x99\x6d\xb6\x42\x08\x80\x1b\x02\x02\x6e\x46\x3c\x78",
];

/// Says what a file is.
#[must_use]
pub fn detect(bytes: &[u8]) -> Container {
    match bytes {
        [] => return Container::Empty,
        [b'M', b'F', b'A', b'R', ..] => return Container::Mfa1,
        [b'M', b'L', b'N', b'X', b'.', b'M', b'F', b'A', b'2', ..] => return Container::Mfa2,
        _ => {}
    }
    if PLDM.iter().any(|uuid| bytes.starts_with(uuid)) {
        return Container::Pldm;
    }
    if let Some(&start) = starts(bytes).first() {
        return at(bytes, start);
    }
    if let Some(&first) = bytes.first()
        && (first == 0 || first == 0xff)
        && bytes.iter().all(|byte| *byte == first)
    {
        return Container::Blank(first);
    }
    if bytes.starts_with(&[0xff; 16])
        && let Some(format) = masked_format(bytes)
    {
        return Container::Masked(format);
    }
    Container::Unknown
}

/// Every offset at which an image starts.
fn starts(bytes: &[u8]) -> Vec<u64> {
    STARTS
        .into_iter()
        .filter(|start| {
            get(bytes, *start, 16).is_some_and(|magic| magic == MAGIC_FS3 || magic == MAGIC_FS4)
        })
        .collect()
}

/// What the image is that starts at `start`, where a magic stands.
fn at(bytes: &[u8], start: u64) -> Container {
    let old = get(bytes, start, 16).is_some_and(|magic| magic == MAGIC_FS3);
    let place = if old { 0x24 } else { 0x10 };
    // Where the file ends before the number, the parser of the format says so.
    let number = get(bytes, start + place, 1).and_then(<[u8]>::first);
    match (old, number) {
        (true, Some(3) | None) => Container::Image(Format::Fs3, start),
        (true, Some(_)) => Container::Fs2(start),
        (false, Some(0 | 1) | None) => Container::Image(Format::Fs4, start),
        (false, Some(2)) => Container::Fs5(start),
        (false, Some(&number)) => Container::UnknownImage(number, start),
    }
}

/// The format of a component, whose first 16 bytes do not say it.
#[must_use]
pub fn masked_format(component: &[u8]) -> Option<Format> {
    match (component.get(0x24), component.get(0x10)) {
        (Some(3), _) => Some(Format::Fs3),
        (_, Some(1)) => Some(Format::Fs4),
        _ => None,
    }
}

/// `len` bytes at `offset`, or nothing where the file ends before.
pub(crate) fn get(bytes: &[u8], offset: u64, len: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(len).ok()?)?;
    bytes.get(start..end)
}

/// A structure at `offset`.
pub(crate) fn view<'a, T: AnyBitPattern>(
    what: &'static str,
    bytes: &'a [u8],
    offset: u64,
) -> Result<&'a T> {
    let place = usize::try_from(offset).unwrap_or(usize::MAX);
    Ok(rdma_wire::view(what, bytes, place)?)
}

/// How a section is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The CRC stands in the entry.
    Entry(u16),
    /// There is none.
    None,
    /// The CRC stands in the last dword of the section.
    InSection,
}

/// A section: an entry of a table of contents.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// What it is.
    pub kind: SectionType,
    /// Where the entry stands in the file.
    pub entry_offset: u64,
    /// Where the section stands in the file.
    pub offset: u64,
    /// How long it is, in bytes.
    pub size: u64,
    /// How it is checked.
    pub check: Check,
    /// Whether it belongs to the device and not to the image.
    pub device_data: bool,
    /// Whether each 64 bytes are followed by 4 bytes of CRC or authentication tag.
    pub cache_line_crc: bool,
    /// Whether it is a zlib stream.
    pub zipped: bool,
    /// Whether it is encrypted.
    pub encrypted: bool,
    /// The entry as it stands in the file.
    pub entry: TocEntry,
}

/// A table of contents.
#[derive(Clone, Debug)]
pub struct Toc {
    /// Where its header stands in the file.
    pub offset: u64,
    /// Its header.
    pub header: TocHeader,
    /// Its entries, without the one that ends it.
    pub sections: Vec<Section>,
    /// Whether an entry ends it, as it must be.
    pub ended: bool,
    /// Whether it is the copy, one sector after where it should be.
    pub is_copy: bool,
}

/// BOOT2: the first code, which has its own length and CRC.
#[derive(Clone, Copy, Debug)]
pub struct Boot2 {
    /// Where it stands, from the start of the image.
    pub offset: u64,
    /// How long it is in bytes, with its header and its CRC.
    pub size: u64,
}

/// The table of hashes of newer FS4 images.
#[derive(Clone, Copy, Debug)]
pub struct HashesTable {
    /// Where it stands in the file.
    pub offset: u64,
    /// How long it is in bytes.
    pub size: u64,
}

/// The parts of an image, as far as they could be found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Layout {
    /// The version of the binary format: major, minor.
    pub binary_version: (u8, u8),
    /// log2 of the slot that the image takes in a failsafe flash.
    pub log2_slot: u16,
    /// The hardware pointers (FS4).
    pub hw_pointers: Option<HwPointers>,
    /// The tools area and where it stands (FS4).
    pub tools_area: Option<(u64, ToolsArea)>,
    /// BOOT2, unless its size is impossible.
    pub boot2: Result<Boot2>,
    /// The table of hashes (some FS4).
    pub hashes_table: Option<HashesTable>,
    /// The table of contents of the image.
    pub itoc: Option<Toc>,
    /// The table of contents of the device's data (FS4).
    pub dtoc: Option<Toc>,
    /// Whether the table of contents is encrypted, so that only pointers and IMAGE_INFO can be
    /// read.
    pub encrypted: bool,
    /// Where the bytes of the image end in the file, without the device's data.
    pub end: u64,
    /// Whether the file goes on after the image as a flash does, so that device data should be
    /// there.
    pub expects_device_data: bool,
}

/// A firmware image.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    bytes: &'a [u8],
    format: Format,
    starts: Vec<u64>,
    start: u64,
    layout: Layout,
}

impl<'a> Image<'a> {
    /// Reads the skeleton of an image.
    ///
    /// # Errors
    /// [`Error::WrongKind`] for what is no image of a format that is read, and
    /// [`Error::Decode`] where it ends before anything can be said about it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (format, start) = match detect(bytes) {
            Container::Image(format, start) => (format, start),
            found => {
                return Err(Error::WrongKind {
                    wanted: "a firmware image",
                    found,
                });
            }
        };
        let layout = match format {
            Format::Fs3 => fs3::read(bytes, start)?,
            Format::Fs4 => fs4::read(bytes, start)?,
        };
        Ok(Self {
            bytes,
            format,
            starts: starts(bytes),
            start,
            layout,
        })
    }

    /// The whole file.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The length of the file.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Never true: an empty file is no image.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The format.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Where the image starts in the file.
    #[must_use]
    pub const fn start(&self) -> u64 {
        self.start
    }

    /// Where images start in the file; a failsafe flash can hold two.
    #[must_use]
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The parts.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether the device's data is there too, as in a flash.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.device_sections().next().is_some() || self.layout.dtoc.is_some()
    }

    /// All sections: those of the image, then those of the device.
    pub fn sections(&self) -> impl Iterator<Item = &Section> {
        let tables = [&self.layout.itoc, &self.layout.dtoc];
        tables
            .into_iter()
            .flatten()
            .flat_map(|toc| toc.sections.iter())
    }

    /// The sections of the device.
    pub fn device_sections(&self) -> impl Iterator<Item = &Section> {
        self.sections().filter(|section| section.device_data)
    }

    /// The first section of a kind.
    #[must_use]
    pub fn find(&self, kind: SectionType) -> Option<&Section> {
        self.sections().find(|section| section.kind == kind)
    }

    /// The bytes of a section.
    ///
    /// # Errors
    /// [`Error::OutOfFile`] where the file ends before the section does.
    pub fn data(&self, section: &Section) -> Result<&'a [u8]> {
        get(self.bytes, section.offset, section.size).ok_or(Error::OutOfFile {
            section: section.kind,
            offset: section.offset,
            size: section.size,
            len: self.len(),
        })
    }

    /// The first section of a kind, viewed as a `T`.
    fn section_as<T: AnyBitPattern>(&self, section: &Section, what: &'static str) -> Result<&'a T> {
        let data = self.data(section)?;
        let (value, _) = rdma_wire::prefix(what, data)
            .map_err(|error: DecodeError| Error::from(error.at(section.offset)))?;
        Ok(value)
    }

    /// IMAGE_INFO, by the table of contents or by the pointer to it.
    ///
    /// # Errors
    /// [`Error::NoSection`] where there is none, [`Error::UnknownVersion`] where its version is
    /// not 0, and [`Error::OutOfFile`] or [`Error::Decode`] where it is cut short.
    pub fn image_info(&self) -> Result<&'a ImageInfo> {
        let (offset, info): (u64, &ImageInfo) = match self.find(SectionType::IMAGE_INFO) {
            Some(section) => (section.offset, self.section_as(section, "IMAGE_INFO")?),
            None => {
                let offset = self
                    .layout
                    .hw_pointers
                    .and_then(|pointers| pointers.image_info.target())
                    .ok_or(Error::NoSection(SectionType::IMAGE_INFO))?
                    .saturating_add(self.start);
                (offset, view("IMAGE_INFO", self.bytes, offset)?)
            }
        };
        if info.flags.major_version() != 0 {
            return Err(Error::UnknownVersion {
                what: "IMAGE_INFO",
                offset,
                major: info.flags.major_version(),
                minor: info.flags.minor_version(),
            });
        }
        Ok(info)
    }

    /// The DEV_INFO that counts, if the image has one.
    ///
    /// # Errors
    /// As for [`Image::image_info`]; where FS4 has no copy or two with the signature, the first
    /// with it counts.
    pub fn dev_info(&self) -> Result<Option<&'a DevInfo>> {
        for section in self.sections() {
            if section.kind == SectionType::DEV_INFO {
                let info: &DevInfo = self.section_as(section, "DEV_INFO")?;
                if self.format == Format::Fs3 || info.is_signed() {
                    if info.uids().is_none() {
                        return Err(Error::UnknownVersion {
                            what: "DEV_INFO",
                            offset: section.offset,
                            major: info.major_version,
                            minor: info.minor_version,
                        });
                    }
                    return Ok(Some(info));
                }
            }
        }
        Ok(None)
    }

    /// MFG_INFO, if the image has it.
    ///
    /// # Errors
    /// As for [`Image::image_info`].
    pub fn mfg_info(&self) -> Result<Option<&'a MfgInfo>> {
        let Some(section) = self.find(SectionType::MFG_INFO) else {
            return Ok(None);
        };
        let info: &MfgInfo = self.section_as(section, "MFG_INFO")?;
        if info.uids().is_none() {
            return Err(Error::UnknownVersion {
                what: "MFG_INFO",
                offset: section.offset,
                major: info.major_version,
                minor: info.minor_version,
            });
        }
        Ok(Some(info))
    }
}

/// Reads BOOT2 at `offset` from the start of the image.
fn boot2(bytes: &[u8], start: u64, offset: u64) -> Result<Boot2> {
    let place = start.saturating_add(offset).saturating_add(4);
    let dwords: &Be32 = view("size of BOOT2", bytes, place)?;
    let dwords = dwords.get();
    if !(4..=0x10_0000).contains(&dwords) {
        return Err(DecodeError::invalid(
            "size of BOOT2",
            place,
            dwords.into(),
            "between 4 and 1048576 dwords",
        )
        .into());
    }
    Ok(Boot2 {
        offset,
        size: (u64::from(dwords) + 4) * 4,
    })
}

/// Reads a table of contents at `offset` of the file, if one is there.
fn read_toc(
    bytes: &[u8],
    offset: u64,
    signature: [u8; 16],
    section: impl Fn(u64, &TocEntry) -> Section,
) -> Option<Toc> {
    let header: &TocHeader = view("TOC header", bytes, offset).ok()?;
    if header.signature != signature {
        return None;
    }
    let mut sections = Vec::new();
    let mut ended = false;
    for index in 1..=toc::MAX_ENTRIES as u64 {
        let place = offset + index * toc::ENTRY_SIZE;
        let Ok(entry) = view::<TocEntry>("TOC entry", bytes, place) else {
            break;
        };
        if entry.section() == SectionType::END {
            ended = true;
            break;
        }
        sections.push(section(place, entry));
    }
    Some(Toc {
        offset,
        header: *header,
        sections,
        ended,
        is_copy: false,
    })
}
