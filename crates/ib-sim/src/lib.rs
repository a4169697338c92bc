//! A simulated InfiniBand fabric.
//!
//! Pure: it knows no clock, file, socket or thread. Text and time come in as arguments, and a
//! seed decides every chance, so that a run with the same seed gives the same bytes.
//!
//! - [`topo`]: what a fabric consists of, readers of net files and dumps, generators.
//!
//! **Not here**: reading files, serving the simulation to other programs, and anything that a
//! production build needs.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod topo;

mod error;
mod rng;

pub use error::{Error, TopologyError};
pub use rng::Rng;
