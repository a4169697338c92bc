//! libibverbs and librdmacm for Rust, loaded at run time.
//!
//! - [`bindings`] (re-exported here): the C declarations, checked in; no build script, no
//!   libclang, no headers needed.
//! - [`Verbs`] and [`Cm`]: the exported functions, found with `dlopen` when asked for. A program
//!   starts on a machine without the libraries and can say what is missing ([`Error`]).
//! - [`inline`]: the verbs that are `static inline` in C and therefore no symbols:
//!   `ibv_post_send`, `ibv_poll_cq` and others. They make the same indirect call as C does, so
//!   loading at run time costs nothing on the data path.
//!
//! ```
//! match rverbs_sys::Verbs::load() {
//!     Ok(verbs) => assert!(verbs.ibv_get_device_list().is_ok()),
//!     Err(error) => eprintln!("{error}"),
//! }
//! ```
//!
//! Everything here is as unsafe as C is; `rverbs` makes it safe.
#![expect(unsafe_code, reason = "this crate is the fence around two C libraries")]

#[expect(
    missing_docs,
    missing_debug_implementations,
    non_camel_case_types,
    non_snake_case,
    reason = "names are C's and documented by its manual pages; its unions cannot print themselves"
)]
pub mod bindings;
pub mod inline;
mod loader;

pub use bindings::*;
pub use loader::{Cm, Error, Verbs};
