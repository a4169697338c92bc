//! Several requests by one call.

use core::fmt;

use rverbs_sys::inline::ibv_post_send;
use rverbs_sys::{
    IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, ibv_send_wr,
};

use crate::mr::{Buf, RemoteRegion};
use crate::provider::Errno;

use super::queue::{Flags, PostError, SendQueue, imm, rdma};
use super::{Connected, Rc, Transport};

/// Requests that are posted together, as a linked list, by [`Batch::commit`]; dropped without it, none
/// is.
pub struct Batch<'a, T: Transport, B: Buf> {
    queue: &'a mut SendQueue<T, B>,
    count: usize,
}

impl<T: Transport, B: Buf> fmt::Debug for Batch<'_, T, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

impl<T: Transport, B: Buf> SendQueue<T, B> {
    /// Begins a batch.
    #[must_use]
    pub fn batch(&mut self) -> Batch<'_, T, B> {
        Batch {
            queue: self,
            count: 0,
        }
    }
}

impl<T: Transport, B: Buf> Batch<'_, T, B> {
    fn add(
        &mut self,
        opcode: u32,
        flags: Flags,
        buf: B,
        fill: impl FnOnce(&mut ibv_send_wr),
    ) -> Result<&mut Self, PostError<B>> {
        if self.count as u64 >= self.queue.room() {
            let errno = Errno(libc::ENOMEM);
            return Err(PostError { errno, buf });
        }
        let number = self.queue.number(self.count);
        let entries = buf.entries();
        let prepared =
            self.queue
                .prepare(self.count, number, opcode, flags.bits(), entries.as_ref());
        let Some(wr) = prepared else {
            let errno = Errno(libc::EINVAL);
            return Err(PostError { errno, buf });
        };
        fill(wr);
        *self.queue.slot(number) = Some(buf);
        self.count += 1;
        Ok(self)
    }

    /// How many requests are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Posts them.
    ///
    /// # Errors
    ///
    /// What the provider said, with the buffers of those that it did not take; the others are posted.
    pub fn commit(mut self) -> Result<(), PostError<Vec<B>>> {
        let count = core::mem::take(&mut self.count);
        if count == 0 {
            return Ok(());
        }
        let queue = &mut *self.queue;
        let first = queue.wrs.as_mut_ptr();
        for (index, wr) in queue.wrs.iter_mut().take(count - 1).enumerate() {
            wr.next = first.wrapping_add(index + 1);
        }
        let mut bad = core::ptr::null_mut();
        // SAFETY: the queue pair is live, the list ends at the last of `count` requests; their
        // buffers are in their slots until the completion, or parked.
        let code = unsafe { ibv_post_send(queue.qp.raw.as_ptr(), first, &raw mut bad) };
        if code == 0 {
            queue.advance(count);
            return Ok(());
        }
        let width = size_of::<ibv_send_wr>();
        let taken = (bad.addr().wrapping_sub(first.addr()) / width).min(count);
        queue.advance(taken);
        let mut buf = Vec::new();
        for at in 0..count - taken {
            let number = queue.number(at);
            buf.extend(queue.slot(number).take());
        }
        let errno = Errno(code.saturating_abs());
        Err(PostError { errno, buf })
    }
}

impl<T: Transport, B: Buf> Drop for Batch<'_, T, B> {
    fn drop(&mut self) {
        for at in 0..self.count {
            let number = self.queue.number(at);
            *self.queue.slot(number) = None;
        }
    }
}

impl<T: Connected, B: Buf> Batch<'_, T, B> {
    /// A message.
    ///
    /// # Errors
    ///
    /// [`PostError`] with the buffer; what is in the batch stays.
    pub fn send(&mut self, buf: B, flags: Flags) -> Result<&mut Self, PostError<B>> {
        self.add(IBV_WR_SEND, flags, buf, |_| ())
    }

    /// A message with an immediate.
    ///
    /// # Errors
    ///
    /// As [`Batch::send`].
    pub fn send_imm(
        &mut self,
        buf: B,
        value: u32,
        flags: Flags,
    ) -> Result<&mut Self, PostError<B>> {
        self.add(IBV_WR_SEND_WITH_IMM, flags, buf, |wr| imm(wr, value))
    }

    /// A write.
    ///
    /// # Errors
    ///
    /// As [`Batch::send`].
    pub fn write(
        &mut self,
        buf: B,
        to: RemoteRegion,
        flags: Flags,
    ) -> Result<&mut Self, PostError<B>> {
        self.add(IBV_WR_RDMA_WRITE, flags, buf, |wr| rdma(wr, to))
    }
}

impl<B: Buf> Batch<'_, Rc, B> {
    /// A read.
    ///
    /// # Errors
    ///
    /// As [`Batch::send`].
    pub fn read(
        &mut self,
        buf: B,
        from: RemoteRegion,
        flags: Flags,
    ) -> Result<&mut Self, PostError<B>> {
        self.add(IBV_WR_RDMA_READ, flags, buf, |wr| rdma(wr, from))
    }
}
