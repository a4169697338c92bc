//! How a test says that it did not run.
//!
//! The line goes to the process's stderr itself and not through `eprintln!`, because the test harness swallows what a passing test prints:
//! a skipped test must be visible, and `cargo xtask ci` counts these lines.

use std::io::Write as _;

use crate::peer::{self, peer};

/// Set to `1`, a missing peer program fails a test instead of skipping it.
pub const REQUIRE_PEERS: &str = "RDMA_REQUIRE_PEERS";

/// Says that `test` did not run and why: `SKIPPED: <test>: <why>` on stderr.
pub fn skip(test: &str, why: &str) {
    // One write, so that lines of tests that run at the same time don't mix. Nothing can be done where stderr is closed.
    let line = format!("SKIPPED: {test}: {why}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// Says that `test` did not run because real test data is absent. Always a skip, never a failure.
pub fn testdata_missing(test: &str, what: &str) {
    skip(
        test,
        &format!("test data {what} is absent: set RDMA_TESTDATA to the folder that holds it"),
    );
}

/// Says that `test` did not run because a peer program is missing.
///
/// # Panics
/// When the environment has `RDMA_REQUIRE_PEERS=1`, as in CI, where a missing peer must not look like success.
pub fn peer_missing(test: &str, why: &str) {
    assert!(
        std::env::var_os(REQUIRE_PEERS).is_none_or(|value| value != "1"),
        "{test}: {why} ({REQUIRE_PEERS}=1 forbids skipping)"
    );
    skip(test, why);
}

/// True, after [`peer_missing`], when one of `programs` is not on this machine.
///
/// # Panics
/// As [`peer_missing`].
#[must_use]
pub fn lacks(test: &str, programs: &[&str]) -> bool {
    match programs.iter().find(|program| peer(program).is_none()) {
        Some(program) => {
            peer_missing(test, &peer::not_found(program));
            true
        }
        None => false,
    }
}

/// True, after [`peer_missing`], when what [`crate::ibsim`] needs (ibsim, its preload, OpenSM, infiniband-diags) is not on this machine.
///
/// # Panics
/// As [`peer_missing`].
#[must_use]
pub fn lacks_ibsim(test: &str) -> bool {
    lacks(
        test,
        &["ibsim", "libumad2sim.so", "opensm", "ibnetdiscover"],
    )
}

/// True, after [`peer_missing`], when what [`crate::qemu`] needs is not on this machine. The kernel's package is not looked for: the lab fetches it.
///
/// # Panics
/// As [`peer_missing`].
#[must_use]
pub fn lacks_qemu(test: &str) -> bool {
    let programs: Vec<_> = ["qemu-system-x86_64", "busybox"]
        .iter()
        .chain(crate::qemu::PROGRAMS)
        .copied()
        .collect();
    lacks(test, &programs)
}
