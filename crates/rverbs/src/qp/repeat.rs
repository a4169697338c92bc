//! One request, posted again and again with the same buffer.
//!
//! What a benchmark or a heartbeat does: the request is made once, and posting it costs what it
//! costs in C. The buffer stays with the device all the time, so nothing is moved in or out.

use core::fmt;
use core::mem::MaybeUninit;

use rverbs_sys::{
    IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_SEND, ibv_qp, ibv_send_wr,
};

use crate::ah::Ah;
use crate::mr::{Buf, RemoteRegion};
use crate::provider::Errno;
use crate::wc::{Wc, WcError};

use super::queue::{COUNT_MASK, Flags, PostError, SendQueue, atomic, rdma, serial};
use super::{Connected, PostSend, Rc, Transport, Ud};

/// A request that is posted again and again: see [`SendQueue::repeat_send`] and its siblings.
///
/// It has the queue for itself, and numbers of its own: completions of what the queue posted before
/// are not its own, and the other way round. Dropped with work in flight, its buffer is kept until the
/// queue pair is destroyed; see [`Repeat::finish`].
pub struct Repeat<'q, T: Transport, B: Buf> {
    queue: &'q mut SendQueue<T, B>,
    /// `None` only while it is dropped.
    buf: Option<B>,
    /// The request; its scatter list is in the queue's box. Its `wr_id` is the next number.
    wr: ibv_send_wr,
    qp: *mut ibv_qp,
    post_send: PostSend,
    /// `wr_id` of the oldest request in flight.
    oldest: u64,
    /// Numbers below this can be posted without looking again.
    limit: u64,
    /// The last number and one.
    end: u64,
}

// SAFETY: the pointers lead to what it borrows, which may move to another thread.
unsafe impl<T: Transport, B: Buf> Send for Repeat<'_, T, B> {}

impl<T: Transport, B: Buf> fmt::Debug for Repeat<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeat")
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}

impl<T: Transport, B: Buf> SendQueue<T, B> {
    fn repeat(
        &mut self,
        opcode: u32,
        buf: B,
        fill: impl FnOnce(&mut ibv_send_wr),
    ) -> Result<Repeat<'_, T, B>, PostError<B>> {
        let entries = buf.entries();
        let Some(wr) = self.prepare(0, 0, opcode, 0, entries.as_ref()) else {
            let errno = Errno(libc::EINVAL);
            return Err(PostError { errno, buf });
        };
        fill(wr);
        let first = serial();
        wr.wr_id = first;
        Ok(Repeat {
            wr: *wr,
            qp: self.qp.raw.as_ptr(),
            post_send: self.qp.post_send(),
            limit: first,
            end: first + COUNT_MASK,
            oldest: first,
            buf: Some(buf),
            queue: self,
        })
    }
}

impl<T: Connected, B: Buf> SendQueue<T, B> {
    /// Makes a message that can be sent again and again.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer: `EINVAL` for more pieces than the queue pair was made for.
    pub fn repeat_send(&mut self, buf: B) -> Result<Repeat<'_, T, B>, PostError<B>> {
        self.repeat(IBV_WR_SEND, buf, |_| ())
    }

    /// Makes a write that can be done again and again.
    ///
    /// # Errors
    ///
    /// As [`SendQueue::repeat_send`].
    pub fn repeat_write(
        &mut self,
        buf: B,
        to: RemoteRegion,
    ) -> Result<Repeat<'_, T, B>, PostError<B>> {
        self.repeat(IBV_WR_RDMA_WRITE, buf, |wr| rdma(wr, to))
    }
}

impl<B: Buf> SendQueue<Rc, B> {
    /// Makes a read that can be done again and again.
    ///
    /// # Errors
    ///
    /// As [`SendQueue::repeat_send`].
    pub fn repeat_read(
        &mut self,
        buf: B,
        from: RemoteRegion,
    ) -> Result<Repeat<'_, Rc, B>, PostError<B>> {
        self.repeat(IBV_WR_RDMA_READ, buf, |wr| rdma(wr, from))
    }

    /// Makes an addition that can be done again and again: see [`SendQueue::fetch_add`].
    ///
    /// # Errors
    ///
    /// As [`SendQueue::repeat_send`].
    pub fn repeat_fetch_add(
        &mut self,
        buf: B,
        at: RemoteRegion,
        add: u64,
    ) -> Result<Repeat<'_, Rc, B>, PostError<B>> {
        self.repeat(IBV_WR_ATOMIC_FETCH_AND_ADD, buf, |wr| {
            atomic(wr, at, add, 0);
        })
    }

    /// Makes a comparison that can be done again and again: see [`SendQueue::compare_swap`].
    ///
    /// # Errors
    ///
    /// As [`SendQueue::repeat_send`].
    pub fn repeat_compare_swap(
        &mut self,
        buf: B,
        at: RemoteRegion,
        expected: u64,
        new: u64,
    ) -> Result<Repeat<'_, Rc, B>, PostError<B>> {
        self.repeat(IBV_WR_ATOMIC_CMP_AND_SWP, buf, |wr| {
            atomic(wr, at, expected, new);
        })
    }
}

impl<B: Buf> SendQueue<Ud, B> {
    /// Makes a datagram that can be sent again and again.
    ///
    /// # Errors
    ///
    /// As [`SendQueue::repeat_send`].
    pub fn repeat_send_to(
        &mut self,
        buf: B,
        ah: &Ah,
        qpn: u32,
        qkey: u32,
    ) -> Result<Repeat<'_, Ud, B>, PostError<B>> {
        let ud = self.address(ah, qpn, qkey);
        self.repeat(IBV_WR_SEND, buf, |wr| wr.wr.ud = ud)
    }
}

impl<T: Transport, B: Buf> Repeat<'_, T, B> {
    /// Posts the request once more.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the queue is full, or after 2⁴³ requests; otherwise what the provider said.
    #[inline]
    pub fn post(&mut self, flags: Flags) -> Result<(), Errno> {
        if self.wr.wr_id >= self.limit {
            self.look()?;
        }
        self.wr.send_flags = flags.bits();
        let mut bad = MaybeUninit::uninit();
        // SAFETY: the queue pair is live; the buffer is kept by this value, or by the queue pair, and
        // is not accessible while something is in flight.
        let code = unsafe { (self.post_send)(self.qp, &raw mut self.wr, bad.as_mut_ptr()) };
        if code != 0 {
            return Err(Errno(code.saturating_abs()));
        }
        self.wr.wr_id += 1;
        Ok(())
    }

    /// Looks how much room there is by now.
    #[cold]
    fn look(&mut self) -> Result<(), Errno> {
        self.limit = self.end.min(self.oldest + self.queue.depth);
        if self.wr.wr_id >= self.limit {
            return Err(Errno(libc::ENOMEM));
        }
        Ok(())
    }

    /// Takes a completion. `None` where it is not of this value, or of a request that is done already.
    ///
    /// All requests up to that one are done then.
    #[inline]
    pub fn complete(&mut self, wc: &Wc) -> Option<Result<(), WcError>> {
        let id = wc.wr_id();
        if id < self.oldest || id >= self.wr.wr_id {
            return None;
        }
        self.oldest = id + 1;
        if wc.is_ok() {
            return Some(Ok(()));
        }
        Some(wc.result().map(|_| ()))
    }

    #[cold]
    fn park(&mut self) {
        if let Some(buf) = self.buf.take() {
            self.queue.qp.park(Box::new(buf));
        }
    }

    /// How many times it was posted and is not done.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.wr.wr_id - self.oldest
    }

    /// The buffer, while nothing is in flight.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut B> {
        let idle = self.wr.wr_id == self.oldest;
        self.buf.as_mut().filter(|_| idle)
    }

    /// Ends it and gives the buffer back, unless something is in flight: see [`Repeat::in_flight`].
    pub fn finish(mut self) -> Option<B> {
        if self.wr.wr_id == self.oldest {
            self.buf.take()
        } else {
            None
        }
    }
}

impl<T: Transport, B: Buf> Drop for Repeat<'_, T, B> {
    #[inline]
    fn drop(&mut self) {
        if self.wr.wr_id != self.oldest {
            self.park();
        }
    }
}
