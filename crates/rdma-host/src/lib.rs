//! This Linux host as RDMA sees it.
//!
//! - [`umad`]: the kernel's MAD devices, found in sysfs and opened as a
//!   [`MadPort`](ib_mad::MadPort). Works as well under ibsim's preload library.
//! - [`ibsim`]: the sockets of the simulator ibsim, without any preload.
//! - [`Selector`]: what a user writes to choose one of them, and [`open`].
//! - [`SysRoot`]: where `/sys` and `/dev` are looked for, so that a folder of files can stand in
//!   for a host.
//!
//! **Not here**: protocols. This crate moves bytes; [`ib_mad`] knows what they say.

#[cfg(feature = "cli")]
mod cli;
mod clock;
mod error;
mod fd;
pub mod ibsim;
mod root;
mod select;
pub mod umad;

pub use error::{Error, Result};
pub use root::SysRoot;
pub use select::{ParseSelectorError, Selector, open};
