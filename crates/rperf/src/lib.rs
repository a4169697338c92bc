//! RDMA benchmarks: perftest's measurements and its wire protocol, with exact statistics and reports.
//!
//! - [`spec`]: what is measured, and how.
//! - [`stats`]: histograms, and what follows from them.

#[cfg(feature = "cli")]
pub mod cli;
pub mod spec;
pub mod stats;
