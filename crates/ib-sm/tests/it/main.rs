//! Tests of ib-sm.

mod corpus;
mod hostile;
mod peer;
mod scripted;
mod walk;
