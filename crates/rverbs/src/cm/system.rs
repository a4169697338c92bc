//! The system's manager: librdmacm, and the kernel's `rdma_ucm` beneath it.
//!
//! Queue pairs are made and moved by this crate; librdmacm never sees them. It is told their numbers and
//! says what their attributes are to be, which it offers to whoever manages queue pairs himself
//! (`rdma_connect(3)`: "for a QP that is not associated with the `rdma_cm_id`").

use core::ffi::{CStr, c_int};
use core::ptr::{NonNull, null, null_mut};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rverbs_sys::{
    Cm as Rdmacm, IBV_QP_ACCESS_FLAGS, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, RDMA_PS_TCP,
    ibv_qp_attr, rdma_cm_event_type, rdma_cm_id, rdma_conn_param, rdma_event_channel,
};
use rverbs_sys::{
    RDMA_CM_EVENT_ADDR_ERROR, RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_CONNECT_ERROR,
    RDMA_CM_EVENT_CONNECT_REQUEST, RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_DEVICE_REMOVAL,
    RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_REJECTED,
    RDMA_CM_EVENT_ROUTE_ERROR, RDMA_CM_EVENT_ROUTE_RESOLVED, RDMA_CM_EVENT_TIMEWAIT_EXIT,
    RDMA_CM_EVENT_UNREACHABLE,
};

use super::{is_ready, reason};
use crate::Error;
use crate::device::Context;
use crate::mr::Buf;
use crate::provider::Errno;
use crate::provider::roce::udp::{address, raw_address};
use crate::qp::{ConnectAttr, Qp, Rc};

/// Calls that wait to be taken.
const BACKLOG: c_int = 64;
/// Bits that some kernels set in the mask and that mean nothing to `ibv_modify_qp`.
const STRAY: u32 = 0x00e0_0000;

/// The library, loaded once for the process.
fn library() -> Result<&'static Rdmacm, Error> {
    static LIBRARY: OnceLock<Rdmacm> = OnceLock::new();
    if let Some(library) = LIBRARY.get() {
        return Ok(library);
    }
    let library = Rdmacm::load()?;
    Ok(LIBRARY.get_or_init(|| library))
}

/// The name of the device that has this address, by the system's word; `None` where none has it.
pub(super) fn device_of(source: IpAddr) -> Result<Option<String>, Error> {
    let id = Id::new()?;
    match id.bind(SocketAddr::new(source, 0)) {
        Ok(()) => Ok(id.device()),
        Err(Error::Verb { errno, .. })
            if matches!(errno.0, libc::ENODEV | libc::EADDRNOTAVAIL | libc::EINVAL) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// An event channel, closed with its last user.
#[derive(Debug)]
struct Channel(NonNull<rdma_event_channel>);

// SAFETY: librdmacm's functions may be called from any thread.
unsafe impl Send for Channel {}
// SAFETY: as above.
unsafe impl Sync for Channel {}

/// What happened.
#[derive(Debug, Clone, Copy)]
struct Event {
    kind: rdma_cm_event_type,
    status: c_int,
    id: *mut rdma_cm_id,
    /// Reads and atomic operations at a time that the peer lets us ask for, and that it will ask for.
    depths: (u8, u8),
}

impl Channel {
    fn new() -> Result<Self, Error> {
        let create = library()?.rdma_create_event_channel()?;
        // SAFETY: the function has no requirement.
        let channel = NonNull::new(unsafe { create() }).ok_or_else(Errno::last);
        let channel = channel.map_err(Error::verb("rdma_create_event_channel"))?;
        let channel = Self(channel);
        // SAFETY: the descriptor is the channel's. Who waits does so by `poll`.
        let code = unsafe { libc::fcntl(channel.fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Errno::check(code).map_err(Error::verb("fcntl"))?;
        Ok(channel)
    }

    fn fd(&self) -> c_int {
        // SAFETY: the channel is live.
        unsafe { self.0.as_ref() }.fd
    }

    /// The next event, until the time is over.
    fn next(&self, end: Option<Instant>) -> Result<Option<Event>, Error> {
        let (get, acknowledge) = (
            library()?.rdma_get_cm_event()?,
            library()?.rdma_ack_cm_event()?,
        );
        loop {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            let wait = left.map_or(-1, |left| {
                i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
            });
            if !is_ready(self.fd(), wait) {
                if left.is_some_and(|left| left.is_zero()) {
                    return Ok(None);
                }
                continue;
            }
            let mut event = null_mut();
            // SAFETY: the channel is live and the pointer writable.
            let code = unsafe { get(self.0.as_ptr(), &raw mut event) };
            if code == 0 {
                // SAFETY: the event is the library's until it is acknowledged; only `conn` is used, and
                // only where the event has it.
                let (kind, status, id, peer) = unsafe {
                    let event = &*event;
                    (event.event, event.status, event.id, event.param.conn)
                };
                // SAFETY: the event is not used again.
                unsafe { acknowledge(event) };
                return Ok(Some(Event {
                    kind,
                    status,
                    id,
                    depths: (peer.initiator_depth, peer.responder_resources),
                }));
            }
            let errno = Errno::last();
            if !matches!(errno.0, libc::EAGAIN | libc::EINTR) {
                return Err(Error::verb("rdma_get_cm_event")(errno));
            }
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        if let Ok(destroy) = library().and_then(|lib| Ok(lib.rdma_destroy_event_channel()?)) {
            // SAFETY: what used it is gone.
            unsafe { destroy(self.0.as_ptr()) };
        }
    }
}

/// An identifier with a channel of its own.
#[derive(Debug)]
struct Id {
    raw: NonNull<rdma_cm_id>,
    channel: Channel,
}

// SAFETY: librdmacm's functions may be called from any thread.
unsafe impl Send for Id {}
// SAFETY: as above; the fields that are read are written before a function returns and not later.
unsafe impl Sync for Id {}

/// What an identifier is to do with a peer, and what it is called in an error.
#[derive(Debug, Clone, Copy)]
struct Step {
    verb: &'static str,
    then: rdma_cm_event_type,
}

impl Id {
    fn new() -> Result<Self, Error> {
        let channel = Channel::new()?;
        let create = library()?.rdma_create_id()?;
        let mut raw = null_mut();
        // SAFETY: the channel is live and the pointer writable.
        let code = unsafe { create(channel.0.as_ptr(), &raw mut raw, null_mut(), RDMA_PS_TCP) };
        Errno::check(code).map_err(Error::verb("rdma_create_id"))?;
        let raw = NonNull::new(raw).ok_or(Errno(libc::EIO));
        let raw = raw.map_err(Error::verb("rdma_create_id"))?;
        Ok(Self { raw, channel })
    }

    /// Takes over an identifier that came with a call.
    fn adopt(raw: *mut rdma_cm_id) -> Result<Self, Error> {
        let raw = NonNull::new(raw).ok_or(Errno(libc::EIO));
        let raw = raw.map_err(Error::verb("rdma_get_cm_event"))?;
        let id = Self {
            raw,
            channel: Channel::new()?,
        };
        let migrate = library()?.rdma_migrate_id()?;
        // SAFETY: both are live, and no event of the identifier waits to be acknowledged.
        let code = unsafe { migrate(id.raw.as_ptr(), id.channel.0.as_ptr()) };
        Errno::check(code).map_err(Error::verb("rdma_migrate_id"))?;
        Ok(id)
    }

    fn bind(&self, to: SocketAddr) -> Result<(), Error> {
        let bind = library()?.rdma_bind_addr()?;
        let (mut to, _) = raw_address(to);
        // SAFETY: the identifier is live and the address a whole one.
        let code = unsafe { bind(self.raw.as_ptr(), (&raw mut to).cast()) };
        Errno::check(code).map_err(Error::verb("rdma_bind_addr"))
    }

    /// The device that the system chose.
    fn device(&self) -> Option<String> {
        // SAFETY: the identifier is live; its device stays open as long as the process.
        let name = unsafe {
            let context = self.raw.as_ref().verbs;
            let device = context.as_ref()?.device.as_ref()?;
            CStr::from_ptr((&raw const device.name).cast())
        };
        Some(name.to_string_lossy().into_owned())
    }

    /// Fails where the system's choice is another device than ours.
    fn is_on(&self, context: &Context, to: SocketAddr) -> Result<(), Error> {
        let chosen = self.device();
        if chosen.as_deref().is_none_or(|name| name == context.name()) {
            return Ok(());
        }
        Err(Error::Refused {
            to: to.to_string(),
            why: format!(
                "the way there is by {}, not by {}",
                chosen.unwrap_or_default(),
                context.name()
            ),
        })
    }

    fn peer(&self) -> SocketAddr {
        // SAFETY: the identifier is live, and all of the storage is initialised.
        let storage = unsafe { self.raw.as_ref().route.addr.dst.dst_storage };
        address(&storage).unwrap_or_else(|| SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0))
    }

    /// Waits for what a step leads to.
    fn until(&self, step: Step, to: SocketAddr, end: Option<Instant>) -> Result<Event, Error> {
        loop {
            let unanswered = || Error::Unanswered { to: to.to_string() };
            let event = self.channel.next(end)?.ok_or_else(unanswered)?;
            let failed = || Error::verb(step.verb)(Errno(event.status.saturating_abs()));
            match event.kind {
                kind if kind == step.then => return Ok(event),
                RDMA_CM_EVENT_ADDR_ERROR
                | RDMA_CM_EVENT_ROUTE_ERROR
                | RDMA_CM_EVENT_CONNECT_ERROR => return Err(failed()),
                RDMA_CM_EVENT_UNREACHABLE | RDMA_CM_EVENT_DISCONNECTED => return Err(unanswered()),
                RDMA_CM_EVENT_REJECTED => {
                    let code = u16::try_from(event.status).unwrap_or(u16::MAX);
                    return Err(Error::Refused {
                        to: to.to_string(),
                        why: reason(code),
                    });
                }
                RDMA_CM_EVENT_DEVICE_REMOVAL => {
                    return Err(Error::verb(step.verb)(Errno(libc::ENODEV)));
                }
                _ => {}
            }
        }
    }

    /// Moves a queue pair as the manager says, with what `how` asks for beyond.
    fn modify<S: Buf, R: Buf>(
        &self,
        qp: &Qp<Rc, S, R>,
        qp_state: u32,
        how: &ConnectAttr,
    ) -> Result<(), Error> {
        let init = library()?.rdma_init_qp_attr()?;
        let mut attr = ibv_qp_attr {
            qp_state,
            ..ibv_qp_attr::default()
        };
        let mut mask = 0;
        // SAFETY: the identifier is live, and both can be written.
        let code = unsafe { init(self.raw.as_ptr(), &raw mut attr, &raw mut mask) };
        Errno::check(code).map_err(Error::verb("rdma_init_qp_attr"))?;
        let mut mask = mask.cast_unsigned() & !STRAY;
        if qp_state == IBV_QPS_INIT {
            // What peers may do stays as `Qp::init` was told.
            mask &= !IBV_QP_ACCESS_FLAGS;
        }
        (attr.max_rd_atomic, attr.max_dest_rd_atomic) = how.rd_atomic;
        attr.min_rnr_timer = how.min_rnr_timer;
        attr.rnr_retry = how.rnr_retry;
        attr.path_mtu = attr.path_mtu.min(how.mtu);
        qp.handle().modify(&attr, mask)
    }

    /// Makes a queue pair in INIT ready, with no more reads at a time than both sides offer.
    fn ready<S: Buf, R: Buf>(
        &self,
        qp: &Qp<Rc, S, R>,
        how: &mut ConnectAttr,
        (asks, answers): (u8, u8),
    ) -> Result<(), Error> {
        how.rd_atomic = (how.rd_atomic.0.min(asks), how.rd_atomic.1.min(answers));
        for state in [IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS] {
            self.modify(qp, state, how)?;
        }
        Ok(())
    }
}

impl Drop for Id {
    fn drop(&mut self) {
        if let Ok(destroy) = library().and_then(|lib| Ok(lib.rdma_destroy_id()?)) {
            // SAFETY: the identifier is not used again, and every event of it is acknowledged.
            unsafe { destroy(self.raw.as_ptr()) };
        }
    }
}

fn param<S: Buf, R: Buf>(qp: &Qp<Rc, S, R>, how: &ConnectAttr) -> rdma_conn_param {
    rdma_conn_param {
        private_data: null(),
        private_data_len: 0,
        responder_resources: how.rd_atomic.1,
        initiator_depth: how.rd_atomic.0,
        flow_control: 1,
        retry_count: how.retry_cnt & 7,
        rnr_retry_count: how.rnr_retry & 7,
        srq: 0,
        qp_num: qp.qpn(),
    }
}

/// Our side.
#[derive(Debug, Clone)]
pub(super) struct System {
    pub context: Context,
    source: IpAddr,
}

#[derive(Debug)]
pub(super) struct Listener(Id);

#[derive(Debug)]
pub(super) struct Call {
    id: Id,
    depths: (u8, u8),
}

#[derive(Debug)]
pub(super) struct Connection {
    id: Id,
    /// Whether its end was seen.
    over: AtomicBool,
}

impl System {
    pub(super) const fn new(context: Context, source: IpAddr) -> Self {
        Self { context, source }
    }

    pub(super) fn listen(&self, port: u16) -> Result<Listener, Error> {
        let id = Id::new()?;
        id.bind(SocketAddr::new(self.source, port))?;
        let listen = library()?.rdma_listen()?;
        // SAFETY: the identifier is live.
        let code = unsafe { listen(id.raw.as_ptr(), BACKLOG) };
        Errno::check(code).map_err(Error::verb("rdma_listen"))?;
        Ok(Listener(id))
    }

    pub(super) fn connect<S: Buf, R: Buf>(
        &self,
        qp: &Qp<Rc, S, R>,
        to: SocketAddr,
        how: &ConnectAttr,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        let end = Some(Instant::now() + timeout);
        let milliseconds = c_int::try_from(timeout.as_millis()).unwrap_or(c_int::MAX);
        let lib = library()?;
        let id = Id::new()?;
        let step = Step {
            verb: "rdma_resolve_addr",
            then: RDMA_CM_EVENT_ADDR_RESOLVED,
        };
        let (mut from, _) = raw_address(SocketAddr::new(self.source, 0));
        let (mut dest, _) = raw_address(to);
        let resolve = lib.rdma_resolve_addr()?;
        let from: *mut libc::sockaddr = if self.source.is_unspecified() {
            null_mut()
        } else {
            (&raw mut from).cast()
        };
        // SAFETY: the identifier is live, and the addresses are whole ones.
        let code = unsafe { resolve(id.raw.as_ptr(), from, (&raw mut dest).cast(), milliseconds) };
        Errno::check(code).map_err(Error::verb(step.verb))?;
        id.until(step, to, end)?;
        id.is_on(&self.context, to)?;

        let step = Step {
            verb: "rdma_resolve_route",
            then: RDMA_CM_EVENT_ROUTE_RESOLVED,
        };
        let route = lib.rdma_resolve_route()?;
        // SAFETY: the identifier is live.
        let code = unsafe { route(id.raw.as_ptr(), milliseconds) };
        Errno::check(code).map_err(Error::verb(step.verb))?;
        id.until(step, to, end)?;

        let step = Step {
            verb: "rdma_connect",
            then: RDMA_CM_EVENT_CONNECT_RESPONSE,
        };
        let mut own = param(qp, how);
        let connect = lib.rdma_connect()?;
        // SAFETY: the identifier is live, and the parameters are read before this returns.
        let code = unsafe { connect(id.raw.as_ptr(), &raw mut own) };
        Errno::check(code).map_err(Error::verb(step.verb))?;
        let reply = id.until(step, to, end)?;
        id.ready(qp, &mut how.clone(), reply.depths)?;
        let establish = lib.rdma_establish()?;
        // SAFETY: the identifier is live, and its queue pair can receive.
        let code = unsafe { establish(id.raw.as_ptr()) };
        Errno::check(code).map_err(Error::verb("rdma_establish"))?;
        Ok(Connection::new(id))
    }

    pub(super) fn accept<S: Buf, R: Buf>(
        &self,
        call: Call,
        qp: &Qp<Rc, S, R>,
        how: &ConnectAttr,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        let Call { id, depths } = call;
        let from = id.peer();
        id.is_on(&self.context, from)?;
        let mut how = *how;
        id.ready(qp, &mut how, depths)?;
        let step = Step {
            verb: "rdma_accept",
            then: RDMA_CM_EVENT_ESTABLISHED,
        };
        let mut own = param(qp, &how);
        let accept = library()?.rdma_accept()?;
        // SAFETY: the identifier is live, and the parameters are read before this returns.
        let code = unsafe { accept(id.raw.as_ptr(), &raw mut own) };
        Errno::check(code).map_err(Error::verb(step.verb))?;
        id.until(step, from, Some(Instant::now() + timeout))?;
        Ok(Connection::new(id))
    }
}

impl Listener {
    pub(super) fn next(&self, timeout: Option<Duration>) -> Result<Option<Call>, Error> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        while let Some(event) = self.0.channel.next(end)? {
            if event.kind == RDMA_CM_EVENT_CONNECT_REQUEST {
                return Ok(Some(Call {
                    id: Id::adopt(event.id)?,
                    depths: event.depths,
                }));
            }
        }
        Ok(None)
    }
}

impl Call {
    pub(super) fn from(&self) -> IpAddr {
        self.id.peer().ip()
    }
}

impl Connection {
    const fn new(id: Id) -> Self {
        Self {
            id,
            over: AtomicBool::new(false),
        }
    }

    pub(super) fn is_over(&self) -> Result<bool, Error> {
        self.over(Some(Instant::now()))
    }

    fn over(&self, end: Option<Instant>) -> Result<bool, Error> {
        while !self.over.load(Ordering::Relaxed) {
            let Some(event) = self.id.channel.next(end)? else {
                return Ok(false);
            };
            let over = matches!(
                event.kind,
                RDMA_CM_EVENT_DISCONNECTED
                    | RDMA_CM_EVENT_REJECTED
                    | RDMA_CM_EVENT_UNREACHABLE
                    | RDMA_CM_EVENT_DEVICE_REMOVAL
                    | RDMA_CM_EVENT_TIMEWAIT_EXIT
            );
            self.over.fetch_or(over, Ordering::Relaxed);
        }
        Ok(true)
    }

    pub(super) fn disconnect(self, timeout: Duration) -> Result<(), Error> {
        let disconnect = library()?.rdma_disconnect()?;
        // SAFETY: the identifier is live.
        let code = unsafe { disconnect(self.id.raw.as_ptr()) };
        if code == 0 {
            self.over(Some(Instant::now() + timeout))?;
        }
        Ok(())
    }
}
