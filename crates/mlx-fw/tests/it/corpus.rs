//! The fuzzer's seeds, and what it found: all survived.

use std::fs;
use std::path::Path;

fn replay(target: &str, exercise: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files = 0;
    for file in fs::read_dir(&folder).unwrap() {
        exercise(&fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files > 0, "{} is empty", folder.display());
}

#[test]
fn images() {
    replay("fw_image", mlx_fw::exercise_image);
}

#[test]
fn archives() {
    replay("fw_mfa2", mlx_fw::exercise_archive);
}
