//! One queue pair with a buffer, over the C structures of any open device.

use std::ptr::NonNull;
use std::sync::Arc;

use rverbs::provider::{Context, Errno};
use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE, IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN,
    IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU,
    IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN,
    IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS,
    IBV_QPT_RC, IBV_QPT_UD, ibv_ah, ibv_ah_attr, ibv_cq, ibv_mr, ibv_pd, ibv_qp, ibv_qp_attr,
    ibv_qp_cap, ibv_qp_init_attr_ex, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_wc, ibv_wr_opcode,
    inline,
};

/// The key of datagrams.
pub(crate) const Q_KEY: u32 = 0x1111_1111;

/// Whom to connect to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote {
    pub qpn: u32,
    pub psn: u32,
    pub gid: [u8; 16],
}

/// A queue pair and what it needs.
pub(crate) struct Side {
    pub context: Arc<dyn Context>,
    pub pd: NonNull<ibv_pd>,
    pub cq: NonNull<ibv_cq>,
    pub mr: NonNull<ibv_mr>,
    pub qp: NonNull<ibv_qp>,
    pub buf: Box<[u64]>,
    pub psn: u32,
    pub kind: u32,
    pub gid_index: u32,
    ah: Option<NonNull<ibv_ah>>,
    remote: Option<Remote>,
}

impl Side {
    pub(crate) fn new(
        context: Arc<dyn Context>,
        kind: u32,
        len: usize,
        depth: u32,
        psn: u32,
    ) -> Result<Self, Errno> {
        let mut buf = vec![0_u64; len.div_ceil(8)].into_boxed_slice();
        let pd = context.alloc_pd()?;
        let rights = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_ATOMIC;
        let addr = buf.as_mut_ptr();
        // SAFETY: the objects are this device's and live until `drop`, the buffer too.
        unsafe {
            let mr = context.reg_mr(pd, addr.cast(), buf.len() * 8, addr.addr() as u64, rights)?;
            let cq = context.create_cq(2 * depth + 2, std::ptr::null_mut(), None, 0)?;
            let mut attr = ibv_qp_init_attr_ex {
                send_cq: cq.as_ptr(),
                recv_cq: cq.as_ptr(),
                cap: ibv_qp_cap {
                    max_send_wr: depth,
                    max_recv_wr: depth,
                    max_send_sge: 4,
                    max_recv_sge: 4,
                    max_inline_data: 128,
                },
                qp_type: kind,
                ..ibv_qp_init_attr_ex::default()
            };
            let qp = context.create_qp(pd, &mut attr)?;
            let attr = ibv_qp_attr {
                qp_state: IBV_QPS_INIT,
                port_num: 1,
                qp_access_flags: rights,
                qkey: Q_KEY,
                ..ibv_qp_attr::default()
            };
            let last = if kind == IBV_QPT_UD {
                IBV_QP_QKEY
            } else {
                IBV_QP_ACCESS_FLAGS
            };
            context.modify_qp(
                qp,
                &attr,
                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last,
            )?;
            Ok(Self {
                context,
                pd,
                cq,
                mr,
                qp,
                buf,
                psn,
                kind,
                gid_index: 0,
                ah: None,
                remote: None,
            })
        }
    }

    pub(crate) fn local(&self) -> Remote {
        let entry = self
            .context
            .query_gid(1, self.gid_index)
            .unwrap_or_default();
        // SAFETY: the queue pair is live; all bytes of the union are in `raw`.
        unsafe {
            Remote {
                qpn: self.qp.as_ref().qp_num,
                psn: self.psn,
                gid: entry.gid.raw,
            }
        }
    }

    pub(crate) fn addr(&self) -> u64 {
        self.buf.as_ptr().addr() as u64
    }

    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: the region is live.
        unsafe { self.mr.as_ref().rkey }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        let len = self.buf.len() * 8;
        // SAFETY: the buffer is that long; that a peer may write meanwhile is this program's affair.
        unsafe { std::slice::from_raw_parts(self.buf.as_ptr().cast(), len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.buf.len() * 8;
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.buf.as_mut_ptr().cast(), len) }
    }

    pub(crate) fn connect(&mut self, remote: Remote, mtu: u32) -> Result<(), Errno> {
        let mut ah_attr = ibv_ah_attr {
            is_global: 1,
            port_num: 1,
            ..ibv_ah_attr::default()
        };
        ah_attr.grh.dgid.raw = remote.gid;
        ah_attr.grh.hop_limit = 64;
        ah_attr.grh.sgid_index = u8::try_from(self.gid_index).unwrap_or(0);
        let datagram = self.kind == IBV_QPT_UD;
        let rc = self.kind == IBV_QPT_RC;
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            ah_attr,
            path_mtu: mtu,
            dest_qp_num: remote.qpn,
            rq_psn: remote.psn,
            max_dest_rd_atomic: 4,
            min_rnr_timer: 12,
            ..ibv_qp_attr::default()
        };
        let mut mask = IBV_QP_STATE;
        if !datagram {
            mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        }
        if rc {
            mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        }
        // SAFETY: the objects are this device's and live.
        unsafe { self.context.modify_qp(self.qp, &attr, mask)? };
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            sq_psn: self.psn,
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            max_rd_atomic: 4,
            ..ibv_qp_attr::default()
        };
        let mut mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
        if rc {
            mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        }
        // SAFETY: as above.
        unsafe { self.context.modify_qp(self.qp, &attr, mask)? };
        if datagram {
            // SAFETY: as above.
            self.ah = Some(unsafe { self.context.create_ah(self.pd, &ah_attr)? });
        }
        self.remote = Some(remote);
        Ok(())
    }

    pub(crate) fn post_recv(&self, wr_id: u64, offset: usize, len: usize) -> i32 {
        let mut sge = self.sge(offset, len);
        let mut wr = ibv_recv_wr {
            wr_id,
            next: std::ptr::null_mut(),
            sg_list: &raw mut sge,
            num_sge: 1,
        };
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is live, the request and its list too.
        unsafe { inline::ibv_post_recv(self.qp.as_ptr(), &raw mut wr, &raw mut bad) }
    }

    fn sge(&self, offset: usize, len: usize) -> ibv_sge {
        // SAFETY: the region is live.
        let lkey = unsafe { self.mr.as_ref().lkey };
        ibv_sge {
            addr: self.addr() + offset as u64,
            length: u32::try_from(len).unwrap_or(0),
            lkey,
        }
    }

    /// Posts a request; `more` sets what the opcode needs beyond the buffer.
    pub(crate) fn post_send(
        &self,
        wr_id: u64,
        opcode: ibv_wr_opcode,
        (offset, len): (usize, usize),
        flags: u32,
        more: impl FnOnce(&mut ibv_send_wr),
    ) -> i32 {
        let mut sge = self.sge(offset, len);
        let mut wr = ibv_send_wr {
            wr_id,
            sg_list: &raw mut sge,
            num_sge: 1,
            opcode,
            send_flags: flags,
            ..ibv_send_wr::default()
        };
        if let (Some(ah), Some(remote)) = (self.ah, self.remote) {
            wr.wr.ud = rverbs_sys::ibv_send_wr_ud {
                ah: ah.as_ptr(),
                remote_qpn: remote.qpn,
                remote_qkey: Q_KEY,
            };
        }
        more(&mut wr);
        let mut bad = std::ptr::null_mut();
        // SAFETY: the queue pair is live, the request and its list too.
        unsafe { inline::ibv_post_send(self.qp.as_ptr(), &raw mut wr, &raw mut bad) }
    }

    pub(crate) fn poll(&self) -> Option<ibv_wc> {
        let mut wc = ibv_wc::default();
        // SAFETY: the queue is live and there is room for one.
        let got = unsafe { inline::ibv_poll_cq(self.cq.as_ptr(), 1, &raw mut wc) };
        (got == 1).then_some(wc)
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // SAFETY: the objects are this device's, and not used again.
        unsafe {
            let context = &self.context;
            let _ = context.destroy_qp(self.qp);
            if let Some(ah) = self.ah {
                let _ = context.destroy_ah(ah);
            }
            let _ = context.destroy_cq(self.cq);
            let _ = context.dereg_mr(self.mr);
            let _ = context.dealloc_pd(self.pd);
        }
    }
}
