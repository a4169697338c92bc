//! Integration tests.
#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]

mod distribution;
