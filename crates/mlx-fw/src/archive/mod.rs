//! Archives: images of many boards in one file.
//!
//! Only MFA2 is read; the first MFA is recognised by [`detect`](crate::image::detect). To add it:
//! `mfa.rs` beside this file.

pub mod mfa2;
