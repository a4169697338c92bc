//! Writes the sample images and archives of the tests into a folder:
//! `cargo run -p mlx-fw --example samples -- FOLDER`.
//!
//! With `--seeds` they are small, as seeds for the fuzzer.
#![expect(clippy::disallowed_methods, reason = "an example that writes files")]

use std::fs;
use std::path::PathBuf;

use mlx_fw::archive::mfa2;
use mlx_fw::image::SectionType;
use mlx_fw::image::build::{Builder, filler};

#[path = "../tests/it/sample.rs"]
mod sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut folder = PathBuf::from("samples");
    let mut seeds = false;
    for argument in std::env::args_os().skip(1) {
        if argument == "--seeds" {
            seeds = true;
        } else {
            folder = argument.into();
        }
    }
    if seeds {
        return write_seeds(&folder);
    }
    fs::create_dir_all(&folder)?;
    for (name, image) in sample::complete().into_iter().chain(sample::reduced()) {
        fs::write(folder.join(format!("{name}.bin")), image.build()?)?;
    }
    fs::write(folder.join("samples.mfa2"), sample::archive().build()?)?;
    Ok(())
}

/// Seeds of a few KiB: the frame and as little as possible in it.
fn write_seeds(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let image = folder.join("fw_image");
    let archive = folder.join("fw_mfa2");
    fs::create_dir_all(&image)?;
    fs::create_dir_all(&archive)?;
    let small = |builder: Builder| {
        builder
            .no_sections()
            .section(SectionType::RESET_INFO, filler(1, 0x40))
    };
    let images = [
        ("fs3", small(Builder::fs3())),
        ("fs4", small(Builder::fs4())),
        ("fs3-complete", small(Builder::fs3()).flash(1 << 16)),
        ("fs4-complete", small(Builder::fs4()).flash(1 << 16)),
    ];
    for (name, builder) in images {
        fs::write(image.join(name), builder.build()?)?;
    }
    let component = small(Builder::fs4()).component()?;
    let tiny = vec![3; 0x40];
    for (name, builder) in [
        (
            "one",
            mfa2::Builder::new().image("MT_0000000001", component),
        ),
        ("empty", mfa2::Builder::new()),
        (
            "shared",
            mfa2::Builder::new()
                .image("MT_0000000001", tiny)
                .also("MT_0000000002")
                .source("seed")
                .unknown_tlv(0x7f, b"?")
                .padding(12),
        ),
    ] {
        fs::write(archive.join(name), builder.build()?)?;
    }
    Ok(())
}
