//! Statistics: pure functions of what was measured.
//!
//! Times are nanoseconds. Nothing here knows a clock, a file, or chance.
//!
//! - [`Histogram`]: where the hot path records; [`Distribution`]: what was recorded; [`Summary`]:
//!   the numbers of it that people read.
//! - [`Timeline`] and [`Throughput`]: how much, and when.
//! - [`Interval`]: how sure a figure is. [`Outliers`] and [`odd_ones`]: what lies far outside.
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
pub use summary::Summary;
pub use throughput::Throughput;
pub use timeline::{Slice, SliceLatency, Timeline};
pub use warmup::WarmUp;
