//! The seeds of the fuzz target `discovery`, replayed without a fuzzer, and scripts by chance.

use std::path::Path;

use proptest::prelude::*;

use crate::scripted::walk;

#[test]
fn seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/discovery");
    let mut most = 0;
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus") {
        let bytes = std::fs::read(entry.expect("a seed").path()).expect("a seed");
        count += 1;
        most = most.max(walk(&bytes).map_or(0, |found| found.topology.nodes().len()));
    }
    assert!(
        count >= 4 && most >= 4,
        "{count} seeds, {most} nodes at most"
    );
}

proptest! {
    #[test]
    fn any_script(script in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = walk(&script);
    }
}
