//! Tests of ib-sm.

mod corpus;
mod hostile;
mod manage;
mod peer;
mod routing;
mod routing_dump;
mod scripted;
mod walk;
