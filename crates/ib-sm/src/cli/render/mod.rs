//! Reports as text.

pub(super) mod routing;
pub(super) mod topology;
