//! Asynchronous events: what happens to a device without being asked for.

use std::os::fd::{AsFd, BorrowedFd};

use rverbs_sys::{
    IBV_EVENT_CQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_SRQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED,
};

use crate::Error;
use crate::device::Context;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "ibv_async_event")]
pub struct Event {
    /// `ibv_event_type`.
    pub kind: u32,
    /// What it is about.
    pub about: About,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum About {
    /// The queue pair of that number.
    Qp(u32),
    /// A completion queue.
    Cq,
    /// A shared receive queue.
    Srq,
    /// A port.
    Port(u8),
    /// The device.
    Device,
}

impl Context {
    /// Takes an event, waiting for one unless the descriptor was made non-blocking.
    ///
    /// # Errors
    ///
    /// `EAGAIN` where the descriptor is non-blocking and no event waits.
    #[doc(alias = "ibv_get_async_event")]
    pub fn wait_event(&self) -> Result<Event, Error> {
        let event = self
            .0
            .get_async_event()
            .map_err(Error::verb("ibv_get_async_event"))?;
        // SAFETY: the type says which field of the union is set, and objects live until their
        // events are acknowledged.
        let about = unsafe {
            match event.event_type {
                IBV_EVENT_CQ_ERR => About::Cq,
                IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => About::Srq,
                1..=7 | IBV_EVENT_QP_LAST_WQE_REACHED => About::Qp((*event.element.qp).qp_num),
                8 => About::Device,
                _ => About::Port(u8::try_from(event.element.port_num).unwrap_or(0)),
            }
        };
        // SAFETY: it was just taken.
        unsafe { self.0.ack_async_event(&event) };
        Ok(Event {
            kind: event.event_type,
            about,
        })
    }
}

impl AsFd for Context {
    /// Readable while events wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open while the context is.
        unsafe { BorrowedFd::borrow_raw(self.0.raw().as_ref().async_fd) }
    }
}
