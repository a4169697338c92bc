//! Bytes that mean no good.

use std::sync::LazyLock;

use mlx_fw::archive::mfa2::Archive;
use mlx_fw::image::build::Builder;
use mlx_fw::image::{Container, Image, MAGIC_FS3, MAGIC_FS4, SectionType, detect};
use mlx_fw::{Error, exercise_archive, exercise_image, verify};
use proptest::prelude::*;

use crate::sample;

#[test]
fn what_is_no_image_is_named() {
    let mut fs2 = MAGIC_FS3.to_vec();
    fs2.resize(0x100, 0);
    let mut fs5 = MAGIC_FS4.to_vec();
    fs5.resize(0x100, 0);
    fs5[0x10] = 2;
    let mut newer = fs5.clone();
    newer[0x10] = 9;
    let mut pldm = b"\xf0\x18\x87\x8c\xcb\x7d\x49\x43\x98\x00\xa0\x2f\x05\x9a\xca\x02".to_vec();
    pldm.resize(64, 0);
    let component = Builder::fs4().component().unwrap();
    for (bytes, container) in [
        (vec![], Container::Empty),
        (vec![0xff; 1 << 16], Container::Blank(0xff)),
        (vec![0; 4096], Container::Blank(0)),
        (b"MZ an executable".to_vec(), Container::Unknown),
        (b"MFAR....".to_vec(), Container::Mfa1),
        (b"MLNX.MFA2.XZ.00!".to_vec(), Container::Mfa2),
        (fs2, Container::Fs2(0)),
        (fs5, Container::Fs5(0)),
        (newer, Container::UnknownImage(9, 0)),
        (pldm, Container::Pldm),
        (component, Container::Masked(mlx_fw::image::Format::Fs4)),
    ] {
        assert_eq!(detect(&bytes), container);
        let error = Image::parse(&bytes).unwrap_err();
        assert_eq!(
            error,
            Error::WrongKind {
                wanted: "a firmware image",
                found: container
            }
        );
    }
}

#[test]
fn an_image_cut_short_is_never_well() {
    for (name, builder) in [
        ("fs3", Builder::fs3()),
        ("fs4", Builder::fs4()),
        ("fs3 complete", Builder::fs3().flash(1 << 20)),
        ("fs4 complete", Builder::fs4().flash(1 << 20)),
    ] {
        let bytes = builder.build().unwrap();
        let report = verify(&Image::parse(&bytes).unwrap());
        // Just before and after the start and the end of everything.
        let mut cuts: Vec<usize> = report
            .parts
            .iter()
            .flat_map(|part| [part.offset, part.offset + part.size])
            .flat_map(|at| [at.saturating_sub(1), at, at + 1])
            .chain(0..0x60)
            .map(|at| usize::try_from(at).unwrap())
            .filter(|at| *at < bytes.len())
            .collect();
        // After the last of its sections an FS3 flash has nothing to lose.
        let last = report.parts.iter().filter(|part| part.size != 0);
        let last = last.map(|part| part.offset + part.size).max().unwrap();
        if name == "fs3 complete" {
            cuts.retain(|cut| (*cut as u64) < last);
        }
        cuts.sort_unstable();
        cuts.dedup();
        let reduced = Image::parse(&bytes).unwrap().layout().end;
        for cut in cuts {
            let Ok(image) = Image::parse(&bytes[..cut]) else {
                continue;
            };
            // An FS4 flash that is cut right after its image is a reduced image.
            if name == "fs4 complete" && cut as u64 == reduced {
                continue;
            }
            let report = verify(&image);
            let padded = name == "fs4 complete" && cut as u64 > reduced;
            assert!(!report.ok || padded, "{name} cut at {cut:#x}");
        }
    }
}

#[test]
fn sections_that_overlap_are_told() {
    let mut bytes = Builder::fs4().build().unwrap();
    let sections: Vec<_> = Image::parse(&bytes).unwrap().sections().copied().collect();
    let (first, second) = (sections[0], sections[1]);
    let mut entry = second.entry;
    entry.address = first.entry.address;
    let entry = entry.sealed();
    let at = usize::try_from(second.entry_offset).unwrap();
    bytes[at..at + 0x20].copy_from_slice(bytemuck::bytes_of(&entry));
    let report = verify(&Image::parse(&bytes).unwrap());
    assert!(
        report
            .problems
            .iter()
            .any(|problem| problem.message.contains("share bytes")),
        "{report:?}"
    );
}

/// Images and archives to change bytes of.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let small = |builder: Builder| {
        builder
            .no_sections()
            .section(SectionType::MAIN_CODE, vec![1; 0x100])
    };
    vec![
        small(Builder::fs3()).build().unwrap(),
        small(Builder::fs4()).signed(true).build().unwrap(),
        small(Builder::fs3()).flash(1 << 16).build().unwrap(),
        small(Builder::fs4()).flash(1 << 16).build().unwrap(),
        sample::archive().build().unwrap(),
    ]
});

fn exercise(bytes: &[u8]) {
    exercise_image(bytes);
    exercise_archive(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..2048)) {
        exercise(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_magic_are_survived(
        magic in prop_oneof![Just(MAGIC_FS3.to_vec()), Just(MAGIC_FS4.to_vec()), Just(b"MLNX.MFA2.XZ.00!".to_vec())],
        bytes in proptest::collection::vec(any::<u8>(), 0..2048),
    ) {
        exercise(&[magic, bytes].concat());
    }

    #[test]
    fn changed_bytes_are_survived(
        seed in 0_usize..5,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = SEEDS[seed].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        exercise(&bytes);
    }

    #[test]
    fn changed_heads_are_survived(
        seed in 0_usize..5,
        changes in proptest::collection::vec((0_usize..0x200, any::<u8>()), 1..6),
    ) {
        let mut bytes = SEEDS[seed].clone();
        for (at, value) in changes {
            bytes[at] = value;
        }
        exercise(&bytes);
    }
}

#[test]
fn an_archive_cut_short_is_an_error() {
    let bytes = sample::archive().build().unwrap();
    for cut in (0..bytes.len()).step_by(97).chain(0..0x200) {
        assert!(Archive::parse(&bytes[..cut]).is_err(), "{cut:#x}");
    }
}
