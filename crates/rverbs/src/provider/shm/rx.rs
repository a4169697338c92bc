//! The receiving side of connected queue pairs.

use core::sync::atomic::{Ordering, fence};

use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_FATAL,
    IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_SRQ_LIMIT_REACHED, IBV_QPS_ERR,
    IBV_QPS_RTR, IBV_QPT_UC, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_RECV,
    IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR,
    IBV_WC_WITH_IMM, IBV_WC_WITH_INV, IBV_WC_WR_FLUSH_ERR, IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD, ibv_sge, ibv_wc, ibv_wc_imm,
};

use crate::provider::native;
use crate::provider::soft::memory;
use crate::provider::soft::{Qp, Recv, Sink};

use super::Shm;
use super::copy::{Way, between};
use super::engine::{self, Peer, Rx};
use super::layout::RESULTS;
use super::node::Node;
use super::ring::{FETCH, LINES, Op, Record, SOLICITED, UNCLEAN};
use super::tx::{acknowledge, apply, enter, leave};

/// Whether there may be something to receive, without a lock.
#[inline]
pub(super) fn pending(qp: &Qp<Shm>) -> bool {
    let engine = &qp.engine;
    let tail = engine.consumed.load(Ordering::Relaxed);
    engine.ring.stamp(tail).load(Ordering::Relaxed) != 0
        || engine.header().fault.access.load(Ordering::Relaxed) != 0
        || (qp.state() == IBV_QPS_ERR && !qp.rq.is_empty())
}

/// Lines of the largest record, and of the largest gap before it.
const BIGGEST: u32 = 2 * (8192 / 64 + 1);

/// Makes consumed lines ready for the next round.
fn clean(qp: &Qp<Shm>, rx: &mut Rx) {
    qp.engine.ring.clean(rx.clean, rx.tail);
    rx.clean = rx.tail;
}

/// Tells the peer what was consumed, when nothing that was sent back did.
#[inline]
pub(super) fn tell(qp: &Qp<Shm>, rx: &mut Rx) {
    let received = &qp.engine.header().received;
    if received.consumed.load(Ordering::Relaxed) != rx.tail {
        received.consumed.store(rx.tail, Ordering::Release);
        qp.engine.told.store(rx.tail, Ordering::Relaxed);
        // Against the peer's "arm, then look".
        fence(Ordering::SeqCst);
        if let Some(peer) = &rx.peer
            && peer.header().armed.send.load(Ordering::Relaxed) != 0
        {
            peer.node.ring();
        }
    }
}

/// Progress of the receiving side while the user polls.
#[inline]
pub(super) fn poll(node: &Node, qp: &Qp<Shm>, sink: &mut Sink<'_>) {
    let engine = &qp.engine;
    if pending(qp) {
        let mut rx = engine.rx.lock();
        if !(quick(node, qp, &mut rx, sink) && sink.room() == 0) {
            progress(node, qp, &mut rx, Some(sink));
        }
        // A sender that fills the ring must not wait for the next poll.
        let told = engine.told.load(Ordering::Relaxed);
        if rx.tail.wrapping_sub(told) > LINES / 4 {
            tell(qp, &mut rx);
        }
        return;
    }
    let tail = engine.consumed.load(Ordering::Relaxed);
    if engine.header().received.consumed.load(Ordering::Relaxed) != tail {
        let mut rx = engine.rx.lock();
        rx.idle += 1;
        clean(qp, &mut rx);
        // What went back with a message need not be told again, unless nobody reads that message.
        if engine.told.load(Ordering::Relaxed) != tail || rx.idle > 64 {
            rx.idle = 0;
            tell(qp, &mut rx);
        }
    }
}

/// The short way: a short message into one place, reported to the user who polls. Returns whether it was
/// one; everything else is left to [`progress`].
#[inline]
fn quick(node: &Node, qp: &Qp<Shm>, rx: &mut Rx, sink: &mut Sink<'_>) -> bool {
    let engine = &qp.engine;
    let Some(Ok(record)) = engine.ring.read(rx.tail) else {
        return false;
    };
    let (Some(peer), None) = (&rx.peer, &qp.srq) else {
        return false;
    };
    // SAFETY: the lock of the receiving side is held, which all takers hold.
    let Some(recv) = (unsafe { qp.rq.front() }) else {
        return false;
    };
    let [sge] = recv.sges else {
        return false;
    };
    let state = qp.state();
    if record.op != Op::Send
        || record.flags & FETCH != 0
        || record.len > sge.length
        || !(IBV_QPS_RTR..IBV_QPS_ERR).contains(&state)
        || engine.header().fault.access.load(Ordering::Relaxed) != 0
        || !sink.serves(&*qp.recv_cq)
        || qp.recv_cq.waiting() != 0
        || rx.tail.wrapping_sub(rx.clean) > UNCLEAN - BIGGEST
    {
        return false;
    }
    let (len, wr_id) = (record.len, recv.wr_id);
    let (pd, right) = (qp.pd.id, IBV_ACCESS_LOCAL_WRITE);
    let Ok(to) = node.keys.local(sge.lkey, sge.addr, len.into(), pd, right) else {
        return false;
    };
    let payload = engine.ring.payload(rx.tail);
    if len == 8 {
        // SAFETY: the range was checked for writing and stays registered while the lock is held; the
        // record's length was checked against its lines.
        unsafe {
            to.cast::<u64>()
                .write_unaligned(payload.cast::<u64>().read());
        };
    } else {
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(payload, len as usize) };
    }
    acknowledge(qp, record.ack);
    // SAFETY: all takers hold the lock, and the request is no more looked at.
    unsafe { qp.rq.pop() };
    sink.put(ibv_wc {
        wr_id,
        opcode: IBV_WC_RECV,
        byte_len: len,
        qp_num: qp.qpn,
        src_qp: peer.qpn,
        ..ibv_wc::default()
    });
    qp.recv_cq.notify(record.flags & SOLICITED != 0);
    rx.tail = rx.tail.wrapping_add(record.lines);
    engine.consumed.store(rx.tail, Ordering::Release);
    true
}

/// How receiving a record went.
enum Outcome {
    Consumed,
    /// No receive request is there.
    NotReady,
    /// What the sender is told, and the event for this side.
    Refused(u32, u32),
}

/// Takes records until there is none, or no room for a completion.
pub(super) fn progress(node: &Node, qp: &Qp<Shm>, rx: &mut Rx, mut sink: Option<&mut Sink<'_>>) {
    let engine = &qp.engine;
    let header = engine.header();
    if header.fault.access.load(Ordering::Relaxed) != 0
        && header.fault.access.swap(0, Ordering::SeqCst) != 0
        && qp.fail()
    {
        header.control.state.store(IBV_QPS_ERR, Ordering::SeqCst);
        qp.event(IBV_EVENT_QP_ACCESS_ERR);
    }
    loop {
        if sink.as_ref().is_some_and(|sink| sink.room() == 0) {
            return;
        }
        let state = qp.state();
        if state == IBV_QPS_ERR {
            flush(qp, rx, sink);
            return;
        }
        if state < IBV_QPS_RTR {
            return;
        }
        let record = match engine.ring.read(rx.tail) {
            None => return,
            Some(Ok(record)) => record,
            Some(Err(())) => {
                // Only a broken peer writes such a thing.
                refuse(qp, rx, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_FATAL);
                continue;
            }
        };
        acknowledge(qp, record.ack);
        let outcome = match record.op {
            Op::Wrap => Outcome::Consumed,
            Op::Atomic => atomic(node, qp, rx, &record),
            _ => message(node, qp, rx, &record, sink.as_deref_mut()),
        };
        match outcome {
            Outcome::Consumed => {}
            Outcome::NotReady if qp.kind != IBV_QPT_UC => {
                let not_ready = &header.received.not_ready;
                let mark = rx.tail.wrapping_add(1);
                if not_ready.load(Ordering::Relaxed) != mark {
                    not_ready.store(mark, Ordering::Release);
                }
                return;
            }
            // An unreliable connection loses what it cannot take.
            Outcome::NotReady => {}
            Outcome::Refused(..) if qp.kind == IBV_QPT_UC => {}
            Outcome::Refused(status, event) => {
                refuse(qp, rx, status, event);
                continue;
            }
        }
        rx.tail = rx.tail.wrapping_add(record.lines);
        if rx.tail.wrapping_sub(rx.clean) > UNCLEAN - BIGGEST {
            clean(qp, rx);
        }
        engine.consumed.store(rx.tail, Ordering::Release);
    }
}

/// Tells the sender that a record is refused, and fails.
fn refuse(qp: &Qp<Shm>, rx: &mut Rx, status: u32, event: u32) {
    let header = qp.engine.header();
    header.received.consumed.store(rx.tail, Ordering::Release);
    header.received.refused.store(status, Ordering::SeqCst);
    if qp.fail() {
        qp.event(event);
    }
    header.control.state.store(IBV_QPS_ERR, Ordering::SeqCst);
    if let Some(peer) = &rx.peer {
        // It may sleep, and it will not be told by anything else.
        peer.node.ring();
    }
}

/// Completes receive requests that nothing will come for.
pub(super) fn flush(qp: &Qp<Shm>, rx: &mut Rx, mut sink: Option<&mut Sink<'_>>) {
    tell(qp, rx);
    if qp.srq.is_some() {
        if !rx.last_wqe {
            rx.last_wqe = true;
            qp.event(IBV_EVENT_QP_LAST_WQE_REACHED);
        }
        return;
    }
    loop {
        if sink.as_ref().is_some_and(|sink| sink.room() == 0) {
            return;
        }
        // SAFETY: the lock of the receiving side is held, which all takers hold.
        let Some(recv) = (unsafe { qp.rq.front() }) else {
            return;
        };
        let wc = ibv_wc {
            wr_id: recv.wr_id,
            status: IBV_WC_WR_FLUSH_ERR,
            opcode: IBV_WC_RECV,
            qp_num: qp.qpn,
            ..ibv_wc::default()
        };
        // SAFETY: as above, and the request is no more looked at.
        unsafe { qp.rq.pop() };
        qp.recv_cq.give(wc, true, sink.as_deref_mut());
    }
}

/// Calls `with` with the next receive request, of the queue pair or its shared queue, and removes
/// it unless there is none.
pub(super) fn with_recv<R>(qp: &Qp<Shm>, with: impl FnOnce(Recv<'_>) -> R) -> Option<R> {
    let Some(srq) = &qp.srq else {
        // SAFETY: the caller holds the lock of the receiving side, which all takers hold.
        let recv = unsafe { qp.rq.front() }?;
        let result = with(recv);
        // SAFETY: as above, and the request is no more looked at.
        unsafe { qp.rq.pop() };
        return Some(result);
    };
    let _taking = srq.taking.lock();
    // SAFETY: all takers of a shared queue hold that lock.
    let recv = unsafe { srq.queue.front() }?;
    let result = with(recv);
    // SAFETY: as above, and the request is no more looked at.
    unsafe { srq.queue.pop() };
    let limit = srq.limit.load(Ordering::Acquire);
    if limit > srq.queue.len() {
        srq.limit.store(0, Ordering::Release);
        qp.pd.context.srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
    }
    Some(result)
}

/// Receives a message, or the notice of a write.
fn message(
    node: &Node,
    qp: &Qp<Shm>,
    rx: &Rx,
    record: &Record,
    sink: Option<&mut Sink<'_>>,
) -> Outcome {
    let Some(peer) = &rx.peer else {
        return Outcome::NotReady;
    };
    let taken = with_recv(qp, |recv| {
        let result = if record.op == Op::WriteImm {
            Ok(())
        } else {
            deliver(node, qp, rx, peer, record, recv.sges)
        };
        (recv.wr_id, result)
    });
    let Some((wr_id, result)) = taken else {
        return Outcome::NotReady;
    };
    let (flags, imm_data) = match record.op {
        Op::SendImm | Op::WriteImm => (IBV_WC_WITH_IMM, record.imm),
        Op::SendInvalidate => (IBV_WC_WITH_INV, record.imm),
        _ => (0, 0),
    };
    let status = match result {
        Ok(()) => 0,
        Err((status, _)) => status,
    };
    let wc = ibv_wc {
        wr_id,
        status,
        opcode: if record.op == Op::WriteImm {
            IBV_WC_RECV_RDMA_WITH_IMM
        } else {
            IBV_WC_RECV
        },
        byte_len: record.len,
        imm: ibv_wc_imm { imm_data },
        qp_num: qp.qpn,
        src_qp: peer.qpn,
        wc_flags: flags,
        ..ibv_wc::default()
    };
    qp.recv_cq
        .give(wc, record.flags & SOLICITED != 0 || status != 0, sink);
    match result {
        Ok(()) => Outcome::Consumed,
        Err((_, told)) => Outcome::Refused(told, IBV_EVENT_QP_REQ_ERR),
    }
}

/// Moves a message to where a receive request wants it. `Err` has the status for this side and the
/// one for the sender.
fn deliver(
    node: &Node,
    qp: &Qp<Shm>,
    rx: &Rx,
    peer: &Peer,
    record: &Record,
    sges: &[ibv_sge],
) -> Result<(), (u32, u32)> {
    let prot = (IBV_WC_LOC_PROT_ERR, IBV_WC_REM_OP_ERR);
    let payload = qp.engine.ring.payload(rx.tail);
    // The usual case: a short message into one place.
    if record.flags & FETCH == 0
        && let [sge] = sges
        && record.len <= sge.length
    {
        let len = record.len;
        let to = node
            .keys
            .local(
                sge.lkey,
                sge.addr,
                len.into(),
                qp.pd.id,
                IBV_ACCESS_LOCAL_WRITE,
            )
            .map_err(|_| prot)?;
        // SAFETY: the range was checked for writing and stays registered while the lock is held;
        // the record's length was checked against its lines.
        unsafe { to.copy_from_nonoverlapping(payload, len as usize) };
        return Ok(());
    }
    let mut parts = [(core::ptr::null_mut::<u8>(), 0_usize); 32];
    let mut count = 0;
    let mut left = record.len as usize;
    for (part, sge) in parts.iter_mut().zip(sges) {
        if left == 0 {
            break;
        }
        let take = left.min(sge.length as usize);
        let to = node
            .keys
            .local(
                sge.lkey,
                sge.addr,
                take as u64,
                qp.pd.id,
                IBV_ACCESS_LOCAL_WRITE,
            )
            .map_err(|_| prot)?;
        *part = (to, take);
        count += 1;
        left -= take;
    }
    if left > 0 {
        return Err((IBV_WC_LOC_LEN_ERR, IBV_WC_REM_INV_REQ_ERR));
    }
    let parts = &parts[..count];
    if record.flags & FETCH == 0 {
        let mut from = payload.cast_const();
        for &(to, len) in parts {
            // SAFETY: the range was checked for writing and stays registered while the lock is
            // held; the record's length was checked against its lines.
            unsafe { to.copy_from_nonoverlapping(from, len) };
            from = from.wrapping_add(len);
        }
        return Ok(());
    }
    let section = &qp.engine.header().hazard.receiving;
    enter(section);
    let result = fetch(node, peer, record, payload, parts);
    leave(section);
    result.map_err(|()| (IBV_WC_REM_OP_ERR, IBV_WC_REM_OP_ERR))
}

/// Takes `len` bytes off the front of a list of ranges.
fn split(parts: &mut [(*mut u8, usize)], at: &mut usize, len: usize) -> [(*mut u8, usize); 32] {
    let mut out = [(core::ptr::null_mut(), 0); 32];
    let mut left = len;
    for slot in &mut out {
        while *at < parts.len() && parts[*at].1 == 0 {
            *at += 1;
        }
        if left == 0 || *at >= parts.len() {
            break;
        }
        let (addr, have) = &mut parts[*at];
        let take = left.min(*have);
        *slot = (*addr, take);
        *addr = addr.wrapping_add(take);
        *have -= take;
        left -= take;
    }
    out
}

/// Fetches a long message from the sender's memory.
fn fetch(
    node: &Node,
    peer: &Peer,
    record: &Record,
    payload: *const u8,
    parts: &[(*mut u8, usize)],
) -> Result<(), ()> {
    let mut room = [(core::ptr::null_mut::<u8>(), 0_usize); 32];
    room[..parts.len()].copy_from_slice(parts);
    let mut at = 0;
    for index in 0..record.entries as usize {
        let entry = payload.wrapping_add(index * size_of::<ibv_sge>());
        // SAFETY: the entries were checked against the lines of the record.
        let sge = unsafe { entry.cast::<ibv_sge>().read_unaligned() };
        let region = memory::find(peer.node.keys(), sge.lkey).ok_or(())?;
        let offset = region
            .offset(sge.addr, sge.length.into(), region.pd, 0)
            .map_err(|_| ())?;
        let to = split(&mut room, &mut at, sge.length as usize);
        let addr = region.addr + offset;
        let from = if peer.node.own {
            Some(core::ptr::with_exposed_provenance::<u8>(native(addr)))
        } else {
            (region.file != 0)
                .then(|| peer.node.buffer(node, region.file))
                .flatten()
                .and_then(|map| engine::at(&map, region.file_offset + offset, sge.length.into()))
                .map(|at| at.as_ptr().cast_const())
        };
        match from {
            Some(mut from) => {
                for (to, len) in to {
                    if len > 0 {
                        // SAFETY: both ranges were checked; ours stays registered while the lock is
                        // held, the sender's while the section lasts.
                        unsafe { to.copy_from(from, len) };
                        from = from.wrapping_add(len);
                    }
                }
            }
            None if peer.node.same_pids => {
                let len = to.iter().map(|&(_, len)| len).sum();
                // SAFETY: the local ranges were checked for writing.
                if !unsafe { between(peer.node.pid, &to, addr, len, Way::Read) } {
                    return Err(());
                }
            }
            None => return Err(()),
        }
    }
    Ok(())
}

/// Does an atomic operation for the peer, in memory that only this process reaches.
fn atomic(node: &Node, qp: &Qp<Shm>, rx: &Rx, _record: &Record) -> Outcome {
    let payload = qp.engine.ring.payload(rx.tail).cast::<[u64; 4]>();
    // SAFETY: a record of this kind has that many bytes.
    let [addr, key, compare, swap] = unsafe { payload.read_unaligned() };
    let denied = Outcome::Refused(IBV_WC_REM_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    let header = qp.engine.header();
    let access = header.control.access.load(Ordering::Relaxed);
    if access & IBV_ACCESS_REMOTE_ATOMIC == 0 {
        return denied;
    }
    let Ok(rkey) = u32::try_from(key >> 32) else {
        return denied;
    };
    let Ok(at) = node
        .keys
        .local(rkey, addr, 8, qp.pd.id, IBV_ACCESS_REMOTE_ATOMIC)
    else {
        return denied;
    };
    if !at.addr().is_multiple_of(8) {
        return Outcome::Refused(IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
    }
    let opcode = if key & 1 == 1 {
        IBV_WR_ATOMIC_CMP_AND_SWP
    } else {
        IBV_WR_ATOMIC_FETCH_AND_ADD
    };
    // SAFETY: the range was checked, is aligned, and stays registered while the lock is held.
    let old = unsafe { apply(at, opcode, compare, swap) };
    // The peer counts its operations as we do, since they come in order.
    let count = qp.engine.atomics.fetch_add(1, Ordering::Relaxed);
    header.results[count as usize % RESULTS].store(old, Ordering::Release);
    Outcome::Consumed
}
