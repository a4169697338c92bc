//! Completion queues and channels.

use core::ffi::c_int;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use rverbs_sys::inline::{ibv_poll_cq, ibv_req_notify_cq};
use rverbs_sys::{ibv_comp_channel, ibv_cq, ibv_wc};

use crate::Error;
use crate::device::Context;
use crate::provider::Errno;
use crate::wc::Wc;

/// A completion queue. Clones are the same one.
#[derive(Debug, Clone)]
#[doc(alias = "ibv_cq")]
pub struct Cq(pub(crate) Arc<CqInner>);

#[derive(Debug)]
pub(crate) struct CqInner {
    pub(crate) context: Context,
    pub(crate) raw: NonNull<ibv_cq>,
    channel: Option<Channel>,
    /// Completions that somebody polled who waited for others.
    stash: Mutex<VecDeque<Wc>>,
    /// How its device polls, a [`Poll`]; null while completions are kept, which go first.
    poll: AtomicPtr<()>,
}

/// `poll_cq` of a context's operations.
type Poll = unsafe extern "C" fn(*mut ibv_cq, c_int, *mut ibv_wc) -> c_int;

unsafe extern "C" fn no_poll(_: *mut ibv_cq, _: c_int, _: *mut ibv_wc) -> c_int {
    -libc::EOPNOTSUPP
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for CqInner {}
// SAFETY: as above.
unsafe impl Sync for CqInner {}

impl Drop for CqInner {
    fn drop(&mut self) {
        // SAFETY: queue pairs hold their queues, so this is the last use; where it fails all the
        // same, the queue is leaked.
        let _ = unsafe { self.context.0.destroy_cq(self.raw) };
    }
}

/// Where completion queues put events: a descriptor that is readable while events wait.
#[derive(Debug, Clone)]
#[doc(alias = "ibv_comp_channel")]
pub struct Channel(Arc<ChannelInner>);

#[derive(Debug)]
struct ChannelInner {
    context: Context,
    raw: NonNull<ibv_comp_channel>,
    fd: RawFd,
}

// SAFETY: verbs may be called from any thread.
unsafe impl Send for ChannelInner {}
// SAFETY: as above.
unsafe impl Sync for ChannelInner {}

impl Drop for ChannelInner {
    fn drop(&mut self) {
        // SAFETY: queues hold their channel, so this is the last use.
        let _ = unsafe { self.context.0.destroy_comp_channel(self.raw) };
    }
}

impl Context {
    /// Makes a completion channel.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_create_comp_channel")]
    pub fn create_channel(&self) -> Result<Channel, Error> {
        let raw = self
            .0
            .create_comp_channel()
            .map_err(Error::verb("ibv_create_comp_channel"))?;
        // SAFETY: the channel is live.
        let fd = unsafe { raw.as_ref() }.fd;
        Ok(Channel(Arc::new(ChannelInner {
            context: self.clone(),
            raw,
            fd,
        })))
    }

    /// Makes a completion queue for at least `entries` completions.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_create_cq")]
    pub fn create_cq(&self, entries: u32) -> Result<Cq, Error> {
        self.make_cq(entries, None)
    }

    /// Makes a completion queue whose events go to a channel of the same device.
    ///
    /// # Errors
    ///
    /// What the provider said; `EINVAL` for a channel of another device.
    pub fn create_cq_with(&self, entries: u32, channel: &Channel) -> Result<Cq, Error> {
        if channel.0.context.0.raw() != self.0.raw() {
            return Err(Error::Verb {
                verb: "ibv_create_cq",
                errno: Errno(libc::EINVAL),
            });
        }
        self.make_cq(entries, Some(channel))
    }

    fn make_cq(&self, entries: u32, channel: Option<&Channel>) -> Result<Cq, Error> {
        // SAFETY: the channel is live, of this context, and kept by the queue.
        let raw = unsafe {
            self.0.create_cq(
                entries,
                core::ptr::null_mut(),
                channel.map(|channel| channel.0.raw),
                0,
            )
        }
        .map_err(Error::verb("ibv_create_cq"))?;
        let poll = device_poll(raw) as *mut ();
        Ok(Cq(Arc::new(CqInner {
            context: self.clone(),
            raw,
            channel: channel.cloned(),
            stash: Mutex::new(VecDeque::new()),
            poll: AtomicPtr::new(poll),
        })))
    }
}

impl Cq {
    /// Takes completions, as many as there are and fit, without waiting.
    ///
    /// Give them to [`crate::qp::SendQueue::complete`] or [`crate::qp::RecvQueue::complete`] of the queue
    /// pair that they are for ([`Wc::qp_num`]).
    ///
    /// # Errors
    ///
    /// `ibv_poll_cq` failed, which it does not unless the queue is broken.
    #[inline]
    #[doc(alias = "ibv_poll_cq")]
    pub fn poll<'a>(&self, into: &'a mut [Wc]) -> Result<&'a mut [Wc], Error> {
        if self.0.poll.load(Ordering::Relaxed).is_null() {
            return Ok(self.unstash(into));
        }
        self.poll_new(into)
    }

    /// Takes one completion, where there is one: [`Cq::poll`] for those who handle one at a time.
    ///
    /// # Errors
    ///
    /// As [`Cq::poll`].
    #[inline]
    pub fn poll_one(&self, into: &mut Wc) -> Result<bool, Error> {
        let poll = self.0.poll.load(Ordering::Relaxed);
        if poll.is_null() {
            return Ok(!self.unstash(core::slice::from_mut(into)).is_empty());
        }
        // SAFETY: what is not null is a `Poll`; the queue is live; a `Wc` is an `ibv_wc`.
        let count = unsafe {
            let poll = core::mem::transmute::<*mut (), Poll>(poll);
            poll(self.0.raw.as_ptr(), 1, core::ptr::from_mut(into).cast())
        };
        if count < 0 {
            return Err(broken(count));
        }
        Ok(count != 0)
    }

    /// Polls past what was kept.
    #[inline]
    pub(crate) fn poll_new<'a>(&self, into: &'a mut [Wc]) -> Result<&'a mut [Wc], Error> {
        let room = c_int::try_from(into.len()).unwrap_or(c_int::MAX);
        // SAFETY: the queue is live; a `Wc` is an `ibv_wc`, of which there is room for that many.
        let count = unsafe { ibv_poll_cq(self.0.raw.as_ptr(), room, into.as_mut_ptr().cast()) };
        match usize::try_from(count) {
            Ok(count) => Ok(into.get_mut(..count).unwrap_or_default()),
            Err(_) => Err(broken(count)),
        }
    }

    #[cold]
    fn unstash<'a>(&self, into: &'a mut [Wc]) -> &'a mut [Wc] {
        let mut stash = self.0.stash.lock().unwrap_or_else(PoisonError::into_inner);
        let count = stash.len().min(into.len());
        for (to, from) in into.iter_mut().zip(stash.drain(..count)) {
            *to = from;
        }
        if stash.is_empty() {
            let poll = device_poll(self.0.raw) as *mut ();
            self.0.poll.store(poll, Ordering::Relaxed);
        }
        into.get_mut(..count).unwrap_or_default()
    }

    /// Keeps a completion for whoever polls next.
    pub(crate) fn stash(&self, wc: Wc) {
        let mut stash = self.0.stash.lock().unwrap_or_else(PoisonError::into_inner);
        stash.push_back(wc);
        self.0.poll.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Asks for one event on the channel at the next completion; `solicited_only` leaves out those
    /// whose sender did not ask for it. Poll once more afterwards: what came before makes no event.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_req_notify_cq")]
    pub fn notify(&self, solicited_only: bool) -> Result<(), Error> {
        // SAFETY: the queue is live.
        Errno::check(unsafe { ibv_req_notify_cq(self.0.raw.as_ptr(), c_int::from(solicited_only)) })
            .map_err(Error::verb("ibv_req_notify_cq"))
    }

    /// The channel that it was made with.
    #[must_use]
    pub fn channel(&self) -> Option<&Channel> {
        self.0.channel.as_ref()
    }

    /// The C struct.
    #[must_use]
    pub fn as_raw(&self) -> NonNull<ibv_cq> {
        self.0.raw
    }

    /// Whether both are the same queue.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// How the device of a live queue polls: a context's operations are what they are while it is open.
fn device_poll(raw: NonNull<ibv_cq>) -> Poll {
    // SAFETY: the queue is live, and so is its context.
    let op = unsafe { (*raw.as_ref().context).ops.poll_cq };
    op.unwrap_or(no_poll)
}

/// What polling a queue said that is broken.
#[cold]
fn broken(code: c_int) -> Error {
    Error::Verb {
        verb: "ibv_poll_cq",
        errno: Errno(code.saturating_neg()),
    }
}

impl Channel {
    /// Takes an event, and acknowledges it. Tells whether it was for that queue.
    ///
    /// Waits until there is one, unless the descriptor was made non-blocking.
    ///
    /// # Errors
    ///
    /// `EAGAIN` where the descriptor is non-blocking and no event waits.
    #[doc(alias = "ibv_get_cq_event")]
    pub fn wait(&self, cq: &Cq) -> Result<bool, Error> {
        // SAFETY: the channel is live.
        let (raw, _) = unsafe { self.0.context.0.get_cq_event(self.0.raw) }
            .map_err(Error::verb("ibv_get_cq_event"))?;
        // SAFETY: a queue is not destroyed before its events are acknowledged.
        unsafe { self.0.context.0.ack_cq_events(raw, 1) };
        Ok(raw == cq.0.raw)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open while the channel is.
        unsafe { BorrowedFd::borrow_raw(self.0.fd) }
    }
}

impl AsRawFd for Channel {
    fn as_raw_fd(&self) -> RawFd {
        self.0.fd
    }
}
