//! The simulator ibsim, reached by its own sockets.
//!
//! ibsim serves a control socket and up to ten data sockets, in the abstract name space of unix
//! sockets or over UDP. A client says which node it sits on, and is then that node's port: it
//! sends and receives MADs. No preload library is needed, and none of its limits apply.
//!
//! Facts are from `include/ibsim.h` and `ibsim/ibsim.c` of linux-rdma/ibsim.

mod port;
mod socket;
mod wire;

pub use port::IbsimPort;
pub use socket::Endpoint;
