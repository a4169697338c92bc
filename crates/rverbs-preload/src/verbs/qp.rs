//! Queue pairs.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::{NonNull, null_mut};

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_QP_INIT_ATTR_PD, ibv_gid, ibv_pd, ibv_qp, ibv_qp_attr, ibv_qp_ex, ibv_qp_init_attr,
    ibv_qp_init_attr_ex,
};

use super::adopt;
use crate::batch;
use crate::device::open_of;
use crate::errno::{self, UNSUPPORTED, given};

/// Bytes of inline data that every queue pair takes.
const LEAST_INLINE: u32 = 64;

/// Makes a queue pair from extended attributes, without the functions of `ibv_qp_ex`.
///
/// # Safety
///
/// As for `ibv_create_qp`: the domain and the queues are live.
pub(crate) unsafe fn create(
    pd: *mut ibv_pd,
    attr: &mut ibv_qp_init_attr_ex,
) -> Result<NonNull<ibv_qp>, Errno> {
    let pd = given(pd)?;
    let open = open_of!(pd.as_ptr());
    attr.pd = pd.as_ptr();
    // Adapters have room for a little inline data in every request, whatever is asked for, and
    // programs count on it (rdma_xclient sends 16 bytes so).
    attr.cap.max_inline_data = attr.cap.max_inline_data.max(LEAST_INLINE);
    // SAFETY: as the caller promises.
    let qp = unsafe { open.provider.create_qp(pd, attr) }?;
    Ok(adopt!(open, qp))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp {
    // SAFETY: C's contract: `attr` is the program's own.
    let attr = unsafe { &mut *attr };
    let mut extended = ibv_qp_init_attr_ex {
        qp_context: attr.qp_context,
        send_cq: attr.send_cq,
        recv_cq: attr.recv_cq,
        srq: attr.srq,
        cap: attr.cap,
        qp_type: attr.qp_type,
        sq_sig_all: attr.sq_sig_all,
        comp_mask: IBV_QP_INIT_ATTR_PD,
        ..ibv_qp_init_attr_ex::default()
    };
    // SAFETY: C's contract: the domain and the queues are live.
    let qp = unsafe { create(pd, &mut extended) };
    if qp.is_ok() {
        attr.cap = extended.cap;
    }
    errno::pointer(qp)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int {
    let open = open_of!(qp);
    let mask = mask.cast_unsigned();
    // SAFETY: C's contract: the queue pair is live and `attr` readable.
    let result = given(qp).and_then(|qp| unsafe { open.provider.modify_qp(qp, &*attr, mask) });
    if let Err(error) = result {
        // SAFETY: as above.
        let to = unsafe { (*attr).qp_state };
        tracing::debug!(%error, to, mask = format_args!("{mask:#x}"), "modify_qp refused");
    }
    errno::code(result)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_qp(
    qp: *mut ibv_qp,
    attr: *mut ibv_qp_attr,
    mask: c_int,
    init: *mut ibv_qp_init_attr,
) -> c_int {
    let open = open_of!(qp);
    errno::code(given(qp).and_then(|qp| {
        // SAFETY: C's contract: the queue pair is live.
        let (found, made_with) = unsafe { open.provider.query_qp(qp, mask.cast_unsigned()) }?;
        // SAFETY: C's contract: both are writable.
        unsafe {
            attr.write(found);
            init.write(made_with);
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int {
    let open = open_of!(qp);
    errno::code(given(qp).and_then(|qp| {
        // SAFETY: C's contract: the queue pair is live, and not used again if this succeeds.
        unsafe { open.provider.destroy_qp(qp) }?;
        batch::forget(qp.as_ptr());
        Ok(())
    }))
}

/// The functions of a queue pair that was made with `ibv_create_qp_ex`.
///
/// They are in a struct of their own, which starts with a copy of the queue pair's; programs use
/// both pointers only for what each is for.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex {
    batch::of(qp).map_or(null_mut(), NonNull::as_ptr)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int {
    let open = open_of!(qp);
    // SAFETY: C's contract: the queue pair is live and `gid` readable.
    errno::code(given(qp).and_then(|qp| unsafe { open.provider.attach_mcast(qp, &*gid, lid) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_detach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int {
    let open = open_of!(qp);
    // SAFETY: C's contract: the queue pair is live and `gid` readable.
    errno::code(given(qp).and_then(|qp| unsafe { open.provider.detach_mcast(qp, &*gid, lid) }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_set_ece(_qp: *mut ibv_qp, _ece: *mut c_void) -> c_int {
    errno::code(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_query_ece(_qp: *mut ibv_qp, _ece: *mut c_void) -> c_int {
    errno::code(Err(UNSUPPORTED))
}

/// No promise about the order in which the bytes of a message become visible.
#[unsafe(no_mangle)]
extern "C" fn ibv_query_qp_data_in_order(_qp: *mut ibv_qp, _op: c_uint, _flags: u32) -> c_int {
    0
}
