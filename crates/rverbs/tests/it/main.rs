//! Integration tests: verbs between processes.
#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]
#![expect(clippy::print_stderr, reason = "a case that is skipped says so")]
#![expect(
    clippy::cast_possible_truncation,
    reason = "the numbers of a test are small"
)]
#![expect(unsafe_code, reason = "the provider layer is C's interface")]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "the test keeps every object alive until its end"
)]

mod alloc;
mod conformance;
mod conforms;
mod hello;
mod ping;
mod raw;
mod roce;
mod sound;
mod two;
