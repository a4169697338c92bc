//! Statistics: pure functions of what was measured.
//!
//! Times are nanoseconds. Nothing here knows a clock, a file, or chance.
//!
//! - [`Histogram`]: where the hot path records; [`Distribution`]: what was recorded; [`Summary`]:
//!   the numbers of it that people read.
//! - [`Timeline`] and [`Throughput`]: how much, and when.
//! - [`Interval`]: how sure a figure is. [`Outliers`] and [`odd_ones`]: what lies far outside.
//! - [`RankTest`], [`welch`] and [`quotient`]: whether two sets of values differ, and by how much.
//! - [`WarmUp`]: where samples have settled. [`Pace`]: when requests of a limited rate should
//!   start, so that none omits its waiting.

mod distribution;
mod grid;
mod histogram;
mod interval;
mod normal;
mod outlier;
mod pace;
mod quantile;
mod rank_test;
mod summary;
mod throughput;
mod timeline;
mod warmup;

pub use distribution::{Distribution, Step};
pub use grid::{Grid, GridError};
pub use histogram::Histogram;
pub use interval::{Interval, median};
pub use outlier::{Outliers, odd_ones};
pub use pace::Pace;
pub use quantile::Quantile;
pub use rank_test::{RankTest, least_p, quotient, welch};
pub use summary::Summary;
pub use throughput::Throughput;
pub use timeline::{Slice, SliceLatency, Timeline};
pub use warmup::WarmUp;
