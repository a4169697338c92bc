//! InfiniBand subnets: who is there, how it is cabled, and what is wrong with it.
//!
//! - [`core`]: state machines of bytes and time. [`core::discovery`] walks a fabric,
//!   [`core::topology`] is what it finds.
//! - [`run`]: the loop that drives such a machine over a [`MadPort`](ib_mad::MadPort).
//! - [`diag`]: what is told about a fabric: reports, chassis, and the texts of older tools.
//!
//! ```no_run
//! use ib_sm::core::discovery::{Config, Discovery};
//! use ib_sm::run::driver;
//!
//! # fn example(mut port: impl ib_mad::MadPort) -> Result<(), ib_sm::Error> {
//! let found = driver::discover(&mut port, Config::default(), |_| {})?;
//! println!("{} nodes", found.topology.nodes().len());
//! # Ok(()) }
//! ```
//!
//! **Not here**: adapters and sockets (`rdma-host`), wire types (`ib-mad`), simulated fabrics.

#[cfg(feature = "cli")]
pub mod cli;
pub mod core;
pub mod diag;
mod error;
pub mod routing;
pub mod run;

pub use error::{Error, Result};
