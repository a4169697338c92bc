//! Subcommands.

pub(super) mod measure;
//! The verbs.

pub(in crate::cli) mod compare;
pub(in crate::cli) mod report;
