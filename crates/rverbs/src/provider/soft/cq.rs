//! Completion queues.
//!
//! Completions come two ways. A transport that finds one while the user polls gives it to the
//! [`Sink`], straight into the user's array. One that finds it at another time, on its own thread,
//! pushes it into the ring. Polling drains the ring first.

use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;

use rverbs_sys::{IBV_EVENT_CQ_ERR, ibv_cq, ibv_wc};

use super::channel::{Channel, CqEvent};
use super::lock::Lock;
use super::object::{Object, Users, object};
use super::qp::Qp;
use super::{Context, Transport};

/// A completion queue.
#[repr(C)]
pub struct Cq<T: Transport> {
    pub(super) raw: UnsafeCell<ibv_cq>,
    /// The device.
    pub context: Arc<Context<T>>,
    /// Where events go.
    pub channel: Option<Arc<Channel>>,
    ring: Lock<VecDeque<ibv_wc>>,
    waiting: AtomicU32,
    /// 0: no event is asked for; 1: at any completion; 2: at a solicited one or an error.
    armed: AtomicU32,
    /// The queue pairs that use it, each once. Held while polling.
    pub(super) poll: Lock<Vec<Arc<Qp<T>>>>,
    pub(super) depth: AtomicU32,
    pub(super) user: usize,
    pub(super) users: Users,
    /// Events that were taken and not acknowledged.
    pub(super) unacked: AtomicU32,
}

object! { Cq ibv_cq; }

impl<T: Transport> fmt::Debug for Cq<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cq")
            .field("waiting", &self.waiting)
            .field("armed", &self.armed)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl<T: Transport> Cq<T> {
    pub(super) fn new(
        raw: ibv_cq,
        context: Arc<Context<T>>,
        channel: Option<Arc<Channel>>,
        depth: u32,
        user: usize,
    ) -> Self {
        Self {
            raw: UnsafeCell::new(raw),
            context,
            channel,
            ring: Lock::new(VecDeque::with_capacity(depth as usize)),
            waiting: AtomicU32::new(0),
            armed: AtomicU32::new(0),
            poll: Lock::new(Vec::new()),
            depth: AtomicU32::new(depth),
            user,
            users: Users::default(),
            unacked: AtomicU32::new(0),
        }
    }

    /// Completions in the ring.
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Acquire)
    }

    /// What event is asked for: 0 none, 1 at any completion, 2 at a solicited one or an error.
    #[inline]
    #[must_use]
    pub fn armed(&self) -> u32 {
        self.armed.load(Ordering::SeqCst)
    }

    /// Puts a completion into the ring, and gives the event that was asked for.
    ///
    /// A ring that overflows loses the completion and gives `IBV_EVENT_CQ_ERR`, as an adapter does.
    pub fn push(&self, wc: ibv_wc, solicited: bool) {
        let mut ring = self.ring.lock();
        if ring.len() >= self.depth.load(Ordering::Relaxed) as usize {
            drop(ring);
            self.context.cq_event(self, IBV_EVENT_CQ_ERR);
            return;
        }
        ring.push_back(wc);
        self.waiting.fetch_add(1, Ordering::Release);
        drop(ring);
        self.notify(solicited || wc.status != 0);
    }

    /// Gives the event that was asked for, where this completion is one that it was asked for.
    #[inline]
    pub fn notify(&self, solicited: bool) {
        match self.armed() {
            0 => {}
            2 if !solicited => {}
            _ => self.fire(),
        }
    }

    #[cold]
    fn fire(&self) {
        if self.armed.swap(0, Ordering::SeqCst) == 0 {
            return;
        }
        if let Some(channel) = &self.channel {
            channel.notices.push(CqEvent {
                cq: self.raw.get().addr(),
                user: self.user,
            });
        }
    }

    pub(super) fn set_armed(&self, solicited_only: bool) {
        let wanted = if solicited_only { 2 } else { 1 };
        // "Any" is not weakened by a later "solicited only".
        if self.armed.load(Ordering::Relaxed) != 1 {
            self.armed.store(wanted, Ordering::SeqCst);
        }
    }

    /// Moves completions from the ring to the user's array.
    #[inline]
    pub(super) fn drain(&self, sink: &mut Sink<'_>) {
        if self.waiting() == 0 {
            return;
        }
        let mut ring = self.ring.lock();
        while sink.room() > 0
            && let Some(wc) = ring.pop_front()
        {
            self.waiting.fetch_sub(1, Ordering::Release);
            sink.put(wc);
        }
    }

    /// Forgets the completions of a queue pair.
    pub(super) fn forget(&self, qpn: u32) {
        let mut ring = self.ring.lock();
        let before = ring.len();
        ring.retain(|wc| wc.qp_num != qpn);
        let gone = u32::try_from(before - ring.len()).unwrap_or(u32::MAX);
        self.waiting.fetch_sub(gone, Ordering::Release);
    }

    /// A completion for a poller, in order with those that were pushed before it. The caller holds
    /// the lock under which the transport makes completions for this queue of the queue pair.
    #[inline]
    pub fn give(&self, wc: ibv_wc, solicited: bool, sink: Option<&mut Sink<'_>>) {
        match sink {
            Some(sink) if sink.room() > 0 && sink.serves(self) && self.waiting() == 0 => {
                sink.put(wc);
                // Who asked for an event gets one, even for a completion that polling finds itself:
                // an adapter cannot know that the user was looking, and programs count events.
                self.notify(solicited || wc.status != 0);
            }
            _ => self.push(wc, solicited),
        }
    }
}

/// The user's array of completions.
pub struct Sink<'a> {
    next: *mut ibv_wc,
    room: u32,
    cq: *const (),
    array: PhantomData<&'a mut [ibv_wc]>,
}

impl fmt::Debug for Sink<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink")
            .field("room", &self.room)
            .finish_non_exhaustive()
    }
}

impl Sink<'_> {
    /// # Safety
    ///
    /// `array` has room for `room` completions.
    pub(super) unsafe fn new<T: Transport>(cq: &Cq<T>, array: *mut ibv_wc, room: u32) -> Self {
        Self {
            next: array,
            room,
            cq: core::ptr::from_ref(cq).cast(),
            array: PhantomData,
        }
    }

    /// How many completions still fit.
    #[inline]
    #[must_use]
    pub fn room(&self) -> u32 {
        self.room
    }

    /// Whether this array is for completions of that queue.
    #[inline]
    #[must_use]
    pub fn serves<T: Transport>(&self, cq: &Cq<T>) -> bool {
        core::ptr::eq(self.cq, core::ptr::from_ref(cq).cast())
    }

    /// Gives a completion. Beyond the room it is lost, so ask first.
    #[inline]
    pub fn put(&mut self, wc: ibv_wc) {
        if self.room > 0 {
            // SAFETY: `new` was promised room, and `room` counts what is left of it.
            unsafe { self.next.write(wc) };
            self.next = self.next.wrapping_add(1);
            self.room -= 1;
        }
    }
}
