//! A C program's view of a provider, in a few lines.

use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rverbs::provider::shm::ShmProvider;
use rverbs::provider::{Context, Provider as _};
use rverbs_sys::inline::{ibv_poll_cq, ibv_post_recv, ibv_post_send};
use rverbs_sys::*;

pub(crate) const ALL: u32 = IBV_ACCESS_LOCAL_WRITE
    | IBV_ACCESS_REMOTE_WRITE
    | IBV_ACCESS_REMOTE_READ
    | IBV_ACCESS_REMOTE_ATOMIC;

/// A queue pair with its queue and a registered buffer.
pub(crate) struct End {
    pub(crate) context: Arc<dyn Context>,
    pub(crate) pd: NonNull<ibv_pd>,
    pub(crate) cq: NonNull<ibv_cq>,
    pub(crate) qp: NonNull<ibv_qp>,
    pub(crate) mr: NonNull<ibv_mr>,
    pub(crate) buf: *mut u8,
    pub(crate) len: usize,
}

impl End {
    pub(crate) fn new(len: usize, mapped: bool) -> Self {
        let context = ShmProvider.open("shm0").unwrap();
        let pd = context.alloc_pd().unwrap();
        let buf = if mapped {
            context.alloc(len).unwrap().addr.as_ptr()
        } else {
            Box::leak(vec![0_u64; len.div_ceil(8)].into_boxed_slice())
                .as_mut_ptr()
                .cast()
        };
        unsafe {
            let cq = context
                .create_cq(64, std::ptr::null_mut(), None, 0)
                .unwrap();
            let mr = context
                .reg_mr(pd, buf.cast(), len, buf as u64, ALL)
                .unwrap();
            let mut init = ibv_qp_init_attr_ex {
                send_cq: cq.as_ptr(),
                recv_cq: cq.as_ptr(),
                qp_type: IBV_QPT_RC,
                ..Default::default()
            };
            init.cap.max_send_wr = 16;
            init.cap.max_recv_wr = 16;
            init.cap.max_send_sge = 4;
            init.cap.max_recv_sge = 4;
            init.cap.max_inline_data = 64;
            let qp = context.create_qp(pd, &mut init).unwrap();
            Self {
                context,
                pd,
                cq,
                qp,
                mr,
                buf,
                len,
            }
        }
    }

    pub(crate) fn address(&self) -> String {
        let (qp, mr) = unsafe { (self.qp.as_ref(), self.mr.as_ref()) };
        format!("{} {} {}", qp.qp_num, mr.rkey, self.buf as u64)
    }

    pub(crate) fn connect(&self, qpn: u32) {
        let mut attr = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: 1,
            qp_access_flags: ALL,
            ..Default::default()
        };
        let init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        let rtr = IBV_QP_STATE
            | IBV_QP_AV
            | IBV_QP_PATH_MTU
            | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN
            | IBV_QP_MAX_DEST_RD_ATOMIC
            | IBV_QP_MIN_RNR_TIMER;
        let rts = IBV_QP_STATE
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_SQ_PSN
            | IBV_QP_MAX_QP_RD_ATOMIC;
        unsafe {
            self.context.modify_qp(self.qp, &attr, init).unwrap();
            attr.qp_state = IBV_QPS_RTR;
            attr.path_mtu = IBV_MTU_4096;
            attr.dest_qp_num = qpn;
            attr.ah_attr.dlid = 1;
            attr.ah_attr.port_num = 1;
            self.context.modify_qp(self.qp, &attr, rtr).unwrap();
            attr.qp_state = IBV_QPS_RTS;
            attr.timeout = 14;
            attr.retry_cnt = 7;
            attr.rnr_retry = 7;
            self.context.modify_qp(self.qp, &attr, rts).unwrap();
        }
    }

    fn sge(&self, at: usize, len: usize) -> ibv_sge {
        ibv_sge {
            addr: self.buf as u64 + at as u64,
            length: u32::try_from(len).unwrap(),
            lkey: unsafe { self.mr.as_ref() }.lkey,
        }
    }

    pub(crate) fn recv(&self, wr_id: u64, at: usize, len: usize) {
        let mut sge = self.sge(at, len);
        let mut wr = ibv_recv_wr {
            wr_id,
            sg_list: &raw mut sge,
            num_sge: 1,
            ..Default::default()
        };
        let mut bad = std::ptr::null_mut();
        let code = unsafe { ibv_post_recv(self.qp.as_ptr(), &raw mut wr, &raw mut bad) };
        assert_eq!(code, 0);
    }

    pub(crate) fn post(
        &self,
        wr_id: u64,
        opcode: u32,
        at: usize,
        len: usize,
        fill: impl FnOnce(&mut ibv_send_wr),
    ) -> i32 {
        let mut sge = self.sge(at, len);
        let mut wr = ibv_send_wr {
            wr_id,
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode,
            send_flags: IBV_SEND_SIGNALED,
            ..Default::default()
        };
        fill(&mut wr);
        let mut bad = std::ptr::null_mut();
        unsafe { ibv_post_send(self.qp.as_ptr(), &raw mut wr, &raw mut bad) }
    }

    pub(crate) fn poll(&self) -> Option<ibv_wc> {
        let mut wc = ibv_wc::default();
        match unsafe { ibv_poll_cq(self.cq.as_ptr(), 1, &raw mut wc) } {
            0 => None,
            1 => Some(wc),
            other => panic!("poll said {other}"),
        }
    }

    pub(crate) fn wait(&self) -> ibv_wc {
        let end = Instant::now() + Duration::from_secs(10);
        loop {
            if let Some(wc) = self.poll() {
                return wc;
            }
            assert!(Instant::now() < end, "no completion in ten seconds");
        }
    }

    pub(crate) fn done(&self, wr_id: u64) -> ibv_wc {
        let wc = self.wait();
        assert_eq!((wc.wr_id, wc.status), (wr_id, IBV_WC_SUCCESS));
        wc
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len);
        for (i, byte) in bytes.iter().enumerate() {
            unsafe { self.buf.add(at + i).write_volatile(*byte) };
        }
    }

    pub(crate) fn read(&self, at: usize, len: usize) -> Vec<u8> {
        assert!(at + len <= self.len);
        (0..len)
            .map(|i| unsafe { self.buf.add(at + i).read_volatile() })
            .collect()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        unsafe {
            self.context.destroy_qp(self.qp).unwrap();
            self.context.dereg_mr(self.mr).unwrap();
            self.context.destroy_cq(self.cq).unwrap();
            self.context.dealloc_pd(self.pd).unwrap();
        }
    }
}
