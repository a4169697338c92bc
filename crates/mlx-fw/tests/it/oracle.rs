//! The real archives: every image inside of them, and beside each what mstflint 4.36 prints.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mlx_fw::archive::mfa2::{Archive, Limits};
use mlx_fw::cli::flint;
use mlx_fw::image::{Format, Image};
use mlx_fw::report::{DigestReport, DigestState};
use mlx_fw::{checksum, query, verify};
use rdma_lab::skip::testdata_missing;
use rdma_lab::testdata::testdata;

fn archives(test: &str) -> Vec<PathBuf> {
    let Some(folder) = testdata("firmware") else {
        testdata_missing(test, "firmware");
        return Vec::new();
    };
    let mut archives: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "mfa2"))
        .collect();
    archives.sort();
    assert!(!archives.is_empty());
    archives
}

/// Lines compared and lines that differ.
#[derive(Default)]
struct Tally {
    compared: usize,
    different: usize,
}

impl Tally {
    /// Compares our text and exit code with a file of the oracle, line by line.
    fn compare(&mut self, file: &Path, (text, good): (String, bool)) {
        let ours = format!("{text}rc={}\n", u8::from(!good));
        let theirs = fs::read_to_string(file).unwrap();
        let (mut a, mut b) = (ours.lines(), theirs.lines());
        loop {
            let pair = (a.next(), b.next());
            if pair == (None, None) {
                break;
            }
            self.compared += 1;
            if pair.0 != pair.1 {
                self.different += 1;
                eprintln!(
                    "{}:\n  ours   {:?}\n  theirs {:?}",
                    file.display(),
                    pair.0,
                    pair.1
                );
            }
        }
    }
}

#[test]
fn every_image_is_as_its_archive_and_mstflint_say() {
    let test = "every_image_is_as_its_archive_and_mstflint_say";
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let (mut images, mut boards, mut parts) = (0, 0, 0);
    let found = archives(test);
    for path in &found {
        let bytes = fs::read(path).unwrap();
        let archive = Archive::parse(&bytes).unwrap();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let oracle = path.parent().unwrap().join("oracle");
        assert_eq!(
            archive.digests(),
            DigestReport {
                all: DigestState::Ok,
                descriptors: DigestState::Ok
            },
            "{stem}"
        );
        let expected = if stem.contains("spectrum-13") {
            Format::Fs3
        } else {
            Format::Fs4
        };
        archive
            .extract_all(&Limits::default(), |index, bytes| {
                images += 1;
                let image = Image::parse(&bytes).unwrap();
                assert_eq!(image.format(), expected, "{stem} {index}");
                assert!(!image.is_complete());
                // The end of the last section is the end of the file, as an update has it.
                assert_eq!(image.layout().end, image.len(), "{stem} {index}");
                let report = verify(&image);
                assert!(report.ok, "{stem} {index}: {report:?}");
                parts += report.parts.len();

                let info = image.image_info().unwrap();
                let tag = archive.components()[index].tag;
                // Newer archives keep the low byte of the minor. Older ones swap minor and
                // sub-minor, and keep the low byte of both.
                let version = info.version();
                let low = |number: u16| number & 0xff;
                assert_eq!(u16::from(tag.major), version.major, "{stem} {index}");
                let pair = (u16::from(tag.minor), tag.subminor.get());
                assert!(
                    pair == (low(version.minor), version.subminor)
                        || pair == (low(version.subminor), low(version.minor)),
                    "{stem} {index}: {pair:?} for {version}"
                );
                let answer = query(&image, true).unwrap();
                assert_eq!(answer.warnings, Vec::<String>::new());

                for device in archive.devices() {
                    if !device.components.contains(&index) {
                        continue;
                    }
                    boards += 1;
                    assert_eq!(answer.psid, device.psid.to_string(), "{stem} {index}");
                    let file = format!("{stem}-{}.bin", device.psid);
                    let of = |kind: &str| oracle.join(format!("{file}.{kind}.txt"));
                    if of("query").exists() {
                        let mut compare = |kind, text| {
                            tallies.entry(kind).or_default().compare(&of(kind), text);
                        };
                        compare("query", flint::query(&bytes, &file, false));
                        compare("query_full", flint::query(&bytes, &file, true));
                        compare("verify", flint::verify(&bytes, &file));
                        compare("checksum", flint::checksum(&bytes, &file));
                        // Natively a sum is there for reduced images of FS3 too.
                        assert!(checksum(&image).is_ok());
                    }
                }
                Ok(())
            })
            .unwrap();
    }
    if found.is_empty() {
        return;
    }
    let mut different = 0;
    for (kind, tally) in &tallies {
        different += tally.different;
        eprintln!(
            "oracle: {kind}: {} lines compared with mstflint 4.36, {} differ",
            tally.compared, tally.different
        );
        assert!(tally.compared >= 8);
    }
    eprintln!(
        "oracle: {} archives, {images} images for {boards} boards, {parts} parts verified, all well",
        found.len()
    );
    assert_eq!(different, 0);
    assert_eq!(tallies.len(), 4, "query, query_full, verify, checksum");
}
