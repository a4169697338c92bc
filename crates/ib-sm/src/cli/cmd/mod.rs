//! One file a verb.

pub(super) mod ports;
pub(super) mod route;
pub(super) mod run;
#[cfg(feature = "sim")]
pub(super) mod simulate;
pub(super) mod topology;
pub(super) mod verify;
