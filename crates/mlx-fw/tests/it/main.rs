//! Integration tests: on images of our own making, on real ones where they are there, and beside
//! the vendor's mstflint where it is installed.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read files and run the peer"
)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stderr, reason = "a test says what it compared")]

mod archive;
mod corpus;
mod hostile;
mod image;
#[cfg(feature = "cli")]
mod oracle;
#[cfg(feature = "cli")]
mod peer;
mod sample;
