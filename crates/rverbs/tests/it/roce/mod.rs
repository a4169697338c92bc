//! The RoCEv2 protocol.

mod campaign;
mod cm;
mod device;
mod hostile;
mod icrc;
mod link;
mod regions;
#[path = "../../../examples/roce_peer/side.rs"]
mod side;
mod sparing;
mod unreliable;
