//! Integration tests.
#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]
#![expect(clippy::print_stderr, reason = "the table of pairs is worth seeing")]

mod distribution;
mod peer;
mod results;
