//! The verbs that C defines in its headers, which no library exports.
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "to follow a pointer to a pointer is one step"
)]

use core::ffi::c_int;
use core::mem::{offset_of, size_of};

use crate::bindings::{
    ibv_context, ibv_cq, ibv_mw, ibv_mw_bind, ibv_mw_type, ibv_pd, ibv_qp, ibv_recv_wr,
    ibv_send_wr, ibv_srq, ibv_wc, verbs_context,
};

/// Posts a list of work requests on the send queue.
///
/// Returns 0, or an error number with `*bad` at the first request that was not taken.
///
/// # Safety
///
/// `qp` is a live queue pair, `wr` a list whose buffers stay registered and untouched until their
/// completion, `bad` is writable.
#[inline]
pub unsafe fn ibv_post_send(
    qp: *mut ibv_qp,
    wr: *mut ibv_send_wr,
    bad: *mut *mut ibv_send_wr,
) -> c_int {
    // SAFETY: a live queue pair has a live context.
    let op = unsafe { (*(*qp).context).ops.post_send };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(qp, wr, bad) },
        None => libc::EOPNOTSUPP,
    }
}

/// Posts a list of work requests on the receive queue.
///
/// Returns 0, or an error number with `*bad` at the first request that was not taken.
///
/// # Safety
///
/// As for [`ibv_post_send`].
#[inline]
pub unsafe fn ibv_post_recv(
    qp: *mut ibv_qp,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live queue pair has a live context.
    let op = unsafe { (*(*qp).context).ops.post_recv };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(qp, wr, bad) },
        None => libc::EOPNOTSUPP,
    }
}

/// Posts a list of work requests on a shared receive queue.
///
/// Returns 0, or an error number with `*bad` at the first request that was not taken.
///
/// # Safety
///
/// As for [`ibv_post_send`].
#[inline]
pub unsafe fn ibv_post_srq_recv(
    srq: *mut ibv_srq,
    wr: *mut ibv_recv_wr,
    bad: *mut *mut ibv_recv_wr,
) -> c_int {
    // SAFETY: a live shared receive queue has a live context.
    let op = unsafe { (*(*srq).context).ops.post_srq_recv };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(srq, wr, bad) },
        None => libc::EOPNOTSUPP,
    }
}

/// Takes up to `entries` completions; returns how many, or a negative value.
///
/// # Safety
///
/// `cq` is a live completion queue, `wc` has room for `entries`.
#[inline]
pub unsafe fn ibv_poll_cq(cq: *mut ibv_cq, entries: c_int, wc: *mut ibv_wc) -> c_int {
    // SAFETY: a live completion queue has a live context.
    let op = unsafe { (*(*cq).context).ops.poll_cq };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(cq, entries, wc) },
        None => -libc::EOPNOTSUPP,
    }
}

/// Asks for one event on the channel of `cq`. Returns 0 or an error number.
///
/// # Safety
///
/// `cq` is a live completion queue.
#[inline]
pub unsafe fn ibv_req_notify_cq(cq: *mut ibv_cq, solicited_only: c_int) -> c_int {
    // SAFETY: a live completion queue has a live context.
    let op = unsafe { (*(*cq).context).ops.req_notify_cq };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(cq, solicited_only) },
        None => libc::EOPNOTSUPP,
    }
}

/// Makes a memory window; null with `errno` set where that fails.
///
/// # Safety
///
/// `pd` is a live protection domain.
pub unsafe fn ibv_alloc_mw(pd: *mut ibv_pd, kind: ibv_mw_type) -> *mut ibv_mw {
    // SAFETY: a live protection domain has a live context.
    let op = unsafe { (*(*pd).context).ops.alloc_mw };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(pd, kind) },
        None => core::ptr::null_mut(),
    }
}

/// Frees a memory window. Returns 0 or an error number.
///
/// # Safety
///
/// `mw` is a live memory window, not used afterwards.
pub unsafe fn ibv_dealloc_mw(mw: *mut ibv_mw) -> c_int {
    // SAFETY: a live memory window has a live context.
    let op = unsafe { (*(*mw).context).ops.dealloc_mw };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(mw) },
        None => libc::EOPNOTSUPP,
    }
}

/// Binds a type 1 memory window through the send queue. Returns 0 or an error number.
///
/// # Safety
///
/// All three are live, and the region that is bound outlives the binding.
pub unsafe fn ibv_bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: *mut ibv_mw_bind) -> c_int {
    // SAFETY: a live memory window has a live context.
    let op = unsafe { (*(*mw).context).ops.bind_mw };
    match op {
        // SAFETY: as the caller promises.
        Some(op) => unsafe { op(qp, mw, bind) },
        None => libc::EOPNOTSUPP,
    }
}

/// The extended context that lies around `context`, where the library gives one and it is long
/// enough to hold the operation at `offset`.
///
/// ```
/// # unsafe fn f(context: *mut rverbs_sys::ibv_context) {
/// let offset = core::mem::offset_of!(rverbs_sys::verbs_context, query_port);
/// // SAFETY: the context is live.
/// let extended = unsafe { rverbs_sys::inline::verbs_get_ctx_op(context, offset) };
/// # }
/// ```
///
/// # Safety
///
/// `context` is a live context.
pub unsafe fn verbs_get_ctx_op(
    context: *mut ibv_context,
    offset: usize,
) -> Option<*const verbs_context> {
    // SAFETY: the caller's context is live.
    let extended = unsafe { (*context).abi_compat };
    // C marks a context that lies in a `verbs_context` with all ones.
    if extended.addr() != usize::MAX {
        return None;
    }
    let around = context
        .wrapping_byte_sub(offset_of!(verbs_context, context))
        .cast_const()
        .cast::<verbs_context>();
    // SAFETY: the mark says that the context is a field of a `verbs_context`.
    let size = unsafe { (*around).sz };
    // The structure grows at its front: an operation is there when it lies within `sz` of the end.
    (size_of::<verbs_context>() - offset <= size).then_some(around)
}
