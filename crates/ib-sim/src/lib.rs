//! A simulated InfiniBand fabric.
//!
//! Pure: it knows no clock, file, socket or thread. Text and time come in as arguments, and a
//! seed decides every chance, so that a run with the same seed gives the same bytes.
//!
//! - [`Fabric`]: nodes that answer subnet management, on a virtual clock, with [`Faults`].
//! - [`SimPort`]: a port of it, as an [`ib_mad::MadPort`]; [`SharedFabric`] has many.
//! - [`serve`]: ibsim's client protocol, for programs that know it.
//! - [`trace`]: what was sent and what became of it.
//! - [`topo`]: what a fabric consists of, readers of net files and dumps, generators.
//!
//! **Not here**: reading files, sockets, and anything that a production build needs.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod serve;
pub mod topo;
pub mod trace;

mod agent;
mod error;
mod fabric;
mod fault;
mod port;
mod queue;
mod rng;
mod route;

pub use error::{Error, TopologyError};
pub use fabric::{Config, Counts, Fabric, MAX_PORTS};
pub use fault::{Faults, Flap, NodeFault};
pub use port::{SharedFabric, SimPort};
pub use rng::Rng;
