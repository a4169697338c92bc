//! Reporting requests that are done.

use super::*;

/// Whether the peer has consumed all that a started request needs.
#[inline]
pub(super) fn done(wqe: &Wqe, acked: u32) -> bool {
    acked.wrapping_sub(wqe.need) <= u32::MAX / 2
}

/// Drops requests from the front that are done and make no completion.
pub(super) fn collect_silent(qp: &Qp<Shm>, tx: &mut Tx) {
    if let Some(peer) = tx.peer.clone() {
        learn(qp, &peer);
    }
    let acked = qp.engine.acked.load(Ordering::Acquire);
    while tx.reported != tx.started {
        let wqe = tx.wqes[tx.slot(tx.reported)];
        if wqe.signaled || wqe.status != 0 || wqe.result || !done(&wqe, acked) {
            break;
        }
        tx.reported = tx.reported.wrapping_add(1);
    }
    qp.engine.reported.store(tx.reported, Ordering::Release);
}

/// Reports requests that are done, into the user's array or the ring of the completion queue.
pub(in crate::provider::shm) fn collect(
    qp: &Qp<Shm>,
    tx: &mut Tx,
    mut sink: Option<&mut Sink<'_>>,
) {
    let engine = &qp.engine;
    let acked = engine.acked.load(Ordering::Acquire);
    let failed = qp.state() == IBV_QPS_ERR;
    while tx.reported != tx.posted {
        if sink.as_ref().is_some_and(|sink| sink.room() == 0) {
            break;
        }
        let slot = tx.slot(tx.reported);
        let wqe = tx.wqes[slot];
        let started = tx.reported != tx.started;
        let mut status = wqe.status;
        if status == 0 && !(started && done(&wqe, acked)) {
            if !failed {
                break;
            }
            status = IBV_WC_WR_FLUSH_ERR;
        }
        if !started {
            tx.started = tx.started.wrapping_add(1);
        }
        if wqe.result {
            let (place, count) = tx.results[slot];
            tx.atomics_open = tx.atomics_open.saturating_sub(1);
            if status == 0 {
                status = fetch_result(qp, tx, &place, count);
            }
        }
        tx.reported = tx.reported.wrapping_add(1);
        if status != 0 || wqe.signaled {
            let wc = ibv_wc {
                wr_id: wqe.wr_id,
                status,
                opcode: wqe.opcode,
                byte_len: wqe.len,
                qp_num: qp.qpn,
                ..ibv_wc::default()
            };
            qp.send_cq.give(wc, status != 0, sink.as_deref_mut());
        }
    }
    engine.reported.store(tx.reported, Ordering::Release);
}

/// Takes the old value of an atomic operation that the peer's thread did.
pub(super) fn fetch_result(qp: &Qp<Shm>, tx: &Tx, place: &Place, count: u32) -> u32 {
    let Some(peer) = &tx.peer else {
        return IBV_WC_REM_OP_ERR;
    };
    let old = peer.header().results[count as usize % RESULTS].load(Ordering::Acquire);
    match qp.pd.context.transport.node.keys.local(
        place.lkey,
        place.addr,
        8,
        qp.pd.id,
        IBV_ACCESS_LOCAL_WRITE,
    ) {
        Ok(to) => {
            // SAFETY: the range was checked for writing and stays registered while the lock is held.
            unsafe { to.cast::<u64>().write_unaligned(old) };
            0
        }
        Err(_) => IBV_WC_LOC_PROT_ERR,
    }
}
