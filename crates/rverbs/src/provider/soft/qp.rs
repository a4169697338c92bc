//! Queue pairs.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use rverbs_sys::{
    IBV_QPS_ERR, ibv_event_type, ibv_qp, ibv_qp_attr, ibv_qp_cap, ibv_qp_state, ibv_qp_type,
};

use super::Transport;
use super::cq::Cq;
use super::lock::Lock;
use super::object::{Object, Pd, object};
use super::queue::RecvQueue;
use super::srq::Srq;

/// What a queue pair is made with.
#[derive(Clone, Copy)]
pub struct NewQp {
    /// `ibv_qp_type`: RC, UC or UD.
    pub kind: ibv_qp_type,
    /// Sizes, checked against the limits of the device.
    pub cap: ibv_qp_cap,
    /// Number of the protection domain.
    pub pd: u32,
}

impl fmt::Debug for NewQp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewQp")
            .field("kind", &self.kind)
            .field("pd", &self.pd)
            .finish_non_exhaustive()
    }
}

/// A queue pair.
#[repr(C)]
pub struct Qp<T: Transport> {
    pub(super) raw: UnsafeCell<ibv_qp>,
    /// Its domain, and by it the device.
    pub pd: Arc<Pd<T>>,
    /// Where send requests complete.
    pub send_cq: Arc<Cq<T>>,
    /// Where receive requests complete.
    pub recv_cq: Arc<Cq<T>>,
    /// Where receive requests come from, when not from [`Qp::rq`].
    pub srq: Option<Arc<Srq<T>>>,
    /// Its own receive requests.
    pub rq: RecvQueue,
    /// Its number.
    pub qpn: u32,
    /// `ibv_qp_type`.
    pub kind: ibv_qp_type,
    /// Sizes.
    pub cap: ibv_qp_cap,
    /// Whether every send request makes a completion.
    pub sq_sig_all: bool,
    pub(super) state: AtomicU32,
    pub(super) attr: Lock<ibv_qp_attr>,
    /// Held through a transition.
    pub(super) modify: Lock<()>,
    pub(super) unacked: AtomicU32,
    /// The transport's part.
    pub engine: T::Qp,
}

object! { Qp ibv_qp; }

impl<T: Transport> fmt::Debug for Qp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Qp")
            .field("qpn", &self.qpn)
            .field("kind", &self.kind)
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

impl<T: Transport> Qp<T> {
    /// `ibv_qp_state`.
    #[inline]
    #[must_use]
    pub fn state(&self) -> ibv_qp_state {
        self.state.load(Ordering::Acquire)
    }

    /// The attributes that were set so far.
    #[must_use]
    pub fn attr(&self) -> ibv_qp_attr {
        *self.attr.lock()
    }

    /// The address of the C struct, which is what events name.
    #[must_use]
    pub fn raw(&self) -> *mut ibv_qp {
        self.raw.get()
    }

    /// Moves to another state. C programs read the field in the struct, ours the atomic.
    pub fn set_state(&self, state: ibv_qp_state) {
        self.state.store(state, Ordering::SeqCst);
        // SAFETY: the pointer is our own struct's; C programs only read the field, and an aligned
        // word is never seen half written.
        unsafe { (&raw mut (*self.raw.get()).state).write_volatile(state) };
    }

    /// Moves to ERR because of what happened, once; returns whether this call did it.
    pub fn fail(&self) -> bool {
        let before = self.state.swap(IBV_QPS_ERR, Ordering::SeqCst);
        self.set_state(IBV_QPS_ERR);
        before != IBV_QPS_ERR
    }

    /// Gives an asynchronous event about this queue pair.
    pub fn event(&self, event: ibv_event_type) {
        self.pd.context.qp_event(self, event);
    }
}
