//! State machines that know no clock, file, socket or thread.

#![warn(clippy::indexing_slicing)]

pub mod discovery;
pub mod sm;
pub mod topology;
