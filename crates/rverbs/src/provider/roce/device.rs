//! The device: what software providers share, over this protocol.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ptr::NonNull;
use std::sync::Arc;
use std::thread::JoinHandle;

use rverbs_sys::{
    IBV_GID_TYPE_ROCE_V2, IBV_QP_ACCESS_FLAGS, IBV_QP_MIN_RNR_TIMER, IBV_QPS_ERR, IBV_QPS_INIT,
    IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
    IBV_SEND_FENCE, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED, IBV_WC_COMP_SWAP,
    IBV_WC_FETCH_ADD, IBV_WC_GRH, IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE, IBV_WC_RECV,
    IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_SEND, IBV_WC_WITH_IMM, IBV_WC_WITH_INV,
    IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV,
    ibv_ah_attr, ibv_recv_wr, ibv_send_wr, ibv_sge, ibv_wc, ibv_wc_imm,
};

use super::super::soft::{
    Ah, Attributes, Cq, Gid, KeyTable, NewQp, Object, Qp, Sink, Srq, Transport, anonymous, unmap,
};
use super::super::{Errno, Kind, Memory};
use super::port::Shared;
use super::proto::packet::icrc::Flow;
use super::proto::{
    Access, AddressHandle, Completion, CompletionOp, Datagram, Destination, Peer, PostError, Psn,
    QpConfig, Receive, Send, SendFlags, SendOp, SendRequest, Sge, Status, Transport as Service,
};
use super::{Config, calibrate, gid_to_ip, ip_to_gid};

/// Pieces of memory in one request.
const MAX_SGE: usize = 32;
/// Bytes that can be given inline.
const MAX_INLINE: usize = 1024;
/// After so many polls one that found nothing lets others run.
const YIELD_EVERY: u32 = 64;
/// Registrations of a device.
const MAX_KEYS: usize = 1 << 13;
/// Where the distance of a peer's port is in its queue pair numbers.
const PREFIX_SHIFT: u32 = 17;

/// The RoCEv2 device.
pub struct Roce {
    name: String,
    attributes: Attributes,
    shared: Arc<Shared>,
    base_port: u16,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Roce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roce")
            .field("name", &self.name)
            .field("local", &self.shared.local())
            .finish_non_exhaustive()
    }
}

impl Drop for Roce {
    fn drop(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.thread.take() {
            // It ends with a panic only by a bug, and then there is nothing left to do.
            let _ = thread.join();
        }
    }
}

/// A number for a node that is the same as long as its address is.
pub(super) fn guid(addr: IpAddr) -> u64 {
    let gid = ip_to_gid(addr);
    let (mut low, mut high) = ([0; 8], [0; 8]);
    high.copy_from_slice(&gid[..8]);
    low.copy_from_slice(&gid[8..]);
    // Locally administered, as in an EUI-64.
    (u64::from_be_bytes(low) ^ u64::from_be_bytes(high)) | 0x0200_0000_0000_0000
}

impl Roce {
    /// Binds the socket and starts the thread.
    ///
    /// # Errors
    ///
    /// What the operating system said: `EADDRINUSE` where all ports are in use.
    pub fn new(config: &Config) -> Result<Self, Errno> {
        calibrate::checksums();
        let keys = KeyTable::new(MAX_KEYS);
        let (shared, _) = Shared::bind(
            config.addr,
            config.base_port,
            config.ports,
            config.window,
            keys,
        )?;
        let mut attributes = Attributes::new(guid(config.addr)).with_gids(vec![Gid {
            raw: ip_to_gid(config.addr),
            kind: IBV_GID_TYPE_ROCE_V2,
            ifindex: config.ifindex,
        }]);
        attributes.port.link_layer = 2;
        // The largest of 256 … 4096 that fits with the headers.
        let room = config
            .link_mtu
            .saturating_sub(if config.addr.is_ipv4() { 28 } else { 48 } + 12 + 16 + 8 + 4);
        let mtu = (1..=5).rev().find(|code| 128 << code <= room).unwrap_or(1);
        attributes.port.max_mtu = 5;
        attributes.port.active_mtu = mtu;
        attributes.max_inline = 1024;
        attributes.device.orig_attr.max_qp = 1022;
        attributes.device.orig_attr.max_mr = i32::try_from(MAX_KEYS).unwrap_or(i32::MAX);
        let runner = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("rverbs-roce".to_owned())
            .spawn(move || runner.run())?;
        Ok(Self {
            name: config.name.clone(),
            attributes,
            shared,
            base_port: config.base_port,
            thread: Some(thread),
        })
    }

    /// The port, for connection management and counters.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// How to reach a queue pair of an address.
    fn destination(&self, attr: &ibv_ah_attr, qpn: u32) -> Result<Destination, Errno> {
        if attr.is_global == 0 {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: all bytes of the union are in `raw`.
        let gid = unsafe { attr.grh.dgid.raw };
        self.destination_of(gid_to_ip(gid), qpn, attr.grh.traffic_class)
    }

    /// How to reach a queue pair at an address.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an address of another family.
    pub fn destination_of(
        &self,
        ip: IpAddr,
        qpn: u32,
        traffic_class: u8,
    ) -> Result<Destination, Errno> {
        let src = self.shared.local();
        if ip.is_ipv4() != src.is_ipv4() || ip.is_unspecified() {
            return Err(Errno(libc::EINVAL));
        }
        let place = u16::try_from(qpn >> PREFIX_SHIFT & 0x7f).unwrap_or(0);
        let dst = SocketAddr::new(ip, self.base_port.wrapping_add(place));
        // Without a wish of the user, packets say that they understand congestion marks.
        let tos = if traffic_class & 3 == 0 {
            traffic_class | 2
        } else {
            traffic_class
        };
        Ok(Destination {
            flow: Flow { src, dst },
            tos,
        })
    }

    /// Reads a request as C wrote it and posts it.
    ///
    /// # Safety
    ///
    /// As for `ibv_post_send`, for one request.
    unsafe fn post_one(
        &self,
        port: &mut super::port::Port,
        qp: &Qp<Self>,
        wr: &ibv_send_wr,
    ) -> Result<(), Errno> {
        let einval = Errno(libc::EINVAL);
        let count = usize::try_from(wr.num_sge).map_err(|_| einval)?;
        let mut sges = [Sge::default(); MAX_SGE];
        let mut inline = [0_u8; MAX_INLINE];
        let mut inline_len = 0;
        let given: &[ibv_sge] = if count == 0 {
            &[]
        } else {
            // SAFETY: the caller's list holds that many entries.
            unsafe { core::slice::from_raw_parts(wr.sg_list, count) }
        };
        let sges = sges.get_mut(..count).ok_or(einval)?;
        let is_inline = wr.send_flags & IBV_SEND_INLINE != 0;
        for (to, sge) in sges.iter_mut().zip(given) {
            if is_inline {
                let len = sge.length as usize;
                let place = inline.get_mut(inline_len..inline_len + len).ok_or(einval)?;
                let from = core::ptr::with_exposed_provenance::<u8>(
                    usize::try_from(sge.addr).map_err(|_| einval)?,
                );
                if len > 0 {
                    // SAFETY: the caller promises that buffers of inline requests can be read.
                    unsafe { from.copy_to_nonoverlapping(place.as_mut_ptr(), len) };
                }
                inline_len += len;
            } else {
                *to = Sge {
                    addr: sge.addr,
                    len: sge.length,
                    lkey: sge.lkey,
                };
            }
        }
        // SAFETY: the opcode says which fields of the unions are set; all are numbers.
        let op = unsafe {
            let rdma = wr.wr.rdma;
            let atomic = wr.wr.atomic;
            let imm = u32::from_be(wr.imm.imm_data);
            match wr.opcode {
                IBV_WR_SEND => SendOp::Send,
                IBV_WR_SEND_WITH_IMM => SendOp::SendImm(imm),
                IBV_WR_SEND_WITH_INV => SendOp::SendInvalidate(wr.imm.invalidate_rkey),
                IBV_WR_RDMA_WRITE => SendOp::Write {
                    addr: rdma.remote_addr,
                    rkey: rdma.rkey,
                },
                IBV_WR_RDMA_WRITE_WITH_IMM => SendOp::WriteImm {
                    addr: rdma.remote_addr,
                    rkey: rdma.rkey,
                    imm,
                },
                IBV_WR_RDMA_READ => SendOp::Read {
                    addr: rdma.remote_addr,
                    rkey: rdma.rkey,
                },
                IBV_WR_ATOMIC_FETCH_AND_ADD => SendOp::FetchAdd {
                    addr: atomic.remote_addr,
                    rkey: atomic.rkey,
                    add: atomic.compare_add,
                },
                IBV_WR_ATOMIC_CMP_AND_SWP => SendOp::CompareSwap {
                    addr: atomic.remote_addr,
                    rkey: atomic.rkey,
                    compare: atomic.compare_add,
                    swap: atomic.swap,
                },
                _ => return Err(einval),
            }
        };
        let to = if qp.kind == IBV_QPT_UD {
            // SAFETY: a request of a queue pair for datagrams has this field.
            let ud = unsafe { wr.wr.ud };
            let ah = NonNull::new(ud.ah).ok_or(einval)?;
            // SAFETY: C's contract: the address handle is live, and of this device.
            let ah = unsafe { Ah::<Self>::from_raw(ah) };
            let destination = self.destination(&ah.attr, ud.remote_qpn)?;
            Some(Datagram {
                ah: AddressHandle { destination },
                qpn: ud.remote_qpn,
                q_key: ud.remote_qkey,
            })
        } else {
            None
        };
        let flags = SendFlags {
            signaled: wr.send_flags & IBV_SEND_SIGNALED != 0,
            solicited: wr.send_flags & IBV_SEND_SOLICITED != 0,
            fence: wr.send_flags & IBV_SEND_FENCE != 0,
        };
        let request = SendRequest {
            wr_id: wr.wr_id,
            op,
            flags,
            sges: if is_inline { &[] } else { sges },
            inline: is_inline.then_some(inline.get(..inline_len).unwrap_or(&[])),
            to,
        };
        port.engine
            .post_send(qp.qpn, &request)
            .map_err(|error| match error {
                PostError::Full => Errno(libc::ENOMEM),
                _ => einval,
            })
    }
}

/// A completion as C has it.
pub(super) fn wc(completion: &Completion) -> ibv_wc {
    use rverbs_sys::{
        IBV_WC_BAD_RESP_ERR, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR,
        IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR,
        IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR,
    };
    let mut imm = ibv_wc_imm { imm_data: 0 };
    let mut flags = if completion.grh { IBV_WC_GRH } else { 0 };
    if let Some(data) = completion.imm {
        imm = ibv_wc_imm {
            imm_data: data.to_be(),
        };
        flags |= IBV_WC_WITH_IMM;
    } else if let Some(key) = completion.invalidated {
        imm = ibv_wc_imm {
            invalidated_rkey: key,
        };
        flags |= IBV_WC_WITH_INV;
    }
    ibv_wc {
        wr_id: completion.wr_id,
        status: match completion.status {
            Status::Success => IBV_WC_SUCCESS,
            Status::LocalLength => IBV_WC_LOC_LEN_ERR,
            Status::LocalQpOperation => IBV_WC_LOC_QP_OP_ERR,
            Status::LocalProtection => IBV_WC_LOC_PROT_ERR,
            Status::Flushed => IBV_WC_WR_FLUSH_ERR,
            Status::BadResponse => IBV_WC_BAD_RESP_ERR,
            Status::RemoteInvalidRequest => IBV_WC_REM_INV_REQ_ERR,
            Status::RemoteAccess => IBV_WC_REM_ACCESS_ERR,
            Status::RemoteOperation => IBV_WC_REM_OP_ERR,
            Status::RetryExceeded => IBV_WC_RETRY_EXC_ERR,
            Status::RnrRetryExceeded => IBV_WC_RNR_RETRY_EXC_ERR,
        },
        opcode: match completion.op {
            CompletionOp::Send => IBV_WC_SEND,
            CompletionOp::Write => IBV_WC_RDMA_WRITE,
            CompletionOp::Read => IBV_WC_RDMA_READ,
            CompletionOp::CompareSwap => IBV_WC_COMP_SWAP,
            CompletionOp::FetchAdd => IBV_WC_FETCH_ADD,
            CompletionOp::Receive => IBV_WC_RECV,
            CompletionOp::ReceiveWriteImm => IBV_WC_RECV_RDMA_WITH_IMM,
        },
        vendor_err: 0,
        byte_len: completion.len,
        imm,
        qp_num: completion.qpn,
        src_qp: completion.src_qp,
        wc_flags: flags,
        pkey_index: 0,
        slid: 0,
        sl: 0,
        dlid_path_bits: 0,
    }
}

fn access(flags: u32) -> Access {
    Access(u8::try_from(flags & u32::from(Access::ALL.0)).unwrap_or(0))
}

impl Transport for Roce {
    const KIND: Kind = Kind::Roce;

    type Qp = ();

    fn name(&self) -> &str {
        &self.name
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn keys(&self) -> &KeyTable {
        &self.shared.keys
    }

    fn quiesce(&self, _key: u32) {
        // Memory is accessed only under the lock.
        drop(self.shared.hold());
    }

    fn create_qp(&self, new: &NewQp) -> Result<(u32, ()), Errno> {
        let transport = match new.kind {
            IBV_QPT_RC => Service::Rc,
            IBV_QPT_UC => Service::Uc,
            IBV_QPT_UD => Service::Ud,
            _ => return Err(Errno(libc::EOPNOTSUPP)),
        };
        let config = QpConfig {
            transport,
            pd: new.pd,
            send_cq: 0,
            recv_cq: 1,
            srq: None,
            outside_receives: true,
            send_depth: new.cap.max_send_wr.max(1) as usize,
            recv_depth: 0,
            // Receives may be those of a shared queue with more.
            max_sge: MAX_SGE.min((new.cap.max_send_sge.max(new.cap.max_recv_sge).max(4)) as usize),
            max_inline: new.cap.max_inline_data as usize,
            signal_all: false,
        };
        let qpn = self.shared.hold().port().engine.create_qp(&config)?;
        Ok((qpn, ()))
    }

    fn modify_qp(&self, qp: &Arc<Qp<Self>>, to: u32, mask: u32) -> Result<(), Errno> {
        let attr = qp.attr();
        let from = qp.state();
        let qpn = qp.qpn;
        let mut held = self.shared.hold();
        match (from, to) {
            (IBV_QPS_RESET | IBV_QPS_INIT, IBV_QPS_INIT) => {
                let pkeys = &self.attributes.pkeys;
                let p_key = pkeys
                    .get(usize::from(attr.pkey_index))
                    .copied()
                    .unwrap_or(0xffff);
                let port = held.port();
                port.engine
                    .init(qpn, access(attr.qp_access_flags), p_key, attr.qkey)?;
                port.engine.signal_all(qpn, qp.sq_sig_all)?;
                port.qps.insert(qpn, Arc::clone(qp));
            }
            (IBV_QPS_INIT, IBV_QPS_RTR) => {
                let datagram = qp.kind == IBV_QPT_UD;
                let peer = if datagram {
                    None
                } else {
                    let destination = self.destination(&attr.ah_attr, attr.dest_qp_num)?;
                    Some(Peer {
                        destination,
                        qpn: attr.dest_qp_num,
                    })
                };
                let code = if datagram {
                    self.attributes.port.active_mtu
                } else {
                    attr.path_mtu
                };
                let receive = Receive {
                    peer,
                    mtu: 128 << code.min(5),
                    psn: Psn::new(attr.rq_psn),
                    max_dest_rd_atomic: attr.max_dest_rd_atomic,
                    min_rnr_timer: attr.min_rnr_timer,
                };
                if mask & IBV_QP_ACCESS_FLAGS != 0 {
                    held.port()
                        .engine
                        .adjust(qpn, Some(access(attr.qp_access_flags)), None)?;
                }
                held.port().engine.ready_to_receive(qpn, &receive)?;
            }
            (IBV_QPS_RTR | IBV_QPS_SQD, IBV_QPS_RTS) => {
                let send = Send {
                    psn: Psn::new(attr.sq_psn),
                    timeout: attr.timeout,
                    retry_count: attr.retry_cnt,
                    rnr_retry: attr.rnr_retry,
                    max_rd_atomic: attr.max_rd_atomic,
                };
                held.port().engine.ready_to_send(qpn, &send)?;
            }
            (IBV_QPS_RTS, IBV_QPS_SQD) => held.port().engine.drain(qpn)?,
            (_, IBV_QPS_ERR) => held.fail(qpn)?,
            (_, IBV_QPS_RESET) => {
                held.settle();
                let port = held.port();
                port.engine.reset(qpn)?;
                port.qps.remove(&qpn);
            }
            _ => {}
        }
        if from == to {
            let rights = (mask & IBV_QP_ACCESS_FLAGS != 0).then(|| access(attr.qp_access_flags));
            let timer = (mask & IBV_QP_MIN_RNR_TIMER != 0).then_some(attr.min_rnr_timer);
            held.port().engine.adjust(qpn, rights, timer)?;
        }
        held.settle();
        Ok(())
    }

    fn destroy_qp(&self, qp: &Arc<Qp<Self>>) {
        let mut held = self.shared.hold();
        // An acknowledgement that is due still goes out.
        held.settle();
        let port = held.port();
        port.qps.remove(&qp.qpn);
        // It is there, unless it has been destroyed, which the caller excludes.
        let _ = port.engine.destroy_qp(qp.qpn);
    }

    unsafe fn post_send(
        &self,
        qp: &Qp<Self>,
        wr: *mut ibv_send_wr,
    ) -> Result<(), (Errno, *mut ibv_send_wr)> {
        let mut held = self.shared.hold();
        let mut next = wr;
        let mut result = Ok(());
        // SAFETY: the caller's list can be read.
        while let Some(request) = unsafe { next.as_ref() } {
            // SAFETY: as the caller promises.
            if let Err(errno) = unsafe { self.post_one(held.port(), qp, request) } {
                result = Err((errno, next));
                break;
            }
            next = request.next;
        }
        held.settle();
        result
    }

    unsafe fn post_recv(
        &self,
        qp: &Qp<Self>,
        wr: *mut ibv_recv_wr,
    ) -> Result<(), (Errno, *mut ibv_recv_wr)> {
        if qp.state() == IBV_QPS_RESET {
            return Err((Errno(libc::EINVAL), wr));
        }
        // SAFETY: as the caller promises.
        let result = unsafe { qp.rq.post(wr) };
        if qp.state() == IBV_QPS_ERR {
            let mut held = self.shared.hold();
            // Flushes what is in the queue, as it did when it came into this state.
            let _ = held.fail(qp.qpn);
            held.settle();
        }
        result
    }

    fn posted_srq(&self, _srq: &Srq<Self>) {}

    fn poll(&self, _cq: &Cq<Self>, _qps: &[Arc<Qp<Self>>], sink: &mut Sink<'_>) {
        let room = sink.room();
        let polls = self.shared.poll(sink);
        // Both ends may share a processor, and then spinning only keeps the peer from answering.
        if sink.room() == room && polls.is_multiple_of(YIELD_EVERY) {
            std::thread::yield_now();
        }
    }

    fn arm(&self, _cq: &Cq<Self>) {
        self.shared.awaited();
    }

    fn alloc(&self, len: usize) -> Result<Memory, Errno> {
        anonymous(len)
    }

    unsafe fn free(&self, memory: Memory) {
        // SAFETY: as the caller promises.
        unsafe { unmap(&memory) };
    }
}
