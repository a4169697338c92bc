//! Queue pairs.
//!
//! A [`Qp`] is typed by its transport, so that what the transport cannot do does not compile, and has two
//! ends that are used apart: [`SendQueue`] and [`RecvQueue`]. Posting takes `&mut` to an end and moves the
//! buffer in; giving the completion to the same end gives the buffer back. What is in flight is kept
//! until then, whatever else is dropped or forgotten.
//!
//! Requests are numbered: `wr_id` is 20 bits that say which queue posted it and 43 bits that count. So a
//! completion of another queue, or of one that is gone, is told apart and does nothing.

mod attr;
mod batch;
mod builder;
mod queue;
mod recv;
mod repeat;
mod scope;

use core::ffi::c_int;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use rverbs_sys::{IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, ibv_qp, ibv_send_wr};

use crate::cq::Cq;
use crate::mr::{Buf, Slice};
use crate::pd::Pd;
use crate::srq::Srq;

pub use attr::{Address, ConnectAttr, Endpoint};
pub use batch::Batch;
pub use builder::QpBuilder;
pub use queue::{Flags, PostError, SendQueue};
pub use recv::RecvQueue;
pub use repeat::Repeat;
pub use scope::{Scope, ScopedMr, Ticket};

pub(crate) use recv::Target;

mod sealed {
    #[expect(unnameable_types, reason = "so that nobody else can implement it")]
    pub trait Sealed {}
}

/// What a queue pair can do.
pub trait Transport: sealed::Sealed + fmt::Debug + Send + Sync + 'static {
    /// `ibv_qp_type`.
    const KIND: u32;
}

/// A transport between two queue pairs.
pub trait Connected: Transport {}

/// Reliable connection: everything.
#[derive(Debug, Clone, Copy)]
#[doc(alias = "IBV_QPT_RC")]
pub enum Rc {}

/// Unreliable connection: send and write, without a promise.
#[derive(Debug, Clone, Copy)]
#[doc(alias = "IBV_QPT_UC")]
pub enum Uc {}

/// Datagrams: send to anybody.
#[derive(Debug, Clone, Copy)]
#[doc(alias = "IBV_QPT_UD")]
pub enum Ud {}

impl sealed::Sealed for Rc {}
impl sealed::Sealed for Uc {}
impl sealed::Sealed for Ud {}

impl Transport for Rc {
    const KIND: u32 = IBV_QPT_RC;
}

impl Transport for Uc {
    const KIND: u32 = IBV_QPT_UC;
}

impl Transport for Ud {
    const KIND: u32 = IBV_QPT_UD;
}

impl Connected for Rc {}
impl Connected for Uc {}

/// A queue pair. `S` and `R` are what is posted to its two ends.
#[derive(Debug)]
#[doc(alias = "ibv_qp")]
pub struct Qp<T: Transport, S: Buf = Slice, R: Buf = S> {
    /// The sending end.
    pub send: SendQueue<T, S>,
    /// The receiving end. Of a queue pair with a shared receive queue it takes nothing.
    pub recv: RecvQueue<R>,
    handle: Handle<T>,
}

/// A queue pair without its ends: to change and ask about it from elsewhere. Clones are the same one.
#[derive(Debug)]
pub struct Handle<T: Transport> {
    inner: Arc<QpInner>,
    transport: PhantomData<T>,
}

impl<T: Transport> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            transport: PhantomData,
        }
    }
}

pub(crate) struct QpInner {
    pub(crate) pd: Pd,
    send_cq: Cq,
    recv_cq: Cq,
    srq: Option<Srq>,
    raw: NonNull<ibv_qp>,
    qpn: u32,
    /// Buffers of ends that are gone, until the device lets go of them.
    parked: Mutex<Vec<Box<dyn Any + Send>>>,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for QpInner {}
// SAFETY: as above.
unsafe impl Sync for QpInner {}

impl fmt::Debug for QpInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QpInner")
            .field("qpn", &self.qpn)
            .finish_non_exhaustive()
    }
}

/// `post_send` of a context's operations.
type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;

unsafe extern "C" fn no_post_send(
    _: *mut ibv_qp,
    _: *mut ibv_send_wr,
    _: *mut *mut ibv_send_wr,
) -> c_int {
    libc::EOPNOTSUPP
}

impl QpInner {
    /// How its device posts: the operations of a context are what they are while it is open.
    fn post_send(&self) -> PostSend {
        // SAFETY: the queue pair is live, and so is its context.
        let op = unsafe { (*(*self.raw.as_ptr()).context).ops.post_send };
        op.unwrap_or(no_post_send)
    }

    /// Keeps something until the queue pair is destroyed.
    fn park(&self, what: Box<dyn Any + Send>) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        parked.push(what);
    }
}

impl Drop for QpInner {
    fn drop(&mut self) {
        // SAFETY: both ends and all handles hold this, so it is the last use.
        if unsafe { self.pd.context().0.destroy_qp(self.raw) }.is_ok() {
            return;
        }
        // The device may go on using all of it, so all of it is leaked.
        let parked = self
            .parked
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        core::mem::forget(core::mem::take(parked));
        let _ = ManuallyDrop::new((
            self.pd.clone(),
            self.send_cq.clone(),
            self.recv_cq.clone(),
            self.srq.clone(),
        ));
    }
}

impl<T: Transport, S: Buf, R: Buf> Qp<T, S, R> {
    /// Its number.
    #[must_use]
    pub fn qpn(&self) -> u32 {
        self.handle.inner.qpn
    }

    /// The part that can be shared.
    #[must_use]
    pub fn handle(&self) -> &Handle<T> {
        &self.handle
    }

    /// The two ends, for two threads.
    #[must_use]
    pub fn split(self) -> (SendQueue<T, S>, RecvQueue<R>, Handle<T>) {
        (self.send, self.recv, self.handle)
    }
}

impl<T: Transport> Handle<T> {
    /// Its number.
    #[must_use]
    pub fn qpn(&self) -> u32 {
        self.inner.qpn
    }

    /// The C struct.
    #[must_use]
    pub fn as_raw(&self) -> NonNull<ibv_qp> {
        self.inner.raw
    }

    /// Its domain.
    #[must_use]
    pub fn pd(&self) -> &Pd {
        &self.inner.pd
    }

    /// Where send requests complete.
    #[must_use]
    pub fn send_cq(&self) -> &Cq {
        &self.inner.send_cq
    }

    /// Where receive requests complete.
    #[must_use]
    pub fn recv_cq(&self) -> &Cq {
        &self.inner.recv_cq
    }
}
