//! Shared receive queues.

use core::ffi::c_int;

use rverbs_sys::{ibv_pd, ibv_srq, ibv_srq_attr, ibv_srq_init_attr};

use super::adopt;
use crate::device::open_of;
use crate::errno::{self, given};

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_srq(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    let open = open_of!(pd);
    errno::pointer(given(pd).and_then(|pd| {
        // SAFETY: C's contract: the domain is live and `attr` is the program's own.
        let srq = unsafe { open.provider.create_srq(pd, &mut *attr) }?;
        Ok(adopt!(open, srq))
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_modify_srq(
    srq: *mut ibv_srq,
    attr: *mut ibv_srq_attr,
    mask: c_int,
) -> c_int {
    let open = open_of!(srq);
    let mask = mask.cast_unsigned();
    // SAFETY: C's contract: the queue is live and `attr` readable.
    errno::code(given(srq).and_then(|srq| unsafe { open.provider.modify_srq(srq, &*attr, mask) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int {
    let open = open_of!(srq);
    errno::code(given(srq).and_then(|srq| {
        // SAFETY: C's contract: the queue is live and `attr` writable.
        unsafe { attr.write(open.provider.query_srq(srq)?) };
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int {
    let open = open_of!(srq);
    // SAFETY: C's contract: the queue is live, and not used again if this succeeds.
    errno::code(given(srq).and_then(|srq| unsafe { open.provider.destroy_srq(srq) }))
}
