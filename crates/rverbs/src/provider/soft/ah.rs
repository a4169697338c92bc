//! Address handles.

use core::cell::UnsafeCell;
use core::fmt;
use std::sync::Arc;

use rverbs_sys::{ibv_ah, ibv_ah_attr};

use super::Transport;
use super::object::{Object, Pd, object};

/// An address handle.
#[repr(C)]
pub struct Ah<T: Transport> {
    pub(super) raw: UnsafeCell<ibv_ah>,
    /// Its domain.
    pub pd: Arc<Pd<T>>,
    /// The address.
    pub attr: ibv_ah_attr,
}

object! { Ah ibv_ah; }

impl<T: Transport> Ah<T> {
    /// The GID of the destination, where the address has one.
    #[must_use]
    pub fn dgid(&self) -> Option<[u8; 16]> {
        // SAFETY: all bytes of the union are in `raw`.
        let raw = unsafe { self.attr.grh.dgid.raw };
        (self.attr.is_global != 0).then_some(raw)
    }
}

impl<T: Transport> fmt::Debug for Ah<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ah")
            .field("dlid", &self.attr.dlid)
            .field("dgid", &self.dgid())
            .finish_non_exhaustive()
    }
}
