//! Integration tests.
#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]
#![expect(clippy::print_stderr, reason = "the table of pairs is worth seeing")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "samples are made in floating point, from 0 to well below 2^53"
)]

mod compare;
mod distribution;
mod hostile;
mod known;
mod page;
mod peer;
mod results;
mod sample;
mod shape;
mod unhappy;

/// Compares with a file of `tests/data`; with `RPERF_BLESS` set it is written instead.
fn kept(name: &str, text: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    if std::env::var_os("RPERF_BLESS").is_some() {
        std::fs::write(&path, text).expect("tests/data can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == text,
        "{name} is not as it was: RPERF_BLESS=1 writes it anew\n{text}"
    );
}
