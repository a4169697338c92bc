//! The objects of verbs: each function is one call of the provider.
//!
//! An object that the provider makes is C's struct, and its `context` is set to the one that the
//! program opened, so that the program and the inline verbs find the extended context by it.

mod ah;
mod completion;
mod event;
mod memory;
pub(crate) mod qp;
mod srq;

/// Gives an object that the provider just made the context that the program opened.
macro_rules! adopt {
    ($open:expr, $object:expr) => {{
        let object = $object;
        // SAFETY: the provider just made the object, and nobody else has seen it.
        unsafe { (*object.as_ptr()).context = $open.context() };
        object
    }};
}
pub(crate) use adopt;
