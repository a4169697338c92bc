//! One file a verb.

pub(super) mod ports;
pub(super) mod route;
pub(super) mod run;
pub(super) mod topology;
pub(super) mod verify;
