//! RDMA benchmarks: perftest's measurements and its wire protocol, with exact statistics and reports.
//!
//! - [`compat`]: what perftest does, as it does it.
//! - [`result`]: what was measured, where and on what: the results file.
//! - [`spec`]: what is measured, and how.
//! - [`stats`]: histograms, and what follows from them.

#[cfg(feature = "cli")]
pub mod cli;
pub mod compat;
pub mod result;
pub mod spec;
pub mod stats;
