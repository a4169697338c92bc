//! Tests of ib-mad.

mod client;
mod fault;
mod wire;
mod world;
