//! Making queue pairs.

use core::marker::PhantomData;
use std::sync::{Arc, Mutex};

use rverbs_sys::ibv_qp_init_attr_ex;

use crate::Error;
use crate::cq::Cq;
use crate::mr::Buf;
use crate::pd::Pd;
use crate::provider::Errno;
use crate::srq::Srq;

use super::queue::SendQueue;
use super::recv::{RecvQueue, Target};
use super::{Handle, Qp, QpInner, Transport};

/// What a queue pair is to be like.
#[derive(Debug, Clone)]
pub struct QpBuilder {
    pd: Pd,
    send_cq: Cq,
    recv_cq: Cq,
    srq: Option<Srq>,
    max_send: u32,
    max_recv: u32,
    max_send_sge: u32,
    max_recv_sge: u32,
    max_inline: u32,
}

impl Pd {
    /// Begins to make a queue pair; `cq` gets the completions of both ends.
    #[must_use]
    #[doc(alias = "ibv_create_qp")]
    pub fn qp(&self, cq: &Cq) -> QpBuilder {
        QpBuilder {
            pd: self.clone(),
            send_cq: cq.clone(),
            recv_cq: cq.clone(),
            srq: None,
            max_send: 64,
            max_recv: 64,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline: 0,
        }
    }
}

impl QpBuilder {
    /// Another queue for receive requests.
    #[must_use]
    pub fn recv_cq(mut self, cq: &Cq) -> Self {
        self.recv_cq = cq.clone();
        self
    }

    /// Takes receive requests from a shared queue.
    #[must_use]
    pub fn srq(mut self, srq: &Srq) -> Self {
        self.srq = Some(srq.clone());
        self
    }

    /// How many send and receive requests there may be at a time. 64 each, if not said.
    #[must_use]
    pub fn depth(mut self, send: u32, recv: u32) -> Self {
        self.max_send = send;
        self.max_recv = recv;
        self
    }

    /// How many entries a request may have. One each, if not said.
    #[must_use]
    pub fn entries(mut self, send: u32, recv: u32) -> Self {
        self.max_send_sge = send;
        self.max_recv_sge = recv;
        self
    }

    /// How many bytes may be sent inline. None, if not said.
    #[must_use]
    pub fn inline(mut self, bytes: u32) -> Self {
        self.max_inline = bytes;
        self
    }

    /// Makes it, in state RESET.
    ///
    /// # Errors
    ///
    /// What the provider said; `EINVAL` for queues of another device.
    pub fn build<T: Transport, S: Buf, R: Buf>(self) -> Result<Qp<T, S, R>, Error> {
        let verb = "ibv_create_qp";
        let context = self.pd.context().0.raw();
        let strange = self.send_cq.0.context.0.raw() != context
            || self.recv_cq.0.context.0.raw() != context
            || self
                .srq
                .as_ref()
                .is_some_and(|srq| srq.context() != context);
        if strange || self.max_send == 0 {
            let errno = Errno(libc::EINVAL);
            return Err(Error::Verb { verb, errno });
        }
        let mut init = ibv_qp_init_attr_ex {
            send_cq: self.send_cq.as_raw().as_ptr(),
            recv_cq: self.recv_cq.as_raw().as_ptr(),
            srq: self
                .srq
                .as_ref()
                .map_or(core::ptr::null_mut(), |srq| srq.as_raw().as_ptr()),
            qp_type: T::KIND,
            ..ibv_qp_init_attr_ex::default()
        };
        init.cap.max_send_wr = self.max_send;
        init.cap.max_recv_wr = self.max_recv;
        init.cap.max_send_sge = self.max_send_sge;
        init.cap.max_recv_sge = self.max_recv_sge;
        init.cap.max_inline_data = self.max_inline;
        // SAFETY: the queues are live, of this context, and kept by the queue pair.
        let raw = unsafe { self.pd.context().0.create_qp(self.pd.as_raw(), &mut init) }
            .map_err(Error::verb(verb))?;
        // SAFETY: the queue pair is live.
        let qpn = unsafe { raw.as_ref() }.qp_num;
        let has_srq = self.srq.is_some();
        let inner = Arc::new(QpInner {
            pd: self.pd,
            send_cq: self.send_cq,
            recv_cq: self.recv_cq,
            srq: self.srq,
            raw,
            qpn,
            parked: Mutex::new(Vec::new()),
        });
        let sges = init.cap.max_send_sge.max(self.max_send_sge);
        let recv_depth = if has_srq { 0 } else { self.max_recv };
        Ok(Qp {
            send: SendQueue::new(
                Arc::clone(&inner),
                self.max_send,
                sges,
                init.cap.max_inline_data,
            ),
            recv: RecvQueue::new(
                Target::Qp(Arc::clone(&inner)),
                recv_depth,
                self.max_recv_sge,
            ),
            handle: Handle {
                inner,
                transport: PhantomData,
            },
        })
    }
}
