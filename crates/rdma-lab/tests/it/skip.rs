//! Skipping is visible, and a path can't leave the folder of the test data.

use rdma_lab::testdata::testdata_root;
use rdma_lab::{skip, testdata};

#[test]
fn test_data_paths_stay_inside() {
    // `/` is the one absolute path that surely exists; taken as relative it is the folder itself, or nothing.
    let root = testdata_root();
    assert_eq!(testdata("/"), root.exists().then(|| root.join("")));
    assert_eq!(testdata("/etc/passwd"), None);
    assert_eq!(testdata("no-such-folder/x"), None);
}

#[test]
fn a_program_that_is_there_is_not_lacking() {
    assert!(!skip::lacks(
        "a_program_that_is_there_is_not_lacking",
        &["sh"]
    ));
}
