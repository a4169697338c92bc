//! Images that show what images can have. Shared with `examples/samples.rs`, which writes them to
//! files.

use mlx_fw::FwVersion;
use mlx_fw::archive::mfa2;
use mlx_fw::image::build::{Builder, filler, rom_section};
use mlx_fw::image::hw_id::HwId;
use mlx_fw::image::rom::{Product, Rom};
use mlx_fw::image::{Check, SectionType};

const FLASH: u64 = 1 << 22;

fn roms() -> Vec<u8> {
    let rom = |product: Product, version, cpu| Rom {
        product: product.get().into(),
        version,
        cpu,
        port: 0,
        protocol: 0xff,
        device_id: 0x1017,
    };
    rom_section(&[
        rom(Product::UEFI, (14, 29, 15), 3),
        rom(Product::PXE, (3, 6, 902), 1),
    ])
}

/// Complete images, each with a name: what a flash holds.
pub(crate) fn complete() -> Vec<(&'static str, Builder)> {
    let connectx5 = Builder::fs4()
        .hardware(HwId::CONNECTX5)
        .version(FwVersion::new(16, 35, 4506))
        .psid("MT_0000000013")
        .part_number("MCX516A-CDA_Ax_Bx")
        .product_version("16.35.4506")
        .flash(FLASH);
    let connectx4 = Builder::fs3()
        .hardware(HwId::CONNECTX4)
        .version(FwVersion::new(12, 28, 2006))
        .psid("MT_2190110032")
        .flash(FLASH);
    vec![
        ("fs4", Builder::fs4().flash(FLASH)),
        (
            "fs4-nic",
            connectx5.clone().section(SectionType::ROM_CODE, roms()),
        ),
        (
            "fs4-moved",
            connectx5
                .clone()
                .orig_psid("MT_0000000012")
                .vsd("image data", "device data")
                .uids((0x0002_c903_0011_2200, 16), (0x0002_c911_2200, 16))
                .made_with((0x0002_c903_00aa_bb00, 8), (0x0002_c9aa_bb00, 8)),
        ),
        (
            "fs4-signed",
            connectx5
                .clone()
                .signed(false)
                .secure()
                .security_version(3)
                .section_checked(SectionType::STRN_MAIN, filler(20, 0x123), Check::None)
                .section_checked(SectionType::PXIR_INI, filler(21, 0x500), Check::InSection),
        ),
        ("fs4-development", connectx5.clone().signed(true)),
        ("fs4-legacy", connectx5.clone().legacy_update()),
        ("fs4-itoc-copy", connectx5.clone().itoc_copy()),
        ("fs4-issu", Builder::fs4().issu(2).flash(FLASH)),
        ("fs4-unset", connectx5.uids((0, 8), (0, 8))),
        ("fs3", Builder::fs3().flash(FLASH)),
        (
            "fs3-nic",
            connectx4.clone().section(SectionType::ROM_CODE, roms()),
        ),
        (
            "fs3-moved",
            connectx4
                .clone()
                .orig_psid("MT_2190110031")
                .vsd("image data", "device data")
                .made_with((0x0002_c903_00aa_bb00, 8), (0x0002_c9aa_bb00, 8)),
        ),
        (
            "fs3-connect-ib",
            connectx4.clone().hardware(HwId::CONNECT_IB).per_port(),
        ),
        (
            "fs3-switch-ib",
            connectx4.hardware(HwId::SWITCH_IB).per_port(),
        ),
    ]
}

/// Reduced images, each with a name: what an update carries.
pub(crate) fn reduced() -> Vec<(&'static str, Builder)> {
    vec![
        ("fs4-reduced", Builder::fs4().psid("MT_0000000217")),
        ("fs3-reduced", Builder::fs3().psid("MT_2750111033")),
    ]
}

/// An archive of the reduced images, and a board that shares one of them.
pub(crate) fn archive() -> mfa2::Builder {
    let mut archive = mfa2::Builder::new().source("rdma-toolbox samples");
    for (_, image) in reduced() {
        let psid = if image.component().expect("it fits").get(0x24) == Some(&3) {
            "MT_2750111033"
        } else {
            "MT_0000000217"
        };
        archive = archive.image(psid, image.component().expect("it fits"));
    }
    archive
        .image(
            "MT_0000000224",
            Builder::fs4()
                .psid("MT_0000000224")
                .component()
                .expect("it fits"),
        )
        .unknown_tlv(0x7f, b"from the future")
        .padding(40)
}
