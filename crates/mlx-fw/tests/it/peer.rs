//! Debian's mstflint beside us, on images of our own making, well and broken.
//!
//! Debian 12 has mstflint 4.21, and our text is that of 4.36. What is known to differ between the
//! two is in [`same_text`]; nothing else may.

use std::fs;
use std::path::Path;
use std::process::Command;

use mlx_fw::cli::flint;
use mlx_fw::image::Image;
use mlx_fw::report::PartState;
use mlx_fw::verify;
use rdma_lab::peer::peer;
use rdma_lab::skip::lacks;

use crate::sample;

/// What mstflint prints and whether it ends well.
fn mstflint(file: &Path, command: &[&str]) -> (String, bool) {
    let output = Command::new(peer("mstflint").unwrap())
        .args(["-i", file.file_name().unwrap().to_str().unwrap()])
        .args(command)
        .current_dir(file.parent().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (text, output.status.success())
}

/// Our text with what changed between 4.21 and 4.36 changed back: sections that 4.21 has no name
/// for, and the spelling of one error.
fn same_text(text: &str) -> String {
    text.replace("(STRN_MAIN)", "(UNKNOWN:0xb4)")
        .replace("(PXIR_INI)", "(UNKNOWN:0xaa)")
        .replace("InitHwPtrs", "initHwPtrs")
}

fn compare(file: &Path, bytes: &[u8], command: &[&str], name: &str) -> usize {
    let shown = file.file_name().unwrap().to_str().unwrap();
    let (ours, well) = match command {
        ["query"] => flint::query(bytes, shown, false),
        ["query", "full"] => flint::query(bytes, shown, true),
        ["verify"] => flint::verify(bytes, shown),
        ["checksum"] => flint::checksum(bytes, shown),
        _ => panic!("{command:?}"),
    };
    let (theirs, theirs_well) = mstflint(file, command);
    assert_eq!(same_text(&ours), theirs, "{name} {command:?}");
    assert_eq!(well, theirs_well, "{name} {command:?}");
    theirs.lines().count()
}

const COMMANDS: [&[&str]; 4] = [&["query"], &["query", "full"], &["verify"], &["checksum"]];

#[test]
fn mstflint_accepts_what_the_builder_makes() {
    if lacks("mstflint_accepts_what_the_builder_makes", &["mstflint"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut lines = 0;
    let samples = sample::complete();
    for (name, builder) in &samples {
        let bytes = builder.build().unwrap();
        let file = folder.path().join(format!("{name}.bin"));
        fs::write(&file, &bytes).unwrap();
        for command in COMMANDS {
            assert!(mstflint(&file, command).1, "{name} {command:?}");
            lines += compare(&file, &bytes, command, name);
        }
    }
    eprintln!(
        "oracle: {} built images, {lines} lines of query, query full, verify and checksum equal \
         to the installed mstflint's",
        samples.len()
    );
}

#[test]
fn mstflint_says_the_same_of_broken_images() {
    if lacks("mstflint_says_the_same_of_broken_images", &["mstflint"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("broken.bin");
    let mut broken = 0;
    for (name, builder) in sample::complete() {
        if !["fs3", "fs3-connect-ib", "fs4", "fs4-signed"].contains(&name) {
            continue;
        }
        let bytes = builder.build().unwrap();
        let report = verify(&Image::parse(&bytes).unwrap());
        for part in &report.parts {
            // What has no CRC, or a copy that is not looked at, is accepted whatever is in it.
            if part.size == 0 || part.state == PartState::Spare {
                continue;
            }
            let at = usize::try_from(part.offset + part.size - 1).unwrap();
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            fs::write(&file, &changed).unwrap();
            let name = format!("{name} with a changed {}", part.name);
            for command in COMMANDS {
                compare(&file, &changed, command, &name);
            }
            broken += 1;
        }
    }
    eprintln!("oracle: {broken} broken images, the text equal to the installed mstflint's");
}
