//! What is told about a fabric.
//!
//! - [`report`]: the report of `ib-diag topology`, as data.
//! - [`chassis`]: which nodes share a box.
//! - [`ibnetdiscover`]: the text that the tool of that name prints.

pub mod chassis;
pub mod ibnetdiscover;
pub mod report;
mod voltaire;
