//! The sending end.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

use rverbs_sys::inline::ibv_post_send;
use rverbs_sys::{
    IBV_SEND_FENCE, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED,
    IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
    ibv_send_wr, ibv_send_wr_atomic, ibv_send_wr_imm, ibv_send_wr_rdma, ibv_send_wr_ud, ibv_sge,
};

use crate::ah::Ah;
use crate::mr::{Buf, RemoteRegion};
use crate::provider::{Errno, small};
use crate::wc::{Success, Wc, WcError};

use super::{Connected, QpInner, Rc, Transport, Ud};

/// Bits of `wr_id` that count requests.
pub(super) const COUNT_BITS: u32 = 44;
pub(super) const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The upper bits of `wr_id` for a new queue; never 0.
pub(super) fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let serial = NEXT.fetch_add(1, Ordering::Relaxed) % ((1 << (64 - COUNT_BITS)) - 1) + 1;
    serial << COUNT_BITS
}

/// How a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "ibv_send_flags")]
pub struct Flags(u32);

impl Flags {
    /// Without a completion of its own: it is released by the next one that has.
    pub const SILENT: Self = Self(0);
    /// With a completion.
    pub const SIGNALED: Self = Self(IBV_SEND_SIGNALED);
    /// The receiver gets an event, where it asks for solicited ones only.
    pub const SOLICITED: Self = Self(IBV_SEND_SOLICITED);
    /// Not before reads and atomic operations that were posted before it are done.
    pub const FENCE: Self = Self(IBV_SEND_FENCE);

    /// This and that.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn bits(self) -> u32 {
        self.0
    }
}

impl Default for Flags {
    /// Signaled.
    fn default() -> Self {
        Self::SIGNALED
    }
}

/// Why something was not posted; the buffer comes back.
#[derive(Clone, Copy, thiserror::Error)]
#[error("posting failed")]
pub struct PostError<B> {
    /// What the provider said; `ENOMEM` when the queue is full.
    #[source]
    pub errno: Errno,
    /// What was to be posted.
    pub buf: B,
}

impl<B> fmt::Debug for PostError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostError")
            .field("errno", &self.errno)
            .finish_non_exhaustive()
    }
}

/// The sending end of a queue pair.
///
/// Requests are done in the order in which they were posted. [`SendQueue::complete`] takes a completion
/// and says how it went; [`SendQueue::reclaim`] then gives the buffers back, those of silent requests
/// too.
pub struct SendQueue<T: Transport, B: Buf> {
    pub(super) qp: Arc<QpInner>,
    /// In a box, to be parked as it is.
    pub(super) slots: Box<[Option<B>]>,
    pub(super) serial: u64,
    /// Requests that were ever posted, done and given back.
    pub(super) posted: u64,
    pub(super) done: u64,
    pub(super) tail: u64,
    pub(super) depth: u64,
    pub(super) max_sge: usize,
    pub(super) max_inline: u32,
    /// Where requests are built: one for each slot of a batch.
    pub(super) wrs: Box<[ibv_send_wr]>,
    pub(super) sges: Box<[ibv_sge]>,
    /// Address handles that were used, by address, and the last one.
    ahs: HashMap<usize, Ah>,
    last_ah: usize,
    transport: PhantomData<T>,
    /// It may move to another thread, but two threads may not use it at a time.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: the pointers in the requests lead into its own boxes.
unsafe impl<T: Transport, B: Buf> Send for SendQueue<T, B> {}

impl<T: Transport, B: Buf> fmt::Debug for SendQueue<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendQueue")
            .field("posted", &self.posted)
            .field("done", &self.done)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl<T: Transport, B: Buf> SendQueue<T, B> {
    pub(super) fn new(qp: Arc<QpInner>, depth: u32, max_sge: u32, max_inline: u32) -> Self {
        let slots = (depth as usize).next_power_of_two();
        let width = max_sge.max(1) as usize;
        Self {
            qp,
            slots: (0..slots).map(|_| None).collect(),
            serial: serial(),
            posted: 0,
            done: 0,
            tail: 0,
            depth: depth.into(),
            max_sge: width,
            max_inline,
            wrs: vec![ibv_send_wr::default(); slots].into(),
            sges: vec![ibv_sge::default(); slots * width].into(),
            ahs: HashMap::new(),
            last_ah: 0,
            transport: PhantomData,
            not_sync: PhantomData,
        }
    }

    /// How many requests can be posted now.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.depth - (self.posted - self.tail)
    }

    /// How many requests are not done.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.posted - self.done
    }

    #[inline]
    pub(super) fn slot(&self, count: u64) -> usize {
        crate::provider::native(count) & (self.slots.len() - 1)
    }

    /// Fills the common part of request `index`, whose scatter list is `entries`.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        index: usize,
        count: u64,
        opcode: u32,
        flags: u32,
        entries: &[ibv_sge],
    ) -> Option<&mut ibv_send_wr> {
        let at = index * self.max_sge;
        let list = self.sges.get_mut(at..at + self.max_sge)?;
        list.get_mut(..entries.len())?.copy_from_slice(entries);
        let list = list.as_mut_ptr();
        let wr = self.wrs.get_mut(index)?;
        wr.wr_id = self.serial | count & COUNT_MASK;
        wr.next = core::ptr::null_mut();
        wr.sg_list = list;
        wr.num_sge = small(entries.len()).cast_signed();
        wr.opcode = opcode;
        wr.send_flags = flags;
        Some(wr)
    }

    /// Posts one request.
    #[inline]
    fn post(
        &mut self,
        opcode: u32,
        flags: Flags,
        buf: B,
        fill: impl FnOnce(&mut ibv_send_wr),
    ) -> Result<(), PostError<B>> {
        if self.posted - self.tail >= self.depth && !self.skip() {
            let errno = Errno(libc::ENOMEM);
            return Err(PostError { errno, buf });
        }
        let entries = buf.entries();
        let Some(wr) = self.prepare(0, self.posted, opcode, flags.bits(), entries.as_ref()) else {
            let errno = Errno(libc::EINVAL);
            return Err(PostError { errno, buf });
        };
        fill(wr);
        let mut bad = core::ptr::null_mut();
        // SAFETY: the queue pair is live; the buffer's memory stays registered, and nobody's but
        // the device's, since the value is kept in its slot until the completion, or parked until
        // the queue pair is destroyed.
        let code =
            unsafe { ibv_post_send(self.qp.raw.as_ptr(), self.wrs.as_mut_ptr(), &raw mut bad) };
        if code != 0 {
            let errno = Errno(code.saturating_abs());
            return Err(PostError { errno, buf });
        }
        let slot = self.slot(self.posted);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = Some(buf);
        }
        self.posted += 1;
        Ok(())
    }

    /// Posts one request whose data is copied now.
    #[inline]
    fn post_inline(
        &mut self,
        opcode: u32,
        flags: Flags,
        data: &[u8],
        fill: impl FnOnce(&mut ibv_send_wr),
    ) -> Result<(), Errno> {
        if self.posted - self.tail >= self.depth && !self.skip() {
            return Err(Errno(libc::ENOMEM));
        }
        let length = small(data.len());
        if length > self.max_inline {
            return Err(Errno(libc::EINVAL));
        }
        let sge = ibv_sge {
            addr: data.as_ptr().expose_provenance() as u64,
            length,
            lkey: 0,
        };
        let flags = flags.bits() | IBV_SEND_INLINE;
        let wr = self
            .prepare(0, self.posted, opcode, flags, &[sge])
            .ok_or(Errno(libc::EINVAL))?;
        fill(wr);
        let mut bad = core::ptr::null_mut();
        // SAFETY: the queue pair is live; inline data is read before the call returns.
        let code =
            unsafe { ibv_post_send(self.qp.raw.as_ptr(), self.wrs.as_mut_ptr(), &raw mut bad) };
        Errno::check(code)?;
        self.posted += 1;
        Ok(())
    }

    /// Passes requests that are done and have no buffer to give back. Whether there is room then.
    #[cold]
    fn skip(&mut self) -> bool {
        while self.tail != self.done
            && let slot = self.slot(self.tail)
            && self.slots.get(slot).is_none_or(Option::is_none)
        {
            self.tail += 1;
        }
        self.posted - self.tail < self.depth
    }

    /// Takes a completion. `None` where it is not of this queue, or of a request that is done already.
    ///
    /// All requests up to that one are done then: see [`SendQueue::reclaim`].
    #[inline]
    pub fn complete(&mut self, wc: &Wc) -> Option<Result<Success, WcError>> {
        let id = wc.wr_id();
        if id & !COUNT_MASK != self.serial {
            return None;
        }
        // What the 44 bits of the id say about the full count: requests not done are few.
        let ahead = id.wrapping_sub(self.done) & COUNT_MASK;
        if ahead >= self.posted - self.done {
            return None;
        }
        self.done += ahead + 1;
        Some(wc.result())
    }

    /// Gives the buffer of the oldest request back that is done. Inline requests have none and are
    /// skipped.
    #[inline]
    pub fn reclaim(&mut self) -> Option<B> {
        while self.tail != self.done {
            let slot = self.slot(self.tail);
            self.tail += 1;
            if let Some(buf) = self.slots.get_mut(slot).and_then(Option::take) {
                return Some(buf);
            }
        }
        None
    }

    /// Posts a list as C does, past all bookkeeping.
    ///
    /// Give the requests a `wr_id` below 2⁴⁴, and look at their completions with [`Wc::wr_id`].
    ///
    /// # Errors
    ///
    /// What the provider said.
    ///
    /// # Safety
    ///
    /// `wr` is a list as for `ibv_post_send`; its buffers are registered, and used in no conflicting
    /// way, until their completions; there is room for it in the queue.
    pub unsafe fn post_raw(&mut self, wr: *mut ibv_send_wr) -> Result<(), Errno> {
        let mut bad = core::ptr::null_mut();
        // SAFETY: as the caller promises.
        Errno::check(unsafe { ibv_post_send(self.qp.raw.as_ptr(), wr, &raw mut bad) })
    }
}

impl<T: Transport, B: Buf> SendQueue<T, B> {
    /// Keeps an address handle for as long as the queue pair.
    #[cold]
    fn keep(&mut self, ah: &Ah) {
        let raw = ah.as_raw().addr().get();
        self.ahs.entry(raw).or_insert_with(|| ah.clone());
    }

    /// Takes everything for done, since the device forgot it.
    pub(super) fn abandon(&mut self) {
        self.done = self.posted;
    }
}

impl<T: Transport, B: Buf> Drop for SendQueue<T, B> {
    fn drop(&mut self) {
        if self.posted != self.done {
            // The device still uses them: they go when the queue pair is destroyed.
            let slots = core::mem::take(&mut self.slots);
            self.qp
                .park(Box::new((slots, core::mem::take(&mut self.ahs))));
        }
    }
}

#[inline]
pub(super) fn rdma(wr: &mut ibv_send_wr, remote: RemoteRegion) {
    wr.wr.rdma = ibv_send_wr_rdma {
        remote_addr: remote.addr,
        rkey: remote.rkey,
    };
}

#[inline]
pub(super) fn imm(wr: &mut ibv_send_wr, value: u32) {
    wr.imm = ibv_send_wr_imm {
        imm_data: value.to_be(),
    };
}

impl<T: Connected, B: Buf> SendQueue<T, B> {
    /// Sends a message.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn send(&mut self, buf: B, flags: Flags) -> Result<(), PostError<B>> {
        self.post(IBV_WR_SEND, flags, buf, |_| ())
    }

    /// Sends a message with an immediate.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn send_imm(&mut self, buf: B, value: u32, flags: Flags) -> Result<(), PostError<B>> {
        self.post(IBV_WR_SEND_WITH_IMM, flags, buf, |wr| imm(wr, value))
    }

    /// Sends a message that is copied now.
    ///
    /// # Errors
    ///
    /// `EINVAL` for more than the queue pair was made for, `ENOMEM` when the queue is full.
    #[inline]
    pub fn send_inline(&mut self, data: &[u8], flags: Flags) -> Result<(), Errno> {
        self.post_inline(IBV_WR_SEND, flags, data, |_| ())
    }

    /// Writes to the peer's memory. The peer does not notice.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn write(&mut self, buf: B, to: RemoteRegion, flags: Flags) -> Result<(), PostError<B>> {
        self.post(IBV_WR_RDMA_WRITE, flags, buf, |wr| rdma(wr, to))
    }

    /// Writes to the peer's memory, and completes one of its receive requests with an immediate.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn write_imm(
        &mut self,
        buf: B,
        to: RemoteRegion,
        value: u32,
        flags: Flags,
    ) -> Result<(), PostError<B>> {
        self.post(IBV_WR_RDMA_WRITE_WITH_IMM, flags, buf, |wr| {
            rdma(wr, to);
            imm(wr, value);
        })
    }

    /// Writes data that is copied now to the peer's memory.
    ///
    /// # Errors
    ///
    /// As [`SendQueue::send_inline`].
    #[inline]
    pub fn write_inline(
        &mut self,
        data: &[u8],
        to: RemoteRegion,
        flags: Flags,
    ) -> Result<(), Errno> {
        self.post_inline(IBV_WR_RDMA_WRITE, flags, data, |wr| rdma(wr, to))
    }
}

impl<B: Buf> SendQueue<Rc, B> {
    /// Reads the peer's memory into a buffer.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn read(&mut self, buf: B, from: RemoteRegion, flags: Flags) -> Result<(), PostError<B>> {
        self.post(IBV_WR_RDMA_READ, flags, buf, |wr| rdma(wr, from))
    }

    /// Adds to a word of the peer's memory, whose old value goes into a buffer of 8 bytes.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    pub fn fetch_add(
        &mut self,
        buf: B,
        at: RemoteRegion,
        add: u64,
        flags: Flags,
    ) -> Result<(), PostError<B>> {
        self.post(IBV_WR_ATOMIC_FETCH_AND_ADD, flags, buf, |wr| {
            wr.wr.atomic = ibv_send_wr_atomic {
                remote_addr: at.addr,
                compare_add: add,
                swap: 0,
                rkey: at.rkey,
            };
        })
    }

    /// Replaces a word of the peer's memory where it has the expected value; the old value goes into
    /// a buffer of 8 bytes.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    pub fn compare_swap(
        &mut self,
        buf: B,
        at: RemoteRegion,
        expected: u64,
        new: u64,
        flags: Flags,
    ) -> Result<(), PostError<B>> {
        self.post(IBV_WR_ATOMIC_CMP_AND_SWP, flags, buf, |wr| {
            wr.wr.atomic = ibv_send_wr_atomic {
                remote_addr: at.addr,
                compare_add: expected,
                swap: new,
                rkey: at.rkey,
            };
        })
    }

    /// Sends a message that invalidates a key of the peer's.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    pub fn send_invalidate(&mut self, buf: B, rkey: u32, flags: Flags) -> Result<(), PostError<B>> {
        self.post(IBV_WR_SEND_WITH_INV, flags, buf, |wr| {
            wr.imm = ibv_send_wr_imm {
                invalidate_rkey: rkey,
            };
        })
    }
}

impl<B: Buf> SendQueue<Ud, B> {
    /// Sends a datagram.
    ///
    /// The receiver's buffer has 40 bytes more. The queue pair keeps the address handle from its first
    /// use on.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn send_to(
        &mut self,
        buf: B,
        ah: &Ah,
        qpn: u32,
        qkey: u32,
        flags: Flags,
    ) -> Result<(), PostError<B>> {
        let ud = self.address(ah, qpn, qkey);
        self.post(IBV_WR_SEND, flags, buf, |wr| wr.wr.ud = ud)
    }

    /// Sends a datagram with an immediate.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer.
    #[inline]
    pub fn send_imm_to(
        &mut self,
        buf: B,
        ah: &Ah,
        (qpn, qkey): (u32, u32),
        value: u32,
        flags: Flags,
    ) -> Result<(), PostError<B>> {
        let ud = self.address(ah, qpn, qkey);
        self.post(IBV_WR_SEND_WITH_IMM, flags, buf, |wr| {
            wr.wr.ud = ud;
            imm(wr, value);
        })
    }

    #[inline]
    pub(super) fn address(&mut self, ah: &Ah, qpn: u32, qkey: u32) -> ibv_send_wr_ud {
        let raw = ah.as_raw().addr().get();
        if self.last_ah != raw {
            self.keep(ah);
            self.last_ah = raw;
        }
        ibv_send_wr_ud {
            ah: ah.as_raw().as_ptr(),
            remote_qpn: qpn,
            remote_qkey: qkey,
        }
    }
}
