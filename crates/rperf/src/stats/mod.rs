//! Statistics: pure functions of what was measured.
//!
//! Times are nanoseconds. Nothing here knows a clock, a file, or chance.
//!
//! - [`Histogram`]: where the hot path records; [`Distribution`]: what was recorded.

mod distribution;
mod grid;
mod histogram;
mod quantile;

pub use distribution::{Distribution, Step};
pub use grid::{Grid, GridError};
pub use histogram::Histogram;
pub use quantile::Quantile;
