//! Is an image as its CRCs say?

use bytemuck::Pod;
use rdma_wire::Be32;

use crate::image::{Check, Format, Image, Section, SectionType, Toc, crc, hw_pointers, toc};
use crate::report::{PartReport, PartState, Place, Problem, ProblemCode, VerifyReport};

/// The newest binary format that is known.
const NEWEST_BINARY: u8 = 1;

/// Checks every part of an image that has a CRC, and that what must be there is there.
///
/// Everything is checked, also after something was found wrong; `flint verify` stops earlier.
///
/// ```
/// use mlx_fw::image::{Image, build::Builder};
/// let mut bytes = Builder::fs4().build()?;
/// assert!(mlx_fw::verify(&Image::parse(&bytes)?).ok);
/// let last = bytes.len() - 1;
/// bytes[last] ^= 1;
/// let report = mlx_fw::verify(&Image::parse(&bytes)?);
/// assert_eq!(report.parts.iter().filter(|part| !part.state.is_good()).count(), 1);
/// # Ok::<(), mlx_fw::Error>(())
/// ```
#[must_use]
pub fn verify(image: &Image<'_>) -> VerifyReport {
    let mut check = Checker {
        image,
        parts: Vec::new(),
        problems: Vec::new(),
    };
    check.frame();
    check.tables();
    check.contents();
    let Checker {
        parts, problems, ..
    } = check;
    VerifyReport {
        format: image.format().to_string(),
        complete: image.is_complete(),
        encrypted: image.layout().encrypted,
        start: image.start(),
        ok: problems.is_empty() && parts.iter().all(|part| part.state.is_good()),
        parts,
        problems,
    }
}

struct Checker<'a> {
    image: &'a Image<'a>,
    parts: Vec<PartReport>,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn problem(&mut self, code: ProblemCode, offset: Option<u64>, message: impl Into<String>) {
        self.problems.push(Problem {
            code,
            offset,
            message: message.into(),
        });
    }

    fn part(
        &mut self,
        kind: SectionType,
        offset: u64,
        size: u64,
        place: Place,
        (computed, stored): (u32, u32),
    ) {
        self.parts.push(part(
            kind.flint(),
            Some(kind),
            offset,
            size,
            place,
            computed,
            stored,
        ));
    }

    /// A structure of the frame with its CRCs.
    fn frame_part<T: Pod>(&mut self, kind: SectionType, offset: u64, (a, b): (u16, u16)) {
        self.part(
            kind,
            offset,
            size_of::<T>() as u64,
            Place::Frame,
            (a.into(), b.into()),
        );
    }

    /// What is found before any table: pointers, tools area, BOOT2, table of hashes.
    fn frame(&mut self) {
        let image = self.image;
        let layout = image.layout();
        if let Some(pointers) = &layout.hw_pointers {
            let mut offset = image.start() + hw_pointers::OFFSET;
            for (_, pointer) in pointers.named() {
                self.part(
                    SectionType::HW_POINTERS,
                    offset,
                    8,
                    Place::Frame,
                    pointer.crcs(),
                );
                offset += 8;
            }
        }
        if let Some((offset, area)) = &layout.tools_area {
            self.frame_part::<hw_pointers::ToolsArea>(
                SectionType::TOOLS_AREA,
                *offset,
                area.crcs(),
            );
        }
        let (major, minor) = layout.binary_version;
        if major > NEWEST_BINARY {
            self.problem(
                ProblemCode::BinaryVersion,
                None,
                format!(
                    "binary format {major}.{minor} is newer than the newest that is known, \
                     {NEWEST_BINARY}.x"
                ),
            );
        }
        match &layout.boot2 {
            Ok(boot2) => {
                let offset = image.start() + boot2.offset;
                let mut report = part(
                    "BOOT2".to_owned(),
                    None,
                    offset,
                    boot2.size,
                    Place::Frame,
                    0,
                    0,
                );
                match self
                    .bytes(offset, boot2.size)
                    .and_then(|bytes| bytes.split_last_chunk::<4>())
                {
                    Some((bytes, stored)) => {
                        set_crc(
                            &mut report,
                            crc::sw(bytes).into(),
                            u32::from_be_bytes(*stored),
                        );
                    }
                    None => report.state = PartState::OutOfFile,
                }
                self.parts.push(report);
            }
            Err(error) => self.problem(
                ProblemCode::BadBoot2,
                match error {
                    crate::Error::Decode(error) => Some(error.offset()),
                    _ => None,
                },
                error.to_string(),
            ),
        }
        if let Some(table) = layout.hashes_table {
            let kind = SectionType::HASHES_TABLE;
            match self
                .bytes(table.offset, table.size)
                .and_then(|bytes| bytes.split_last_chunk::<4>())
            {
                Some((bytes, &[_, _, high, low])) => self.part(
                    kind,
                    table.offset,
                    table.size,
                    Place::Frame,
                    (
                        crc::sw(bytes).into(),
                        u16::from_be_bytes([high, low]).into(),
                    ),
                ),
                None => {
                    let mut report = part(
                        kind.flint(),
                        Some(kind),
                        table.offset,
                        table.size,
                        Place::Frame,
                        0,
                        0,
                    );
                    report.state = PartState::OutOfFile;
                    self.parts.push(report);
                }
            }
        }
    }

    fn bytes(&self, offset: u64, size: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(usize::try_from(size).ok()?)?;
        self.image.bytes().get(start..end)
    }

    fn tables(&mut self) {
        let image = self.image;
        let layout = image.layout();
        match &layout.itoc {
            Some(toc) => self.table(toc, SectionType::ITOC_HEADER),
            None if layout.encrypted => {}
            None => self.problem(
                ProblemCode::NoItoc,
                layout
                    .hw_pointers
                    .map(|pointers| image.start() + u64::from(pointers.itoc.value())),
                "there is no table of contents (ITOC) where it must be",
            ),
        }
        match &layout.dtoc {
            Some(toc) => self.table(toc, SectionType::DTOC_HEADER),
            None if layout.expects_device_data => self.problem(
                ProblemCode::NoDtoc,
                Some(layout.end),
                format!(
                    "{:#x} bytes follow the image as in a flash, and there is no table of the \
                     device's contents (DTOC) at their end",
                    image.len().saturating_sub(layout.end)
                ),
            ),
            None => {}
        }
    }

    fn table(&mut self, toc: &Toc, kind: SectionType) {
        self.frame_part::<toc::TocHeader>(kind, toc.offset, toc.header.crcs());
        for section in &toc.sections {
            let (computed, stored) = section.entry.crcs();
            if computed != stored {
                self.problem(
                    ProblemCode::BadEntry,
                    Some(section.entry_offset),
                    format!(
                        "the entry of {} has a wrong CRC (computed {computed:#06x}, stored \
                         {stored:#06x}), so its address and size can't be trusted",
                        section.kind.flint()
                    ),
                );
            }
            self.section(section);
        }
        if !toc.ended {
            self.problem(
                ProblemCode::EndlessToc,
                Some(toc.offset),
                format!(
                    "the table of contents has no end after {} entries",
                    toc.sections.len()
                ),
            );
        }
    }

    fn section(&mut self, section: &Section) {
        let place = if section.device_data {
            Place::Device
        } else {
            Place::Image
        };
        let mut report = part(
            section.kind.flint(),
            Some(section.kind),
            section.offset,
            section.size,
            place,
            0,
            0,
        );
        match self.image.data(section) {
            Err(_) => report.state = PartState::OutOfFile,
            Ok(data) => {
                if self.image.format() == Format::Fs4
                    && section.kind == SectionType::DEV_INFO
                    && !data.starts_with(&crate::image::dev_info::SIGNATURE)
                {
                    report.state = PartState::Spare;
                } else if section.encrypted || has_auth_tags(section, data) {
                    report.state = PartState::CrcIgnored;
                } else {
                    match section.check {
                        Check::None => report.state = PartState::CrcIgnored,
                        Check::Entry(stored) => {
                            set_crc(&mut report, crc::sw(data).into(), stored.into());
                        }
                        Check::InSection => match data.split_last_chunk::<4>() {
                            Some((data, &[_, _, high, low])) => set_crc(
                                &mut report,
                                crc::sw(data).into(),
                                u16::from_be_bytes([high, low]).into(),
                            ),
                            None => report.state = PartState::OutOfFile,
                        },
                    }
                }
            }
        }
        self.parts.push(report);
    }

    /// What must be there, once.
    fn contents(&mut self) {
        let image = self.image;
        if (image.layout().itoc.is_some() || image.layout().encrypted)
            && let Err(error) = image.image_info()
        {
            self.problem(ProblemCode::BadImageInfo, None, error.to_string());
        }
        if image.is_complete() {
            if image.find(SectionType::MFG_INFO).is_none() {
                self.problem(
                    ProblemCode::NoMfgInfo,
                    None,
                    "the device's data has no MFG_INFO",
                );
            }
            let infos = image
                .sections()
                .filter(|section| section.kind == SectionType::DEV_INFO);
            let valid = infos
                .filter(|section| {
                    image.format() == Format::Fs3
                        || image
                            .data(section)
                            .is_ok_and(|data| data.starts_with(&crate::image::dev_info::SIGNATURE))
                })
                .count();
            match valid {
                1 => {}
                0 => self.problem(
                    ProblemCode::NoDevInfo,
                    None,
                    "the device's data has no valid DEV_INFO",
                ),
                _ => self.problem(
                    ProblemCode::TwoDevInfos,
                    None,
                    format!("{valid} copies of DEV_INFO say that they count, and one may"),
                ),
            }
        }
        self.overlaps();
    }

    fn overlaps(&mut self) {
        let mut sections: Vec<&Section> = self
            .image
            .sections()
            .filter(|section| section.size != 0)
            .collect();
        sections.sort_by_key(|section| section.offset);
        for pair in sections.windows(2) {
            if let [first, second] = pair
                && first.offset + first.size > second.offset
            {
                self.problem(
                    ProblemCode::Overlap,
                    Some(second.offset),
                    format!(
                        "{} and {} share bytes",
                        first.kind.flint(),
                        second.kind.flint()
                    ),
                );
            }
        }
    }
}

/// Whether the lines of a section carry authentication tags rather than CRCs: it is encrypted.
fn has_auth_tags(section: &Section, data: &[u8]) -> bool {
    const LINE: usize = 64;
    section.cache_line_crc
        && rdma_wire::view::<Be32>("first line", data, LINE)
            .is_ok_and(|tag| tag.get() & 0xffff_0000 != 0)
}

fn set_crc(report: &mut PartReport, computed: u32, stored: u32) {
    if computed == stored {
        report.state = PartState::Ok;
    } else {
        report.state = PartState::WrongCrc;
        report.computed_crc = Some(computed);
        report.stored_crc = Some(stored);
    }
}

fn part(
    name: String,
    kind: Option<SectionType>,
    offset: u64,
    size: u64,
    place: Place,
    computed: u32,
    stored: u32,
) -> PartReport {
    let mut report = PartReport {
        name,
        section_type: kind.map(SectionType::get),
        offset,
        size,
        place,
        state: PartState::Ok,
        computed_crc: None,
        stored_crc: None,
    };
    set_crc(&mut report, computed, stored);
    report
}
