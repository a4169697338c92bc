//! How long requests wait for a peer before they fail.

use core::time::Duration;
use std::time::Instant;

use rverbs_sys::ibv_qp_attr;

use super::*;

/// How long an adapter would try to reach a peer that does not answer.
///
/// At least so long that a peer may be late because its process was not scheduled, and not for ever:
/// that a peer is gone is known here.
fn transport_limit(attr: &ibv_qp_attr) -> Duration {
    const LEAST: Duration = Duration::from_millis(100);
    const MOST: Duration = Duration::from_secs(4);
    match attr.timeout & 0x1f {
        0 => MOST,
        code => {
            let each = Duration::from_nanos(4096 << code);
            (each * (u32::from(attr.retry_cnt) + 1)).clamp(LEAST, MOST)
        }
    }
}

/// How long a peer may be without a receive request. An adapter's timers are shorter, but its
/// peer's processes run while it waits.
fn not_ready_limit(attr: &ibv_qp_attr) -> Duration {
    Duration::from_millis(100) * (u32::from(attr.rnr_retry) + 1)
}

/// Looks at what the peer says when requests wait for it: refusals, and its end.
pub(in crate::provider::shm) fn inquire(qp: &Qp<Shm>, tx: &mut Tx) {
    if tx.reported == tx.posted {
        tx.trouble = None;
        return;
    }
    let peer = tx.peer.clone();
    let (mut refused, mut not_ready) = (0, 0);
    let mut over = tx.dead || (peer.is_none() && tx.unreachable);
    if let Some(peer) = &peer {
        let header = peer.header();
        let state = header.control.state.load(Ordering::SeqCst);
        let epoch = header.control.epoch.load(Ordering::SeqCst);
        refused = header.received.refused.load(Ordering::SeqCst);
        not_ready = header.received.not_ready.load(Ordering::SeqCst);
        learn(qp, peer);
        over |= tx.unreachable || state >= IBV_QPS_ERR || epoch != peer.epoch;
    }
    let acked = qp.engine.acked.load(Ordering::Acquire);
    let attr = qp.attr();
    let rnr = not_ready == acked.wrapping_add(1) && attr.rnr_retry < 7;
    if refused == 0 && !over && !rnr {
        tx.trouble = None;
        return;
    }
    if over && qp.kind == IBV_QPT_UC {
        // What is sent unreliably is done when it is sent, whoever is there to take it.
        while tx.started != tx.posted {
            let slot = tx.slot(tx.started);
            tx.wqes[slot].need = acked;
            tx.started = tx.started.wrapping_add(1);
        }
        let mut count = tx.reported;
        while count != tx.started {
            let slot = tx.slot(count);
            if !done(&tx.wqes[slot], acked) {
                tx.wqes[slot].need = acked;
            }
            count = count.wrapping_add(1);
        }
        return;
    }
    // The first request that the peer did not take.
    let mut count = tx.reported;
    while count != tx.started && done(&tx.wqes[tx.slot(count)], acked) {
        count = count.wrapping_add(1);
    }
    if count == tx.posted {
        return;
    }
    if refused == 0 {
        // An adapter retries before it gives up, and what comes meanwhile is still received: a peer
        // that has all that it wants may leave before we have.
        let now = Instant::now();
        let (since, _) = match tx.trouble {
            Some(trouble) if trouble.1 == acked => trouble,
            _ => *tx.trouble.insert((now, acked)),
        };
        let limit = if over {
            transport_limit(&attr)
        } else {
            not_ready_limit(&attr)
        };
        if now.saturating_duration_since(since) < limit {
            return;
        }
    }
    let slot = tx.slot(count);
    if tx.wqes[slot].status == 0 {
        tx.wqes[slot].status = if refused != 0 {
            refused
        } else if over {
            IBV_WC_RETRY_EXC_ERR
        } else {
            IBV_WC_RNR_RETRY_EXC_ERR
        };
    }
    if count == tx.started {
        tx.started = tx.started.wrapping_add(1);
    }
    fail(qp, tx);
}
