//! Processes of one user on one host, through shared memory.
//!
//! Every process, queue pair and buffer is a file in a directory that only the user may enter
//! (`dir`); a number is enough to find each, so any exchange of QPNs and keys connects.
//!
//! - A **send** is a record in the receiver's ring (`ring`), short messages with their payload. The
//!   receiver takes it when it polls, and the sender's request completes when it did.
//! - A **write** or **read** is done by who posts it, without the target's doing anything: in mapped
//!   memory where the buffer came from [`crate::provider::Context::alloc`], else by the kernel
//!   (`process_vm_writev`, `process_vm_readv`). Keys are looked up in the target's table.
//! - An **atomic operation** is done by who posts it in mapped memory, else by the target's thread.
//! - A **datagram** is copied into the receiver's inbox (`ud`).
//! - Each process has a **thread** (`thread`) that sleeps unless a peer rings it.
//!
//! A peer that dies is noticed within a tenth of a second. What waits for it completes with
//! `IBV_WC_RETRY_EXC_ERR` when an adapter's retries would be over (4.096 µs · 2^`timeout`, times the
//! retries and one, but at least 0.1 s and at most 4 s).
//!
//! # Where it differs from an adapter
//!
//! - A request on another queue pair's memory is carried out when it is posted, so it may overtake a
//!   send that was posted before it and that the receiver has not taken yet.
//! - There are no retries to count: `rnr_retry` below 7 gives up after a tenth of a second for each
//!   retry and one, whatever `min_rnr_timer` is.
//! - A child of `fork` must not use what its parent opened.

mod copy;
mod dir;
mod engine;
mod layout;
mod node;
mod ring;
mod rx;
mod thread;
mod tx;
mod ud;

use core::sync::atomic::{Ordering, fence};
use std::sync::Arc;

use rverbs_sys::{
    IBV_NODE_CA, IBV_QP_ACCESS_FLAGS, IBV_QP_QKEY, IBV_QPS_ERR, IBV_QPS_RESET, IBV_QPS_RTR,
    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_TRANSPORT_IB, ibv_send_wr,
};

use crate::Error;
use crate::provider::soft::{
    self, Attributes, Cq, KeyTable, NewQp, Qp, Sink, Srq, Transport, anonymous, unmap,
};
use crate::provider::{Context, DeviceInfo, Errno, Kind, Memory, Provider, small};

use engine::{Engine, Peer, connect, qp_name, wait_section};
use layout::GONE;
use node::{Buffer, Node, buffer_name};

/// Name of the device.
pub const DEVICE: &str = "shm0";

/// The provider.
#[derive(Debug, Default, Clone, Copy)]
pub struct ShmProvider;

fn guid() -> u64 {
    // A locally administered identifier with the user's number in it.
    // SAFETY: asks for a number.
    let uid = unsafe { libc::geteuid() };
    0x0200_00ff_fe00_0000 | u64::from(uid) & 0x00ff_ffff
}

impl Provider for ShmProvider {
    fn kind(&self) -> Kind {
        Kind::Shm
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, Error> {
        Ok(vec![DeviceInfo {
            name: DEVICE.into(),
            provider: Kind::Shm,
            node_type: IBV_NODE_CA,
            transport: IBV_TRANSPORT_IB,
            guid: guid(),
        }])
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Context>, Error> {
        if name != DEVICE {
            return Err(Error::NoDevice { name: name.into() });
        }
        let context = Shm::new()
            .and_then(soft::Context::new)
            .map_err(Error::verb("ibv_open_device"))?;
        Ok(context)
    }
}

/// The transport.
#[derive(Debug)]
struct Shm {
    node: &'static Node,
    attributes: Attributes,
}

impl Shm {
    /// Joins the processes that share memory.
    ///
    /// # Errors
    ///
    /// What the directory or the files in it said.
    fn new() -> Result<Self, Errno> {
        let mut attributes = Attributes::new(guid());
        let port = &mut attributes.port;
        port.lid = 1;
        port.sm_lid = 1;
        // InfiniBand, so that programs connect by LID without being told of a GID.
        port.link_layer = 1;
        attributes.device.orig_attr.max_mr = small(layout::KEYS).cast_signed();
        Ok(Self {
            node: Node::get()?,
            attributes,
        })
    }

    /// Ends what peers may do to a queue pair, and waits until they do nothing any more.
    fn isolate(&self, qp: &Qp<Self>, state: u32) {
        let engine = &qp.engine;
        let header = engine.header();
        let peer = {
            let tx = engine.tx.lock();
            let mut rx = engine.rx.lock();
            if engine.inbox.is_none() {
                // What has arrived was delivered, as far as the sender can know.
                rx::progress(self.node, qp, &mut rx, None);
                rx::tell(qp, &mut rx);
            }
            header.control.state.store(state, Ordering::SeqCst);
            tx.peer.clone().or_else(|| rx.peer.clone())
        };
        fence(Ordering::SeqCst);
        if let Some(peer) = &peer {
            wait_section(peer);
        }
    }

    /// Lets a peer go.
    fn release(&self, qp: &Qp<Self>) -> Option<Arc<Peer>> {
        let peer = {
            let mut tx = qp.engine.tx.lock();
            let mut rx = qp.engine.rx.lock();
            let peer = tx.peer.take();
            rx.peer.take().or(peer)
        };
        if let Some(peer) = &peer {
            let claim = &peer.header().producer.qpn;
            // It is ours, unless the peer was reset meanwhile.
            let _ = claim.compare_exchange(qp.qpn, 0, Ordering::SeqCst, Ordering::SeqCst);
            peer.node.ring();
        }
        peer
    }
}

impl Transport for Shm {
    const KIND: Kind = Kind::Shm;

    type Qp = Engine;

    fn name(&self) -> &str {
        DEVICE
    }

    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn keys(&self) -> &KeyTable {
        &self.node.keys
    }

    fn backing(&self, addr: usize, len: usize) -> (u32, u64) {
        self.node.buffer_at(addr, len).unwrap_or((0, 0))
    }

    fn quiesce(&self, _key: u32) {
        fence(Ordering::SeqCst);
        for qp in self.node.live_qps() {
            // Sections of this process are those in which these locks are held.
            let peer = qp.engine.tx.lock().peer.clone();
            let other = qp.engine.rx.lock().peer.clone();
            if let Some(peer) = peer.or(other) {
                wait_section(&peer);
            }
        }
    }

    fn create_qp(&self, new: &NewQp) -> Result<(u32, Engine), Errno> {
        if ![IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD].contains(&new.kind) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        Engine::create(self.node, new)
    }

    fn modify_qp(&self, qp: &Arc<Qp<Self>>, to: u32, mask: u32) -> Result<(), Errno> {
        let header = qp.engine.header();
        let attr = qp.attr();
        if qp.state() == IBV_QPS_RESET && to != IBV_QPS_RESET {
            self.node.qps.lock().insert(qp.qpn, Arc::downgrade(qp));
            // The thread begins to look after it.
            node::ring(self.node.header);
        }
        if mask & IBV_QP_ACCESS_FLAGS != 0 {
            let access = &header.control.access;
            access.store(attr.qp_access_flags, Ordering::SeqCst);
        }
        if mask & IBV_QP_QKEY != 0 {
            header.control.qkey.store(attr.qkey, Ordering::SeqCst);
        }
        match to {
            IBV_QPS_ERR => {
                self.isolate(qp, IBV_QPS_ERR);
                // The flush is found by polling, or by the thread where an event is asked for.
                node::ring(self.node.header);
            }
            IBV_QPS_RESET => {
                self.isolate(qp, GONE);
                self.release(qp);
                qp.engine.reset();
            }
            IBV_QPS_RTR if qp.state() != IBV_QPS_RTR && qp.kind != IBV_QPT_UD => {
                let peer = connect(self.node, qp, attr.dest_qp_num);
                qp.engine.tx.lock().peer.clone_from(&peer);
                qp.engine.rx.lock().peer = peer;
                header
                    .control
                    .peer
                    .store(attr.dest_qp_num, Ordering::SeqCst);
                header.control.state.store(to, Ordering::SeqCst);
            }
            _ => header.control.state.store(to, Ordering::SeqCst),
        }
        Ok(())
    }

    fn destroy_qp(&self, qp: &Arc<Qp<Self>>) {
        self.isolate(qp, GONE);
        self.node.qps.lock().remove(&qp.qpn);
        self.node.dir.remove(&qp_name(qp.qpn));
        self.release(qp);
    }

    unsafe fn post_send(
        &self,
        qp: &Qp<Self>,
        wr: *mut ibv_send_wr,
    ) -> Result<(), (Errno, *mut ibv_send_wr)> {
        // SAFETY: as the caller promises.
        unsafe { tx::post(self.node, qp, wr) }
    }

    fn posted_srq(&self, _srq: &Srq<Self>) {}

    fn poll(&self, cq: &Cq<Self>, qps: &[Arc<Qp<Self>>], sink: &mut Sink<'_>) {
        for qp in qps {
            if sink.room() == 0 {
                return;
            }
            let engine = &qp.engine;
            if core::ptr::eq(&raw const *qp.recv_cq, cq) {
                match &engine.inbox {
                    None => rx::poll(self.node, qp, sink),
                    Some(inbox) if ud::pending(qp, inbox) => {
                        let mut rx = engine.rx.lock();
                        ud::progress(self.node, qp, inbox, &mut rx, Some(sink));
                    }
                    Some(_) => {}
                }
            }
            if engine.posted.load(Ordering::Relaxed) != engine.reported.load(Ordering::Relaxed)
                && core::ptr::eq(&raw const *qp.send_cq, cq)
            {
                tx::poll(self.node, qp, sink);
            }
        }
    }

    fn arm(&self, cq: &Cq<Self>) {
        let mode = cq.armed();
        for qp in self.node.live_qps() {
            let armed = &qp.engine.header().armed;
            if core::ptr::eq(&raw const *qp.recv_cq, cq) {
                armed.recv.store(mode, Ordering::SeqCst);
            }
            if core::ptr::eq(&raw const *qp.send_cq, cq) {
                armed.send.store(mode, Ordering::SeqCst);
                tx::wake_if_open(&qp, &qp.engine.tx.lock());
            }
        }
        fence(Ordering::SeqCst);
    }

    fn alloc(&self, len: usize) -> Result<Memory, Errno> {
        let len = len.max(1).next_multiple_of(4096);
        let id = self.node.next_buffer.fetch_add(1, Ordering::Relaxed);
        match self.node.dir.create(&buffer_name(self.node.id, id), len) {
            Ok(map) => {
                let memory = Memory {
                    addr: map.addr,
                    len,
                    cookie: id.into(),
                };
                self.node.buffers.lock().push(Buffer { id, map });
                Ok(memory)
            }
            // The directory is full: peers can still be served by the kernel.
            Err(_) => anonymous(len),
        }
    }

    unsafe fn free(&self, memory: Memory) {
        if memory.cookie == 0 {
            // SAFETY: as the caller promises.
            unsafe { unmap(&memory) };
            return;
        }
        let gone = {
            let mut buffers = self.node.buffers.lock();
            let index = buffers
                .iter()
                .position(|buffer| u64::from(buffer.id) == memory.cookie);
            index.map(|index| buffers.swap_remove(index))
        };
        if let Some(buffer) = gone {
            let name = buffer_name(self.node.id, buffer.id);
            self.node.dir.remove(&name);
        }
    }
}
