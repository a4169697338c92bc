//! Reports as text.

pub(super) mod topology;
pub(super) mod routing;
