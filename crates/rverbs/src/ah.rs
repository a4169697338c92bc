//! Address handles: where a datagram goes.

use std::ptr::NonNull;
use std::sync::Arc;

use rverbs_sys::ibv_ah;

use crate::Error;
use crate::pd::Pd;
use crate::qp::Address;

/// Where a datagram goes. Clones are the same one.
#[derive(Debug, Clone)]
#[doc(alias = "ibv_ah")]
pub struct Ah(pub(crate) Arc<AhInner>);

#[derive(Debug)]
pub(crate) struct AhInner {
    pd: Pd,
    raw: NonNull<ibv_ah>,
}

// SAFETY: verbs may be called from any thread, and nobody writes the struct.
unsafe impl Send for AhInner {}
// SAFETY: as above.
unsafe impl Sync for AhInner {}

impl Drop for AhInner {
    fn drop(&mut self) {
        // SAFETY: queues keep the handles that they used, so this is the last use.
        let _ = unsafe { self.pd.context().0.destroy_ah(self.raw) };
    }
}

impl Pd {
    /// Makes an address handle, for a port and an entry of its GID table.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_create_ah")]
    pub fn create_ah(&self, address: &Address, port: u8, sgid_index: u8) -> Result<Ah, Error> {
        let attr = address.attr(port, sgid_index);
        // SAFETY: the domain is live, and kept by the handle.
        let raw = unsafe { self.context().0.create_ah(self.as_raw(), &attr) }
            .map_err(Error::verb("ibv_create_ah"))?;
        Ok(Ah(Arc::new(AhInner {
            pd: self.clone(),
            raw,
        })))
    }
}

impl Ah {
    /// The C struct.
    #[must_use]
    pub fn as_raw(&self) -> NonNull<ibv_ah> {
        self.0.raw
    }
}
