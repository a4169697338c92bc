//! What connects the state machines with a port.

pub mod driver;
pub mod manage;
#[cfg(feature = "sim")]
pub mod serve;
