//! Event channels, and events as C sees them.

use core::ffi::c_int;
use core::fmt;
use core::ptr::null_mut;
use std::collections::VecDeque;
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use rverbs::provider::Errno;
use rverbs_sys::{
    RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_RESPONSE,
    RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_REJECTED, ibv_ah_attr, rdma_cm_event,
    rdma_cm_event_param, rdma_cm_event_type, rdma_conn_param, rdma_event_channel, rdma_ud_param,
};
use std::os::fd::AsFd as _;

use super::id::Id;
use super::message::Message;
use super::qp;
use crate::errno;

/// What comes with an event.
pub(crate) enum Param {
    /// Nothing.
    None,
    /// About a connection: what the other side said.
    Connection(Message),
    /// About datagrams: what the other side said, and the address to send to.
    Datagram(Message, ibv_ah_attr),
    /// A multicast group: its address, and what its user called it.
    Group(ibv_ah_attr, u32, usize),
}

/// An event that waits.
pub(crate) struct Incoming {
    /// Whose event it is: destroying it waits until the event is acknowledged.
    pub(crate) owner: Arc<Id>,
    /// The new identifier of a request.
    pub(crate) child: Option<Arc<Id>>,
    pub(crate) event: rdma_cm_event_type,
    pub(crate) status: c_int,
    pub(crate) param: Param,
}

// SAFETY: the address attributes hold numbers only, the identifiers may go to any thread.
unsafe impl Send for Incoming {}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("event", &self.event)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// Events behind a descriptor that is readable while some wait, and honours `O_NONBLOCK`.
#[derive(Debug)]
pub(crate) struct Queue {
    fd: EventFd,
    waiting: Mutex<VecDeque<Incoming>>,
}

impl Queue {
    fn new() -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_SEMAPHORE;
        let fd = EventFd::from_flags(flags).map_err(|error| Errno(error as i32))?;
        Ok(Self {
            fd,
            waiting: Mutex::default(),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Incoming>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub(crate) fn push(&self, incoming: Incoming) {
        tracing::debug!(event = incoming.event, status = incoming.status, "cm event");
        let mut waiting = self.waiting();
        waiting.push_back(incoming);
        // It can fail only when 2⁶⁴ events wait.
        let _ = self.fd.write(1);
    }

    /// Takes the events of an identifier out.
    pub(crate) fn extract(&self, of: &Arc<Id>) -> VecDeque<Incoming> {
        let mut waiting = self.waiting();
        let (taken, kept): (VecDeque<_>, VecDeque<_>) = core::mem::take(&mut *waiting)
            .into_iter()
            .partition(|incoming| {
                let child = incoming.child.as_ref();
                Arc::ptr_eq(&incoming.owner, of)
                    || child.is_some_and(|child| Arc::ptr_eq(child, of))
            });
        *waiting = kept;
        for _ in &taken {
            self.forget_one();
        }
        taken
    }

    /// Takes one off the descriptor's count, unless a reader was faster.
    fn forget_one(&self) {
        let mut fds = [PollFd::new(self.fd.as_fd(), PollFlags::POLLIN)];
        if poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0) {
            let _ = self.fd.read();
        }
    }

    fn pop(&self) -> Result<Incoming, Errno> {
        loop {
            self.fd.read().map_err(|error| Errno(error as i32))?;
            if let Some(incoming) = self.waiting().pop_front() {
                return Ok(incoming);
            }
        }
    }
}

/// A channel. C holds the address of its first field.
#[repr(C)]
pub(crate) struct Channel {
    raw: rdma_event_channel,
    pub(crate) queue: Arc<Queue>,
}

impl Channel {
    /// A channel without events.
    pub(crate) fn new() -> Result<Box<Self>, Errno> {
        let queue = Arc::new(Queue::new()?);
        Ok(Box::new(Self {
            raw: rdma_event_channel {
                fd: queue.fd.as_raw_fd(),
            },
            queue,
        }))
    }

    /// Hands it to C.
    pub(crate) fn into_raw(self: Box<Self>) -> *mut rdma_event_channel {
        Box::into_raw(self).cast()
    }

    /// The channel behind C's pointer.
    ///
    /// # Safety
    ///
    /// The pointer came from [`Channel::into_raw`] and is not destroyed while the reference lives.
    pub(crate) unsafe fn of<'a>(raw: *mut rdma_event_channel) -> &'a Self {
        // SAFETY: as the caller promises.
        unsafe { &*raw.cast::<Self>() }
    }
}

#[unsafe(no_mangle)]
extern "C" fn rdma_create_event_channel() -> *mut rdma_event_channel {
    if crate::device::devices().is_empty() {
        errno::set(libc::ENODEV);
        return null_mut();
    }
    match Channel::new() {
        Ok(channel) => channel.into_raw(),
        Err(Errno(errno)) => {
            errno::set(errno);
            null_mut()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_event_channel(channel: *mut rdma_event_channel) {
    if !channel.is_null() {
        // SAFETY: C's contract: the channel is ours and not used again.
        drop(unsafe { Box::from_raw(channel.cast::<Channel>()) });
    }
}

/// An event in the hands of C, which holds the address of its first field.
#[repr(C)]
struct Event {
    raw: rdma_cm_event,
    owner: Arc<Id>,
    /// Private data, which the first field points to.
    data: Vec<u8>,
}

/// What the other side said, in C's struct; and its private data, filled up with zeros to what the
/// MAD would hold, since that is how programs get it from an adapter.
fn connection(message: &Message) -> (rdma_conn_param, Vec<u8>) {
    let mut data = message.data.clone();
    data.resize(message.kind.room(), 0);
    let param = rdma_conn_param {
        private_data: data.as_ptr().cast(),
        private_data_len: u8::try_from(data.len()).unwrap_or(u8::MAX),
        // What the other side starts, this one answers.
        responder_resources: message.initiator_depth,
        initiator_depth: message.responder_resources,
        flow_control: message.flow_control,
        retry_count: message.retry_count,
        rnr_retry_count: message.rnr_retry_count,
        srq: message.srq,
        qp_num: message.qpn,
    };
    (param, data)
}

fn datagram(message: &Message, ah_attr: ibv_ah_attr) -> (rdma_ud_param, Vec<u8>) {
    let mut data = message.data.clone();
    data.resize(message.kind.room(), 0);
    let param = rdma_ud_param {
        private_data: data.as_ptr().cast(),
        private_data_len: u8::try_from(data.len()).unwrap_or(u8::MAX),
        ah_attr,
        qp_num: message.qpn,
        qkey: message.qkey,
    };
    (param, data)
}

/// Does what an event asks for and gives it to C.
///
/// # Safety
///
/// The objects of the identifiers of the channel are live.
unsafe fn deliver(mut incoming: Incoming) -> Result<Option<*mut rdma_cm_event>, Errno> {
    let owner = Arc::clone(&incoming.owner);
    let mut id = owner.raw();
    let mut listen_id = null_mut();
    match incoming.event {
        RDMA_CM_EVENT_CONNECT_REQUEST => {
            listen_id = owner.raw();
            if let Some(child) = incoming.child.take() {
                if owner.state().sync {
                    child.migrate(None)?;
                }
                id = Id::into_raw(child);
            }
        }
        RDMA_CM_EVENT_CONNECT_RESPONSE
            // SAFETY: the caller's identifier is live.
            if !unsafe { (*id).qp }.is_null() => {
                // SAFETY: as above.
                match unsafe { qp::answer(&owner) } {
                    Ok(()) => incoming.event = RDMA_CM_EVENT_ESTABLISHED,
                    Err(Errno(errno)) => {
                        incoming.event = RDMA_CM_EVENT_CONNECT_ERROR;
                        incoming.status = -errno;
                        owner.state().connect_failed = true;
                    }
                }
            }
        RDMA_CM_EVENT_REJECTED => {
            if owner.state().connect_failed {
                return Ok(None);
            }
            // SAFETY: the caller's queue pair is live where there is one.
            let _ = unsafe { qp::fail(id) };
        }
        _ => {}
    }
    let (param, data) = match &incoming.param {
        Param::None => (
            rdma_cm_event_param {
                conn: rdma_conn_param::default(),
            },
            Vec::new(),
        ),
        Param::Connection(message) => {
            let (conn, data) = connection(message);
            (rdma_cm_event_param { conn }, data)
        }
        Param::Datagram(message, address) => {
            let (ud, data) = datagram(message, *address);
            (rdma_cm_event_param { ud }, data)
        }
        Param::Group(ah_attr, qkey, user) => (
            rdma_cm_event_param {
                ud: rdma_ud_param {
                    private_data: core::ptr::with_exposed_provenance(*user),
                    private_data_len: 0,
                    ah_attr: *ah_attr,
                    qp_num: 0xff_ffff,
                    qkey: *qkey,
                },
            },
            Vec::new(),
        ),
    };
    owner.reported();
    let event = Box::new(Event {
        raw: rdma_cm_event {
            id,
            listen_id,
            event: incoming.event,
            status: incoming.status,
            param,
        },
        owner,
        data,
    });
    Ok(Some(Box::into_raw(event).cast()))
}

/// Takes the next event of a channel.
///
/// # Safety
///
/// As for `rdma_get_cm_event`.
pub(crate) unsafe fn next(queue: &Queue) -> Result<*mut rdma_cm_event, Errno> {
    loop {
        let incoming = queue.pop()?;
        // SAFETY: as the caller promises.
        if let Some(event) = unsafe { deliver(incoming) }? {
            return Ok(event);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_cm_event(
    channel: *mut rdma_event_channel,
    event: *mut *mut rdma_cm_event,
) -> c_int {
    if channel.is_null() || event.is_null() {
        return errno::minus_one(Err(Errno(libc::EINVAL)));
    }
    // SAFETY: C's contract: the channel is live; its queue is, while this waits.
    let queue = Arc::clone(unsafe { &Channel::of(channel).queue });
    // SAFETY: C's contract.
    errno::minus_one(unsafe { next(&queue) }.map(|found| {
        // SAFETY: C's contract: `event` is writable.
        unsafe { event.write(found) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int {
    if event.is_null() {
        return errno::minus_one(Err(Errno(libc::EINVAL)));
    }
    // SAFETY: C's contract.
    unsafe { acknowledge(event) };
    0
}

/// Frees an event.
///
/// # Safety
///
/// The event came from [`next`] and is not used again.
pub(crate) unsafe fn acknowledge(event: *mut rdma_cm_event) {
    // SAFETY: as the caller promises.
    let event = unsafe { Box::from_raw(event.cast::<Event>()) };
    event.owner.acknowledged();
    drop(event.data);
}
