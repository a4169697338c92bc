//! Subcommands.

pub(super) mod measure;
