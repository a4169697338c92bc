//! The short way: a short message, or a write into memory that is mapped already, of one piece and
//! with nothing before it.
//!
//! It does what [`super::start`] does for such requests, without the detours for all others. What is
//! not so simple, or not allowed, is left to the long way, which knows what to say about it.

use crate::provider::shm::ring::{HEAD, LINE};

use super::*;

/// Carries the request out, if it is such a one. Returns whether it did.
///
/// # Safety
///
/// As for [`post`], for one request.
#[inline]
pub(super) unsafe fn carry(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, wr: &ibv_send_wr) -> bool {
    let simple = wr.num_sge == 1
        && qp.kind != IBV_QPT_UD
        && tx.started == tx.posted
        && tx.posted.wrapping_sub(tx.reported) < qp.cap.max_send_wr
        && qp.state() == IBV_QPS_RTS;
    if !simple {
        return false;
    }
    // SAFETY: as the caller promises; the list holds one entry.
    let (opcode, len) = unsafe {
        match wr.opcode {
            IBV_WR_SEND if send(node, qp, tx, wr) => (IBV_WC_SEND, (*wr.sg_list).length),
            IBV_WR_RDMA_WRITE if write(node, qp, tx, wr) => {
                (IBV_WC_RDMA_WRITE, (*wr.sg_list).length)
            }
            _ => return false,
        }
    };
    let slot = tx.slot(tx.posted);
    tx.wqes[slot] = Wqe {
        wr_id: wr.wr_id,
        need: tx.head,
        len,
        opcode,
        signaled: qp.sq_sig_all || wr.send_flags & IBV_SEND_SIGNALED != 0,
        ..Wqe::default()
    };
    tx.unreachable = false;
    tx.posted = tx.posted.wrapping_add(1);
    tx.started = tx.posted;
    true
}

/// Where the data of a request is, if it may be read.
#[inline]
fn source(node: &Node, qp: &Qp<Shm>, wr: &ibv_send_wr, sge: &ibv_sge) -> Option<*const u8> {
    if wr.send_flags & IBV_SEND_INLINE != 0 {
        return (sge.length <= qp.cap.max_inline_data)
            .then(|| core::ptr::with_exposed_provenance(native(sge.addr)));
    }
    let len = sge.length.into();
    let local = node.keys.local(sge.lkey, sge.addr, len, qp.pd.id, 0);
    local.ok().map(<*mut u8>::cast_const)
}

/// Bytes that one line holds beside a record's head.
const SHORT: usize = LINE - HEAD;

/// A message that fits into one line, which the peer is known to have room for.
///
/// # Safety
///
/// As for [`carry`], and there is one entry.
#[inline]
unsafe fn send(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, wr: &ibv_send_wr) -> bool {
    let Some(peer) = &tx.peer else {
        return false;
    };
    // SAFETY: the caller's list holds one entry.
    let sge = unsafe { &*wr.sg_list };
    let room = LINES
        - tx.head
            .wrapping_sub(qp.engine.acked.load(Ordering::Acquire));
    let len = sge.length as usize;
    if len > SHORT || room < 1 + UNCLEAN || peer.is_gone() {
        return false;
    }
    let Some(from) = source(node, qp, wr, sge) else {
        return false;
    };
    let to = peer.ring.payload(tx.head);
    if len == 8 {
        // SAFETY: the range was checked, or is the caller's inline data; the line is free.
        unsafe { to.cast::<u64>().write(from.cast::<u64>().read_unaligned()) };
    } else {
        // SAFETY: as above.
        unsafe { to.copy_from_nonoverlapping(from, len) };
    }
    let record = Record {
        op: Op::Send,
        flags: solicited(wr.send_flags),
        lines: 1,
        len: sge.length,
        imm: 0,
        ack: 0,
        entries: 1,
    };
    publish(qp, &mut tx.head, peer, record);
    true
}

/// A write into memory of another process that is mapped.
///
/// # Safety
///
/// As for [`send`].
#[inline]
unsafe fn write(node: &Node, qp: &Qp<Shm>, tx: &Tx, wr: &ibv_send_wr) -> bool {
    let (Some(peer), Some((file, map))) = (&tx.peer, &tx.last_buffer) else {
        return false;
    };
    if peer.node.own || tx.atomics_open != 0 {
        return false;
    }
    // SAFETY: the caller's list holds one entry.
    let sge = unsafe { &*wr.sg_list };
    let Some(here) = source(node, qp, wr, sge) else {
        return false;
    };
    // SAFETY: the opcode says which field of the union is set.
    let rdma = unsafe { &wr.wr.rdma };
    section(qp, || {
        let (target, len) = ((rdma.remote_addr, rdma.rkey), sge.length);
        let found = permitted(qp, peer, target, len, IBV_ACCESS_REMOTE_WRITE);
        let there = match found {
            Ok(Some((region, offset))) if region.file == *file && !peer.is_gone() => {
                engine::at(map, region.file_offset + offset, len.into())
            }
            _ => None,
        };
        if let Some(there) = there {
            // SAFETY: both ranges were checked; the local one stays registered while the lock is held, or
            // is the caller's inline data, the remote one while the section lasts. They are in different
            // processes' memory; that both map the same is possible only by a fault of who posted it.
            unsafe { place(there.as_ptr(), here, len as usize) };
        }
        there.is_some()
    })
}
