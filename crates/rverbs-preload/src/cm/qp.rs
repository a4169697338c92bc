//! Queue pairs of an identifier: making them, and their way through the states.

use core::ffi::c_int;
use core::ptr::{NonNull, null_mut};

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE, IBV_QP_ACCESS_FLAGS,
    IBV_QP_AV, IBV_QP_DEST_QPN, IBV_QP_INIT_ATTR_PD, IBV_QP_MAX_DEST_RD_ATOMIC,
    IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT,
    IBV_QP_QKEY, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE,
    IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_SRQ_INIT_ATTR_TYPE,
    IBV_SRQT_BASIC, RDMA_MAX_INIT_DEPTH, RDMA_MAX_RESP_RES, RDMA_UDP_QKEY, ibv_comp_channel,
    ibv_cq, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq_init_attr,
    ibv_srq_init_attr_ex, rdma_cm_id,
};

use super::id::{Id, Phase, toward};
use super::message::{Kind, Message};
use crate::device::{Open, open_of};
use crate::errno::{self, UNSUPPORTED, given};
use crate::extended;
use crate::verbs::adopt;

/// About 0.6 ms: how long the other side waits before it tries again when no receive is posted.
const MIN_RNR_TIMER: u8 = 12;
/// About 67 ms: how long the other side's answer may take.
const TIMEOUT: u8 = 14;

/// Attributes for a transition of the identifier's queue pair, as `rdma_init_qp_attr` gives them.
fn attributes(id: &Id, to: u32) -> Result<(ibv_qp_attr, u32), Errno> {
    let open = id.open()?;
    let state = id.state();
    let mut attr = ibv_qp_attr {
        qp_state: to,
        port_num: 1,
        ..ibv_qp_attr::default()
    };
    let (peer, own) = (state.peer.as_ref(), state.own.as_ref());
    let mask = match to {
        IBV_QPS_INIT if id.is_datagram() => {
            attr.qkey = RDMA_UDP_QKEY;
            IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY
        }
        IBV_QPS_INIT => {
            // Before the other side said what it needs, it may do nothing.
            if peer.is_some() {
                attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
                if state.responder_resources > 0 {
                    attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
                }
            }
            IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
        }
        IBV_QPS_RTR => {
            let peer = peer.ok_or(Errno(libc::EINVAL))?;
            let mtu = open.provider.query_port(1)?.active_mtu;
            // A reply does not say an MTU: it is the request's.
            attr.path_mtu = match peer.mtu {
                0 => mtu,
                peer => u32::from(peer).min(mtu),
            };
            attr.dest_qp_num = peer.qpn;
            // Each side says what the other begins with (IBTA 12.7.31).
            attr.rq_psn = state.first_psn;
            attr.max_dest_rd_atomic = state.responder_resources;
            attr.min_rnr_timer = MIN_RNR_TIMER;
            attr.ah_attr = toward(peer);
            IBV_QP_AV
                | IBV_QP_PATH_MTU
                | IBV_QP_DEST_QPN
                | IBV_QP_RQ_PSN
                | IBV_QP_MAX_DEST_RD_ATOMIC
                | IBV_QP_MIN_RNR_TIMER
        }
        IBV_QPS_RTS => {
            let peer = peer.ok_or(Errno(libc::EINVAL))?;
            attr.sq_psn = peer.psn;
            attr.timeout = TIMEOUT;
            // Both sides use what the request says; of RNR each side says how often the other tries.
            attr.retry_cnt = match peer.kind {
                Kind::Request => peer.retry_count,
                _ => own.map_or(7, |own| own.retry_count),
            } & 7;
            attr.rnr_retry = peer.rnr_retry_count & 7;
            attr.max_rd_atomic = state.initiator_depth;
            IBV_QP_SQ_PSN
                | IBV_QP_TIMEOUT
                | IBV_QP_RETRY_CNT
                | IBV_QP_RNR_RETRY
                | IBV_QP_MAX_QP_RD_ATOMIC
        }
        _ => return Err(Errno(libc::EINVAL)),
    };
    Ok((attr, mask | IBV_QP_STATE))
}

/// # Safety
///
/// The queue pair is live.
unsafe fn modify(qp: NonNull<ibv_qp>, attr: &ibv_qp_attr, mask: u32) -> Result<(), Errno> {
    let open = open_of!(qp.as_ptr());
    // SAFETY: as the caller promises.
    unsafe { open.provider.modify_qp(qp, attr, mask) }
}

/// The identifier's queue pair.
///
/// # Safety
///
/// The identifier is live.
unsafe fn of(id: *mut rdma_cm_id) -> Option<NonNull<ibv_qp>> {
    // SAFETY: as the caller promises.
    NonNull::new(unsafe { (*id).qp })
}

/// Moves the queue pair of a connection to RTS, where the identifier has one.
///
/// # Safety
///
/// The identifier and its queue pair are live.
pub(crate) unsafe fn ready(id: &Id, responder: u8, initiator: u8) -> Result<(), Errno> {
    // SAFETY: as the caller promises.
    let Some(qp) = (unsafe { of(id.raw()) }) else {
        return Ok(());
    };
    let (attr, mask) = attributes(id, IBV_QPS_INIT)?;
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, mask) }?;
    let (mut attr, mask) = attributes(id, IBV_QPS_RTR)?;
    if u32::from(responder) != RDMA_MAX_RESP_RES {
        attr.max_dest_rd_atomic = responder;
    }
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, mask) }?;
    let (mut attr, mask) = attributes(id, IBV_QPS_RTS)?;
    if u32::from(initiator) != RDMA_MAX_INIT_DEPTH {
        attr.max_rd_atomic = initiator;
    }
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, mask) }
}

/// Answers a reply: the queue pair becomes ready, and the other side is told.
///
/// # Safety
///
/// The identifier and its queue pair are live.
pub(crate) unsafe fn answer(id: &Id) -> Result<(), Errno> {
    // SAFETY: as the caller promises.
    let done =
        unsafe { ready(id, u8::MAX, u8::MAX) }.and_then(|()| id.say(&Message::new(Kind::Ready)));
    match done {
        Ok(()) => {
            let mut state = id.state();
            if state.phase == Phase::Replied {
                state.phase = Phase::Connected;
            }
            Ok(())
        }
        Err(error) => {
            // SAFETY: as the caller promises. The first failure is the one to tell.
            let _ = unsafe { fail(id.raw()) };
            id.hang_up();
            Err(error)
        }
    }
}

/// Moves the queue pair to ERR, where the identifier has one.
///
/// # Safety
///
/// The identifier and its queue pair are live.
pub(crate) unsafe fn fail(id: *mut rdma_cm_id) -> Result<(), Errno> {
    // SAFETY: as the caller promises.
    let Some(qp) = (unsafe { of(id) }) else {
        return Ok(());
    };
    let attr = ibv_qp_attr {
        qp_state: IBV_QPS_ERR,
        ..ibv_qp_attr::default()
    };
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, IBV_QP_STATE) }
}

/// Moves a new queue pair to where it can take receive requests.
///
/// # Safety
///
/// The queue pair is live.
unsafe fn begin(id: &Id, qp: NonNull<ibv_qp>) -> Result<(), Errno> {
    let (attr, mask) = attributes(id, IBV_QPS_INIT)?;
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, mask) }?;
    if !id.is_datagram() {
        return Ok(());
    }
    let mut attr = ibv_qp_attr {
        qp_state: IBV_QPS_RTR,
        ..ibv_qp_attr::default()
    };
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, IBV_QP_STATE) }?;
    attr.qp_state = IBV_QPS_RTS;
    // SAFETY: as the caller promises.
    unsafe { modify(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) }
}

/// A completion queue with a channel, for an identifier whose user brought none.
fn new_cq(
    open: &Open,
    id: *mut rdma_cm_id,
    size: u32,
) -> Result<(NonNull<ibv_comp_channel>, NonNull<ibv_cq>), Errno> {
    let channel = adopt!(open, open.provider.create_comp_channel()?);
    // SAFETY: the channel was just made.
    match unsafe { open.provider.create_cq(size, id.cast(), Some(channel), 0) } {
        Ok(cq) => Ok((channel, adopt!(open, cq))),
        Err(error) => {
            // SAFETY: nobody else has seen it. There is nothing to do about a second failure.
            let _ = unsafe { open.provider.destroy_comp_channel(channel) };
            Err(error)
        }
    }
}

/// # Safety
///
/// The identifier is live, and its own queues are not used any more.
unsafe fn destroy_cqs(open: &Open, id: *mut rdma_cm_id) {
    // SAFETY: as the caller promises.
    let id = unsafe { &mut *id };
    for (cq, channel) in [
        (&mut id.recv_cq, &mut id.recv_cq_channel),
        (&mut id.send_cq, &mut id.send_cq_channel),
    ] {
        // C's functions return no error here either: what is still in use stays.
        if let Some(cq) = NonNull::new(core::mem::replace(cq, null_mut())) {
            // SAFETY: as the caller promises.
            let _ = unsafe { open.provider.destroy_cq(cq) };
        }
        if let Some(channel) = NonNull::new(core::mem::replace(channel, null_mut())) {
            // SAFETY: as the caller promises.
            let _ = unsafe { open.provider.destroy_comp_channel(channel) };
        }
    }
}

/// Makes the queue pair of an identifier.
///
/// # Safety
///
/// As for `rdma_create_qp_ex`.
pub(crate) unsafe fn create(
    raw: *mut rdma_cm_id,
    attr: &mut ibv_qp_init_attr_ex,
) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let id = unsafe { Id::share(raw) }?;
    let open = id.open()?;
    // SAFETY: as above; the program's thread is the only one that uses the struct.
    let c = unsafe { &mut *raw };
    if !c.qp.is_null() {
        return Err(Errno(libc::EINVAL));
    }
    if attr.comp_mask & IBV_QP_INIT_ATTR_PD == 0 || attr.pd.is_null() {
        attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr.pd = c.pd;
    }
    if attr.recv_cq.is_null() && c.recv_cq.is_null() && attr.cap.max_recv_wr > 0 {
        let (channel, cq) = new_cq(open, raw, attr.cap.max_recv_wr)?;
        (c.recv_cq_channel, c.recv_cq) = (channel.as_ptr(), cq.as_ptr());
    }
    if attr.send_cq.is_null() && c.send_cq.is_null() && attr.cap.max_send_wr > 0 {
        let (channel, cq) = new_cq(open, raw, attr.cap.max_send_wr)?;
        (c.send_cq_channel, c.send_cq) = (channel.as_ptr(), cq.as_ptr());
    }
    if attr.send_cq.is_null() {
        attr.send_cq = c.send_cq;
    }
    if attr.recv_cq.is_null() {
        attr.recv_cq = c.recv_cq;
    }
    // One queue may serve a direction that needs none of its own.
    if attr.send_cq.is_null() {
        attr.send_cq = attr.recv_cq;
    }
    if attr.recv_cq.is_null() {
        attr.recv_cq = attr.send_cq;
    }
    if attr.srq.is_null() {
        attr.srq = c.srq;
    }
    // SAFETY: C's contract: the objects that the attributes name are live.
    let qp = unsafe { extended::create_qp(attr) };
    let made = qp.and_then(|qp| {
        // SAFETY: it was just made.
        match unsafe { begin(&id, qp) } {
            Ok(()) => Ok(qp),
            Err(error) => {
                // SAFETY: nobody else has seen it.
                let _ = unsafe { open.provider.destroy_qp(qp) };
                Err(error)
            }
        }
    });
    match made {
        Ok(qp) => {
            c.qp = qp.as_ptr();
            // SAFETY: it was just made.
            c.pd = unsafe { (*qp.as_ptr()).pd };
            Ok(())
        }
        Err(error) => {
            tracing::debug!(%error, "no queue pair for an identifier");
            // SAFETY: no queue pair uses them.
            unsafe { destroy_cqs(open, raw) };
            Err(error)
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp_ex(
    id: *mut rdma_cm_id,
    attr: *mut ibv_qp_init_attr_ex,
) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { create(id, &mut *attr) })
}

/// As `rdma_create_qp`.
///
/// # Safety
///
/// As for `rdma_create_qp`.
pub(crate) unsafe fn create_basic(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    attr: &mut ibv_qp_init_attr,
) -> Result<(), Errno> {
    let mut extended = ibv_qp_init_attr_ex {
        qp_context: attr.qp_context,
        send_cq: attr.send_cq,
        recv_cq: attr.recv_cq,
        srq: attr.srq,
        cap: attr.cap,
        qp_type: attr.qp_type,
        sq_sig_all: attr.sq_sig_all,
        comp_mask: IBV_QP_INIT_ATTR_PD,
        pd,
        ..ibv_qp_init_attr_ex::default()
    };
    // SAFETY: as the caller promises.
    unsafe { create(id, &mut extended) }?;
    attr.send_cq = extended.send_cq;
    attr.recv_cq = extended.recv_cq;
    attr.srq = extended.srq;
    attr.cap = extended.cap;
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_qp(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    attr: *mut ibv_qp_init_attr,
) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { create_basic(id, pd, &mut *attr) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_qp(id: *mut rdma_cm_id) {
    // SAFETY: C's contract: the identifier is live.
    let (Some(qp), Ok(this)) = (unsafe { of(id) }, unsafe { Id::share(id) }) else {
        return;
    };
    let open = open_of!(qp.as_ptr());
    // SAFETY: C's contract: the queue pair is live and not used again.
    if unsafe { open.provider.destroy_qp(qp) }.is_ok() {
        crate::batch::forget(qp.as_ptr());
    }
    // SAFETY: C's contract: the program's thread is the only one that uses the struct.
    unsafe { (*id).qp = null_mut() };
    if let Ok(open) = this.open() {
        // SAFETY: the queue pair that used them is gone.
        unsafe { destroy_cqs(open, id) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_srq_ex(
    id: *mut rdma_cm_id,
    attr: *mut ibv_srq_init_attr_ex,
) -> c_int {
    // SAFETY: C's contract: both are the program's own.
    let attr = unsafe { &mut *attr };
    if attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE == 0 {
        return errno::minus_one(Err(Errno(libc::EINVAL)));
    }
    if attr.srq_type != IBV_SRQT_BASIC {
        return errno::minus_one(Err(UNSUPPORTED));
    }
    let mut basic = ibv_srq_init_attr {
        srq_context: attr.srq_context,
        attr: attr.attr,
    };
    // SAFETY: C's contract.
    let code = unsafe { rdma_create_srq(id, attr.pd, &raw mut basic) };
    attr.attr = basic.attr;
    code
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_srq(
    id: *mut rdma_cm_id,
    pd: *mut ibv_pd,
    attr: *mut ibv_srq_init_attr,
) -> c_int {
    // SAFETY: C's contract: both are the program's own.
    let (c, attr) = unsafe { (&mut *id, &mut *attr) };
    let pd = if pd.is_null() { c.pd } else { pd };
    errno::minus_one(given(pd).and_then(|pd| {
        let open = open_of!(pd.as_ptr());
        // SAFETY: C's contract: the domain is live.
        let srq = unsafe { open.provider.create_srq(pd, attr) }?;
        c.srq = adopt!(open, srq).as_ptr();
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_srq(id: *mut rdma_cm_id) {
    // SAFETY: C's contract: the identifier is live.
    let c = unsafe { &mut *id };
    if let Some(srq) = NonNull::new(core::mem::replace(&mut c.srq, null_mut())) {
        let open = open_of!(srq.as_ptr());
        // SAFETY: C's contract: the queue is live and not used again. C returns no error here.
        let _ = unsafe { open.provider.destroy_srq(srq) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_init_qp_attr(
    id: *mut rdma_cm_id,
    attr: *mut ibv_qp_attr,
    mask: *mut c_int,
) -> c_int {
    // SAFETY: C's contract: the identifier is live, and the state that is wanted is in `attr`.
    let found = unsafe { Id::share(id).and_then(|id| attributes(&id, (*attr).qp_state)) };
    errno::minus_one(found.map(|(found, its_mask)| {
        // SAFETY: C's contract: both are writable.
        unsafe {
            attr.write(found);
            mask.write(its_mask.cast_signed());
        }
    }))
}
