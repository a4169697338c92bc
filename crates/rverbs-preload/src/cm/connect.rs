//! The functions that take an identifier from an address to a connection and back.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_EVENT_COMM_EST, IBV_QPT_RC, IBV_QPT_UD, RDMA_CM_EVENT_ADDR_ERROR,
    RDMA_CM_EVENT_ADDR_RESOLVED, RDMA_CM_EVENT_ESTABLISHED, RDMA_CM_EVENT_ROUTE_RESOLVED,
    RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES, RDMA_OPTION_ID, RDMA_PS_IPOIB, RDMA_PS_UDP,
    RDMA_UDP_QKEY, ibv_event_type, ibv_qp_type, rdma_cm_id, rdma_conn_param, rdma_event_channel,
    rdma_port_space,
};

use super::address::{self, any_like, canonical};
use super::channel::{Param, acknowledge};
use super::id::{CONSUMER_REJECT, Id, Phase};
use super::message::{Kind, Message};
use super::{qp, wire};
use crate::errno::{self, UNSUPPORTED};

/// # Safety
///
/// As for `rdma_create_id`.
pub(crate) unsafe fn create(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    user: *mut c_void,
    space: rdma_port_space,
    qp_type: ibv_qp_type,
) -> Result<(), Errno> {
    if crate::device::devices().is_empty() {
        return Err(Errno(libc::ENODEV));
    }
    let made = Id::new(channel, user, space, qp_type)?;
    // SAFETY: C's contract: `id` is writable.
    unsafe { id.write(Id::into_raw(made)) };
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_id(
    channel: *mut rdma_event_channel,
    id: *mut *mut rdma_cm_id,
    user: *mut c_void,
    space: rdma_port_space,
) -> c_int {
    let qp_type = match space {
        RDMA_PS_IPOIB | RDMA_PS_UDP => IBV_QPT_UD,
        _ => IBV_QPT_RC,
    };
    // SAFETY: C's contract.
    errno::minus_one(unsafe { create(channel, id, user, space, qp_type) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: C's contract: the identifier is not used again.
    errno::minus_one(unsafe { Id::destroy(id) })
}

/// Takes a port at an address.
fn reserve(id: &Id, address: SocketAddr) -> Result<(), Errno> {
    let mut state = id.state();
    if state.reservation.is_some() || state.phase != Phase::Idle {
        return Err(Errno(libc::EINVAL));
    }
    let reservation = wire::reserve(id.space(), address)?;
    id.set_source(&reservation.address());
    state.reservation = Some(reservation);
    Ok(())
}

/// # Safety
///
/// As for `rdma_bind_addr`.
pub(crate) unsafe fn bind(id: *mut rdma_cm_id, to: *const libc::sockaddr) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(id) }?;
    // SAFETY: C's contract: the address is as long as its family says.
    let to = canonical(unsafe { address::read(to) }.ok_or(Errno(libc::EINVAL))?);
    if !to.ip().is_unspecified() {
        if !address::is_local(to.ip()) {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
        reserve(&id, to)?;
        return id.attach(wire::device_for(to.ip())?);
    }
    reserve(&id, to)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_bind_addr(id: *mut rdma_cm_id, to: *mut libc::sockaddr) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { bind(id, to) })
}

/// Finds the device that reaches `to`, and the address that it is reached from.
fn resolve(id: &Arc<Id>, from: Option<SocketAddr>, to: SocketAddr) -> Result<(), Errno> {
    let bound = id.source().filter(|_| id.state().reservation.is_some());
    let source = match bound.or(from) {
        Some(from) if !from.ip().is_unspecified() => from,
        other => SocketAddr::new(
            address::source_for(to.ip())?,
            other.map_or(0, |other| other.port()),
        ),
    };
    let device = wire::device_for(to.ip())?;
    if bound.is_none() {
        reserve(id, source)?;
    } else {
        id.set_source(&source);
    }
    id.attach(device)
}

/// # Safety
///
/// As for `rdma_resolve_addr`.
pub(crate) unsafe fn resolve_addr(
    raw: *mut rdma_cm_id,
    from: *const libc::sockaddr,
    to: *const libc::sockaddr,
) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(raw) }?;
    // SAFETY: C's contract: the addresses are as long as their families say.
    let (from, to) = unsafe { (address::read(from), address::read(to)) };
    let mut to = canonical(to.ok_or(Errno(libc::EINVAL))?);
    if to.ip().is_unspecified() {
        // "This host", as the kernel takes it.
        to.set_ip(match to.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    id.set_destination(&to);
    match resolve(&id, from.map(canonical), to) {
        Ok(()) => {
            id.state().phase = Phase::Resolved;
            id.give(RDMA_CM_EVENT_ADDR_RESOLVED, 0, Param::None);
        }
        Err(Errno(errno)) => id.give(RDMA_CM_EVENT_ADDR_ERROR, -errno, Param::None),
    }
    // SAFETY: C's contract.
    unsafe { id.complete() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_addr(
    id: *mut rdma_cm_id,
    from: *mut libc::sockaddr,
    to: *mut libc::sockaddr,
    _timeout_ms: c_int,
) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { resolve_addr(id, from, to) })
}

/// # Safety
///
/// As for `rdma_resolve_route`.
pub(crate) unsafe fn resolve_route(raw: *mut rdma_cm_id) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(raw) }?;
    if id.state().phase != Phase::Resolved {
        return Err(Errno(libc::EINVAL));
    }
    id.set_path()?;
    id.give(RDMA_CM_EVENT_ROUTE_RESOLVED, 0, Param::None);
    // SAFETY: C's contract.
    unsafe { id.complete() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_resolve_route(id: *mut rdma_cm_id, _timeout_ms: c_int) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { resolve_route(id) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int {
    // SAFETY: C's contract: the identifier is live.
    errno::minus_one(unsafe { Id::share(id) }.and_then(|id| {
        if id.state().reservation.is_none() {
            reserve(
                &id,
                SocketAddr::new(any_like(Ipv4Addr::LOCALHOST.into()), 0),
            )?;
        }
        let reservation = {
            let mut state = id.state();
            state.phase = Phase::Listening;
            state.reservation.clone().ok_or(Errno(libc::EINVAL))?
        };
        let listening = wire::listen(&id, &*reservation, backlog)?;
        id.state().listening = listening;
        Ok(())
    }))
}

/// The user's parameters and the limits of the device, as they go to the other side.
struct Wanted {
    message: Message,
    responder: u8,
    initiator: u8,
}

/// # Safety
///
/// The parameters are null or readable, with their private data; the identifier is live.
unsafe fn wanted(
    id: &Id,
    kind: Kind,
    param: *const rdma_conn_param,
    limits: (u8, u8),
) -> Result<Wanted, Errno> {
    // SAFETY: as the caller promises.
    let (param, qp) = unsafe { (param.as_ref(), (*id.raw()).qp) };
    if qp.is_null() && param.is_none() {
        return Err(Errno(libc::EINVAL));
    }
    let mut message = id.introduce(kind)?;
    message.psn = id.state().first_psn;
    message.data = core::mem::take(&mut id.state().connect_data);
    (message.retry_count, message.rnr_retry_count) = (7, 7);
    let (mut responder, mut initiator) = limits;
    if let Some(param) = param {
        if u32::from(param.responder_resources) != RDMA_MAX_RESP_RES {
            responder = param.responder_resources;
        }
        if u32::from(param.initiator_depth) != RDMA_MAX_INIT_DEPTH {
            initiator = param.initiator_depth;
        }
        message.flow_control = param.flow_control;
        message.retry_count = param.retry_count;
        message.rnr_retry_count = param.rnr_retry_count;
        message.srq = param.srq;
        message.qpn = param.qp_num;
        if !param.private_data.is_null() && param.private_data_len > 0 {
            // SAFETY: as the caller promises.
            message.data.extend_from_slice(unsafe {
                core::slice::from_raw_parts(
                    param.private_data.cast::<u8>(),
                    usize::from(param.private_data_len),
                )
            });
        }
    }
    if message.data.len() > kind.room() {
        return Err(Errno(libc::EINVAL));
    }
    if !qp.is_null() {
        // SAFETY: the caller's queue pair is live.
        (message.qpn, message.srq) = unsafe { ((*qp).qp_num, u8::from(!(*qp).srq.is_null())) };
    }
    message.responder_resources = responder;
    message.initiator_depth = initiator;
    Ok(Wanted {
        message,
        responder,
        initiator,
    })
}

/// What the device allows of reads and atomics, as responder and as initiator.
fn limits(id: &Id) -> Result<(u8, u8), Errno> {
    let attr = id.open()?.provider.query_device()?.orig_attr;
    let limit = |value: c_int| u8::try_from(value).unwrap_or(u8::MAX);
    Ok((limit(attr.max_qp_rd_atom), limit(attr.max_qp_init_rd_atom)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { ask(id, param) })
}

/// # Safety
///
/// As for `rdma_connect`.
unsafe fn ask(raw: *mut rdma_cm_id, param: *const rdma_conn_param) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(raw) }?;
    let kind = if id.is_datagram() {
        Kind::Lookup
    } else {
        Kind::Request
    };
    let max = limits(&id)?;
    // SAFETY: C's contract: the parameters are null or readable.
    let wanted = unsafe { wanted(&id, kind, param, max) }?;
    if !id.is_datagram() && (wanted.responder > max.0 || wanted.initiator > max.1) {
        return Err(Errno(libc::EINVAL));
    }
    let to = id.destination().ok_or(Errno(libc::EINVAL))?;
    let device = {
        let mut state = id.state();
        if state.phase != Phase::Resolved {
            return Err(Errno(libc::EINVAL));
        }
        state.phase = Phase::Requested;
        state.responder_resources = wanted.responder;
        state.initiator_depth = wanted.initiator;
        state.own = Some(wanted.message.clone());
        state.device.ok_or(Errno(libc::EINVAL))?
    };
    if let Err(error) = wire::dial(&id, device, to, wanted.message) {
        tracing::debug!(%error, %to, "cannot call");
        id.refused();
    }
    // SAFETY: C's contract.
    unsafe { id.complete() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { accept(id, param) })
}

/// # Safety
///
/// As for `rdma_accept`.
unsafe fn accept(raw: *mut rdma_cm_id, param: *const rdma_conn_param) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(raw) }?;
    if id.state().phase == Phase::Replied {
        // SAFETY: C's contract.
        return unsafe { qp::answer(&id) };
    }
    if id.state().phase != Phase::Asked {
        return Err(Errno(libc::EINVAL));
    }
    let max = limits(&id)?;
    let wants = {
        let state = id.state();
        (
            state.responder_resources.min(max.0),
            state.initiator_depth.min(max.1),
        )
    };
    let kind = if id.is_datagram() {
        Kind::Found
    } else {
        Kind::Reply
    };
    // SAFETY: C's contract: the parameters are null or readable.
    let mut wanted = unsafe { wanted(&id, kind, param, wants) }?;
    if id.is_datagram() {
        wanted.message.qkey = RDMA_UDP_QKEY;
        id.state().phase = Phase::Connected;
        id.say(&wanted.message)?;
        let before = {
            let sync = id.state().sync;
            // SAFETY: the program's thread is the only one that uses the struct.
            sync.then(|| unsafe { core::mem::replace(&mut (*raw).event, null_mut()) })
        };
        if let Some(event) = before.filter(|event| !event.is_null()) {
            // SAFETY: the event was left there by `rdma_get_request`.
            unsafe { acknowledge(event) };
        }
        return Ok(());
    }
    {
        let mut state = id.state();
        state.responder_resources = wanted.responder;
        state.initiator_depth = wanted.initiator;
        state.own = Some(wanted.message.clone());
    }
    // SAFETY: C's contract: the queue pair is live where there is one.
    unsafe { qp::ready(&id, wanted.responder, wanted.initiator) }?;
    id.state().phase = Phase::Accepted;
    if let Err(error) = id.say(&wanted.message) {
        // SAFETY: as above. The first failure is the one to tell.
        let _ = unsafe { qp::fail(raw) };
        return Err(error);
    }
    // SAFETY: C's contract.
    unsafe { id.complete() }
}

/// Tells the other side that the connection is ready, for who has no queue pair in the identifier.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_establish(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: C's contract: the identifier is live.
    errno::minus_one(unsafe { Id::share(id) }.and_then(|this| {
        // SAFETY: as above.
        if !unsafe { (*id).qp }.is_null() || this.state().phase != Phase::Replied {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: as above.
        unsafe { qp::answer(&this) }
    }))
}

/// # Safety
///
/// As for `rdma_reject`.
unsafe fn refuse(id: *mut rdma_cm_id, data: *const c_void, len: u8) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(id) }?;
    let phase = id.state().phase;
    if !matches!(phase, Phase::Asked | Phase::Replied) {
        return Err(Errno(libc::EINVAL));
    }
    let kind = if id.is_datagram() {
        Kind::Found
    } else {
        Kind::Reject
    };
    let mut message = Message::new(kind);
    message.reason = if id.is_datagram() { 2 } else { CONSUMER_REJECT };
    if !data.is_null() && len > 0 {
        if usize::from(len) > kind.room() {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: C's contract: the private data are readable.
        message.data.extend_from_slice(unsafe {
            core::slice::from_raw_parts(data.cast::<u8>(), usize::from(len))
        });
    }
    id.state().phase = Phase::Ended;
    id.say(&message)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, len: u8) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { refuse(id, data, len) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_reject_ece(id: *mut rdma_cm_id, data: *const c_void, len: u8) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { refuse(id, data, len) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { disconnect(id) })
}

/// # Safety
///
/// As for `rdma_disconnect`.
unsafe fn disconnect(raw: *mut rdma_cm_id) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(raw) }?;
    if id.state().device.is_none() {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: C's contract: the queue pair is live where there is one.
    unsafe { qp::fail(raw) }?;
    let phase = id.state().phase;
    match phase {
        Phase::Connected | Phase::Accepted | Phase::Replied => {
            id.state().phase = Phase::Disconnecting;
            // The end of a process is heard by the thread, which then gives the event.
            let _ = id.say(&Message::new(Kind::Disconnect));
        }
        // The event that it ended waits, or was taken.
        Phase::Ended | Phase::Disconnecting => {}
        _ => return Err(Errno(libc::EINVAL)),
    }
    // SAFETY: C's contract.
    unsafe { id.complete() }
}

/// The user saw a first message before the other side's "ready" came.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_notify(id: *mut rdma_cm_id, event: ibv_event_type) -> c_int {
    // SAFETY: C's contract: the identifier is live.
    errno::minus_one(unsafe { Id::share(id) }.map(|id| {
        let mut state = id.state();
        if event == IBV_EVENT_COMM_EST && state.phase == Phase::Accepted {
            state.phase = Phase::Connected;
            let param = state.peer.clone().map_or(Param::None, Param::Connection);
            drop(state);
            id.give(RDMA_CM_EVENT_ESTABLISHED, 0, param);
        }
    }))
}

/// Type of service, reuse of addresses, answer timeout: nothing here depends on them. A path cannot
/// be set, since there is no subnet that it could lead through.
#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_set_option(
    _id: *mut rdma_cm_id,
    level: c_int,
    _option: c_int,
    _value: *mut c_void,
    _len: usize,
) -> c_int {
    errno::minus_one(if level == RDMA_OPTION_ID.cast_signed() {
        Ok(())
    } else {
        Err(UNSUPPORTED)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_src_port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: C's contract: the identifier is live.
    let source = unsafe { Id::share(id) }.ok().and_then(|id| id.source());
    source.map_or(0, |address| address.port().to_be())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_dst_port(id: *mut rdma_cm_id) -> u16 {
    // SAFETY: C's contract: the identifier is live.
    let destination = unsafe { Id::share(id) }
        .ok()
        .and_then(|id| id.destination());
    destination.map_or(0, |address| address.port().to_be())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_migrate_id(
    id: *mut rdma_cm_id,
    channel: *mut rdma_event_channel,
) -> c_int {
    // SAFETY: C's contract: the identifier is live.
    errno::minus_one(unsafe { Id::share(id) }.and_then(|this| {
        if channel.is_null() && this.state().sync {
            return Err(Errno(libc::EINVAL));
        }
        if this.state().sync {
            // SAFETY: the program's thread is the only one that uses the struct.
            let event = unsafe { core::mem::replace(&mut (*id).event, null_mut()) };
            if !event.is_null() {
                // SAFETY: the event was left there by a function that waited for it.
                unsafe { acknowledge(event) };
            }
        }
        this.migrate((!channel.is_null()).then_some(channel))?;
        this.wait_acknowledged();
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_set_local_ece(_id: *mut rdma_cm_id, _ece: *mut c_void) -> c_int {
    errno::minus_one(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn rdma_get_remote_ece(_id: *mut rdma_cm_id, _ece: *mut c_void) -> c_int {
    errno::minus_one(Err(UNSUPPORTED))
}
