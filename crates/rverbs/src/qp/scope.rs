//! Memory that is only borrowed: a scope that does not end before the device is done with it.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::time::Instant;

use rverbs_sys::inline::{ibv_post_recv, ibv_post_send};
use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_SEND_SIGNALED, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND,
    ibv_mr, ibv_recv_wr, ibv_send_wr, ibv_sge,
};

use crate::Error;
use crate::cq::Cq;
use crate::mr::{Buf, RemoteRegion};
use crate::provider::{Errno, small};
use crate::wc::{Success, Wc, WcError};

use super::queue::{COUNT_MASK, rdma, serial};
use super::{Connected, Qp, QpInner, Rc, Transport};

/// How long flushed requests are waited for after a scope has failed.
const FLUSH: Duration = Duration::from_secs(5);

/// Requests on borrowed memory: see [`Qp::scope`].
pub struct Scope<'env, T: Transport> {
    qp: std::sync::Arc<QpInner>,
    regions: Vec<NonNull<ibv_mr>>,
    serial: u64,
    posted: u64,
    outstanding: u64,
    results: Vec<(Ticket, Result<Success, WcError>)>,
    env: PhantomData<&'env mut [u8]>,
    transport: PhantomData<T>,
}

impl<T: Transport> fmt::Debug for Scope<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("posted", &self.posted)
            .field("outstanding", &self.outstanding)
            .finish_non_exhaustive()
    }
}

/// Borrowed memory, registered until the scope ends.
#[derive(Debug)]
pub struct ScopedMr<'env> {
    addr: u64,
    len: usize,
    lkey: u32,
    /// Which scope's.
    serial: u64,
    env: PhantomData<&'env mut [u8]>,
}

/// A request of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

impl<T: Transport, S: Buf, R: Buf> Qp<T, S, R> {
    /// Calls `body`, which can post borrowed memory, and returns when all of that is done.
    ///
    /// Whether `body` returns or panics: what is in flight is waited for, up to `timeout`. After that the
    /// queue pair is moved to ERR, which flushes it. So a receive request that no message comes for
    /// ends the scope after `timeout`, and the connection with it.
    ///
    /// Completions of other requests that arrive meanwhile are kept for the next poll.
    ///
    /// # Errors
    ///
    /// What moving to ERR said, after a timeout.
    ///
    /// # Panics
    ///
    /// With what `body` panicked with. The process is ended where the device would otherwise go on
    /// using memory that is not borrowed any more: when it neither flushes nor deregisters.
    pub fn scope<'env, O>(
        &mut self,
        timeout: Duration,
        body: impl FnOnce(&mut Scope<'env, T>) -> O,
    ) -> Result<O, Error> {
        let mut scope = Scope {
            qp: std::sync::Arc::clone(&self.handle.inner),
            regions: Vec::new(),
            serial: serial(),
            posted: 0,
            outstanding: 0,
            results: Vec::new(),
            env: PhantomData,
            transport: PhantomData,
        };
        let output = catch_unwind(AssertUnwindSafe(|| body(&mut scope)));
        let drained = scope.drain(Instant::now() + timeout);
        let failed = if drained {
            Ok(())
        } else {
            let failed = self.handle.fail();
            scope.drain(Instant::now() + FLUSH);
            failed
        };
        scope.end();
        match output {
            Ok(output) => failed.map(|()| output),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<'env, T: Transport> Scope<'env, T> {
    /// Registers borrowed memory. It is accessible again when the scope has ended.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn register(&mut self, memory: &'env mut [u8]) -> Result<ScopedMr<'env>, Error> {
        let at = memory.as_mut_ptr();
        let addr = at.expose_provenance() as u64;
        let pd = &self.qp.pd;
        // SAFETY: the memory is borrowed for longer than the scope, at whose end it is deregistered.
        let raw = unsafe {
            pd.context().0.reg_mr(
                pd.as_raw(),
                at.cast(),
                memory.len(),
                addr,
                IBV_ACCESS_LOCAL_WRITE,
            )
        }
        .map_err(Error::verb("ibv_reg_mr"))?;
        self.regions.push(raw);
        Ok(ScopedMr {
            addr,
            len: memory.len(),
            // SAFETY: the region is live.
            lkey: unsafe { raw.as_ref() }.lkey,
            serial: self.serial,
            env: PhantomData,
        })
    }

    fn sge(&self, mr: &ScopedMr<'env>, range: &Range<usize>) -> Result<ibv_sge, Errno> {
        // A region of another scope may be gone.
        if mr.serial != self.serial || range.start > range.end || range.end > mr.len {
            return Err(Errno(libc::EINVAL));
        }
        Ok(ibv_sge {
            addr: mr.addr + range.start as u64,
            length: small(range.len()),
            lkey: mr.lkey,
        })
    }

    fn post(
        &mut self,
        opcode: u32,
        mr: &ScopedMr<'env>,
        range: &Range<usize>,
        fill: impl FnOnce(&mut ibv_send_wr),
    ) -> Result<Ticket, Errno> {
        let mut sge = self.sge(mr, range)?;
        let mut wr = ibv_send_wr {
            wr_id: self.serial | self.posted & COUNT_MASK,
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode,
            send_flags: IBV_SEND_SIGNALED,
            ..ibv_send_wr::default()
        };
        fill(&mut wr);
        let mut bad = core::ptr::null_mut();
        // SAFETY: the queue pair is live; the memory is registered and borrowed until the scope has
        // seen the completion.
        Errno::check(unsafe { ibv_post_send(self.qp.raw.as_ptr(), &raw mut wr, &raw mut bad) })?;
        Ok(self.count(wr.wr_id))
    }

    fn count(&mut self, wr_id: u64) -> Ticket {
        self.posted += 1;
        self.outstanding += 1;
        Ticket(wr_id)
    }

    /// Posts a part of borrowed memory for a message.
    ///
    /// # Errors
    ///
    /// What the provider said; `EINVAL` for a range that is not inside.
    pub fn recv(&mut self, mr: &ScopedMr<'env>, range: Range<usize>) -> Result<Ticket, Errno> {
        let mut sge = self.sge(mr, &range)?;
        let mut wr = ibv_recv_wr {
            wr_id: self.serial | self.posted & COUNT_MASK,
            sg_list: &raw mut sge,
            num_sge: 1,
            ..ibv_recv_wr::default()
        };
        let mut bad = core::ptr::null_mut();
        // SAFETY: the queue pair is live; the memory is registered and borrowed until the scope has
        // seen the completion.
        Errno::check(unsafe { ibv_post_recv(self.qp.raw.as_ptr(), &raw mut wr, &raw mut bad) })?;
        Ok(self.count(wr.wr_id))
    }

    /// Waits for a request. `None` when the time is over.
    pub fn wait(&mut self, ticket: Ticket, timeout: Duration) -> Option<Result<Success, WcError>> {
        let end = Instant::now() + timeout;
        loop {
            let found = self.results.iter().position(|(other, _)| *other == ticket);
            if let Some(found) = found {
                return Some(self.results.swap_remove(found).1);
            }
            if Instant::now() >= end {
                return None;
            }
            self.poll();
        }
    }

    /// Takes completions: this scope's are counted, others kept for the next who polls.
    fn poll(&mut self) {
        let cqs: [Cq; 2] = [self.qp.send_cq.clone(), self.qp.recv_cq.clone()];
        for cq in &cqs {
            let mut wcs = [Wc::default(); 16];
            let Ok(wcs) = cq.poll_new(&mut wcs) else {
                continue;
            };
            for wc in wcs {
                if wc.wr_id() & !COUNT_MASK == self.serial {
                    self.outstanding -= 1;
                    self.results.push((Ticket(wc.wr_id()), wc.result()));
                } else {
                    cq.stash(*wc);
                }
            }
        }
    }

    fn drain(&mut self, end: Instant) -> bool {
        while self.outstanding > 0 {
            if Instant::now() >= end {
                return false;
            }
            self.poll();
        }
        true
    }

    /// Deregisters, after which the device uses nothing any more whatever it did before.
    fn end(&mut self) {
        for raw in self.regions.drain(..) {
            // SAFETY: the region is this scope's, and its requests are done or flushed; where they are
            // not, this is the barrier.
            if unsafe { self.qp.pd.context().0.dereg_mr(raw) }.is_err() {
                // The memory's owner gets it back now, and the device still has it.
                std::process::abort();
            }
        }
    }
}

impl<'env, T: Connected> Scope<'env, T> {
    /// Sends a part of borrowed memory.
    ///
    /// # Errors
    ///
    /// What the provider said; `EINVAL` for a range that is not inside.
    pub fn send(&mut self, mr: &ScopedMr<'env>, range: Range<usize>) -> Result<Ticket, Errno> {
        self.post(IBV_WR_SEND, mr, &range, |_| ())
    }

    /// Writes a part of borrowed memory to the peer's.
    ///
    /// # Errors
    ///
    /// As [`Scope::send`].
    pub fn write(
        &mut self,
        mr: &ScopedMr<'env>,
        range: Range<usize>,
        to: RemoteRegion,
    ) -> Result<Ticket, Errno> {
        self.post(IBV_WR_RDMA_WRITE, mr, &range, |wr| rdma(wr, to))
    }
}

impl<'env> Scope<'env, Rc> {
    /// Reads the peer's memory into a part of borrowed memory.
    ///
    /// # Errors
    ///
    /// As [`Scope::send`].
    pub fn read(
        &mut self,
        mr: &ScopedMr<'env>,
        range: Range<usize>,
        from: RemoteRegion,
    ) -> Result<Ticket, Errno> {
        self.post(IBV_WR_RDMA_READ, mr, &range, |wr| rdma(wr, from))
    }
}
