//! The sending end.

use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::sync::Arc;

use rverbs_sys::inline::ibv_post_send;
use rverbs_sys::{
    IBV_SEND_FENCE, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED,
    IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, ibv_qp,
    ibv_send_wr, ibv_send_wr_atomic, ibv_send_wr_imm, ibv_send_wr_rdma, ibv_send_wr_ud, ibv_sge,
};

use crate::ah::Ah;
use crate::mr::{Buf, RemoteRegion};
use crate::provider::{Errno, small};
use crate::wc::{Success, Wc, WcError};

use super::{Connected, PostSend, QpInner, Rc, Transport, Ud};

/// Bits of `wr_id` that count requests.
const COUNT_BITS: u32 = 43;
pub(super) const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// The upper bits of `wr_id` for a new queue; never 0.
///
/// The bit between them and the count is 0 in every `wr_id`: the number behind a queue's last one is
/// nobody's.
pub(super) fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let shift = COUNT_BITS + 1;
    let serial = NEXT.fetch_add(1, Ordering::Relaxed) % ((1 << (64 - shift)) - 1) + 1;
    serial << shift
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
    /// The bytes are taken along when it is posted: see [`super::QpBuilder::inline`].
    pub const INLINE: Self = Self(IBV_SEND_INLINE);

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
/// too. Where every request is signaled, [`SendQueue::complete_one`] does both.
pub struct SendQueue<T: Transport, B: Buf> {
    /// The request that is posted next, but for what changes. Its `wr_id` is the next number.
    wr: ibv_send_wr,
    /// Numbers below this can be posted without looking again.
    limit: u64,
    /// The number of the oldest request that is not done.
    oldest: u64,
    /// A number's slot: its lowest bits.
    mask: usize,
    /// In a box, to be parked as it is.
    slots: Box<[Option<B>]>,
    raw: *mut ibv_qp,
    post_send: PostSend,
    pub(super) qp: Arc<QpInner>,
    serial: u64,
    /// The number of the oldest request whose buffer was not given back, or an older one.
    tail: Cell<u64>,
    pub(super) depth: u64,
    pub(super) max_sge: usize,
    pub(super) max_inline: u32,
    /// Where the requests of a batch are built, and scatter lists: one for each slot.
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

/// How far it is from one number to a later one.
#[inline]
fn distance(from: u64, to: u64) -> u64 {
    to.wrapping_sub(from) & COUNT_MASK
}

impl<T: Transport, B: Buf> fmt::Debug for SendQueue<T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendQueue")
            .field("in_flight", &self.in_flight())
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

// Numbers of requests: they count up to `COUNT_MASK` and go on at 0.
impl<T: Transport, B: Buf> SendQueue<T, B> {
    pub(super) fn new(qp: Arc<QpInner>, depth: u32, max_sge: u32, max_inline: u32) -> Self {
        let slots = (depth.max(1) as usize).next_power_of_two();
        let width = max_sge.max(1) as usize;
        let serial = serial();
        Self {
            wr: ibv_send_wr {
                wr_id: serial,
                ..ibv_send_wr::default()
            },
            limit: serial,
            oldest: serial,
            mask: slots - 1,
            slots: (0..slots).map(|_| None).collect(),
            raw: qp.raw.as_ptr(),
            post_send: qp.post_send(),
            qp,
            serial,
            tail: Cell::new(serial),
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
        self.depth - distance(self.oldest_kept(), self.wr.wr_id)
    }

    /// How many requests are not done.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        distance(self.oldest, self.wr.wr_id)
    }

    /// The number that comes `ahead` of the next one.
    pub(super) fn number(&self, ahead: usize) -> u64 {
        self.serial | self.wr.wr_id.wrapping_add(ahead as u64) & COUNT_MASK
    }

    /// Counts requests that were posted as a batch.
    pub(super) fn advance(&mut self, by: usize) {
        self.wr.wr_id = self.number(by);
        // The limit may be on the other side of the last number.
        self.limit = self.serial;
    }

    /// The slot of a request.
    #[inline]
    pub(super) fn slot(&mut self, number: u64) -> &mut Option<B> {
        let index = crate::provider::native(number) & self.mask;
        // SAFETY: there are `mask + 1` slots.
        unsafe { self.slots.get_unchecked_mut(index) }
    }

    /// The number of the oldest request whose buffer was not given back.
    fn oldest_kept(&self) -> u64 {
        let mut tail = self.tail.get();
        while distance(tail, self.oldest) != 0
            && let Some(None) = self.slots.get(crate::provider::native(tail) & self.mask)
        {
            tail = self.serial | (tail + 1) & COUNT_MASK;
        }
        self.tail.set(tail);
        tail
    }

    /// Looks how much room there is by now. Returns whether there is any.
    #[cold]
    #[inline(never)]
    fn look(&mut self) -> bool {
        self.wr.wr_id = self.number(0);
        let room = self.room();
        // No further than to the last number, behind which they begin again.
        self.limit = self.wr.wr_id + room.min(COUNT_MASK + 1 - (self.wr.wr_id & COUNT_MASK));
        room != 0
    }

    /// Fills the common part of request `index` of a batch, whose scatter list is `entries`.
    #[inline]
    pub(super) fn prepare(
        &mut self,
        index: usize,
        number: u64,
        opcode: u32,
        flags: u32,
        entries: &[ibv_sge],
    ) -> Option<&mut ibv_send_wr> {
        let list = self.list(index, entries)?;
        let wr = self.wrs.get_mut(index)?;
        wr.wr_id = number;
        wr.next = core::ptr::null_mut();
        wr.sg_list = list;
        wr.num_sge = small(entries.len()).cast_signed();
        wr.opcode = opcode;
        wr.send_flags = flags;
        Some(wr)
    }

    /// Keeps a scatter list. `None` where it is too long.
    fn list(&mut self, index: usize, entries: &[ibv_sge]) -> Option<*mut ibv_sge> {
        let at = index * self.max_sge;
        let list = self.sges.get_mut(at..at + self.max_sge)?;
        list.get_mut(..entries.len())?.copy_from_slice(entries);
        Some(list.as_mut_ptr())
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
        if self.wr.wr_id >= self.limit && !self.look() {
            let errno = Errno(libc::ENOMEM);
            return Err(PostError { errno, buf });
        }
        let slot: *mut Option<B> = self.slot(self.wr.wr_id);
        // SAFETY: the slot is this queue's, and empty, since its last request is done and its buffer
        // was given back. (What a batch left that was forgotten is forgotten too.)
        let buf = unsafe {
            slot.write(Some(buf));
            (*slot).as_ref().unwrap_unchecked()
        };
        if let Some(entry) = buf.entry() {
            self.wr.sg_list = core::ptr::from_ref(entry).cast_mut();
            self.wr.num_sge = 1;
        } else {
            let entries = buf.entries();
            let entries = entries.as_ref();
            let Some(list) = self.list(0, entries) else {
                return Err(self.refused(libc::EINVAL));
            };
            self.wr.sg_list = list;
            self.wr.num_sge = small(entries.len()).cast_signed();
        }
        self.wr.opcode = opcode;
        self.wr.send_flags = flags.bits();
        fill(&mut self.wr);
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair is live; the buffer's memory stays registered, and nobody's but
        // the device's, since the value is kept in its slot until the completion, or parked until
        // the queue pair is destroyed.
        let code = unsafe { (self.post_send)(self.raw, &raw mut self.wr, bad.as_mut_ptr()) };
        if code != 0 {
            return Err(self.refused(code));
        }
        self.wr.wr_id += 1;
        Ok(())
    }

    /// Takes the buffer back that could not be posted.
    #[cold]
    fn refused(&mut self, code: i32) -> PostError<B> {
        let buf = self.slot(self.wr.wr_id).take();
        // SAFETY: it was put there just now.
        let buf = unsafe { buf.unwrap_unchecked() };
        let errno = Errno(code.saturating_abs());
        PostError { errno, buf }
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
        if self.wr.wr_id >= self.limit && !self.look() {
            return Err(Errno(libc::ENOMEM));
        }
        let length = small(data.len());
        if length > self.max_inline {
            return Err(Errno(libc::EINVAL));
        }
        let mut sge = ibv_sge {
            addr: data.as_ptr().expose_provenance() as u64,
            length,
            lkey: 0,
        };
        self.wr.sg_list = &raw mut sge;
        self.wr.num_sge = 1;
        self.wr.opcode = opcode;
        self.wr.send_flags = flags.bits() | IBV_SEND_INLINE;
        fill(&mut self.wr);
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair is live; inline data is read before the call returns.
        let code = unsafe { (self.post_send)(self.raw, &raw mut self.wr, bad.as_mut_ptr()) };
        if code != 0 {
            return Err(Errno(code.saturating_abs()));
        }
        self.wr.wr_id += 1;
        Ok(())
    }

    /// Whether a request is in flight; all before it are done then.
    #[inline]
    fn reach(&mut self, number: u64) -> bool {
        if number == self.oldest {
            number != self.wr.wr_id
        } else {
            self.skip(number)
        }
    }

    #[cold]
    #[inline(never)]
    fn skip(&mut self, number: u64) -> bool {
        let known =
            number & !COUNT_MASK == self.serial && distance(self.oldest, number) < self.in_flight();
        if known {
            self.oldest = number;
        }
        known
    }

    /// Takes a completion. `None` where it is not of this queue, or of a request that is done already.
    ///
    /// All requests up to that one are done then: see [`SendQueue::reclaim`].
    #[inline]
    pub fn complete(&mut self, wc: &Wc) -> Option<Result<Success, WcError>> {
        let id = wc.wr_id();
        if !self.reach(id) {
            return None;
        }
        self.oldest = id + 1;
        Some(wc.result())
    }

    /// Takes a completion, and gives the buffer of its request back (an inline request has none):
    /// [`SendQueue::complete`] and [`SendQueue::reclaim`] in one, at the cost of C's bookkeeping.
    ///
    /// `None` where it is not of this queue, or of a request that is done already. Buffers of silent
    /// requests before it are left to [`SendQueue::reclaim`].
    #[inline]
    pub fn complete_one(&mut self, wc: &Wc) -> Option<(Result<(), WcError>, Option<B>)> {
        let id = wc.wr_id();
        if !self.reach(id) {
            return None;
        }
        self.oldest = id + 1;
        let buf = self.slot(id).take();
        let result = if wc.is_ok() { Ok(()) } else { Err(wc.error()) };
        Some((result, buf))
    }

    /// Gives the buffer of the oldest request back that is done. Inline requests have none and are
    /// skipped.
    #[inline]
    pub fn reclaim(&mut self) -> Option<B> {
        let mut tail = self.tail.get();
        while distance(tail, self.oldest) != 0 {
            let buf = self.slot(tail).take();
            tail = self.serial | (tail + 1) & COUNT_MASK;
            self.tail.set(tail);
            if buf.is_some() {
                return buf;
            }
        }
        None
    }

    /// Posts a list as C does, past all bookkeeping.
    ///
    /// Give the requests a `wr_id` below 2⁴³, and look at their completions with [`Wc::wr_id`].
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
        self.oldest = self.wr.wr_id;
    }
}

impl<T: Transport, B: Buf> Drop for SendQueue<T, B> {
    fn drop(&mut self) {
        if self.in_flight() != 0 {
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
pub(super) fn atomic(wr: &mut ibv_send_wr, remote: RemoteRegion, compare_add: u64, swap: u64) {
    wr.wr.atomic = ibv_send_wr_atomic {
        remote_addr: remote.addr,
        compare_add,
        swap,
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
            atomic(wr, at, add, 0);
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
            atomic(wr, at, expected, new);
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

#[cfg(test)]
mod tests {
    use crate::mr::Access;
    use crate::qp::{Address, ConnectAttr, Qp};

    use super::*;

    /// A queue pair that is connected to itself, whose next number is one of the last.
    #[test]
    fn numbers_go_on_at_the_first_after_the_last() {
        let context = crate::Device::shm().unwrap().open().unwrap();
        let pd = context.alloc_pd().unwrap();
        let cq = context.create_cq(64).unwrap();
        let mut qp: Qp<Rc> = pd.qp(&cq).depth(4, 4).build().unwrap();
        let own = qp.endpoint(1, Address { lid: 1, gid: None });
        let how = ConnectAttr::default();
        qp.init(&how).unwrap();
        qp.connect(&own, &own, &how).unwrap();
        let memory = context.alloc(4096).unwrap();
        let target = pd.register_remote(memory, Access::ALL).unwrap();
        let to = target.export();
        let memory = context.alloc(4096).unwrap();
        let mut slices = pd.register(memory).unwrap().into_slices(8);

        let send = &mut qp.send;
        let first = (send.serial | COUNT_MASK) - 10;
        (send.wr.wr_id, send.oldest, send.limit) = (first, first, first);
        send.tail.set(first);
        let mut wc = Wc::default();
        let mut old = Vec::new();
        for round in 0..60_u8 {
            // Four in flight, singly or as a batch; completed all at once or one by one.
            for at in 0..4_u8 {
                let mut slice = slices.pop().unwrap();
                slice[..2].copy_from_slice(&[round, at]);
                if round % 4 < 2 {
                    send.write(slice, to, Flags::SIGNALED).unwrap();
                } else {
                    let mut batch = send.batch();
                    batch.write(slice, to, Flags::SIGNALED).unwrap();
                    batch.commit().unwrap();
                }
            }
            let full = send.write(slices.pop().unwrap(), to, Flags::SIGNALED);
            slices.push(full.unwrap_err().buf);
            assert_eq!((send.in_flight(), send.room()), (4, 0));
            for at in 0..4_u8 {
                while !cq.poll_one(&mut wc).unwrap() {}
                assert_eq!(wc.wr_id() & !COUNT_MASK, send.serial, "a number of its own");
                assert!(old.iter().all(|old| send.complete(old).is_none()));
                let slice = if round % 2 == 0 {
                    let (result, slice) = send.complete_one(&wc).unwrap();
                    result.unwrap();
                    slice
                } else {
                    send.complete(&wc).unwrap().unwrap();
                    send.reclaim()
                };
                let slice = slice.unwrap();
                assert_eq!(slice[..2], [round, at]);
                slices.push(slice);
                old.push(wc);
            }
            assert!(send.reclaim().is_none());
            assert_eq!((send.in_flight(), send.room()), (0, 4));
        }
        assert!(send.wr.wr_id & COUNT_MASK < 300, "it went past the last");
    }
}
