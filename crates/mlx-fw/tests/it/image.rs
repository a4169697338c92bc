//! What a builder puts into an image, the readers take out of it.

use mlx_fw::image::build::Builder;
use mlx_fw::image::hw_id::HwId;
use mlx_fw::image::{Format, Image, SectionType};
use mlx_fw::report::{PartState, ProblemCode};
use mlx_fw::{FwVersion, Psid, query, verify};

use crate::sample;

#[test]
fn all_samples_are_well() {
    let samples = sample::complete().into_iter().chain(sample::reduced());
    for (name, builder) in samples {
        let bytes = builder.build().unwrap();
        let image = Image::parse(&bytes).unwrap();
        let report = verify(&image);
        assert!(report.ok, "{name}: {report:?}");
        assert_eq!(report.complete, !name.ends_with("reduced"), "{name}");
        let answer = query(&image, true).unwrap();
        assert_eq!(answer.warnings, Vec::<String>::new(), "{name}");
        assert_eq!(answer.format, name[..3].to_uppercase(), "{name}");
        assert_eq!(answer.sections.unwrap().len(), image.sections().count());
    }
}

#[test]
fn a_query_says_what_was_built() {
    for (builder, format) in [(Builder::fs3(), Format::Fs3), (Builder::fs4(), Format::Fs4)] {
        let bytes = builder
            .hardware(HwId::CONNECTX5)
            .version(FwVersion::new(16, 35, 4506))
            .psid("MT_0000000013")
            .orig_psid("MT_0000000012")
            .part_number("MCX516A")
            .description("a card")
            .product_version("16.35.4506")
            .vsd("of the image", "of the device")
            .issu(3)
            .uids((0x10, 16), (0x20, 300))
            .made_with((0x10, 16), (0x30, 8))
            .flash(1 << 21)
            .build()
            .unwrap();
        let image = Image::parse(&bytes).unwrap();
        assert_eq!(image.format(), format);
        let report = query(&image, false).unwrap();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(report.fw_version, "16.35.4506");
        assert_eq!(report.psid, "MT_0000000013");
        assert_eq!(report.orig_psid, some("MT_0000000012"));
        assert_eq!(report.part_number, some("MCX516A"));
        assert_eq!(report.description, some("a card"));
        assert_eq!(report.product_version, some("16.35.4506"));
        assert_eq!(report.image_vsd, some("of the image"));
        assert_eq!(report.device_vsd, some("of the device"));
        assert_eq!(report.issu_version, Some(3));
        assert_eq!(report.release_date, some("2025-04-03"));
        assert_eq!(report.hardware[0].name, some("ConnectX-5"));
        assert_eq!(report.uid_form, some("base"));
        let [guid, mac] = &report.uids[..] else {
            panic!("{:?}", report.uids)
        };
        assert_eq!(guid.current.first, some("0x0000000000000010"));
        assert_eq!((guid.current.count, &guid.original), (16, &None));
        assert_eq!(mac.current.first, some("0x000000000020"));
        assert_eq!(mac.current.count, 300);
        assert_eq!(mac.original.as_ref().unwrap().count, 8);
    }
}

#[test]
fn a_signature_with_keys_makes_an_image_secure() {
    let build = |builder: Builder| {
        let bytes = builder.build().unwrap();
        query(&Image::parse(&bytes).unwrap(), false)
            .unwrap()
            .security
    };
    assert!(build(Builder::fs4()).attributes.is_empty());
    assert_eq!(
        build(Builder::fs4().signed(false)).attributes,
        ["signed-fw"]
    );
    assert_eq!(
        build(Builder::fs4().signed(true).secure()).attributes,
        ["secure-fw", "dev"]
    );
    let legacy = build(Builder::fs4().signed(false).legacy_update());
    assert!(legacy.attributes.is_empty() && !legacy.firmware_controlled_update);
    assert_eq!(build(Builder::fs4().security_version(7)).version, Some(7));
}

#[test]
fn one_flipped_byte_makes_one_part_wrong() {
    for (name, builder) in sample::complete() {
        let bytes = builder.build().unwrap();
        let report = verify(&Image::parse(&bytes).unwrap());
        for (index, part) in report.parts.iter().enumerate() {
            if part.state != PartState::Ok || part.size == 0 {
                continue;
            }
            // Not the size of BOOT2 and not the signature of a table: those move other things.
            let at = usize::try_from(part.offset + part.size - 1).unwrap();
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            let image = Image::parse(&broken).unwrap();
            let report = verify(&image);
            assert!(!report.ok, "{name} {}", part.name);
            let wrong: Vec<usize> = (0..report.parts.len())
                .filter(|index| !report.parts[*index].state.is_good())
                .collect();
            assert_eq!(wrong, [index], "{name} {}", part.name);
            assert_eq!(report.parts[index].state, PartState::WrongCrc);
            assert_eq!(report.problems, [], "{name} {}", part.name);
        }
    }
}

#[test]
fn what_is_missing_is_named() {
    let codes = |bytes: &[u8]| -> Vec<ProblemCode> {
        let report = verify(&Image::parse(bytes).unwrap());
        assert!(!report.ok);
        report.problems.iter().map(|problem| problem.code).collect()
    };
    let flash = 1 << 21;
    let fs4 = Builder::fs4().flash(flash).build().unwrap();
    let fs3 = Builder::fs3().flash(flash).build().unwrap();
    let flash = usize::try_from(flash).unwrap();

    // The signature of each table.
    let mut broken = fs4.clone();
    broken[flash - 0x1000] ^= 1;
    assert_eq!(codes(&broken), [ProblemCode::NoDtoc]);
    let mut broken = fs3;
    broken[0x1000] ^= 1;
    assert_eq!(codes(&broken), [ProblemCode::NoItoc]);

    // An impossible size of BOOT2.
    let mut broken = fs4.clone();
    broken[0x1004] = 0xff;
    assert_eq!(codes(&broken), [ProblemCode::BadBoot2]);

    // The CRC of an entry.
    let mut broken = fs4.clone();
    broken[0x203f] ^= 1;
    assert_eq!(codes(&broken), [ProblemCode::BadEntry]);

    // Both copies of DEV_INFO, or none.
    let image = Image::parse(&fs4).unwrap();
    let copies: Vec<(usize, usize)> = image
        .sections()
        .filter(|section| section.kind == SectionType::DEV_INFO)
        .map(|section| (section.offset, section.entry_offset))
        .map(|(a, b)| (usize::try_from(a).unwrap(), usize::try_from(b).unwrap()))
        .collect();
    let [(first, _), (second, _)] = copies[..] else {
        panic!("{copies:?}")
    };
    let mut broken = fs4.clone();
    broken[first] ^= 1;
    assert_eq!(codes(&broken), [ProblemCode::NoDevInfo]);
    let mut broken = fs4.clone();
    broken.copy_within(first..first + 0x200, second);
    assert_eq!(codes(&broken), [ProblemCode::TwoDevInfos]);
}

#[test]
fn an_image_is_found_where_it_starts() {
    // A flash whose first half is erased: the image stands in the second.
    let bytes = Builder::fs4().psid("SECOND").build().unwrap();
    let mut flash = vec![0xff; 0x20_0000];
    flash.extend(&bytes);
    let image = Image::parse(&flash).unwrap();
    assert_eq!(image.start(), 0x20_0000);
    assert!(verify(&image).ok, "{:?}", verify(&image));
    assert_eq!(query(&image, false).unwrap().psid, "SECOND");

    // Two images: the first counts, and the other is told.
    flash[..bytes.len()].copy_from_slice(&Builder::fs4().psid("FIRST0").build().unwrap());
    let report = query(&Image::parse(&flash).unwrap(), false).unwrap();
    assert_eq!(report.psid, "FIRST0");
    assert!(
        report.warnings[0].contains("0x200000"),
        "{:?}",
        report.warnings
    );
}

#[test]
fn an_encrypted_image_is_told_from_a_broken_one() {
    let mut bytes = Builder::fs4().flash(1 << 21).build().unwrap();
    // Pointers and IMAGE_INFO can be read, the table of contents can't.
    let info = Image::parse(&bytes)
        .unwrap()
        .find(SectionType::IMAGE_INFO)
        .unwrap()
        .offset;
    let info = usize::try_from(info).unwrap();
    bytes[0x2000..0x3000].fill(0x5a);
    bytes[info + 0x12c..info + 0x130].copy_from_slice(&0x9000_u32.to_be_bytes());
    let image = Image::parse(&bytes).unwrap();
    let report = verify(&image);
    assert!(report.encrypted && report.ok, "{report:?}");
    assert_eq!(query(&image, false).unwrap().fw_version, "29.2014.4012");
    // Without a readable IMAGE_INFO it is broken.
    bytes[info..info + 0x400].fill(0x5a);
    let report = verify(&Image::parse(&bytes).unwrap());
    assert!(!report.encrypted && !report.ok, "{report:?}");
}

#[test]
fn a_psid_of_sixteen_bytes_fits() {
    let bytes = Builder::fs3().psid("0123456789abcdef").build().unwrap();
    let info = *Image::parse(&bytes).unwrap().image_info().unwrap();
    assert_eq!(info.psid(), Psid::new("0123456789abcdef").unwrap());
}

#[test]
fn what_does_not_fit_is_refused() {
    let large = Builder::fs4().section(SectionType::MAIN_CODE, vec![0; 0x10_0000]);
    assert!(large.build().is_ok());
    assert!(large.flash(1 << 20).build().is_err());
    let mut many = Builder::fs4();
    for _ in 0..64 {
        many = many.section(SectionType::PCI_CODE, vec![0; 4]);
    }
    assert!(many.build().is_err());
}
