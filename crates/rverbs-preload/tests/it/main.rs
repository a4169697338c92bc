//! Unmodified programs on the software devices.
#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]
#![expect(clippy::print_stderr, reason = "the table of tools is worth seeing")]
#![expect(unsafe_code, reason = "the provider layer is C's interface")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "the test keeps every object alive until its end"
)]

/// The suite of the provider crate, here for the provider `verbs` over our library.
#[path = "../../../rverbs/tests/it/conformance/mod.rs"]
mod conformance;
mod conforms;
mod crash;
mod matrix;
mod ping;
mod quiet;
mod symbols;

use std::time::Duration;

use rdma_lab::preload::{self, Preload, Provider};

/// How long a program may run, on a machine that builds and tests other things at the same time.
const LIMIT: Duration = Duration::from_secs(60);

/// Programs on a provider.
fn lab(provider: Provider) -> Preload {
    Preload::new(preload::library().unwrap(), provider).limit(LIMIT)
}
