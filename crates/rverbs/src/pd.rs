//! Protection domains.

use std::ptr::NonNull;
use std::sync::Arc;

use rverbs_sys::ibv_pd;

use crate::Error;
use crate::device::Context;

/// What memory and queue pairs must share to be used together.
#[derive(Debug, Clone)]
#[doc(alias = "ibv_pd")]
pub struct Pd(pub(crate) Arc<PdInner>);

#[derive(Debug)]
pub(crate) struct PdInner {
    pub(crate) context: Context,
    pub(crate) raw: NonNull<ibv_pd>,
}

// SAFETY: verbs may be called from any thread, and nobody writes the struct.
unsafe impl Send for PdInner {}
// SAFETY: as above.
unsafe impl Sync for PdInner {}

impl Context {
    /// Makes a protection domain.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_alloc_pd")]
    pub fn alloc_pd(&self) -> Result<Pd, Error> {
        let raw = self.0.alloc_pd().map_err(Error::verb("ibv_alloc_pd"))?;
        Ok(Pd(Arc::new(PdInner {
            context: self.clone(),
            raw,
        })))
    }
}

impl Pd {
    /// The device.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The C struct.
    #[must_use]
    pub fn as_raw(&self) -> NonNull<ibv_pd> {
        self.0.raw
    }
}

impl Drop for PdInner {
    fn drop(&mut self) {
        // SAFETY: whatever was made in the domain holds it, so this is the last use. Where it fails
        // all the same, the domain is leaked, which harms nobody.
        let _ = unsafe { self.context.0.dealloc_pd(self.raw) };
    }
}
