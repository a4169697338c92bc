//! Bytes and bits: what every wire structure of this workspace is made of.
//!
//! A structure that comes from outside is declared once, as a plain struct of alignment-1
//! fields, and viewed in place, without a copy:
//!
//! ```
//! use rdma_wire::{Be16, Be64, assert_layout, open_enum, prefix};
//! use bytemuck::{Pod, Zeroable};
//!
//! open_enum! {
//!     /// What kind of node it is (IBTA 14.2.5.3).
//!     pub struct NodeType: u8 { CA = 1, SWITCH = 2, ROUTER = 3 }
//! }
//!
//! /// The head of NodeInfo.
//! #[derive(Clone, Copy, Debug, Pod, Zeroable)]
//! #[repr(C)]
//! pub struct Head { pub base_version: u8, pub class_version: u8, pub node_type: NodeType, pub ports: u8, pub guid: Be64 }
//! assert_layout!(Head, 12);
//!
//! let bytes = [1, 1, 2, 36, 0, 2, 0xc9, 3, 0, 0, 0, 7, 0xff];
//! let (head, rest) = prefix::<Head>("NodeInfo", &bytes)?;
//! assert_eq!(head.node_type, NodeType::SWITCH);
//! assert_eq!(head.guid.get(), 0x0002_c903_0000_0007);
//! assert_eq!(rest, [0xff]);
//! assert_eq!(format!("{:?}", NodeType(9)), "NodeType(0x9)");
//! # Ok::<(), rdma_wire::DecodeError>(())
//! ```
//!
//! - [`Be16`] … [`Be128`]: integers as they stand on the wire, so that any slice casts.
//! - [`open_enum!`]: an enumeration that keeps the values it does not know.
//! - [`assert_layout!`]: size and alignment, checked by the compiler.
//! - [`prefix`] and [`Reader`]: checked views; an error names field and offset.
//! - [`Hexdump`]: bytes for people.
//!
//! **Not here**: anything that knows a protocol, a clock, a file or a socket.

mod be;
mod error;
mod hexdump;
mod layout;
mod open;
mod reader;

pub use be::{Be16, Be24, Be32, Be64, Be128};
pub use error::{DecodeError, Result};
pub use hexdump::Hexdump;
pub use layout::{prefix, slice, view};
pub use reader::Reader;
