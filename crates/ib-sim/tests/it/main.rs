//! Integration tests: against real files and the real ibsim where they are there.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read files, run programs and wait for them"
)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a skipped test says so")]

mod generate;
mod ibsim;
mod net_file;
mod property;
mod real;

use std::path::PathBuf;

/// The folder of real files, or `None` with a message.
fn testdata(test: &str, file: &str) -> Option<PathBuf> {
    let root = std::env::var_os("RDMA_TESTDATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let path = root.join("fabrics").join(file);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: {test}: {} is not here; set RDMA_TESTDATA",
        path.display()
    );
    None
}

/// Skips a test that needs a peer's program, loudly; fails where peers are demanded.
fn peer_missing(test: &str, what: &str) {
    assert!(
        std::env::var_os("RDMA_REQUIRE_PEERS").is_none_or(|v| v != "1"),
        "{test}: {what} is missing"
    );
    eprintln!("SKIPPED: {test}: {what} is missing");
}
