//! MFA2 archives of our own making.

use mlx_fw::archive::mfa2::{Archive, Builder, Limits};
use mlx_fw::image::{Image, build};
use mlx_fw::report::DigestState;
use mlx_fw::{Error, Psid, verify};

use crate::sample;

fn psid(text: &str) -> Psid {
    Psid::new(text).unwrap()
}

#[test]
fn a_list_says_the_truth_and_not_the_tag() {
    let bytes = sample::archive().build().unwrap();
    let report = Archive::parse(&bytes)
        .unwrap()
        .list(&Limits::default())
        .unwrap();
    assert_eq!(report.digests.all, DigestState::Ok);
    assert_eq!(report.digests.descriptors, DigestState::Ok);
    assert_eq!(report.created, "2025-04-03 18:27:54");
    assert_eq!(report.components, 3);
    let [first, second, _] = &report.devices[..] else {
        panic!("{:?}", report.devices)
    };
    assert_eq!(first.psid, "MT_0000000217");
    assert_eq!(first.tag, "29.222.4012");
    assert_eq!(first.fw_version.as_deref(), Some("29.2014.4012"));
    assert_eq!(second.format.as_deref(), Some("FS3"));
    assert!(report.devices.iter().all(|device| device.problem.is_none()));
}

#[test]
fn extracting_gives_the_image_back() {
    let bytes = sample::archive().build().unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    for (_, image) in sample::reduced() {
        let built = image.build().unwrap();
        let name = Image::parse(&built).unwrap().image_info().unwrap().psid();
        assert_eq!(archive.extract(name, &Limits::default()).unwrap(), built);
    }
    let mut seen = Vec::new();
    archive
        .extract_all(&Limits::default(), |index, image| {
            assert!(verify(&Image::parse(&image).unwrap()).ok);
            seen.push(index);
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, [0, 1, 2]);
}

#[test]
fn a_psid_that_is_not_there_gets_its_neighbours() {
    let bytes = sample::archive().build().unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let error = archive
        .extract(psid("MT_0000000218"), &Limits::default())
        .unwrap_err();
    let Error::NoPsid { near, .. } = error else {
        panic!("{error:?}")
    };
    assert_eq!(near[0], psid("MT_0000000217"));
}

#[test]
fn boards_may_share_an_image() {
    let component = build::Builder::fs4().psid("A").component().unwrap();
    let bytes = Builder::new()
        .image("A", component)
        .also("B")
        .build()
        .unwrap();
    let archive = Archive::parse(&bytes).unwrap();
    let extract = |name| archive.extract(psid(name), &Limits::default()).unwrap();
    assert_eq!(extract("A"), extract("B"));
    // The list notes that the image says another PSID.
    let report = archive.list(&Limits::default()).unwrap();
    assert_eq!(report.devices[0].problem, None);
    assert!(
        report.devices[1]
            .problem
            .as_ref()
            .unwrap()
            .contains("PSID A")
    );
}

#[test]
fn a_changed_byte_is_noticed_and_nothing_is_extracted() {
    let bytes = sample::archive().build().unwrap();
    let last = bytes.len() - 100;
    for at in [0x3b, 0x4c, 0x70, 0x100, last] {
        let mut broken = bytes.clone();
        broken[at] ^= 1;
        match Archive::parse(&broken) {
            // A changed descriptor may no longer be one.
            Err(_) => {}
            Ok(archive) => {
                let digests = archive.digests();
                assert!(
                    [digests.all, digests.descriptors].contains(&DigestState::Wrong),
                    "{at:#x}"
                );
                let error = archive.extract(psid("MT_0000000217"), &Limits::default());
                assert!(error.is_err(), "{at:#x}");
            }
        }
    }
}

/// Where the component descriptors stand.
fn descriptors(bytes: &[u8]) -> Vec<usize> {
    let head = [0, 4, 0, 0x10];
    (0..bytes.len() - 4)
        .step_by(4)
        .filter(|at| bytes[*at..*at + 4] == head)
        .map(|at| at + 4)
        .collect()
}

fn list(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    Archive::parse(bytes)?.list(limits).map(drop)
}

#[test]
fn lies_about_sizes_and_places_are_errors() {
    let bytes = sample::archive().build().unwrap();
    let places = descriptors(&bytes);
    assert_eq!(places.len(), 3);
    let change = |component: usize, field: usize, value: u32| {
        let mut bytes = bytes.clone();
        let at = places[component] + field;
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        list(&bytes, &Limits::default()).unwrap_err()
    };
    // Offset and size of the last one, then an offset inside of its neighbour.
    for (component, field, value) in [
        (2, 4, 1),
        (2, 8, 0xffff_0000),
        (2, 12, 0x7ff_ffff),
        (1, 8, 0x20),
        (0, 8, 1),
    ] {
        let error = change(component, field, value);
        assert!(
            matches!(error, Error::Component { .. } | Error::Limit { .. }),
            "{error:?}"
        );
    }
    // A size that no image has is refused before anything is unpacked.
    let error = change(0, 12, 0xffff_ffff);
    assert!(
        matches!(
            error,
            Error::Limit {
                size: 0xffff_ffff,
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_bomb_stays_within_its_limits() {
    // 64 MiB of zeros pack to some KiB.
    let bytes = Builder::new()
        .image("BOMB", vec![0; 64 << 20])
        .build()
        .unwrap();
    assert!(bytes.len() < 64 << 10, "{}", bytes.len());
    let small = Limits::SMALL;
    let error = list(&bytes, &small).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Limit {
                what: "an image",
                ..
            }
        ),
        "{error:?}"
    );
    // The same with a size that lies: what comes out counts.
    let place = descriptors(&bytes)[0];
    let mut lying = bytes;
    lying[place + 12..place + 16].copy_from_slice(&0x100_u32.to_be_bytes());
    let error = list(&lying, &small).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Limit {
                what: "the unpacked block",
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_dictionary_that_is_too_large_is_refused() {
    let bytes = sample::archive().build().unwrap();
    let little = Limits {
        memory_kib: 64,
        ..Limits::default()
    };
    let error = list(&bytes, &little).unwrap_err();
    assert!(matches!(error, Error::Decompress { .. }), "{error:?}");
}

#[test]
fn counts_and_pointers_must_fit() {
    let bytes = sample::archive().build().unwrap();
    // The package descriptor starts at 0x1c: components, devices.
    for (at, what) in [(0x1d, "components"), (0x1f, "devices")] {
        let mut broken = bytes.clone();
        broken[at] += 1;
        let error = Archive::parse(&broken).unwrap_err();
        assert!(
            matches!(error, Error::Count { what: found, .. } if found == what),
            "{error:?}"
        );
    }
    let pointer = (0..bytes.len())
        .step_by(4)
        .find(|at| bytes[*at..].starts_with(&[0, 0x22, 0, 8]))
        .unwrap();
    let mut broken = bytes;
    broken[pointer + 6] = 9;
    let error = Archive::parse(&broken).unwrap_err();
    assert!(matches!(error, Error::NoComponent { .. }), "{error:?}");
}
