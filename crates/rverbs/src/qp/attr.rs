//! Attributes and states.

use rverbs_sys::{
    IBV_QP_ACCESS_FLAGS, IBV_QP_AV, IBV_QP_DEST_QPN, IBV_QP_MAX_DEST_RD_ATOMIC,
    IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT,
    IBV_QP_QKEY, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE,
    IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS,
    ibv_ah_attr, ibv_gid, ibv_qp_attr, ibv_qp_init_attr,
};

use crate::Error;
use crate::gid::Gid;
use crate::mr::{Access, Buf};

use super::{Connected, Handle, Qp, Rc, Transport, Ud};

/// Where a port is: its LID on InfiniBand, its GID on RoCE and across subnets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// LID, 0 on RoCE.
    pub lid: u16,
    /// GID, with a route header in every packet.
    pub gid: Option<Gid>,
}

impl Address {
    /// `ibv_ah_attr`, from a port and an entry of its GID table.
    #[must_use]
    pub(crate) fn attr(&self, port: u8, sgid_index: u8) -> ibv_ah_attr {
        let mut attr = ibv_ah_attr {
            dlid: self.lid,
            port_num: port,
            ..ibv_ah_attr::default()
        };
        if let Some(gid) = self.gid {
            attr.is_global = 1;
            attr.grh.dgid = ibv_gid { raw: gid.0 };
            attr.grh.sgid_index = sgid_index;
            attr.grh.hop_limit = 255;
        }
        attr
    }
}

/// What each side tells the other to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Number of the queue pair.
    pub qpn: u32,
    /// Number of the first packet it sends, 24 bits.
    pub psn: u32,
    /// Where it is.
    pub address: Address,
}

impl Endpoint {
    /// Bytes of the encoding.
    pub const LEN: usize = 27;

    /// For the wire, in network byte order: number, PSN, LID, whether there is a GID, GID.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.qpn.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.psn.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.address.lid.to_be_bytes());
        if let Some(gid) = self.address.gid {
            bytes[10] = 1;
            bytes[11..].copy_from_slice(&gid.0);
        }
        bytes
    }

    /// From the wire.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [q0, q1, q2, q3, p0, p1, p2, p3, l0, l1, has, gid @ ..] = *bytes;
        Self {
            qpn: u32::from_be_bytes([q0, q1, q2, q3]),
            psn: u32::from_be_bytes([p0, p1, p2, p3]) & 0x00ff_ffff,
            address: Address {
                lid: u16::from_be_bytes([l0, l1]),
                gid: (has == 1).then_some(Gid(gid)),
            },
        }
    }
}

/// How to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectAttr {
    /// Port of this side.
    pub port: u8,
    /// Entry of its GID table.
    pub sgid_index: u8,
    /// `ibv_mtu`: 1 for 256 bytes to 5 for 4096. The smaller one of both sides.
    pub mtu: u32,
    /// What the peer may do with memory of the domain, beyond each region's own rights.
    pub access: Access,
    /// Reads and atomic operations at a time, of this side and of the peer.
    pub rd_atomic: (u8, u8),
    /// Answers are waited for 4.096 µs times two to this power.
    pub timeout: u8,
    /// How often a packet is repeated without an answer, up to 7.
    pub retry_cnt: u8,
    /// How often a message is repeated that finds no receive request; 7 is without end.
    pub rnr_retry: u8,
    /// Code of the time after which it is.
    pub min_rnr_timer: u8,
}

impl Default for ConnectAttr {
    /// What perftest uses: port 1, GID 0, MTU 1024, everything allowed, 67 ms, 7 retries.
    fn default() -> Self {
        Self {
            port: 1,
            sgid_index: 0,
            mtu: 3,
            access: Access::ALL,
            rd_atomic: (1, 1),
            timeout: 14,
            retry_cnt: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
        }
    }
}

impl<T: Transport> Handle<T> {
    /// Changes attributes, as C does.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_modify_qp")]
    pub fn modify(&self, attr: &ibv_qp_attr, mask: u32) -> Result<(), Error> {
        // SAFETY: the queue pair is live. A state cannot harm what is in flight: its buffers stay
        // until their completions or the end.
        unsafe {
            self.inner
                .pd
                .context()
                .0
                .modify_qp(self.inner.raw, attr, mask)
        }
        .map_err(Error::verb("ibv_modify_qp"))
    }

    /// All attributes.
    ///
    /// # Errors
    ///
    /// What the provider said.
    #[doc(alias = "ibv_query_qp")]
    pub fn query(&self) -> Result<(ibv_qp_attr, ibv_qp_init_attr), Error> {
        // SAFETY: the queue pair is live.
        unsafe {
            self.inner
                .pd
                .context()
                .0
                .query_qp(self.inner.raw, u32::MAX >> 7)
        }
        .map_err(Error::verb("ibv_query_qp"))
    }

    /// `ibv_qp_state`.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn state(&self) -> Result<u32, Error> {
        Ok(self.query()?.0.qp_state)
    }

    /// Moves to ERR: everything in flight completes with an error.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn fail(&self) -> Result<(), Error> {
        self.to(IBV_QPS_ERR)
    }

    fn to(&self, qp_state: u32) -> Result<(), Error> {
        let attr = ibv_qp_attr {
            qp_state,
            ..ibv_qp_attr::default()
        };
        self.modify(&attr, IBV_QP_STATE)
    }
}

impl<T: Connected, S: Buf, R: Buf> Qp<T, S, R> {
    /// What to tell the peer.
    #[must_use]
    pub fn endpoint(&self, psn: u32, address: Address) -> Endpoint {
        Endpoint {
            qpn: self.qpn(),
            psn: psn & 0x00ff_ffff,
            address,
        }
    }

    /// Moves from RESET to INIT, in which receive requests can be posted.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn init(&self, how: &ConnectAttr) -> Result<(), Error> {
        let attr = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: how.port,
            qp_access_flags: how.access.bits(),
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        self.handle.modify(&attr, mask)
    }

    /// Connects: from INIT to RTR to RTS, so that both directions work.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn connect(&self, own: &Endpoint, peer: &Endpoint, how: &ConnectAttr) -> Result<(), Error> {
        let mut attr = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            path_mtu: how.mtu,
            dest_qp_num: peer.qpn,
            rq_psn: peer.psn,
            max_dest_rd_atomic: how.rd_atomic.1,
            min_rnr_timer: how.min_rnr_timer,
            ah_attr: peer.address.attr(how.port, how.sgid_index),
            ..ibv_qp_attr::default()
        };
        let path = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        let reliable = T::KIND == Rc::KIND;
        let ready = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        self.handle
            .modify(&attr, path | if reliable { ready } else { 0 })?;
        attr.qp_state = IBV_QPS_RTS;
        attr.sq_psn = own.psn;
        attr.timeout = how.timeout;
        attr.retry_cnt = how.retry_cnt;
        attr.rnr_retry = how.rnr_retry;
        attr.max_rd_atomic = how.rd_atomic.0;
        let retries =
            IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        let mask = IBV_QP_STATE | IBV_QP_SQ_PSN | if reliable { retries } else { 0 };
        self.handle.modify(&attr, mask)
    }
}

impl<S: Buf, R: Buf> Qp<Ud, S, R> {
    /// Moves from RESET to RTS: datagrams with that key are received on that port.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn activate(&self, port: u8, qkey: u32) -> Result<(), Error> {
        let mut attr = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: port,
            qkey,
            ..ibv_qp_attr::default()
        };
        let mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
        self.handle.modify(&attr, mask)?;
        self.handle.to(IBV_QPS_RTR)?;
        attr.qp_state = IBV_QPS_RTS;
        self.handle.modify(&attr, IBV_QP_STATE | IBV_QP_SQ_PSN)
    }
}

impl<T: Transport, S: Buf, R: Buf> Qp<T, S, R> {
    /// Back to RESET. What was in flight is given up: its completions do not come, and its buffers come
    /// back at once, from [`super::SendQueue::reclaim`] and in the answer.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn reset(&mut self) -> Result<Vec<R>, Error> {
        self.handle.to(IBV_QPS_RESET)?;
        self.send.abandon();
        Ok(self.recv.abandon())
    }
}
