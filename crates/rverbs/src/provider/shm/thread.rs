//! The thread of a process: what happens while the program does not poll.
//!
//! It sleeps on the process's bell. Peers ring it when they wait for something that polling would
//! do (an event that was asked for, a message that is not consumed), and it looks ten times a second
//! whether the peers still live.

use core::sync::atomic::Ordering;
use core::time::Duration;

use rverbs_sys::{IBV_QPS_ERR, IBV_QPS_RESET};

use crate::provider::soft::Qp;

use super::node::{Node, wait};
use super::{Shm, rx, tx, ud};

/// How often the life of peers is looked at.
const PULSE: Duration = Duration::from_millis(100);

/// The thread's whole life, which is that of the process.
pub(super) fn run() {
    let Ok(node) = Node::get() else { return };
    let mut qps = Vec::new();
    loop {
        let seen = node.header.bell.rings.load(Ordering::SeqCst);
        node.live_qps_into(&mut qps);
        for qp in &qps {
            service(node, qp);
        }
        let idle = qps.is_empty();
        qps.clear();
        wait(node.header, seen, (!idle).then_some(PULSE));
    }
}

/// Whatever can be done for a queue pair.
fn service(node: &Node, qp: &Qp<Shm>) {
    let engine = &qp.engine;
    if qp.state() == IBV_QPS_RESET {
        return;
    }
    if let Some(inbox) = &engine.inbox {
        ud::progress(node, qp, inbox, &mut engine.rx.lock(), None);
        let mut tx = engine.tx.lock();
        tx::resume(node, qp, &mut tx);
        if qp.send_cq.armed() != 0 {
            tx::collect(qp, &mut tx, None);
        }
        drop(tx);
        disarm(qp);
        return;
    }
    let mut alive = true;
    {
        let mut rx = engine.rx.lock();
        rx::progress(node, qp, &mut rx, None);
        rx::tell(qp, &mut rx);
        if let Some(peer) = &rx.peer {
            alive = peer.node.lives();
        }
    }
    let mut tx = engine.tx.lock();
    tx::resume(node, qp, &mut tx);
    tx.dead |= !alive;
    tx::inquire(qp, &mut tx);
    if qp.send_cq.armed() != 0 {
        tx::collect(qp, &mut tx, None);
    }
    drop(tx);
    disarm(qp);
    if qp.state() == IBV_QPS_ERR && qp.recv_cq.armed() != 0 {
        rx::progress(node, qp, &mut engine.rx.lock(), None);
    }
}

/// Asks peers for no more rings than the completion queues are armed for.
fn disarm(qp: &Qp<Shm>) {
    let armed = &qp.engine.header().armed;
    for (cq, copy) in [(&qp.recv_cq, &armed.recv), (&qp.send_cq, &armed.send)] {
        loop {
            let seen = cq.armed();
            copy.store(seen, Ordering::SeqCst);
            // The user may have asked for an event meanwhile, and that must not be undone.
            if cq.armed() == seen {
                break;
            }
        }
    }
}
