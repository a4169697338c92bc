//! Reports as text.

pub(super) mod extract;
pub mod flint;
pub(super) mod list;
pub(super) mod query;
pub(super) mod verify;
