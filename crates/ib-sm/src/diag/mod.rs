//! What is told about a fabric.
//!
//! - [`report`]: the report of `ib-diag topology`, as data.
//! - [`ibnetdiscover`]: the text that the tool of that name prints.

pub mod ibnetdiscover;
pub mod report;
