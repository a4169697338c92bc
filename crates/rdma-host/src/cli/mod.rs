//! What tools need of this crate beyond its library.

mod explain;
