//! Tests of rdma-host.

mod ibsim;
mod select;
mod sysfs;
