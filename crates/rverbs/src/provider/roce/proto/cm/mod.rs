//! Communication management: how queue pairs of two hosts find each other (IBTA chapter 12), as
//! Linux's rdma_cm uses it.
//!
//! [`Manager`] takes MADs and time and gives MADs and events; the queue pairs are the driver's.

mod connection;
pub mod wire;

pub use connection::{CmError, CmEvent, ConnId, Manager, Params, Private, SidrReply};
