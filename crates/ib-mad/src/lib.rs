//! InfiniBand management datagrams (MADs): what stands on the wire, and who waits for an answer.
//!
//! - [`header`]: the 24 bytes that every MAD starts with.
//! - [`id`]: LIDs, GUIDs, GIDs and partition keys.
//! - [`smp`]: subnet management: directed routes and the attributes of nodes and ports.
//! - [`client`]: many requests in flight, with retries and deadlines, as a state machine that is
//!   given bytes and time and gives back bytes and events.
//! - [`port`]: the one trait between that machine and the world, [`MadPort`]: an adapter, a
//!   simulator or a recording.
//! - [`fault`]: a [`MadPort`] that loses, repeats, delays and damages packets, by a seed.
//!
//! ```
//! use ib_mad::smp::{DrPath, NodeInfo, Smp};
//! use ib_mad::header::AttributeId;
//!
//! // Ask who is behind port 1 of the local node.
//! let path: DrPath = "0,1".parse()?;
//! let request = Smp::get(&path, AttributeId::NODE_INFO, 0);
//! assert_eq!(request.header.class_specific.get(), 0x0001, "hop pointer 0, hop count 1");
//!
//! // An answer's data is viewed in place.
//! let info: &NodeInfo = request.attribute();
//! assert_eq!(info.num_ports, 0);
//! # Ok::<(), ib_mad::smp::DrPathError>(())
//! ```
//!
//! **Not here**: anything that knows a clock, a file, a socket or a thread.

#![warn(clippy::indexing_slicing)]

pub mod client;
pub mod fault;
pub mod header;
pub mod id;
pub mod port;
pub mod smp;
mod time;

pub use client::{Client, Request};
pub use fault::FaultPort;
pub use port::{MadPort, Packet, PortError};
pub use time::Time;

/// The bytes of a MAD without RMPP.
#[doc(alias = "IB_MAD_SIZE")]
pub const MAD_LEN: usize = 256;
