//! Integration tests.

mod distribution;
