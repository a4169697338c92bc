//! Reports as text.

pub(in crate::cli) mod compare;
pub(in crate::cli) mod measure;
pub(in crate::cli) mod perftest;
