//! The receiving end, of a queue pair or shared.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use rverbs_sys::ibv_recv_wr;
use rverbs_sys::inline::{ibv_post_recv, ibv_post_srq_recv};

use crate::mr::Buf;
use crate::provider::{Errno, native, small};
use crate::srq::SrqInner;
use crate::wc::{Success, Wc, WcError};

use super::QpInner;
use super::queue::{COUNT_MASK, PostError, serial};

/// Where receive requests are posted.
#[derive(Debug)]
pub(crate) enum Target {
    Qp(Arc<QpInner>),
    Srq(Arc<SrqInner>),
}

/// The receiving end of a queue pair, or a shared receive queue's only end.
pub struct RecvQueue<B: Buf> {
    target: Target,
    slots: Box<[Slot<B>]>,
    serial: u64,
    posted: u64,
    in_flight: u64,
    depth: u64,
    max_sge: usize,
    not_sync: PhantomData<Cell<()>>,
}

struct Slot<B> {
    count: u64,
    buf: Option<B>,
}

impl<B: Buf> fmt::Debug for RecvQueue<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvQueue")
            .field("posted", &self.posted)
            .field("in_flight", &self.in_flight)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl<B: Buf> RecvQueue<B> {
    pub(crate) fn new(target: Target, depth: u32, max_sge: u32) -> Self {
        let slots = (depth.max(1) as usize).next_power_of_two();
        Self {
            target,
            slots: (0..slots)
                .map(|_| Slot {
                    count: 0,
                    buf: None,
                })
                .collect(),
            serial: serial(),
            posted: 0,
            in_flight: 0,
            depth: depth.into(),
            max_sge: max_sge as usize,
            not_sync: PhantomData,
        }
    }

    /// How many requests can be posted now.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.depth - self.in_flight
    }

    /// How many requests wait for a message.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Posts a buffer for a message.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer: `ENOMEM` when the queue is full, `EINVAL` in state RESET.
    #[inline]
    pub fn post(&mut self, buf: B) -> Result<(), PostError<B>> {
        let at = native(self.posted) & (self.slots.len() - 1);
        let full = self.in_flight >= self.depth;
        let Some(slot) = self
            .slots
            .get_mut(at)
            .filter(|slot| !full && slot.buf.is_none())
        else {
            let errno = Errno(libc::ENOMEM);
            return Err(PostError { errno, buf });
        };
        let mut entries = buf.entries();
        let list = entries.as_mut();
        if list.len() > self.max_sge {
            let errno = Errno(libc::EINVAL);
            return Err(PostError { errno, buf });
        }
        let mut wr = ibv_recv_wr {
            wr_id: self.serial | self.posted & COUNT_MASK,
            next: core::ptr::null_mut(),
            sg_list: list.as_mut_ptr(),
            num_sge: small(list.len()).cast_signed(),
        };
        let mut bad = core::ptr::null_mut();
        // SAFETY: the queue is live; the buffer's memory stays registered, and nobody's but the
        // device's, since the value is kept in its slot until the completion, or parked until the
        // queue is destroyed.
        let code = unsafe {
            match &self.target {
                Target::Qp(qp) => ibv_post_recv(qp.raw.as_ptr(), &raw mut wr, &raw mut bad),
                Target::Srq(srq) => ibv_post_srq_recv(srq.raw.as_ptr(), &raw mut wr, &raw mut bad),
            }
        };
        if code != 0 {
            let errno = Errno(code.saturating_abs());
            return Err(PostError { errno, buf });
        }
        slot.buf = Some(buf);
        slot.count = self.posted;
        self.posted += 1;
        self.in_flight += 1;
        Ok(())
    }

    /// Takes a completion, and gives the buffer back. `None` where it is not of this queue, or of a
    /// request that is done already.
    #[inline]
    pub fn complete(&mut self, wc: &Wc) -> Option<(Result<Success, WcError>, B)> {
        let id = wc.wr_id();
        if id & !COUNT_MASK != self.serial {
            return None;
        }
        let at = native(id) & (self.slots.len() - 1);
        let slot = self.slots.get_mut(at)?;
        if slot.count & COUNT_MASK != id & COUNT_MASK {
            return None;
        }
        let buf = slot.buf.take()?;
        self.in_flight -= 1;
        Some((wc.result(), buf))
    }
}

impl<B: Buf> RecvQueue<B> {
    /// Takes all buffers back, since the device forgot them.
    pub(super) fn abandon(&mut self) -> Vec<B> {
        self.in_flight = 0;
        let slots = self.slots.iter_mut();
        slots.filter_map(|slot| slot.buf.take()).collect()
    }
}

impl<B: Buf> Drop for RecvQueue<B> {
    fn drop(&mut self) {
        if self.in_flight > 0 {
            // The device still uses them: they go when the queue is destroyed.
            let slots = Box::new(core::mem::take(&mut self.slots));
            let bufs: Vec<B> = slots.into_iter().filter_map(|slot| slot.buf).collect();
            match &self.target {
                Target::Qp(qp) => qp.park(Box::new(bufs)),
                Target::Srq(srq) => srq.park(Box::new(bufs)),
            }
        }
    }
}
