//! The sending side of connected queue pairs.
//!
//! A request is carried out when it is posted, as far as possible: a short message is copied into
//! the peer's ring, a one-sided operation is done by the poster. What must wait, for room in the
//! ring or for an operation before it, is kept and started by a later poll.
//!
//! A request is done when the peer has consumed the records up to it (so a send completes when the
//! message is in the receiver's memory, and fails when it was refused).

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE, IBV_QPS_ERR, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_SQE,
    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_SEND_SOLICITED,
    IBV_WC_COMP_SWAP, IBV_WC_FETCH_ADD, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR,
    IBV_WC_LOC_QP_OP_ERR, IBV_WC_RDMA_READ, IBV_WC_RDMA_WRITE, IBV_WC_REM_ACCESS_ERR,
    IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
    IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, ibv_send_wr, ibv_sge, ibv_wc,
};

use crate::provider::soft::memory::{self, Region};
use crate::provider::soft::{Ah, Object as _, Qp, Sink};
use crate::provider::{Errno, native, small};

use super::Shm;
use super::copy::{Way, between, place, total};
use super::engine::{self, Job, Peer, Place, Tx, Wqe};
use super::layout::RESULTS;
use super::node::Node;
use super::ring::{
    ATOMIC, EAGER, FETCH, LINES, Op, Record, SOLICITED, UNCLEAN, lines_for, write_in_order,
};

mod collect;
mod patience;
mod quick;

pub(super) use collect::collect;
use collect::{collect_silent, done};
pub(super) use patience::inquire;

/// A request with its lists.
#[derive(Clone, Copy)]
pub(super) struct Request<'a> {
    pub(super) job: Job,
    pub(super) sges: &'a [ibv_sge],
    pub(super) len: u32,
}

/// How starting a request went.
pub(super) enum Start {
    /// It is done when the peer has consumed that many lines.
    Done,
    /// It has to wait.
    Wait,
    /// It failed, with this `ibv_wc_status`.
    Failed(u32),
}

/// `ibv_wc_opcode` of an `ibv_wr_opcode`, where a connected queue pair of that type can do it.
fn completion_of(kind: u32, opcode: u32) -> Option<u32> {
    let rc = kind == IBV_QPT_RC;
    Some(match opcode {
        IBV_WR_SEND | IBV_WR_SEND_WITH_IMM => IBV_WC_SEND,
        IBV_WR_SEND_WITH_INV if rc => IBV_WC_SEND,
        IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM if rc || kind == IBV_QPT_UC => {
            IBV_WC_RDMA_WRITE
        }
        IBV_WR_RDMA_READ if rc => IBV_WC_RDMA_READ,
        IBV_WR_ATOMIC_CMP_AND_SWP if rc => IBV_WC_COMP_SWAP,
        IBV_WR_ATOMIC_FETCH_AND_ADD if rc => IBV_WC_FETCH_ADD,
        _ => return None,
    })
}

/// Posts a list of requests.
///
/// # Safety
///
/// The list can be read, and so can the buffers of inline requests.
pub(super) unsafe fn post(
    node: &Node,
    qp: &Qp<Shm>,
    wr: *mut ibv_send_wr,
) -> Result<(), (Errno, *mut ibv_send_wr)> {
    let engine = &qp.engine;
    let mut tx = engine.tx.lock();
    let mut next = wr;
    let mut result = Ok(());
    // SAFETY: the caller's list can be read.
    while let Some(wr) = unsafe { next.as_ref() } {
        // SAFETY: the caller's request can be read, with its list and its inline data.
        if !unsafe { quick::carry(node, qp, &mut tx, wr) } {
            // SAFETY: as above.
            if let Err(errno) = unsafe { post_one(node, qp, &mut tx, wr) } {
                result = Err((errno, next));
                break;
            }
        }
        next = wr.next;
    }
    engine.posted.store(tx.posted, Ordering::Release);
    // An event that was asked for cannot wait for a poll.
    if qp.send_cq.armed() != 0 {
        collect(qp, &mut tx, None);
        if tx.reported != tx.posted {
            engine.header().armed.send.store(1, Ordering::SeqCst);
            wake_if_open(qp, &tx);
        }
    }
    result
}

/// # Safety
///
/// As for [`post`], for one request.
unsafe fn post_one(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, wr: &ibv_send_wr) -> Result<(), Errno> {
    let count = usize::try_from(wr.num_sge).map_err(|_| Errno(libc::EINVAL))?;
    if count > qp.cap.max_send_sge as usize {
        return Err(Errno(libc::EINVAL));
    }
    let opcode = completion_of(qp.kind, wr.opcode).ok_or(Errno(libc::EINVAL))?;
    let sges = if count == 0 {
        &[]
    } else {
        // SAFETY: the caller's list holds that many entries.
        unsafe { core::slice::from_raw_parts(wr.sg_list.cast_const(), count) }
    };
    let len = u32::try_from(total(sges)).map_err(|_| Errno(libc::EINVAL))?;
    let inline = wr.send_flags & IBV_SEND_INLINE != 0;
    if inline && (len > qp.cap.max_inline_data || opcode > IBV_WC_RDMA_WRITE) {
        return Err(Errno(libc::EINVAL));
    }
    if tx.posted.wrapping_sub(tx.reported) >= qp.cap.max_send_wr {
        // Requests that make no completion leave the queue when they are done.
        collect_silent(qp, tx);
        if tx.posted.wrapping_sub(tx.reported) >= qp.cap.max_send_wr {
            return Err(Errno(libc::ENOMEM));
        }
    }
    let mut job = Job {
        opcode: wr.opcode,
        flags: wr.send_flags,
        // SAFETY: both fields of the union are 32 bits wide.
        imm: unsafe { wr.imm.imm_data },
        sges: small(count),
        ..Job::default()
    };
    match wr.opcode {
        IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM | IBV_WR_RDMA_READ => {
            // SAFETY: the opcode says which field of the union is set.
            let rdma = unsafe { wr.wr.rdma };
            job.remote = rdma.remote_addr;
            job.rkey = rdma.rkey;
        }
        IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD => {
            // SAFETY: the opcode says which field of the union is set.
            let atomic = unsafe { wr.wr.atomic };
            job.remote = atomic.remote_addr;
            job.rkey = atomic.rkey;
            job.compare = atomic.compare_add;
            job.swap = atomic.swap;
        }
        _ if qp.kind == IBV_QPT_UD => {
            // SAFETY: a request on such a queue pair sets this field of the union.
            let ud = unsafe { wr.wr.ud };
            job.qpn = ud.remote_qpn;
            job.qkey = ud.remote_qkey;
            let ah = NonNull::new(ud.ah).ok_or(Errno(libc::EINVAL))?;
            // SAFETY: the caller's address handle is live.
            job.global = unsafe { Ah::<Shm>::from_raw(ah) }.attr.is_global != 0;
        }
        _ => {}
    }
    let slot = tx.slot(tx.posted);
    tx.wqes[slot] = Wqe {
        wr_id: wr.wr_id,
        len,
        opcode,
        signaled: qp.sq_sig_all || wr.send_flags & IBV_SEND_SIGNALED != 0,
        ..Wqe::default()
    };
    let state = qp.state();
    let start = if state == IBV_QPS_ERR || state == IBV_QPS_SQE {
        Start::Failed(IBV_WC_WR_FLUSH_ERR)
    } else if tx.started != tx.posted || state == IBV_QPS_SQD {
        Start::Wait
    } else {
        start(node, qp, tx, slot, &Request { job, sges, len })
    };
    if matches!(start, Start::Wait) {
        keep(qp, tx, slot, job, sges, inline);
    }
    tx.posted = tx.posted.wrapping_add(1);
    settle(qp, tx, slot, &start);
    Ok(())
}

/// Keeps what a request needs to be started later.
fn keep(qp: &Qp<Shm>, tx: &mut Tx, slot: usize, mut job: Job, sges: &[ibv_sge], inline: bool) {
    let width = qp.cap.max_send_sge.max(1) as usize;
    if inline {
        let mut at = slot * qp.cap.max_inline_data as usize;
        for sge in sges {
            let len = sge.length as usize;
            let from = core::ptr::with_exposed_provenance::<u8>(native(sge.addr));
            let to = tx.inline[at..at + len].as_mut_ptr();
            if len > 0 {
                // SAFETY: inline data can be read while it is posted; the room was just sliced.
                unsafe { to.copy_from_nonoverlapping(from, len) };
            }
            at += len;
        }
        let from = &tx.inline[slot * qp.cap.max_inline_data as usize..];
        tx.sges[slot * width] = ibv_sge {
            addr: from.as_ptr().expose_provenance() as u64,
            length: tx.wqes[slot].len,
            lkey: 0,
        };
        job.sges = 1;
    } else {
        tx.sges[slot * width..][..sges.len()].copy_from_slice(sges);
    }
    tx.jobs[slot] = job;
}

/// Notes how the request went that was to be started next.
fn settle(qp: &Qp<Shm>, tx: &mut Tx, slot: usize, start: &Start) {
    match start {
        Start::Done => tx.wqes[slot].need = tx.head,
        Start::Wait => return,
        Start::Failed(status) => {
            tx.wqes[slot].status = *status;
            tx.wqes[slot].need = tx.head;
            if *status != IBV_WC_WR_FLUSH_ERR {
                fail(qp, tx);
            }
        }
    }
    tx.started = tx.started.wrapping_add(1);
}

/// Moves to ERR.
fn fail(qp: &Qp<Shm>, tx: &Tx) {
    if qp.fail() {
        let header = qp.engine.header();
        header.control.state.store(IBV_QPS_ERR, Ordering::SeqCst);
        if let Some(peer) = &tx.peer
            && peer.header().armed.send.load(Ordering::SeqCst)
                | peer.header().armed.recv.load(Ordering::SeqCst)
                != 0
        {
            peer.node.ring();
        }
        if qp.recv_cq.armed() != 0 {
            // The receive requests have to be flushed, by the thread.
            super::node::ring(qp.pd.context.transport.node.header);
        }
    }
}

/// Starts requests that waited, as far as possible.
pub(super) fn resume(node: &Node, qp: &Qp<Shm>, tx: &mut Tx) {
    while tx.started != tx.posted && qp.state() == IBV_QPS_RTS {
        let slot = tx.slot(tx.started);
        let (job, len) = (tx.jobs[slot], tx.wqes[slot].len);
        let width = qp.cap.max_send_sge.max(1) as usize;
        // The list is moved out for the call; it has at most 32 entries.
        let mut list = [ibv_sge::default(); 32];
        let count = (job.sges as usize).min(list.len());
        list[..count].copy_from_slice(&tx.sges[slot * width..][..count]);
        let request = Request {
            job,
            sges: &list[..count],
            len,
        };
        let start = start(node, qp, tx, slot, &request);
        if matches!(start, Start::Wait) {
            return;
        }
        settle(qp, tx, slot, &start);
    }
}

/// Carries a request out.
fn start(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, slot: usize, request: &Request<'_>) -> Start {
    if qp.kind == IBV_QPT_UD {
        return super::ud::send(node, qp, tx, request);
    }
    if tx.peer.is_none() {
        let attr = qp.attr();
        tx.peer = engine::connect(node, qp, attr.dest_qp_num);
        let mut rx = qp.engine.rx.lock();
        rx.peer.clone_from(&tx.peer);
    }
    tx.unreachable = false;
    // Out of its place for the call, which is cheaper than to share it.
    let Some(peer) = tx.peer.take() else {
        return unreachable_peer(qp, tx);
    };
    let start = match request.job.opcode {
        _ if peer.is_gone() => Start::Failed(IBV_WC_RETRY_EXC_ERR),
        IBV_WR_SEND | IBV_WR_SEND_WITH_IMM | IBV_WR_SEND_WITH_INV => {
            send(node, qp, tx, &peer, request)
        }
        IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM => write(node, qp, tx, &peer, request),
        IBV_WR_RDMA_READ => read(node, qp, tx, &peer, request),
        _ => atomic(node, qp, tx, &peer, slot, request),
    };
    tx.peer = Some(peer);
    if matches!(start, Start::Failed(IBV_WC_RETRY_EXC_ERR)) {
        return unreachable_peer(qp, tx);
    }
    start
}

/// A datagram-like transport does not notice; a reliable one tries again, until [`inquire`] gives up.
#[cold]
fn unreachable_peer(qp: &Qp<Shm>, tx: &mut Tx) -> Start {
    if qp.kind == IBV_QPT_UC {
        return Start::Done;
    }
    tx.unreachable = true;
    Start::Wait
}

/// Room for a record in the peer's ring, or `None`.
fn reserve(qp: &Qp<Shm>, tx: &mut Tx, peer: &Peer, lines: u32) -> Option<u32> {
    let acked = &qp.engine.acked;
    let position = tx.head % LINES;
    let to_end = LINES - position;
    let skip = if lines > to_end { to_end } else { 0 };
    let needed = skip + lines + UNCLEAN;
    if LINES - tx.head.wrapping_sub(acked.load(Ordering::Acquire)) < needed {
        learn(qp, peer);
        if LINES - tx.head.wrapping_sub(acked.load(Ordering::Acquire)) < needed {
            return None;
        }
    }
    if skip > 0 {
        let record = Record {
            op: Op::Wrap,
            flags: 0,
            lines: skip,
            len: 0,
            imm: 0,
            ack: qp.engine.consumed.load(Ordering::Relaxed),
            entries: 0,
        };
        // SAFETY: the lines are free, and the lock of the sending side is held.
        unsafe { peer.ring.publish(tx.head, &record) };
        tx.head = tx.head.wrapping_add(skip);
    }
    Some(tx.head)
}

/// Learns from the peer's header what it consumed.
fn learn(qp: &Qp<Shm>, peer: &Peer) {
    acknowledge(qp, peer.header().received.consumed.load(Ordering::Acquire));
}

/// Notes what the peer consumed.
#[inline]
pub(super) fn acknowledge(qp: &Qp<Shm>, consumed: u32) {
    let acked = &qp.engine.acked;
    let before = acked.load(Ordering::Relaxed);
    let news = consumed.wrapping_sub(before);
    // Going back or too far is what only a broken peer says.
    if news != 0 && news <= LINES {
        acked.store(consumed, Ordering::Release);
    }
}

/// Shows a record to the peer, and wakes it where it asked for that.
#[inline]
fn publish(qp: &Qp<Shm>, head: &mut u32, peer: &Peer, mut record: Record) {
    record.ack = qp.engine.consumed.load(Ordering::Relaxed);
    qp.engine.told.store(record.ack, Ordering::Relaxed);
    // With a barrier, against the peer's "arm, then look".
    // SAFETY: the room was reserved, and the lock of the sending side is held.
    unsafe { peer.ring.publish_in_order(*head, &record) };
    *head = head.wrapping_add(record.lines);
    match peer.header().armed.recv.load(Ordering::Relaxed) {
        0 => {}
        2 if record.flags & SOLICITED == 0 => {}
        _ => peer.node.ring(),
    }
}

/// What a record says of a request's `ibv_send_flags`.
#[inline]
pub(super) fn solicited(flags: u32) -> u8 {
    if flags & IBV_SEND_SOLICITED == 0 {
        0
    } else {
        SOLICITED
    }
}

/// The address of an entry, checked unless its data is inline.
#[inline]
pub(super) fn local(
    node: &Node,
    qp: &Qp<Shm>,
    job: &Job,
    sge: &ibv_sge,
    needed: u32,
) -> Result<*mut u8, u32> {
    if job.flags & IBV_SEND_INLINE != 0 {
        return Ok(core::ptr::with_exposed_provenance_mut(native(sge.addr)));
    }
    node.keys
        .local(sge.lkey, sge.addr, sge.length.into(), qp.pd.id, needed)
        .map_err(|_| IBV_WC_LOC_PROT_ERR)
}

fn send(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, peer: &Peer, request: &Request<'_>) -> Start {
    let Request { job, sges, len } = request;
    let op = match job.opcode {
        IBV_WR_SEND => Op::Send,
        IBV_WR_SEND_WITH_IMM => Op::SendImm,
        _ => Op::SendInvalidate,
    };
    let eager = *len <= EAGER;
    let payload = if eager {
        *len as usize
    } else {
        size_of_val(*sges)
    };
    let lines = lines_for(payload);
    let Some(at) = reserve(qp, tx, peer, lines) else {
        return Start::Wait;
    };
    let mut to = peer.ring.payload(at);
    for sge in *sges {
        let from = match local(node, qp, job, sge, 0) {
            Ok(from) => from,
            Err(status) => return Start::Failed(status),
        };
        if eager {
            // SAFETY: the range was checked and stays registered while the lock is held; the room
            // was reserved, and its sum is the length.
            unsafe { to.copy_from_nonoverlapping(from, sge.length as usize) };
            to = to.wrapping_add(sge.length as usize);
        } else {
            // SAFETY: as above, for the list.
            unsafe { to.cast::<ibv_sge>().write_unaligned(*sge) };
            to = to.wrapping_add(size_of::<ibv_sge>());
        }
    }
    let record = Record {
        op,
        flags: solicited(job.flags) | if eager { 0 } else { FETCH },
        lines,
        len: *len,
        imm: job.imm,
        ack: 0,
        entries: job.sges,
    };
    publish(qp, &mut tx.head, peer, record);
    Start::Done
}

/// Where memory of the peer can be reached.
enum Reach {
    Here(*mut u8),
    There,
}

/// Finds a region of the peer and checks that we may access it so: the region, and where in it. `None`
/// for no bytes at all, for which only the connection is checked.
///
/// To be called in a section, and the result used in it.
#[inline]
fn permitted(
    qp: &Qp<Shm>,
    peer: &Peer,
    (addr, rkey): (u64, u32),
    len: u32,
    needed: u32,
) -> Result<Option<(Region, u64)>, u32> {
    let header = peer.header();
    let state = header.control.state.load(Ordering::SeqCst);
    if header.control.peer.load(Ordering::SeqCst) != qp.qpn
        || !(IBV_QPS_RTR..IBV_QPS_ERR).contains(&state)
    {
        // As an adapter does, we try again until the peer is ready or the retries are over.
        return Err(IBV_WC_RETRY_EXC_ERR);
    }
    if len == 0 {
        return Ok(None);
    }
    if header.control.access.load(Ordering::Relaxed) & needed != needed {
        return Err(IBV_WC_REM_ACCESS_ERR);
    }
    let region = memory::find(peer.node.keys(), rkey).ok_or(IBV_WC_REM_ACCESS_ERR)?;
    let pd = header.pd.load(Ordering::Relaxed);
    let offset = region
        .offset(addr, len.into(), pd, needed)
        .map_err(|_| IBV_WC_REM_ACCESS_ERR)?;
    Ok(Some((region, offset)))
}

/// Where a range of the peer is that [`permitted`] allows, and its address there.
fn remote(
    node: &Node,
    qp: &Qp<Shm>,
    tx: &mut Tx,
    peer: &Peer,
    job: &Job,
    len: u32,
    needed: u32,
) -> Result<(Reach, u64), u32> {
    let target = (job.remote, job.rkey);
    let Some((region, offset)) = permitted(qp, peer, target, len, needed)? else {
        return Ok((Reach::Here(NonNull::dangling().as_ptr()), 0));
    };
    Ok((
        reach(node, tx, peer, &region, offset, len),
        region.addr + offset,
    ))
}

/// How to get at a range of the peer's memory.
fn reach(node: &Node, tx: &mut Tx, peer: &Peer, region: &Region, offset: u64, len: u32) -> Reach {
    if peer.node.own {
        let addr = native(region.addr + offset);
        return Reach::Here(core::ptr::with_exposed_provenance_mut(addr));
    }
    if region.file == 0 {
        return Reach::There;
    }
    if tx
        .last_buffer
        .as_ref()
        .is_none_or(|(id, _)| *id != region.file)
    {
        let Some(map) = peer.node.buffer(node, region.file) else {
            return Reach::There;
        };
        tx.last_buffer = Some((region.file, map));
    }
    let found = tx
        .last_buffer
        .as_ref()
        .and_then(|(_, map)| engine::at(map, region.file_offset + offset, len.into()));
    found.map_or(Reach::There, |at| Reach::Here(at.as_ptr()))
}

/// Runs an access to the peer's memory as a section that its barriers wait for.
#[inline]
fn section<R>(qp: &Qp<Shm>, access: impl FnOnce() -> R) -> R {
    enter(&qp.engine.header().hazard.sending);
    let result = access();
    leave(&qp.engine.header().hazard.sending);
    result
}

/// Begins a section. The lock of its side is held, so nobody else counts.
#[inline]
pub(super) fn enter(section: &AtomicU32) {
    // With a barrier, against the peer's "make invalid, then look".
    write_in_order(section, section.load(Ordering::Relaxed).wrapping_add(1));
}

/// Ends a section.
#[inline]
pub(super) fn leave(section: &AtomicU32) {
    let next = section.load(Ordering::Relaxed).wrapping_add(1);
    section.store(next, Ordering::Release);
}

/// Tells the peer that its queue pair has to fail.
fn accuse(peer: &Peer) {
    peer.header().fault.access.store(1, Ordering::SeqCst);
    peer.node.ring();
}

/// An access to remote memory by this thread.
fn direct(
    node: &Node,
    qp: &Qp<Shm>,
    tx: &mut Tx,
    peer: &Peer,
    request: &Request<'_>,
    way: Way,
) -> Result<(), u32> {
    let Request { job, sges, len } = request;
    let (remote_right, local_right) = match way {
        Way::Read => (IBV_ACCESS_REMOTE_READ, IBV_ACCESS_LOCAL_WRITE),
        Way::Write => (IBV_ACCESS_REMOTE_WRITE, 0),
    };
    let mut parts = [(core::ptr::null_mut::<u8>(), 0_usize); 32];
    for (part, sge) in parts.iter_mut().zip(*sges) {
        *part = (local(node, qp, job, sge, local_right)?, sge.length as usize);
    }
    let parts = &parts[..sges.len().min(32)];
    let result = section(qp, || {
        let (reach, addr) = remote(node, qp, tx, peer, job, *len, remote_right)?;
        match reach {
            Reach::Here(mut there) => {
                for &(here, len) in parts {
                    // SAFETY: both ranges were checked; the local one stays registered while the
                    // lock is held, the remote one while the section lasts. That they overlap is
                    // possible only within one process, and then a fault of who posted it.
                    unsafe {
                        match way {
                            Way::Read => there.copy_to(here, len),
                            Way::Write if peer.node.own => there.copy_from(here, len),
                            Way::Write => place(there, here, len),
                        }
                    }
                    there = there.wrapping_add(len);
                }
                Ok(())
            }
            Reach::There if peer.node.same_pids => {
                // SAFETY: the local ranges were checked, with the right that is needed.
                let moved = unsafe { between(peer.node.pid, parts, addr, *len as usize, way) };
                if moved {
                    Ok(())
                } else {
                    Err(IBV_WC_REM_OP_ERR)
                }
            }
            Reach::There => Err(IBV_WC_REM_OP_ERR),
        }
    });
    if result == Err(IBV_WC_REM_ACCESS_ERR) {
        accuse(peer);
    }
    result
}

fn write(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, peer: &Peer, request: &Request<'_>) -> Start {
    if tx.atomics_open > 0 {
        return Start::Wait;
    }
    let job = &request.job;
    let notice = job.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    if notice && reserve(qp, tx, peer, 1).is_none() {
        return Start::Wait;
    }
    match direct(node, qp, tx, peer, request, Way::Write) {
        Ok(()) => {}
        // An unreliable connection loses what is not welcome.
        Err(status) if qp.kind == IBV_QPT_UC && status != IBV_WC_LOC_PROT_ERR => {
            return Start::Done;
        }
        Err(status) => return Start::Failed(status),
    }
    if notice {
        let record = Record {
            op: Op::WriteImm,
            flags: solicited(job.flags),
            lines: 1,
            len: request.len,
            imm: job.imm,
            ack: 0,
            entries: 0,
        };
        publish(qp, &mut tx.head, peer, record);
    }
    Start::Done
}

fn read(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, peer: &Peer, request: &Request<'_>) -> Start {
    if tx.atomics_open > 0 {
        return Start::Wait;
    }
    match direct(node, qp, tx, peer, request, Way::Read) {
        Ok(()) => Start::Done,
        Err(status) => Start::Failed(status),
    }
}

fn atomic(
    node: &Node,
    qp: &Qp<Shm>,
    tx: &mut Tx,
    peer: &Peer,
    slot: usize,
    request: &Request<'_>,
) -> Start {
    let job = &request.job;
    let [sge] = request.sges else {
        return Start::Failed(IBV_WC_LOC_QP_OP_ERR);
    };
    if sge.length != 8 {
        return Start::Failed(IBV_WC_LOC_LEN_ERR);
    }
    let to = match local(node, qp, job, sge, IBV_ACCESS_LOCAL_WRITE) {
        Ok(to) => to,
        Err(status) => return Start::Failed(status),
    };
    if !job.remote.is_multiple_of(8) {
        accuse(peer);
        return Start::Failed(IBV_WC_REM_INV_REQ_ERR);
    }
    let done = section(qp, || {
        match remote(node, qp, tx, peer, job, 8, IBV_ACCESS_REMOTE_ATOMIC)? {
            // Registered memory need not be aligned as its addresses are called.
            (Reach::Here(there), _) if there.addr().is_multiple_of(8) => {
                // SAFETY: the range was checked, is aligned, and stays registered in the section.
                Ok(Some(unsafe {
                    apply(there, job.opcode, job.compare, job.swap)
                }))
            }
            _ => Ok(None),
        }
    });
    match done {
        Ok(Some(old)) => {
            // SAFETY: the range was checked for writing and stays registered while the lock is held.
            unsafe { to.cast::<u64>().write_unaligned(old) };
            return Start::Done;
        }
        Ok(None) => {}
        Err(status) => {
            if status == IBV_WC_REM_ACCESS_ERR {
                accuse(peer);
            }
            return Start::Failed(status);
        }
    }
    // Memory that only its own process reaches: its thread does it.
    let lines = lines_for(ATOMIC);
    if tx.atomics_open as usize >= RESULTS {
        return Start::Wait;
    }
    let Some(at) = reserve(qp, tx, peer, lines) else {
        return Start::Wait;
    };
    let kind = u32::from(job.opcode == IBV_WR_ATOMIC_CMP_AND_SWP);
    let words = [
        job.remote,
        u64::from(job.rkey) << 32 | u64::from(kind),
        job.compare,
        job.swap,
    ];
    let payload = peer.ring.payload(at).cast::<[u64; 4]>();
    // SAFETY: the room was reserved.
    unsafe { payload.write_unaligned(words) };
    let place = Place {
        addr: sge.addr,
        lkey: sge.lkey,
    };
    tx.results[slot] = (place, tx.atomics);
    tx.wqes[slot].result = true;
    tx.atomics = tx.atomics.wrapping_add(1);
    tx.atomics_open += 1;
    let record = Record {
        op: Op::Atomic,
        flags: 0,
        lines,
        len: 8,
        imm: 0,
        ack: 0,
        entries: 0,
    };
    publish(qp, &mut tx.head, peer, record);
    peer.node.ring();
    Start::Done
}

/// Does an atomic operation and gives the old value.
///
/// # Safety
///
/// `at` is aligned to 8, and can be read and written.
pub(super) unsafe fn apply(at: *mut u8, opcode: u32, compare: u64, swap: u64) -> u64 {
    // SAFETY: as the caller promises; an atomic has the layout of its integer.
    let word = unsafe { &*at.cast::<AtomicU64>() };
    if opcode == IBV_WR_ATOMIC_CMP_AND_SWP {
        match word.compare_exchange(compare, swap, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(old) | Err(old) => old,
        }
    } else {
        word.fetch_add(compare, Ordering::SeqCst)
    }
}

/// Wakes the peer's thread when requests wait for it.
pub(super) fn wake_if_open(qp: &Qp<Shm>, tx: &Tx) {
    if tx.head != qp.engine.acked.load(Ordering::Acquire)
        && let Some(peer) = &tx.peer
    {
        peer.node.ring();
    }
}

/// Progress of the sending side while the user polls.
pub(super) fn poll(node: &Node, qp: &Qp<Shm>, sink: &mut Sink<'_>) {
    let engine = &qp.engine;
    let mut tx = engine.tx.lock();
    resume(node, qp, &mut tx);
    let before = tx.reported;
    collect(qp, &mut tx, Some(sink));
    if tx.reported != before || tx.reported == tx.posted {
        engine.patience.store(0, Ordering::Relaxed);
        return;
    }
    // Nothing: look at the peer's header, first at once and then less often, since looking costs
    // the peer its cache line.
    let patience = engine.patience.load(Ordering::Relaxed);
    engine
        .patience
        .store(patience.saturating_add(1), Ordering::Relaxed);
    if !patience.is_multiple_of(8) {
        return;
    }
    let mut refused = false;
    if let Some(peer) = &tx.peer {
        learn(qp, peer);
        refused = peer.header().received.refused.load(Ordering::Relaxed) != 0;
        // The peer does not poll: its thread has to.
        if patience % 4096 == 1024 {
            wake_if_open(qp, &tx);
        }
    }
    if refused || patience.is_multiple_of(1024) {
        inquire(qp, &mut tx);
    }
    resume(node, qp, &mut tx);
    collect(qp, &mut tx, Some(sink));
}
