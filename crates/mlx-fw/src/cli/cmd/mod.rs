//! The commands: read, ask the library, print its report.

pub(super) mod checksum;
pub(super) mod extract;
pub(super) mod list;
pub(super) mod query;
pub(super) mod verify;
