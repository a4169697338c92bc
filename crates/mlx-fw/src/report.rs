//! What the library answers with: plain values, ready to be printed or serialised.
//!
//! Offsets, addresses and sizes are in bytes. GUIDs and MACs are strings such as
//! `0x0002c90300000010`. What an image does not have is absent.

use serde::Serialize;

/// What an image says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct QueryReport {
    /// The format: `FS3` or `FS4`.
    pub format: String,
    /// Whether the device's own data (GUIDs, MACs, MFG_INFO) is in it, as in a flash; without, it
    /// is what an update carries.
    pub complete: bool,
    /// Whether its sections are encrypted.
    pub encrypted: bool,
    /// Where the image starts in the file.
    pub start: u64,
    /// The length of the file.
    pub file_size: u64,
    /// The length of the image, without the device's data.
    pub image_size: u64,
    /// The board that the image is for.
    pub psid: String,
    /// The board that the device was made as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orig_psid: Option<String>,
    /// The firmware's version.
    pub fw_version: String,
    /// The branch, for a development version that names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The version of in-service update, where it is not 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issu_version: Option<u16>,
    /// The date of release, year-month-day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_date: Option<String>,
    /// The version of firmware and ROM together, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub product_version: Option<String>,
    /// The minor image compatibility version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mic_version: Option<String>,
    /// The name of the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// What the part is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The file of parameters that it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prs_name: Option<String>,
    /// The file of parameters that the device was made with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orig_prs_name: Option<String>,
    /// The hardware that it is for.
    pub hardware: Vec<Hardware>,
    /// The PCI vendor and device it appears as, in hex, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci_id: Option<String>,
    /// The expansion ROMs; absent where there is no ROM section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roms: Option<Vec<RomReport>>,
    /// GUIDs and MACs; empty for an image without device data.
    pub uids: Vec<UidReport>,
    /// Whether GUIDs and MACs are one base for all ports (`base`) or one for each (`per_port`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid_form: Option<String>,
    /// The vendor-specific data of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_vsd: Option<String>,
    /// The vendor-specific data of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_vsd: Option<String>,
    /// Whose the vendor-specific data is: a PCI vendor, or 0.
    pub vsd_vendor_id: u16,
    /// How it is protected.
    pub security: Security,
    /// Its sections, with a full query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections: Option<Vec<SectionReport>>,
    /// The parts of the answer that stand on bytes whose CRC is wrong.
    pub warnings: Vec<String>,
}

/// A chip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Hardware {
    /// Its hardware id.
    pub id: u16,
    /// Its revision.
    pub revision: u16,
    /// Its name, where the id is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An expansion ROM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RomReport {
    /// What it is, such as `PXE` or `UEFI`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The number of what it is.
    pub product_id: u16,
    /// Its version.
    pub version: String,
    /// The processors that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// The port that it is for, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// The protocol that it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The PCI device that it is for, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_id: Option<u16>,
    /// All of it, as `flint query` prints it.
    pub text: String,
}

/// A range of GUIDs or MACs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UidReport {
    /// `guid`, `mac`, or with a port: `guid1`, `mac2`.
    pub name: String,
    /// The range now.
    pub current: UidRange,
    /// The range that the device was made with, where it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<UidRange>,
}

/// The first address of a range and its length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UidRange {
    /// The first address; absent where none is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
    /// How many addresses.
    pub count: u16,
    /// From one address to the next, where it is said.
    pub step: u8,
}

/// How an image is protected.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Security {
    /// The attributes, as the vendor's tools name them; empty where there are none.
    pub attributes: Vec<String>,
    /// The firmware's security version (FS4).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Whether a signature section is there.
    pub signature: bool,
    /// Whether public keys are there.
    pub public_keys: bool,
    /// Whether the firmware takes its update itself (MCC); if not, the flash is written directly.
    pub firmware_controlled_update: bool,
    /// Whether it is meant for devices with secure boot.
    pub secure_boot: bool,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SectionReport {
    /// Its name.
    pub name: String,
    /// The number of its type.
    pub section_type: u8,
    /// Where it starts in the file.
    pub offset: u64,
    /// How long it is.
    pub size: u64,
    /// Whether it is the device's and not the image's.
    pub device_data: bool,
}

/// Which parts of an image are as their CRCs say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct VerifyReport {
    /// The format: `FS3` or `FS4`.
    pub format: String,
    /// Whether the device's own data is in it; without, it is what an update carries.
    pub complete: bool,
    /// Whether its sections are encrypted, so that they can't be checked.
    pub encrypted: bool,
    /// Where the image starts in the file.
    pub start: u64,
    /// Whether all is well.
    pub ok: bool,
    /// The parts that were checked, in the order of `flint verify`.
    pub parts: Vec<PartReport>,
    /// What is wrong beside wrong CRCs.
    pub problems: Vec<Problem>,
}

/// A checked part of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct PartReport {
    /// Its name.
    pub name: String,
    /// The number of its type; BOOT2 has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_type: Option<u8>,
    /// Where it starts in the file.
    pub offset: u64,
    /// How long it is.
    pub size: u64,
    /// Where it belongs.
    pub place: Place,
    /// What was found.
    pub state: PartState,
    /// The CRC of the bytes, where it is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed_crc: Option<u32>,
    /// The CRC that is stored, where it is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_crc: Option<u32>,
}

/// Where a part belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// To what is found before any table: pointers, tools area, BOOT2, the head of a table.
    Frame,
    /// To the image.
    Image,
    /// To the device.
    Device,
}

/// What was found about a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartState {
    /// The CRC is right.
    Ok,
    /// It has no CRC, or can't be checked by one.
    CrcIgnored,
    /// The spare copy of a section that is there twice; it is not checked.
    Spare,
    /// The CRC is wrong.
    WrongCrc,
    /// The file ends before the part does.
    OutOfFile,
}

impl PartState {
    /// Whether it is no reason to reject the image.
    #[must_use]
    pub const fn is_good(self) -> bool {
        matches!(self, Self::Ok | Self::CrcIgnored | Self::Spare)
    }
}

/// Something wrong with an image other than a wrong CRC of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Problem {
    /// A short stable name.
    pub code: ProblemCode,
    /// Where in the file, where it has a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The whole story.
    pub message: String,
}

/// The kinds of [`Problem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProblemCode {
    /// BOOT2 says an impossible size.
    BadBoot2,
    /// The binary format is newer than what is known.
    BinaryVersion,
    /// There is no table of contents.
    NoItoc,
    /// There is no table of the device's contents where a flash has it.
    NoDtoc,
    /// A table of contents has no end.
    EndlessToc,
    /// The CRC of an entry is wrong, so what it says can't be trusted.
    BadEntry,
    /// Two sections share bytes.
    Overlap,
    /// IMAGE_INFO is missing or can't be read.
    BadImageInfo,
    /// A flash without MFG_INFO.
    NoMfgInfo,
    /// A flash without a valid DEV_INFO.
    NoDevInfo,
    /// Two copies of DEV_INFO that both say they count.
    TwoDevInfos,
}

/// An archive: whom it is for, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ListReport {
    /// The format: `MFA2`.
    pub format: String,
    /// The version of the package.
    pub package_version: String,
    /// When it was made, as it says.
    pub created: String,
    /// Where it comes from, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The length of the file.
    pub file_size: u64,
    /// How many different images it holds.
    pub components: usize,
    /// The bytes of all images.
    pub unpacked_size: u64,
    /// Its SHA-256 digests.
    pub digests: DigestReport,
    /// Whom it is for, in the archive's order.
    pub devices: Vec<DeviceReport>,
}

/// The two digests of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DigestReport {
    /// Over descriptors and images.
    pub all: DigestState,
    /// Over the descriptors.
    pub descriptors: DigestState,
}

/// What was found about a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DigestState {
    /// It is right.
    Ok,
    /// It is wrong.
    Wrong,
    /// The archive has none.
    Absent,
}

/// A device that an archive is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeviceReport {
    /// The board.
    pub psid: String,
    /// The number of its image in the archive.
    pub component: usize,
    /// The length of its image.
    pub size: u64,
    /// The version as the archive says it; the minor has lost all but its low byte.
    pub tag: String,
    /// The version as the image says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fw_version: Option<String>,
    /// The date as the image says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub release_date: Option<String>,
    /// The format of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The name of the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part_number: Option<String>,
    /// What the part is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What is wrong with the image, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What was taken out of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExtractReport {
    /// The files that were written.
    pub files: Vec<ExtractedFile>,
}

/// A file that was taken out of an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ExtractedFile {
    /// The board.
    pub psid: String,
    /// Where it was written.
    pub path: String,
    /// Its length.
    pub size: u64,
    /// The version as the image says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fw_version: Option<String>,
    /// Its SHA-256 digest in hex.
    pub sha256: String,
}

/// The MD5 sum over the image without its device data, as `flint checksum` computes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ChecksumReport {
    /// 32 hex digits, the last byte of the sum first.
    pub checksum: String,
}
