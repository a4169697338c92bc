//! What every software provider shares: an adapter without the wires.
//!
//! [`Context`] implements [`crate::provider::Context`] for any [`Transport`]. The transport moves
//! messages between queue pairs; everything else is here:
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | keys, bounds, rights, protection domains |
//! | [`cq`] | completion queues: a ring for completions that are pushed, and polling the transport |
//! | [`qp`] | queue pairs, with their attributes and [`state`] machine |
//! | [`queue`] | receive queues, alone or shared ([`srq`]) |
//! | [`channel`] | completion channels and asynchronous events, as descriptors |
//! | [`attribute`] | limits, port, GIDs, PKeys |
//! | [`lock`] | the spin lock |
//!
//! # Objects
//!
//! An object is a Rust struct behind an `Arc` whose first field is C's struct, so that the pointer
//! that C holds *is* the pointer to ours ([`Object`]). The C side owns one reference from `create` to
//! `destroy`; what an object needs (a queue pair its queues and its domain) it owns too.
//!
//! # Who may lock what
//!
//! Polling takes `cq::Cq::poll`, then locks of a transport's queue pair, then the ring of a
//! completion queue; always in this order. Posting begins at the queue pair. A transport's own
//! thread does too. Nothing waits while it holds a lock.

use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use rverbs_sys::{ibv_recv_wr, ibv_send_wr};

use super::{Errno, Kind, Memory};

pub mod ah;
pub mod attribute;
pub mod channel;
mod context;
pub mod cq;
pub mod lock;
pub mod memory;
mod object;
mod ops;
pub mod qp;
pub mod queue;
pub mod srq;
pub mod state;

pub use ah::Ah;
pub use attribute::{Attributes, Gid};
pub use context::Context;
pub use cq::{Cq, Sink};
pub use memory::{KeyTable, Refusal, Region};
pub use object::{Mr, Object, Pd};
pub use qp::{NewQp, Qp};
pub use queue::{Recv, RecvQueue};
pub use srq::Srq;

/// Moves messages between queue pairs.
///
/// The methods are called by [`Context`] after its own checks: the state machine and the masks of
/// attributes, sizes of queues, types and counts of objects. What a work request asks for is the
/// transport's to check: keys by [`Transport::keys`], opcode against the type of queue pair, lengths.
///
/// A request that is wrong in itself (an unknown opcode, too many entries) is refused by posting;
/// anything that depends on memory or the peer is found when it is carried out, and completes with an
/// error, as an adapter does it.
pub trait Transport: Send + Sync + Sized + fmt::Debug + 'static {
    /// Which provider this is.
    const KIND: Kind;

    /// What the transport keeps with a queue pair.
    type Qp: Send + Sync;

    /// Name of the device.
    fn name(&self) -> &str;

    /// What the device says about itself.
    fn attributes(&self) -> &Attributes;

    /// The keys of memory.
    fn keys(&self) -> &KeyTable;

    /// In which file the memory at `addr` lies and where, when it came from [`Transport::alloc`] and
    /// peers can map it. `(0, 0)` otherwise.
    fn backing(&self, addr: usize, len: usize) -> (u32, u64) {
        let _ = (addr, len);
        (0, 0)
    }

    /// Waits until nobody uses a key that just became invalid: see [`memory`].
    fn quiesce(&self, key: u32);

    /// Makes the transport's part of a queue pair and gives it its number.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` for a type that it cannot do, `ENOMEM` for no more numbers or memory.
    fn create_qp(&self, new: &NewQp) -> Result<(u32, Self::Qp), Errno>;

    /// Carries a transition out. [`Qp::state`] is still the old one; attributes that count are
    /// merged into [`Qp::attr`] already.
    ///
    /// In ERR every request must complete with `IBV_WC_WR_FLUSH_ERR` unless it completes otherwise. In
    /// RESET requests and completions are forgotten; it is a barrier as destroying is.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an attribute that makes no sense, such as an address without a route.
    fn modify_qp(&self, qp: &Arc<Qp<Self>>, to: u32, mask: u32) -> Result<(), Errno>;

    /// Ends a queue pair: afterwards nothing of it touches memory or makes completions.
    fn destroy_qp(&self, qp: &Arc<Qp<Self>>);

    /// Posts a list of send requests.
    ///
    /// # Errors
    ///
    /// An error number and the first request that was not taken.
    ///
    /// # Safety
    ///
    /// As for `ibv_post_send`: the list can be read, and so can the buffers of inline requests.
    unsafe fn post_send(
        &self,
        qp: &Qp<Self>,
        wr: *mut ibv_send_wr,
    ) -> Result<(), (Errno, *mut ibv_send_wr)>;

    /// Posts a list of receive requests. The default puts them into the queue pair's own queue.
    ///
    /// # Errors
    ///
    /// An error number and the first request that was not taken.
    ///
    /// # Safety
    ///
    /// As for `ibv_post_recv`.
    unsafe fn post_recv(
        &self,
        qp: &Qp<Self>,
        wr: *mut ibv_recv_wr,
    ) -> Result<(), (Errno, *mut ibv_recv_wr)> {
        // SAFETY: as the caller promises.
        unsafe { qp.rq.post(wr) }
    }

    /// A shared receive queue got requests.
    fn posted_srq(&self, srq: &Srq<Self>) {
        let _ = srq;
    }

    /// Makes progress for the queue pairs of a completion queue and gives completions to `sink`,
    /// directly or by [`Cq::push`] (which keeps their order with those pushed before).
    ///
    /// It is called by polling when the ring of the queue ran empty.
    fn poll(&self, cq: &Cq<Self>, qps: &[Arc<Qp<Self>>], sink: &mut Sink<'_>);

    /// The user asked for an event at the next completion ([`Cq::armed`]).
    fn arm(&self, cq: &Cq<Self>);

    /// Memory that this transport moves data to fastest.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    fn alloc(&self, len: usize) -> Result<Memory, Errno>;

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// It is registered no more and not used again.
    unsafe fn free(&self, memory: Memory);

    /// Joins a multicast group.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` where the transport cannot.
    fn attach_mcast(&self, qp: &Qp<Self>, gid: [u8; 16]) -> Result<(), Errno> {
        let _ = (qp, gid);
        Err(Errno(libc::EOPNOTSUPP))
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    ///
    /// `EINVAL` where the queue pair is not in it.
    fn detach_mcast(&self, qp: &Qp<Self>, gid: [u8; 16]) -> Result<(), Errno> {
        let _ = (qp, gid);
        Err(Errno(libc::EOPNOTSUPP))
    }
}

/// Zeroed private memory: the default for [`Transport::alloc`].
///
/// # Errors
///
/// `ENOMEM`.
pub fn anonymous(len: usize) -> Result<Memory, Errno> {
    let len = len.max(1).next_multiple_of(4096);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let addr = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if addr == libc::MAP_FAILED {
        return Err(Errno::last());
    }
    Ok(Memory {
        addr: NonNull::new(addr.cast()).ok_or(Errno(libc::ENOMEM))?,
        len,
        cookie: 0,
    })
}

/// Unmaps memory.
///
/// # Safety
///
/// It is a whole mapping of the caller's, and not used again.
pub unsafe fn unmap(memory: &Memory) {
    // SAFETY: as the caller promises.
    unsafe { libc::munmap(memory.addr.as_ptr().cast(), memory.len) };
}
