//! The kinds of section that an image is made of.

use rdma_wire::open_enum;

open_enum! {
    /// The type of a section, and of the few parts that have no entry in a table of contents.
    /// The names are those that the vendor's tools print.
    #[doc(alias = "fs3_section")]
    pub struct SectionType: u8 {
        BOOT_CODE = 0x01,
        PCI_CODE = 0x02,
        MAIN_CODE = 0x03,
        PCIE_LINK_CODE = 0x04,
        IRON_PREP_CODE = 0x05,
        POST_IRON_BOOT_CODE = 0x06,
        UPGRADE_CODE = 0x07,
        HW_BOOT_CFG = 0x08,
        HW_MAIN_CFG = 0x09,
        PHY_UC_CODE = 0x0a,
        PHY_UC_CONSTS = 0x0b,
        PCIE_PHY_UC_CODE = 0x0c,
        CCIR_INFRA_CODE = 0x0d,
        CCIR_ALGO_CODE = 0x0e,
        BOOT3_CODE = 0x0f,
        /// Version, PSID, names and flags of the image.
        IMAGE_INFO = 0x10,
        FW_BOOT_CFG = 0x11,
        FW_MAIN_CFG = 0x12,
        APU_KERNEL = 0x14,
        ACE_CODE = 0x15,
        /// The expansion ROMs.
        ROM_CODE = 0x18,
        RESET_INFO = 0x20,
        PROG_FW_META = 0x21,
        PROG_FW_BIN = 0x22,
        PRE_LINK_CODE = 0x2a,
        PRE_LINK_DATA = 0x2b,
        POST_LINK_CODE = 0x2c,
        POST_LINK_DATA = 0x2d,
        /// The configuration that the image was made from, as a zlib stream.
        DBG_FW_INI = 0x30,
        DBG_FW_PARAMS = 0x32,
        FW_ADB = 0x33,
        GB_FW_CODE = 0x34,
        TILE_FW_CODE = 0x35,
        FW_TILE_INI = 0x36,
        HW_TILE_INI = 0x37,
        SLOT_DEPENDENT_INI = 0x40,
        /// A SHA-256 digest signed with RSA-2048.
        IMAGE_SIGNATURE_256 = 0xa0,
        PUBLIC_KEYS_2048 = 0xa1,
        FORBIDDEN_VERSIONS = 0xa2,
        /// A SHA-512 digest signed with RSA-4096.
        IMAGE_SIGNATURE_512 = 0xa3,
        PUBLIC_KEYS_4096 = 0xa4,
        HMAC_DIGEST = 0xa5,
        RSA_PUBLIC_KEY = 0xa6,
        RSA_4096_SIGNATURES = 0xa7,
        ENCRYPTION_KEY_TRANSITION = 0xa9,
        PXIR_INI = 0xaa,
        PXIR_INI1 = 0xab,
        NVDA_ROT_CERTIFICATES = 0xad,
        EXCLKSYNC_INFO = 0xb0,
        MAIN_PAGES_HASHES = 0xb1,
        MAIN_PAGES_LOCKED_HASHES = 0xb2,
        STRN_MAIN = 0xb4,
        STRN_IRON = 0xb5,
        STRN_TILE = 0xb6,
        CPO_CALIBRATION_DATA = 0xcc,
        MAIN_DATA = 0xd3,
        FW_DEBUG_DUMP_2 = 0xd4,
        SECURITY_LOG = 0xd5,
        /// What the board was made as: original PSID and addresses.
        MFG_INFO = 0xe0,
        /// What the board is: GUIDs, MACs, VSD.
        DEV_INFO = 0xe1,
        NV_DATA1 = 0xe2 => "NV_DATA",
        VPD_R0 = 0xe3,
        NV_DATA2 = 0xe4 => "NV_DATA",
        FW_NV_LOG = 0xe5,
        NV_DATA0 = 0xe6 => "NV_DATA",
        DEV_INFO1 = 0xe7,
        DEV_INFO2 = 0xe8,
        CRDUMP_MASK_DATA = 0xe9,
        FW_INTERNAL_USAGE = 0xea,
        PROGRAMMABLE_HW_FW1 = 0xeb => "PROGRAMMABLE_HW_FW",
        PROGRAMMABLE_HW_FW2 = 0xec => "PROGRAMMABLE_HW_FW",
        DIGITAL_CERT_PTR = 0xed,
        DIGITAL_CERT_RW = 0xee,
        LC_INI1_TABLE = 0xef,
        LC_INI2_TABLE = 0xf0,
        LC_INI_NV_DATA = 0xf1,
        CERT_CHAIN_0 = 0xf2,
        DIGITAL_CACERT_RW = 0xf3,
        CERTIFICATE_CHAINS_1 = 0xf4,
        CERTIFICATE_CHAINS_2 = 0xf5,
        ROOT_CERTIFICATES_1 = 0xf6,
        ROOT_CERTIFICATES_2 = 0xf7,
        TOOLS_AREA = 0xf9,
        HASHES_TABLE = 0xfa,
        HW_POINTERS = 0xfb,
        FW_DEBUG_DUMP = 0xfc,
        ITOC_HEADER = 0xfd,
        DTOC_HEADER = 0xfe,
        /// Ends a table of contents.
        END = 0xff,
    }
}

impl SectionType {
    /// The name as the vendor's tools print it, also where there is none.
    #[must_use]
    pub fn flint(self) -> String {
        match self.name() {
            Some(name) => name.to_owned(),
            None => format!("UNKNOWN:{:#x}", self.get()),
        }
    }
}
