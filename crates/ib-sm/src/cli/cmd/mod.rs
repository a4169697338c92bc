//! One file a verb.

pub(super) mod ports;
pub(super) mod topology;
