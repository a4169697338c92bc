//! Integration tests: layouts, and loading.
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod layout;
mod load;
