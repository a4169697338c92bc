//! Shared receive queues.

use core::fmt;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use rverbs_sys::{IBV_SRQ_LIMIT, ibv_context, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

use crate::Error;
use crate::mr::Buf;
use crate::pd::Pd;
use crate::qp::{RecvQueue, Target};

/// A shared receive queue, for queue pairs to be made with. Clones are the same one. Its posting end
/// is the [`RecvQueue`] that it comes with.
#[derive(Debug, Clone)]
#[doc(alias = "ibv_srq")]
pub struct Srq(Arc<SrqInner>);

pub(crate) struct SrqInner {
    pd: Pd,
    pub(crate) raw: NonNull<ibv_srq>,
    parked: Mutex<Vec<Box<dyn Any + Send>>>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for SrqInner {}
// SAFETY: as above.
unsafe impl Sync for SrqInner {}

impl fmt::Debug for SrqInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SrqInner").finish_non_exhaustive()
    }
}

impl SrqInner {
    /// Keeps something until the queue is destroyed.
    pub(crate) fn park(&self, what: Box<dyn Any + Send>) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        parked.push(what);
    }
}

impl Drop for SrqInner {
    fn drop(&mut self) {
        // SAFETY: queue pairs and the posting end hold this, so it is the last use.
        if unsafe { self.pd.context().0.destroy_srq(self.raw) }.is_err() {
            let parked = self
                .parked
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner);
            core::mem::forget(core::mem::take(parked));
            core::mem::forget(self.pd.clone());
        }
    }
}

impl Pd {
    /// Makes a shared receive queue and its posting end.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_create_srq")]
    pub fn create_srq<B: Buf>(
        &self,
        depth: u32,
        entries: u32,
    ) -> Result<(Srq, RecvQueue<B>), Error> {
        let mut init = ibv_srq_init_attr::default();
        init.attr.max_wr = depth;
        init.attr.max_sge = entries;
        // SAFETY: the domain is live, and kept by the queue.
        let raw = unsafe { self.context().0.create_srq(self.as_raw(), &mut init) }
            .map_err(Error::verb("ibv_create_srq"))?;
        let inner = Arc::new(SrqInner {
            pd: self.clone(),
            raw,
            parked: Mutex::new(Vec::new()),
        });
        let end = RecvQueue::new(Target::Srq(Arc::clone(&inner)), depth, entries);
        Ok((Srq(inner), end))
    }
}

impl Srq {
    /// The C struct.
    #[must_use]
    pub fn as_raw(&self) -> NonNull<ibv_srq> {
        self.0.raw
    }

    pub(crate) fn context(&self) -> NonNull<ibv_context> {
        self.0.pd.context().0.raw()
    }

    /// Asks for an event when fewer than `limit` requests wait.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_modify_srq")]
    pub fn set_limit(&self, limit: u32) -> Result<(), Error> {
        let attr = ibv_srq_attr {
            srq_limit: limit,
            ..ibv_srq_attr::default()
        };
        let context = &self.0.pd.context().0;
        // SAFETY: the queue is live.
        unsafe { context.modify_srq(self.0.raw, &attr, IBV_SRQ_LIMIT) }
            .map_err(Error::verb("ibv_modify_srq"))
    }
}
