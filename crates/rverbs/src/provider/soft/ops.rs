//! The operations of the data path, as C calls them.

use core::ffi::c_int;
use core::ptr::NonNull;

use rverbs_sys::{
    IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS, ibv_context_ops, ibv_cq,
    ibv_qp, ibv_recv_wr, ibv_send_wr, ibv_srq, ibv_wc,
};

use super::object::Object as _;
use super::{Cq, Qp, Sink, Srq, Transport};

/// The table for an `ibv_context`.
pub(super) fn table<T: Transport>() -> ibv_context_ops {
    ibv_context_ops {
        poll_cq: Some(poll_cq::<T>),
        req_notify_cq: Some(req_notify_cq::<T>),
        post_send: Some(post_send::<T>),
        post_recv: Some(post_recv::<T>),
        post_srq_recv: Some(post_srq_recv::<T>),
        ..ibv_context_ops::default()
    }
}

unsafe extern "C" fn post_send<T: Transport>(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: C's contract: the queue pair is live.
    let qp = unsafe { Qp::<T>::from_raw(NonNull::new_unchecked(qp)) };
    let result = match qp.state() {
        // SAFETY: C's contract: the list can be read.
        IBV_QPS_RTS | IBV_QPS_ERR => unsafe { qp.pd.context.transport.post_send(qp, wr) },
        IBV_QPS_RESET | IBV_QPS_INIT | IBV_QPS_RTR => Err((super::Errno(libc::EINVAL), wr)),
        // SAFETY: as above. In SQD requests wait, in SQE they are flushed.
        _ => unsafe { qp.pd.context.transport.post_send(qp, wr) },
    };
    match result {
        Ok(()) => 0,
        Err((errno, at)) => {
            if !bad.is_null() {
                // SAFETY: C's contract: `bad` is writable.
                unsafe { *bad = at };
            }
            errno.0
        }
    }
}

unsafe extern "C" fn post_recv<T: Transport>(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: C's contract: the queue pair is live.
    let qp = unsafe { Qp::<T>::from_raw(NonNull::new_unchecked(qp)) };
    let result = if qp.state() == IBV_QPS_RESET || qp.srq.is_some() {
        Err((super::Errno(libc::EINVAL), wr))
    } else {
        // SAFETY: C's contract: the list can be read.
        unsafe { qp.pd.context.transport.post_recv(qp, wr) }
    };
    match result {
        Ok(()) => 0,
        Err((errno, at)) => {
            if !bad.is_null() {
                // SAFETY: C's contract: `bad` is writable.
                unsafe { *bad = at };
            }
            errno.0
        }
    }
}

unsafe extern "C" fn post_srq_recv<T: Transport>(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: C's contract: the queue is live.
    let srq = unsafe { Srq::<T>::from_raw(NonNull::new_unchecked(srq)) };
    // SAFETY: C's contract: the list can be read.
    let result = unsafe { srq.queue.post(wr) };
    srq.pd.context.transport.posted_srq(srq);
    match result {
        Ok(()) => 0,
        Err((errno, at)) => {
            if !bad.is_null() {
                // SAFETY: C's contract: `bad` is writable.
                unsafe { *bad = at };
            }
            errno.0
        }
    }
}

unsafe extern "C" fn poll_cq<T: Transport>(
    cq: *mut ibv_cq,
    entries: c_int,
    wc: *mut ibv_wc,
) -> c_int {
    // SAFETY: C's contract: the queue is live.
    let cq = unsafe { Cq::<T>::from_raw(NonNull::new_unchecked(cq)) };
    let Ok(room) = u32::try_from(entries) else {
        return -libc::EINVAL;
    };
    // SAFETY: C's contract: the array has room for that many.
    let mut sink = unsafe { Sink::new(cq, wc, room) };
    let qps = cq.poll.lock();
    cq.drain(&mut sink);
    if sink.room() > 0 {
        cq.context.transport.poll(cq, &qps, &mut sink);
        // What the transport could not give directly.
        cq.drain(&mut sink);
    }
    drop(qps);
    entries - sink.room().cast_signed()
}

unsafe extern "C" fn req_notify_cq<T: Transport>(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: C's contract: the queue is live.
    let cq = unsafe { Cq::<T>::from_raw(NonNull::new_unchecked(cq)) };
    cq.set_armed(solicited_only != 0);
    cq.context.transport.arm(cq);
    0
}
