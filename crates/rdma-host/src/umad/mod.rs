//! The kernel's MAD devices, `/dev/infiniband/umadN`.
//!
//! Facts are from `include/uapi/rdma/ib_user_mad.h` and `drivers/infiniband/core/user_mad.c` of
//! Linux. Under ibsim's preload library the same code reaches the simulator; only the header is
//! the old one then, since the library never learns of the new.

mod abi;
mod list;
mod port;

pub use list::{UmadDevice, list, pick};
pub use port::UmadPort;
