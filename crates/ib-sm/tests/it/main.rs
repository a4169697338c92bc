//! Tests of ib-sm.

mod hostile;
mod peer;
mod walk;
