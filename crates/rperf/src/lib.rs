//! RDMA benchmarks: perftest's measurements and its wire protocol, with exact statistics and reports.
//!
//! - [`compare`]: whether one measurement differs from another, and by how much.
//! - [`compat`]: what perftest does, as it does it.
//! - [`peer`]: how the two sides come together, which is perftest's way.
//! - [`report`]: results for people: a page with plots, Markdown, CSV.
//! - [`result`]: what was measured, where and on what: the results file.
//! - [`mod@run`] measures.
//! - [`spec`]: what is measured, and how.
//! - [`stats`]: histograms, and what follows from them.

#[cfg(feature = "cli")]
pub mod cli;
pub mod compare;
pub mod compat;
mod error;
pub mod peer;
pub mod report;
pub mod result;
pub mod run;
pub mod spec;
pub mod stats;

pub use error::Error;

/// A number without its fraction; the nearest there is, where it is out of range.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "which is what this is for: `as` saturates"
)]
pub(crate) const fn whole(number: f64) -> u64 {
    number as u64
}
