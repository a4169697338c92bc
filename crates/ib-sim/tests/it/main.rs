//! Integration tests: against real files and the real ibsim where they are there.
#![expect(clippy::disallowed_methods, reason = "tests read files")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod corpus;
mod fabric;
mod fault;
mod generate;
mod ibsim;
mod net_file;
mod property;
mod real;
mod walk;

use std::path::PathBuf;

/// A real dump, or `None` with a message.
fn testdata(test: &str, file: &str) -> Option<PathBuf> {
    let path = rdma_lab::testdata(format!("fabrics/{file}"));
    if path.is_none() {
        rdma_lab::testdata_missing(test, file);
    }
    path
}
