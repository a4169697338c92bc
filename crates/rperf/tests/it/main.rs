//! Integration tests.

mod distribution;
mod results;
