//! The labs, with assertions on what the peers print.

mod child;
mod ibsim;
mod qemu;
mod skip;
