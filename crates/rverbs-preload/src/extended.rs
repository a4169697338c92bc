//! The extended context: operations that C's inline functions look for behind `abi_compat`.
//!
//! An operation that is absent here makes C's inline function return `EOPNOTSUPP`.

use core::ffi::c_int;
use core::mem::size_of;
use core::ptr::NonNull;

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_INIT_ATTR_PD, IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
    IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_TYPE, IBV_SRQT_BASIC, ib_uverbs_advise_mr_advice,
    ibv_context, ibv_device_attr_ex, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_init_attr_ex,
    ibv_query_device_ex_input, ibv_sge, ibv_srq, ibv_srq_init_attr, ibv_srq_init_attr_ex,
    verbs_context,
};

use crate::batch;
use crate::device::Open;
use crate::errno::{self, UNSUPPORTED, given};
use crate::query::{copy_prefix, device_attr};
use crate::verbs::{adopt, qp};

/// The extended context around a context.
pub(crate) fn context(context: ibv_context) -> verbs_context {
    verbs_context {
        query_port: Some(query_port),
        query_device_ex: Some(query_device_ex),
        create_qp_ex: Some(create_qp_ex),
        create_srq_ex: Some(create_srq_ex),
        advise_mr: Some(advise_mr),
        sz: size_of::<verbs_context>(),
        context,
        ..verbs_context::default()
    }
}

unsafe extern "C" fn query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
    size: usize,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    errno::code(open.provider.query_port(port).map(|found| {
        // SAFETY: C's contract: `attr` is writable for `size` bytes.
        unsafe { copy_prefix(&found, attr, size) };
    }))
}

unsafe extern "C" fn query_device_ex(
    context: *mut ibv_context,
    input: *const ibv_query_device_ex_input,
    attr: *mut ibv_device_attr_ex,
    size: usize,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    // SAFETY: C's contract: `input` is null or readable.
    if unsafe { input.as_ref() }.is_some_and(|input| input.comp_mask != 0) {
        return errno::code(Err(Errno(libc::EINVAL)));
    }
    errno::code(device_attr(open).map(|found| {
        // SAFETY: C's contract: `attr` is writable for `size` bytes.
        unsafe { copy_prefix(&found, attr, size) };
    }))
}

unsafe extern "C" fn create_qp_ex(
    _context: *mut ibv_context,
    attr: *mut ibv_qp_init_attr_ex,
) -> *mut ibv_qp {
    // SAFETY: C's contract: `attr` is the program's own.
    errno::pointer(unsafe { create_qp(&mut *attr) })
}

/// Makes a queue pair, with the functions of `ibv_qp_ex` where they are asked for.
///
/// # Safety
///
/// The objects that the attributes name are live.
pub(crate) unsafe fn create_qp(attr: &mut ibv_qp_init_attr_ex) -> Result<NonNull<ibv_qp>, Errno> {
    let known =
        IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    let mask = attr.comp_mask;
    if mask & !known != 0 || mask & IBV_QP_INIT_ATTR_PD == 0 {
        return Err(UNSUPPORTED);
    }
    if mask & IBV_QP_INIT_ATTR_CREATE_FLAGS != 0 && attr.create_flags != 0 {
        return Err(UNSUPPORTED);
    }
    let batched = mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS != 0;
    if batched && attr.send_ops_flags & !batch::SUPPORTED != 0 {
        return Err(UNSUPPORTED);
    }
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    // SAFETY: as the caller promises.
    let made = unsafe { qp::create(attr.pd, attr) };
    attr.comp_mask = mask;
    let made = made?;
    if batched {
        batch::add(made, attr);
    }
    Ok(made)
}

unsafe extern "C" fn create_srq_ex(
    context: *mut ibv_context,
    attr: *mut ibv_srq_init_attr_ex,
) -> *mut ibv_srq {
    // SAFETY: C's contract: the context is open and `attr` is the program's own.
    let (open, attr) = unsafe { (Open::of(context), &mut *attr) };
    let known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    let typed = attr.comp_mask & IBV_SRQ_INIT_ATTR_TYPE != 0;
    if attr.comp_mask & !known != 0 || (typed && attr.srq_type != IBV_SRQT_BASIC) {
        return errno::pointer(Err(UNSUPPORTED));
    }
    let mut basic = ibv_srq_init_attr {
        srq_context: attr.srq_context,
        attr: attr.attr,
    };
    errno::pointer(given(attr.pd).and_then(|pd| {
        // SAFETY: C's contract: the domain is live.
        let srq = unsafe { open.provider.create_srq(pd, &mut basic) }?;
        attr.attr = basic.attr;
        Ok(adopt!(open, srq))
    }))
}

/// Advice needs no obeying.
unsafe extern "C" fn advise_mr(
    _pd: *mut ibv_pd,
    _advice: ib_uverbs_advise_mr_advice,
    _flags: u32,
    _entries: *mut ibv_sge,
    _count: u32,
) -> c_int {
    0
}
