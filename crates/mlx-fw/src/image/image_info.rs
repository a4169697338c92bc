//! IMAGE_INFO: who the image is.

use bitfield_struct::bitfield;
use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be32, assert_layout};

use crate::{BcdDate, FwVersion, Psid};

/// The flags of the first dword, and the version of the structure.
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
pub struct Flags {
    #[bits(8)]
    pub major_version: u8,
    #[bits(8)]
    pub minor_version: u8,
    pub secure_fw: bool,
    pub signed_fw: bool,
    pub debug_fw: bool,
    pub cs_tokens: bool,
    pub frc: bool,
    pub signed_mlnx_nvconfig: bool,
    pub signed_vendor_nvconfig: bool,
    /// Whether the firmware takes its own update (MCC).
    pub mcc_en: bool,
    pub debug_fw_tokens: bool,
    pub long_keys: bool,
    pub winbond_flash: bool,
    /// 0 not encrypted, 1 before the signature, 2 after it.
    #[bits(2)]
    pub encrypted_fw: u8,
    /// Meant for devices with secure boot.
    pub secure_boot: bool,
    pub toc_header_duplication: bool,
    #[bits(1)]
    __: u8,
}

/// Version, time and date.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_FW_VERSION")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct VersionAndDate {
    pub major: Be16,
    pub reserved0: Be16,
    pub minor: Be16,
    pub subminor: Be16,
    pub seconds: u8,
    pub minutes: u8,
    pub hour: u8,
    pub reserved1: u8,
    pub year: Be16,
    pub month: u8,
    pub day: u8,
}
assert_layout!(VersionAndDate, 16);

/// The version of a module of the firmware: branch (0-7), minor (8-19), major (20-31).
#[bitfield(u32, repr = Be32, from = Be32::new, into = Be32::get, order = Msb)]
#[derive(Pod, Zeroable)]
pub struct ModuleVersion {
    #[bits(12)]
    pub major: u16,
    #[bits(12)]
    pub minor: u16,
    #[bits(8)]
    pub branch: u8,
}

/// The section IMAGE_INFO. Strings are padded with NUL.
///
/// | offset | field | offset | field |
/// |---|---|---|---|
/// | 0x00 | flags | 0x118 | supported_hw_id\[4\] |
/// | 0x04 | version, date | 0x128 | ini_file_num |
/// | 0x14 | mic_version | 0x12c | burn_image_size |
/// | 0x1c | PCI ids | 0x1c0 | product version |
/// | 0x24 | PSID | 0x1d0 | description |
/// | 0x34 | VSD vendor | 0x300 | module versions |
/// | 0x38 | VSD | 0x340 | name |
/// | 0x108 | image size | 0x380 | PRS name |
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
#[doc(alias = "image_layout_image_info")]
#[expect(missing_docs, reason = "the names of the specification say it")]
pub struct ImageInfo {
    pub flags: Flags,
    pub fw_version: VersionAndDate,
    pub mic_major: Be16,
    pub reserved0: Be16,
    pub mic_minor: Be16,
    pub mic_subminor: Be16,
    pub pci_device_id: Be16,
    pub pci_vendor_id: Be16,
    pub pci_subsystem_id: Be16,
    pub pci_sub_vendor_id: Be16,
    pub psid: [u8; 16],
    pub reserved1: u8,
    pub psc_sku: u8,
    pub vsd_vendor_id: Be16,
    pub vsd: [u8; 208],
    /// log_step (0-7), run_from_any (31).
    pub image_size: Be32,
    pub max_image_size: Be32,
    /// In sectors; where the copy of the ITOC is.
    pub toc_copy_offset: Be16,
    /// n: the DTOC is at the end of the first 1/2n of the flash; 0: at its end.
    pub dtoc_offset: u8,
    pub synced_reset_downtime: u8,
    pub reserved2: Be32,
    /// Hardware that the image is for: revision (16-31), id (0-15); 0 ends.
    pub supported_hw_id: [Be32; 4],
    pub ini_file_num: Be32,
    pub burn_image_size: Be32,
    pub reserved3: [Be32; 24],
    pub version_vector: [Be32; 12],
    pub product_version: [u8; 16],
    pub description: [u8; 256],
    pub reserved4: [Be32; 12],
    pub core: ModuleVersion,
    pub phy: ModuleVersion,
    pub kernel: ModuleVersion,
    pub iron: ModuleVersion,
    pub host_management: ModuleVersion,
    /// Its major is the version of in-service update.
    pub mad: ModuleVersion,
    pub reserved5: [Be32; 10],
    pub name: [u8; 64],
    pub prs_name: [u8; 128],
}
assert_layout!(ImageInfo, 0x400);

impl ImageInfo {
    /// The version of the firmware.
    #[must_use]
    pub const fn version(&self) -> FwVersion {
        let v = &self.fw_version;
        FwVersion::new(v.major.get(), v.minor.get(), v.subminor.get())
    }

    /// The date of the firmware.
    #[must_use]
    pub const fn date(&self) -> BcdDate {
        let v = &self.fw_version;
        BcdDate {
            year: v.year.get(),
            month: v.month,
            day: v.day,
        }
    }

    /// The minor image compatibility version (MIC).
    #[must_use]
    pub const fn mic_version(&self) -> (u16, u16, u16) {
        (
            self.mic_major.get(),
            self.mic_minor.get(),
            self.mic_subminor.get(),
        )
    }

    /// The board that the image is for.
    #[must_use]
    pub fn psid(&self) -> Psid {
        Psid::from_bytes(self.psid)
    }

    /// The hardware that the image is for: id and revision.
    pub fn hardware(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.supported_hw_id
            .iter()
            .take_while(|id| id.get() != 0)
            .map(|id| {
                let [a, b, c, d] = id.to_bytes();
                (u16::from_be_bytes([c, d]), u16::from_be_bytes([a, b]))
            })
    }

    /// Whether name, description and PRS name are there: from minor version 2 on.
    #[must_use]
    pub const fn has_names(&self) -> bool {
        matches!(self.flags.minor_version(), 2..)
    }
}

/// The text of a field that is padded with NUL; bytes that are no UTF-8 print as U+FFFD.
#[must_use]
pub fn text(field: &[u8]) -> String {
    let end = field
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).into_owned()
}
