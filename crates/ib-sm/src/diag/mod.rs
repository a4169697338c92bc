//! What is told about a fabric.
