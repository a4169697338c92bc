//! Reports as text.

pub(super) mod event;
pub(super) mod routing;
pub(super) mod topology;
