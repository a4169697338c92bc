//! The labs, with assertions on what the peers print.

mod ibsim;
mod qemu;
mod skip;
