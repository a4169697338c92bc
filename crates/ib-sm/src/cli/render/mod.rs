//! Reports as text.

pub(super) mod topology;
