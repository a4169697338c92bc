//! Completion channels and queues.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::NonNull;

use rverbs::provider::Errno;
use rverbs_sys::{ibv_comp_channel, ibv_context, ibv_cq};

use super::adopt;
use crate::device::{Open, open_of};
use crate::errno::{self, given};

/// Completions that every queue has room for.
const LEAST_DEPTH: u32 = 64;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    let channel = open.provider.create_comp_channel();
    errno::pointer(channel.map(|channel| adopt!(open, channel)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int {
    let open = open_of!(channel);
    // SAFETY: C's contract: the channel is live, and not used again if this succeeds.
    errno::code(given(channel).and_then(|c| unsafe { open.provider.destroy_comp_channel(c) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_create_cq(
    context: *mut ibv_context,
    cqe: c_int,
    user: *mut c_void,
    channel: *mut ibv_comp_channel,
    vector: c_int,
) -> *mut ibv_cq {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    let (Ok(cqe), Ok(vector)) = (u32::try_from(cqe), u32::try_from(vector)) else {
        return errno::pointer(Err(Errno(libc::EINVAL)));
    };
    // Adapters round the size up, and programs count on it: ib_send_lat asks for a queue of one and
    // has two completions in it when events come in another order than it thinks.
    let cqe = cqe.max(LEAST_DEPTH);
    // SAFETY: C's contract: the channel, where there is one, is live.
    let cq = unsafe {
        open.provider
            .create_cq(cqe, user, NonNull::new(channel), vector)
    };
    errno::pointer(cq.map(|cq| adopt!(open, cq)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int {
    let open = open_of!(cq);
    let cqe = u32::try_from(cqe).map_err(|_| Errno(libc::EINVAL));
    // SAFETY: C's contract: the queue is live.
    errno::code(given(cq).and_then(|cq| unsafe { open.provider.resize_cq(cq, cqe?) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int {
    let open = open_of!(cq);
    // SAFETY: C's contract: the queue is live, and not used again if this succeeds.
    errno::code(given(cq).and_then(|cq| unsafe { open.provider.destroy_cq(cq) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_cq_event(
    channel: *mut ibv_comp_channel,
    cq: *mut *mut ibv_cq,
    user: *mut *mut c_void,
) -> c_int {
    let open = open_of!(channel);
    errno::minus_one(given(channel).and_then(|channel| {
        // SAFETY: C's contract: the channel is live.
        let (of, its_user) = unsafe { open.provider.get_cq_event(channel) }?;
        // SAFETY: C's contract: both are writable.
        unsafe {
            cq.write(of.as_ptr());
            user.write(its_user);
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_cq_events(cq: *mut ibv_cq, events: c_uint) {
    let open = open_of!(cq);
    if let Some(cq) = NonNull::new(cq) {
        // SAFETY: C's contract: the queue is live.
        unsafe { open.provider.ack_cq_events(cq, events) };
    }
}
