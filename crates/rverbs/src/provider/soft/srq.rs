//! Shared receive queues.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::AtomicU32;
use std::sync::Arc;

use rverbs_sys::ibv_srq;

use super::Transport;
use super::lock::Lock;
use super::object::{Object, Pd, Users, object};
use super::queue::RecvQueue;

/// A shared receive queue.
#[repr(C)]
pub struct Srq<T: Transport> {
    pub(super) raw: UnsafeCell<ibv_srq>,
    /// Its domain.
    pub pd: Arc<Pd<T>>,
    /// The requests.
    pub queue: RecvQueue,
    /// Held by who takes requests out of [`Srq::queue`].
    pub taking: Lock<()>,
    /// When fewer requests than this wait, an event is given, once; 0 for never.
    pub limit: AtomicU32,
    pub(super) depth: u32,
    pub(super) max_sge: u32,
    pub(super) users: Users,
    pub(super) unacked: AtomicU32,
}

object! { Srq ibv_srq; }

impl<T: Transport> fmt::Debug for Srq<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Srq")
            .field("queue", &self.queue)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
