//! Descriptors that become readable: completion channels and the queue of asynchronous events.

use core::cell::UnsafeCell;
use core::fmt;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::VecDeque;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

use rverbs_sys::{ibv_async_event, ibv_comp_channel};

use crate::provider::Errno;

use super::lock::Lock;

/// A queue whose descriptor is readable while it has items, and honours `O_NONBLOCK`.
#[derive(Debug)]
pub struct Notices<E> {
    fd: OwnedFd,
    queue: Lock<VecDeque<E>>,
}

impl<E> Notices<E> {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// What making an eventfd said.
    pub fn new() -> Result<Self, Errno> {
        // SAFETY: makes a descriptor and touches nothing else.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_SEMAPHORE) };
        if fd < 0 {
            return Err(Errno::last());
        }
        Ok(Self {
            // SAFETY: the descriptor is new and nobody else's.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            queue: Lock::new(VecDeque::new()),
        })
    }

    /// The descriptor to wait on.
    #[must_use]
    pub fn fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }

    /// Adds an item and wakes one waiter.
    pub fn push(&self, item: E) {
        self.queue.lock().push_back(item);
        let one = 1_u64.to_ne_bytes();
        // SAFETY: writes eight bytes of our own to our own descriptor. It can fail only when 2⁶⁴
        // items wait.
        unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes an item, waiting for it unless the descriptor is non-blocking. `taken` sees it before
    /// anybody can find it gone from the queue.
    ///
    /// # Errors
    ///
    /// `EAGAIN` where there is none and the descriptor is non-blocking, `EINTR` after a signal.
    pub fn pop(&self, taken: impl Fn(&E)) -> Result<E, Errno> {
        loop {
            let mut count = [0_u8; 8];
            // SAFETY: reads eight bytes from our own descriptor into a buffer of eight.
            if unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) } < 0 {
                return Err(Errno::last());
            }
            let mut queue = self.queue.lock();
            if let Some(item) = queue.pop_front() {
                taken(&item);
                return Ok(item);
            }
            // The item was removed because its object was destroyed.
        }
    }

    /// Removes the items that `gone` says yes to.
    pub fn remove(&self, gone: impl Fn(&E) -> bool) {
        self.queue.lock().retain(|item| !gone(item));
    }
}

/// A completion event: which queue, and its user's pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CqEvent {
    /// Address of the queue's C structure.
    pub cq: usize,
    /// The pointer that the queue was made with.
    pub user: usize,
}

/// A completion channel.
#[repr(C)]
pub struct Channel {
    raw: UnsafeCell<ibv_comp_channel>,
    /// The events.
    pub notices: Notices<CqEvent>,
    /// Completion queues that use it.
    pub users: AtomicU32,
}

// SAFETY: the C structure is written while it is made and only read afterwards.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("fd", &self.notices.fd())
            .field("users", &self.users.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

impl Channel {
    /// A channel without events.
    ///
    /// # Errors
    ///
    /// What making an eventfd said.
    pub fn new(context: *mut rverbs_sys::ibv_context) -> Result<Self, Errno> {
        let notices = Notices::new()?;
        Ok(Self {
            raw: UnsafeCell::new(ibv_comp_channel {
                context,
                fd: notices.fd(),
                refcnt: 0,
            }),
            notices,
            users: AtomicU32::new(0),
        })
    }

    /// The C structure.
    #[must_use]
    pub fn raw(&self) -> *mut ibv_comp_channel {
        self.raw.get()
    }
}

/// An asynchronous event as it waits: the C structure, without its being bound to a thread.
#[derive(Clone, Copy)]
pub struct AsyncEvent(pub ibv_async_event);

// SAFETY: the pointer in it is only compared until the event is handed to the user.
unsafe impl Send for AsyncEvent {}

impl fmt::Debug for AsyncEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncEvent")
            .field(&self.0.event_type)
            .finish()
    }
}
