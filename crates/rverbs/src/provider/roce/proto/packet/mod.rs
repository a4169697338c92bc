//! What is on the wire: the UDP payload of RoCEv2.

pub mod crc;
pub mod header;
pub mod icrc;
mod opcode;
mod parse;

pub use opcode::{Opcode, Operation};
pub use parse::{Packet, PacketError};
