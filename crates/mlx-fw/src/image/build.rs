//! Makes images of our own: for tests, demonstrations and simulated devices.
//!
//! They have the frame, the tables and the CRCs of real ones, and made-up code; `flint verify` and
//! `flint query` of the vendor's tools accept them. No real firmware is in them, and no device
//! runs them.

use bytemuck::{Zeroable, bytes_of};
use rdma_wire::{Be16, Be32};

use super::dev_info::{self, DevInfo, UidBlock, UidEntry};
use super::hw_id::HwId;
use super::hw_pointers::{self, HwPointer, HwPointers, ToolsArea};
use super::image_info::{Flags, ImageInfo};
use super::mfg_info::MfgInfo;
use super::rom::Rom;
use super::signature::SignatureHead;
use super::toc::{Check as CheckBits, FlashAddress, Param0, TocEntry, TocHeader, TypeAndSize};
use super::{Check, Format, SECTOR, SectionType, crc, fs3, toc};
use crate::{BcdDate, Error, FwVersion, Result};

/// Where FS4 has its tools area.
const TOOLS_AREA: u64 = 0x500;
/// Where FS4 has BOOT2.
const FS4_BOOT2: u64 = 0x1000;
/// How much of the end of a flash the device's data takes.
const DEVICE_AREA: u64 = 0xa000;
/// What an erased flash holds.
const ERASED: u8 = 0xff;

/// Makes an image.
///
/// ```
/// use mlx_fw::image::{Image, build::Builder};
/// use mlx_fw::{FwVersion, verify, query};
///
/// let bytes = Builder::fs3()
///     .psid("MT_2750111033")
///     .version(FwVersion::new(13, 2000, 2714))
///     .flash(1 << 23)
///     .build()?;
/// let image = Image::parse(&bytes)?;
/// assert!(verify(&image).ok);
/// assert_eq!(query(&image, false)?.fw_version, "13.2000.2714");
/// # Ok::<(), mlx_fw::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    format: Format,
    hardware: Vec<HwId>,
    version: FwVersion,
    date: BcdDate,
    psid: String,
    orig_psid: Option<String>,
    part_number: String,
    description: String,
    prs_name: String,
    product_version: String,
    image_vsd: String,
    device_vsd: String,
    issu: u16,
    guid: UidEntry,
    mac: UidEntry,
    made_with: Option<(UidEntry, UidEntry)>,
    per_port: bool,
    flash: Option<u64>,
    itoc_copy: bool,
    security_version: u32,
    signed: Option<SignatureHead>,
    secure: bool,
    firmware_controlled: bool,
    boot2: usize,
    sections: Vec<(SectionType, Vec<u8>, Mode)>,
}

/// How a section of a [`Builder`] is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Entry,
    None,
    InSection,
}

/// Made-up bytes that look like code: the same for the same seed.
#[must_use]
pub fn filler(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Code repeats itself: of four words two are common ones.
        let word = match state >> 62 {
            0 | 1 => [0x95, 0, 0, 0],
            2 => [0x94, 0, 0, state.to_be_bytes()[1]],
            _ => [
                state.to_be_bytes()[2],
                state.to_be_bytes()[3],
                state.to_be_bytes()[4],
                state.to_be_bytes()[5],
            ],
        };
        bytes.extend(word);
    }
    bytes.truncate(len);
    bytes
}

/// A section of expansion ROMs that say these versions: made-up code around real version blocks.
/// The first ROM's bytes sum up to 0, as a PC's firmware demands.
#[must_use]
pub fn rom_section(roms: &[Rom]) -> Vec<u8> {
    const BLOCK: usize = 512;
    let mut section = Vec::new();
    for rom in roms {
        let (a, b, c) = rom.version;
        let mut block = vec![0x55, 0xaa, 1];
        block.resize(0x40, 0);
        block.extend(b"mlxsign:");
        let [c_low, c_high] = c.to_le_bytes();
        let [product_low, product_high] = rom.product.to_le_bytes();
        let [device_low, device_high] = rom.device_id.to_le_bytes();
        block.extend([a, 0, product_low, product_high]);
        block.extend([c_low, c_high, b, 0]);
        block.extend([
            rom.protocol,
            (rom.port << 4) | (rom.cpu & 0xf),
            device_low,
            device_high,
        ]);
        block.resize(BLOCK - 1, 0);
        let sum = block.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        block.push(0_u8.wrapping_sub(sum));
        section.extend(block);
    }
    section
}

impl Builder {
    /// An FS4 image of a Spectrum-2, with some sections.
    #[must_use]
    pub fn fs4() -> Self {
        Self::new(Format::Fs4, HwId::SPECTRUM2, FwVersion::new(29, 2014, 4012))
            .section(SectionType::RESET_INFO, filler(1, 0x100))
            .section(SectionType::MAIN_CODE, filler(2, 0x4000))
            .section(SectionType::PCI_CODE, filler(3, 0x880))
            .section(SectionType::PHY_UC_CODE, filler(4, 0x1234))
    }

    /// An FS3 image of a Spectrum, with some sections.
    #[must_use]
    pub fn fs3() -> Self {
        Self::new(Format::Fs3, HwId::SPECTRUM, FwVersion::new(13, 2000, 2714))
            .section(SectionType::FW_MAIN_CFG, filler(1, 0xa80))
            .section(SectionType::PHY_UC_CONSTS, filler(2, 0x2c80))
            .section(SectionType::PCI_CODE, filler(3, 0x1340))
            .section(SectionType::MAIN_CODE, filler(4, 0x4148))
    }

    fn new(format: Format, hardware: HwId, version: FwVersion) -> Self {
        Self {
            format,
            hardware: vec![hardware],
            version,
            date: BcdDate {
                year: 0x2025,
                month: 0x04,
                day: 0x03,
            },
            psid: "RTB0000000001".to_owned(),
            orig_psid: None,
            part_number: "RTB-DEMO-A1".to_owned(),
            description: "Made by rdma-toolbox for tests; no device runs it".to_owned(),
            prs_name: "rdma_toolbox_demo.prs".to_owned(),
            product_version: String::new(),
            image_vsd: String::new(),
            device_vsd: String::new(),
            issu: 0,
            guid: UidEntry::new(0x0002_c903_0000_1000, 8, 0),
            mac: UidEntry::new(0x0002_c900_1000, 8, 0),
            made_with: None,
            per_port: false,
            flash: None,
            itoc_copy: false,
            security_version: 0,
            signed: None,
            secure: false,
            firmware_controlled: true,
            boot2: 0x400,
            sections: Vec::new(),
        }
    }

    /// The chip that it is for.
    #[must_use]
    pub fn hardware(mut self, id: HwId) -> Self {
        self.hardware = vec![id];
        self
    }

    /// The version of the firmware.
    #[must_use]
    pub const fn version(mut self, version: FwVersion) -> Self {
        self.version = version;
        self
    }

    /// The date of release.
    #[must_use]
    pub const fn date(mut self, date: BcdDate) -> Self {
        self.date = date;
        self
    }

    /// The board that it is for; cut off after 16 bytes.
    #[must_use]
    pub fn psid(mut self, psid: &str) -> Self {
        self.psid = psid.to_owned();
        self
    }

    /// The board that the device was made as; else the same.
    #[must_use]
    pub fn orig_psid(mut self, psid: &str) -> Self {
        self.orig_psid = Some(psid.to_owned());
        self
    }

    /// The name of the part; cut off after 64 bytes.
    #[must_use]
    pub fn part_number(mut self, name: &str) -> Self {
        self.part_number = name.to_owned();
        self
    }

    /// What the part is; cut off after 256 bytes.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.description = text.to_owned();
        self
    }

    /// The version of firmware and ROM together; cut off after 16 bytes.
    #[must_use]
    pub fn product_version(mut self, text: &str) -> Self {
        self.product_version = text.to_owned();
        self
    }

    /// The vendor-specific data of image and device; cut off after 208 bytes.
    #[must_use]
    pub fn vsd(mut self, image: &str, device: &str) -> Self {
        self.image_vsd = image.to_owned();
        self.device_vsd = device.to_owned();
        self
    }

    /// The version of in-service update.
    #[must_use]
    pub const fn issu(mut self, version: u16) -> Self {
        self.issu = version;
        self
    }

    /// The GUIDs and MACs of the device: first and number of each.
    #[must_use]
    pub const fn uids(mut self, guid: (u64, u16), mac: (u64, u16)) -> Self {
        self.guid = UidEntry::new(guid.0, guid.1, 0);
        self.mac = UidEntry::new(mac.0, mac.1, 0);
        self
    }

    /// The GUIDs and MACs that the device was made with; else the same.
    #[must_use]
    pub const fn made_with(mut self, guid: (u64, u16), mac: (u64, u16)) -> Self {
        self.made_with = Some((
            UidEntry::new(guid.0, guid.1, 0),
            UidEntry::new(mac.0, mac.1, 0),
        ));
        self
    }

    /// GUIDs and MACs as Connect-IB has them: a range for each of two ports, the second 8 after
    /// the first.
    #[must_use]
    pub const fn per_port(mut self) -> Self {
        self.per_port = true;
        self
    }

    /// A complete image: a flash of that many bytes, with the device's data at its end.
    #[must_use]
    pub const fn flash(mut self, bytes: u64) -> Self {
        self.flash = Some(bytes);
        self
    }

    /// FS4: the table of contents stands one sector later, where a copy is looked for.
    #[must_use]
    pub const fn itoc_copy(mut self) -> Self {
        self.itoc_copy = true;
        self
    }

    /// FS4: the security version.
    #[must_use]
    pub const fn security_version(mut self, version: u32) -> Self {
        self.security_version = version;
        self
    }

    /// Signed: with a signature section (of made-up bytes), public keys, and the flag. A
    /// development key's UUID ends in zeros.
    #[must_use]
    pub fn signed(mut self, development: bool) -> Self {
        let tail = if development { 0 } else { 0x1234_5678 };
        let head = SignatureHead {
            signature_uuid: [1, 2, 3, 4].map(Be32::new),
            keypair_uuid: [0xc0ff_ee00, 1, 0x5_0000, tail].map(Be32::new),
        };
        self.signed = Some(head);
        self
    }

    /// Whether the flag of secure firmware is set beside that of signed firmware.
    #[must_use]
    pub const fn secure(mut self) -> Self {
        self.secure = true;
        self
    }

    /// Updated by writing the flash, not by the firmware itself.
    #[must_use]
    pub const fn legacy_update(mut self) -> Self {
        self.firmware_controlled = false;
        self
    }

    /// Adds a section, whose CRC stands in its entry. Its length is rounded up to a dword.
    #[must_use]
    pub fn section(mut self, kind: SectionType, bytes: Vec<u8>) -> Self {
        self.sections.push((kind, bytes, Mode::Entry));
        self
    }

    /// Adds a section with another kind of check. For [`Check::InSection`] a dword with the CRC
    /// is put after the bytes; FS3 has only the other two.
    #[must_use]
    pub fn section_checked(mut self, kind: SectionType, bytes: Vec<u8>, check: Check) -> Self {
        let mode = match check {
            Check::Entry(_) => Mode::Entry,
            Check::None => Mode::None,
            Check::InSection => Mode::InSection,
        };
        self.sections.push((kind, bytes, mode));
        self
    }

    /// Takes away all sections that were added so far.
    #[must_use]
    pub fn no_sections(mut self) -> Self {
        self.sections.clear();
        self
    }

    /// Makes the image.
    ///
    /// # Errors
    /// [`Error::TooLarge`] where it does not fit into its half of the flash, or where its
    /// sections are more than a table holds.
    pub fn build(&self) -> Result<Vec<u8>> {
        let sections = self.all_sections();
        fits(
            "the table of contents",
            sections.len() as u64 + 5,
            toc::MAX_ENTRIES as u64 - 1,
        )?;
        let mut bytes = match self.format {
            Format::Fs3 => self.fs3_image(&sections)?,
            Format::Fs4 => self.fs4_image(&sections)?,
        };
        if self.format == Format::Fs4
            && let Some(flash) = self.flash
        {
            self.fs4_device(&mut bytes, flash)?;
        }
        Ok(bytes)
    }

    /// Makes the image as an update carries it: without device data, its magic masked.
    ///
    /// # Errors
    /// As for [`Builder::build`].
    pub fn component(&self) -> Result<Vec<u8>> {
        let mut reduced = self.clone();
        reduced.flash = None;
        let mut bytes = reduced.build()?;
        if let Some(magic) = bytes.first_chunk_mut::<16>() {
            *magic = [ERASED; 16];
        }
        Ok(bytes)
    }

    fn all_sections(&self) -> Vec<(SectionType, Vec<u8>, Mode)> {
        let mut sections = self.sections.clone();
        sections.push((
            SectionType::IMAGE_INFO,
            bytes_of(&self.image_info()).to_vec(),
            Mode::Entry,
        ));
        if let Some(head) = self.signed {
            let mut signature = bytes_of(&head).to_vec();
            signature.extend(filler(7, 0x120));
            sections.push((SectionType::IMAGE_SIGNATURE_256, signature, Mode::Entry));
            sections.push((SectionType::PUBLIC_KEYS_2048, filler(8, 0x900), Mode::Entry));
        }
        for (_, bytes, mode) in &mut sections {
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            if *mode == Mode::InSection {
                bytes.extend(u32::from(crc::sw(bytes)).to_be_bytes());
            }
        }
        sections
    }

    fn image_info(&self) -> ImageInfo {
        let mut info = ImageInfo::zeroed();
        info.flags = Flags::new()
            .with_minor_version(3)
            .with_mcc_en(self.firmware_controlled)
            .with_signed_fw(self.signed.is_some())
            .with_secure_fw(self.secure);
        info.fw_version.major = Be16::new(self.version.major);
        info.fw_version.minor = Be16::new(self.version.minor);
        info.fw_version.subminor = Be16::new(self.version.subminor);
        info.fw_version.year = Be16::new(self.date.year);
        info.fw_version.month = self.date.month;
        info.fw_version.day = self.date.day;
        info.mic_major = Be16::new(2);
        info.pci_vendor_id = Be16::new(0x15b3);
        info.vsd_vendor_id = Be16::new(0x15b3);
        for (place, id) in info.supported_hw_id.iter_mut().zip(&self.hardware) {
            *place = Be32::new(id.get().into());
        }
        put_text(&mut info.psid, &self.psid);
        put_text(&mut info.vsd, &self.image_vsd);
        put_text(&mut info.product_version, &self.product_version);
        put_text(&mut info.description, &self.description);
        put_text(&mut info.name, &self.part_number);
        put_text(&mut info.prs_name, &self.prs_name);
        info.mad = super::image_info::ModuleVersion::new().with_major(self.issu);
        info
    }

    fn boot2_bytes(&self) -> Vec<u8> {
        // The size counts the dwords after the first four, of which the last is the CRC.
        let dwords = self.boot2.div_ceil(4).max(4);
        let mut bytes = filler(9, 4);
        bytes.extend(u32::try_from(dwords).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend(filler(10, dwords * 4 + 4));
        bytes.extend(u32::from(crc::sw(&bytes)).to_be_bytes());
        bytes
    }

    /// log2 of half the flash, the slot of an image; of a reduced one, what Spectrum has.
    fn log2_slot(&self) -> u8 {
        let half = self.flash.unwrap_or(1 << 24) / 2;
        u8::try_from(half.max(1).ilog2()).unwrap_or(u8::MAX)
    }

    /// What an image may take: half of the flash, without the device's data.
    fn room(&self) -> u64 {
        match self.flash {
            None => 1 << 26,
            Some(flash) => (1 << self.log2_slot()).min(flash.saturating_sub(DEVICE_AREA)),
        }
    }

    fn fs4_image(&self, sections: &[(SectionType, Vec<u8>, Mode)]) -> Result<Vec<u8>> {
        let boot2 = self.boot2_bytes();
        let itoc = (FS4_BOOT2 + boot2.len() as u64).next_multiple_of(SECTOR);
        let table = if self.itoc_copy { itoc + SECTOR } else { itoc };

        let mut address = table + SECTOR;
        let mut entries = Vec::new();
        let mut image_info = 0;
        let mut image = Vec::new();
        for (kind, bytes, mode) in sections {
            if *kind == SectionType::IMAGE_INFO {
                image_info = address;
            }
            entries.push(entry(
                *kind,
                address,
                bytes,
                match mode {
                    Mode::Entry => (0, crc::sw(bytes)),
                    Mode::None => (1, 0),
                    Mode::InSection => (2, 0),
                },
                false,
            ));
            put(&mut image, address, bytes);
            address += bytes.len() as u64;
        }
        fits("the image", address, self.room())?;

        put(&mut image, 0, &super::MAGIC_FS4);
        put(&mut image, 0x10, &[1, 0, 1, 0]);
        let mut pointers = HwPointers::zeroed();
        pointers.boot_record = pointer(0x100);
        pointers.boot2 = pointer(FS4_BOOT2);
        pointers.itoc = pointer(itoc);
        pointers.tools_area = pointer(TOOLS_AREA);
        pointers.image_info = pointer(image_info);
        pointers.fw_security_version = HwPointer::new(self.security_version);
        put(&mut image, hw_pointers::OFFSET, bytes_of(&pointers));
        put(&mut image, 0x100, &filler(11, 0x80));
        let mut tools = ToolsArea::zeroed();
        tools.slot_and_binary_version = Be32::new(u32::from_be_bytes([0, self.log2_slot(), 1, 1]));
        put(&mut image, TOOLS_AREA, bytes_of(&tools.sealed()));
        put(&mut image, FS4_BOOT2, &boot2);
        put_table(&mut image, table, toc::ITOC_SIGNATURE, &entries);
        Ok(image)
    }

    fn fs3_image(&self, sections: &[(SectionType, Vec<u8>, Mode)]) -> Result<Vec<u8>> {
        let boot2 = self.boot2_bytes();
        let itoc = (fs3::BOOT2 + boot2.len() as u64).next_multiple_of(SECTOR);

        let mut end = itoc + SECTOR;
        let mut entries = Vec::new();
        let mut image = Vec::new();
        for (kind, bytes, mode) in sections {
            let address = end.next_multiple_of(SECTOR);
            let check = match mode {
                Mode::Entry | Mode::InSection => (0, crc::sw(bytes)),
                Mode::None => (1, 0),
            };
            entries.push(entry(*kind, address, bytes, check, true));
            put(&mut image, address, bytes);
            end = address + bytes.len() as u64;
        }
        fits("the image", end, self.room())?;
        if let Some(flash) = self.flash {
            let mut device = Vec::new();
            for (kind, address, bytes) in self.device_sections(flash) {
                // The flag of device data; NV_DATA has no CRC, it changes all the time.
                let no_crc = kind == SectionType::NV_DATA1;
                let check = if no_crc { (3, 0) } else { (2, crc::sw(&bytes)) };
                entries.push(entry(kind, address, &bytes, check, false));
                device.push((address, bytes));
            }
            for (address, bytes) in device {
                put(&mut image, address, &bytes);
            }
            grow(&mut image, flash);
        }

        let head = fs3::Head {
            magic: super::MAGIC_FS3,
            boot: [
                0xd067_4011,
                0x161a_5e00,
                0xc5c8_f2a8,
                0xc180_0001,
                0x0000_0100,
            ]
            .map(Be32::new),
            format: 3,
            log2_slot: self.log2_slot(),
            major: 1,
            minor: 1,
            reserved: [Be32::ZERO; 4],
        };
        put(&mut image, 0, bytes_of(&head));
        put(&mut image, fs3::BOOT2, &boot2);
        put_table(&mut image, itoc, toc::ITOC_SIGNATURE, &entries);
        Ok(image)
    }

    fn fs4_device(&self, image: &mut Vec<u8>, flash: u64) -> Result<()> {
        fits(
            "the image",
            image.len() as u64,
            flash.saturating_sub(DEVICE_AREA),
        )?;
        let mut entries = Vec::new();
        for (kind, address, bytes) in self.device_sections(flash) {
            let check = if kind == SectionType::NV_DATA1 {
                (1, 0)
            } else {
                (0, crc::sw(&bytes))
            };
            entries.push(entry(kind, address, &bytes, check, false));
            put(image, address, &bytes);
        }
        grow(image, flash);
        put_table(image, flash - SECTOR, toc::DTOC_SIGNATURE, &entries);
        Ok(())
    }

    /// What the device has of its own, from the end of the flash downwards.
    fn device_sections(&self, flash: u64) -> Vec<(SectionType, u64, Vec<u8>)> {
        let at = |sectors: u64| flash.saturating_sub(sectors * SECTOR);
        let mut sections = vec![
            (SectionType::NV_DATA1, at(10), vec![ERASED; 0x2000]),
            (
                SectionType::DEV_INFO,
                at(6),
                bytes_of(&self.dev_info()).to_vec(),
            ),
        ];
        if self.format == Format::Fs4 {
            // The spare copy, to which the next change is written.
            sections.push((SectionType::DEV_INFO, at(5), vec![ERASED; 0x200]));
        }
        sections.push((
            SectionType::MFG_INFO,
            at(4),
            bytes_of(&self.mfg_info()).to_vec(),
        ));
        sections.push((SectionType::VPD_R0, at(3), Vec::new()));
        sections
    }

    fn uid_block(&self, guid: UidEntry, mac: UidEntry) -> UidBlock {
        if !self.per_port {
            return UidBlock([guid, mac, UidEntry::zeroed(), UidEntry::zeroed()]);
        }
        let entry = |entry: UidEntry, more| UidEntry::new(entry.uid.get() + more, entry.count(), 1);
        UidBlock([entry(guid, 0), entry(guid, 8), entry(mac, 0), entry(mac, 8)])
    }

    fn dev_info(&self) -> DevInfo {
        let mut info = DevInfo::zeroed();
        info.signature = dev_info::SIGNATURE;
        info.major_version = if self.per_port { 1 } else { 2 };
        info.uids = self.uid_block(self.guid, self.mac);
        info.vsd_vendor_id = Be16::new(0x15b3);
        put_text(&mut info.vsd, &self.device_vsd);
        info.sealed()
    }

    fn mfg_info(&self) -> MfgInfo {
        let mut info = MfgInfo::zeroed();
        let (guid, mac) = self.made_with.unwrap_or((self.guid, self.mac));
        info.major_version = u8::from(!self.per_port);
        info.uids = self.uid_block(guid, mac);
        put_text(
            &mut info.psid,
            self.orig_psid.as_ref().unwrap_or(&self.psid),
        );
        info
    }
}

fn fits(what: &'static str, needed: u64, room: u64) -> Result<()> {
    if needed > room {
        return Err(Error::TooLarge { what, needed, room });
    }
    Ok(())
}

fn pointer(address: u64) -> HwPointer {
    HwPointer::new(u32::try_from(address).unwrap_or(u32::MAX))
}

fn put_text(field: &mut [u8], text: &str) {
    for (place, byte) in field.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
}

/// Makes the flash at least `len` bytes long, erased where it is new.
fn grow(image: &mut Vec<u8>, len: u64) {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if image.len() < len {
        image.resize(len, ERASED);
    }
}

fn put(image: &mut Vec<u8>, address: u64, bytes: &[u8]) {
    grow(image, address + bytes.len() as u64);
    let start = usize::try_from(address).unwrap_or(usize::MAX);
    if let Some(place) = image.get_mut(start..start + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

fn put_table(image: &mut Vec<u8>, address: u64, signature: [u8; 16], entries: &[TocEntry]) {
    let header = TocHeader {
        signature,
        versions: Be32::new(1),
        entries: Be32::new(u32::try_from(entries.len()).unwrap_or(0)),
        reserved: Be32::ZERO,
        crc: Be32::ZERO,
    };
    put(image, address, bytes_of(&header.sealed()));
    let mut place = address + toc::ENTRY_SIZE;
    for entry in entries {
        put(image, place, bytes_of(entry));
        place += toc::ENTRY_SIZE;
    }
    put(image, place, bytes_of(&TocEntry::end()));
}

fn entry(
    kind: SectionType,
    address: u64,
    bytes: &[u8],
    (mode, crc): (u8, u16),
    relative: bool,
) -> TocEntry {
    let dwords = |bytes: u64| u32::try_from(bytes / 4).unwrap_or(0);
    TocEntry {
        type_and_size: TypeAndSize::new()
            .with_section(kind.get())
            .with_dwords(dwords(bytes.len() as u64)),
        param0: Param0::new(),
        param1: Be32::ZERO,
        reserved: Be32::ZERO,
        version: Be32::ZERO,
        address: FlashAddress::new()
            .with_relative(relative)
            .with_dwords(dwords(address)),
        check: CheckBits::new().with_mode(mode).with_crc(crc),
        crc: Be32::ZERO,
    }
    .sealed()
}
