//! The chores, run as a user runs them.

mod lab;
