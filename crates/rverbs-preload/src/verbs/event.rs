//! Asynchronous events.

use core::ffi::c_int;

use rverbs_sys::{
    IBV_EVENT_CQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_SRQ_ERR,
    IBV_EVENT_SRQ_LIMIT_REACHED, ibv_async_event, ibv_context,
};

use crate::device::Open;
use crate::errno;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_async_event(
    context: *mut ibv_context,
    event: *mut ibv_async_event,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    errno::minus_one(open.provider.get_async_event().map(|found| {
        // SAFETY: C's contract: `event` is writable.
        unsafe { event.write(found) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_ack_async_event(event: *mut ibv_async_event) {
    // SAFETY: C's contract: the event came from `ibv_get_async_event`.
    let event = unsafe { &*event };
    // SAFETY: the type says which object the event is about, and that object is live until the event
    // is acknowledged. Its first field is the context, whatever it is.
    let context = unsafe {
        match event.event_type {
            IBV_EVENT_CQ_ERR => (*event.element.cq).context,
            IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => (*event.element.srq).context,
            1..=7 | IBV_EVENT_QP_LAST_WQE_REACHED => (*event.element.qp).context,
            // About a port or the device: nothing waits for these.
            _ => return,
        }
    };
    // SAFETY: as above.
    unsafe { Open::of(context).provider.ack_async_event(event) };
}
