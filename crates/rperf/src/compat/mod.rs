//! What perftest does, as it does it.

pub mod stats;
