//! The receive queue: requests with their scatter lists, in memory that is laid out once.
//!
//! Posting and taking may happen on two threads at the same time without a lock between them:
//! posts exclude each other by a lock of their own, and takers are excluded by the caller.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};

use rverbs_sys::{ibv_recv_wr, ibv_sge};

use crate::provider::Errno;

use super::lock::Lock;

struct Slot {
    wr_id: u64,
    sges: u32,
}

/// A ring of receive requests.
pub struct RecvQueue {
    slots: Box<[UnsafeCell<Slot>]>,
    sges: Box<[UnsafeCell<ibv_sge>]>,
    /// How many were ever posted, modulo 2³².
    posted: AtomicU32,
    /// How many were ever taken, modulo 2³².
    taken: AtomicU32,
    /// Requests that fit: what the user asked for, not what the ring could hold.
    depth: u32,
    max_sge: u32,
    posting: Lock<()>,
}

// SAFETY: a slot between `taken` and `posted` belongs to the taker, any other to the poster; each
// side is one thread at a time, and the counters hand slots over with release and acquire.
unsafe impl Sync for RecvQueue {}
// SAFETY: nothing in it is bound to a thread.
unsafe impl Send for RecvQueue {}

impl fmt::Debug for RecvQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvQueue")
            .field("posted", &self.posted)
            .field("taken", &self.taken)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

/// The oldest receive request.
#[derive(Clone, Copy)]
pub struct Recv<'a> {
    /// What the user called it.
    pub wr_id: u64,
    /// Where the message goes. Not checked yet.
    pub sges: &'a [ibv_sge],
}

impl fmt::Debug for Recv<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recv")
            .field("wr_id", &self.wr_id)
            .field("sges", &self.sges.len())
            .finish()
    }
}

impl RecvQueue {
    /// A queue for `depth` requests of up to `max_sge` entries each.
    #[must_use]
    pub fn new(depth: u32, max_sge: u32) -> Self {
        let slots = depth.max(1).next_power_of_two() as usize;
        let width = max_sge.max(1) as usize;
        Self {
            slots: (0..slots)
                .map(|_| UnsafeCell::new(Slot { wr_id: 0, sges: 0 }))
                .collect(),
            sges: (0..slots * width)
                .map(|_| UnsafeCell::new(ibv_sge::default()))
                .collect(),
            posted: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            depth,
            max_sge,
            posting: Lock::new(()),
        }
    }

    /// How many requests wait.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.posted
            .load(Ordering::Acquire)
            .wrapping_sub(self.taken.load(Ordering::Acquire))
    }

    /// Whether no request waits.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn at(&self, count: u32) -> (*mut Slot, *mut ibv_sge) {
        let index = count as usize & (self.slots.len() - 1);
        let width = self.max_sge.max(1) as usize;
        // `slots` is a power of two long and `sges` that times the width, so both are in bounds.
        (
            UnsafeCell::raw_get(self.slots.as_ptr().wrapping_add(index)),
            UnsafeCell::raw_get(self.sges.as_ptr().wrapping_add(index * width)),
        )
    }

    /// Posts a list of requests.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the queue is full and `EINVAL` for too many entries, with the first request
    /// that was not taken.
    ///
    /// # Safety
    ///
    /// `wr` is a list as for `ibv_post_recv`: each request and its scatter list can be read.
    pub unsafe fn post(&self, wr: *mut ibv_recv_wr) -> Result<(), (Errno, *mut ibv_recv_wr)> {
        let _posting = self.posting.lock();
        let mut posted = self.posted.load(Ordering::Relaxed);
        let mut next = wr;
        let mut result = Ok(());
        // SAFETY: the caller's list can be read.
        while let Some(request) = unsafe { next.as_ref() } {
            let entries = u32::try_from(request.num_sge).unwrap_or(u32::MAX);
            if entries > self.max_sge {
                result = Err((Errno(libc::EINVAL), next));
                break;
            }
            if posted.wrapping_sub(self.taken.load(Ordering::Acquire)) >= self.depth {
                result = Err((Errno(libc::ENOMEM), next));
                break;
            }
            let (slot, sges) = self.at(posted);
            // SAFETY: the slot is free, so it is the poster's, and this is the only poster.
            unsafe {
                *slot = Slot {
                    wr_id: request.wr_id,
                    sges: entries,
                };
            }
            if entries > 0 {
                // SAFETY: the caller's list holds that many entries, the slot has room for them.
                unsafe { sges.copy_from_nonoverlapping(request.sg_list, entries as usize) };
            }
            posted = posted.wrapping_add(1);
            next = request.next;
        }
        self.posted.store(posted, Ordering::Release);
        result
    }

    /// The oldest request, which stays in the queue.
    ///
    /// # Safety
    ///
    /// The caller excludes other takers until it is done with the request.
    #[inline]
    #[must_use]
    pub unsafe fn front(&self) -> Option<Recv<'_>> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken == self.posted.load(Ordering::Acquire) {
            return None;
        }
        let (slot, sges) = self.at(taken);
        // SAFETY: a slot between `taken` and `posted` is the taker's, who is the caller.
        let slot = unsafe { &*slot };
        Some(Recv {
            wr_id: slot.wr_id,
            // SAFETY: as above; the poster wrote that many entries.
            sges: unsafe { core::slice::from_raw_parts(sges, slot.sges as usize) },
        })
    }

    /// Takes the oldest request out.
    ///
    /// # Safety
    ///
    /// The caller excludes other takers, and is done with what [`RecvQueue::front`] gave.
    #[inline]
    pub unsafe fn pop(&self) {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken != self.posted.load(Ordering::Acquire) {
            self.taken.store(taken.wrapping_add(1), Ordering::Release);
        }
    }

    /// Forgets all requests, as a transition to RESET does.
    ///
    /// # Safety
    ///
    /// The caller excludes other takers.
    pub unsafe fn clear(&self) {
        let _posting = self.posting.lock();
        self.taken
            .store(self.posted.load(Ordering::Relaxed), Ordering::Release);
    }
}
