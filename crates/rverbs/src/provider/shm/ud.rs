//! Datagrams: an inbox of slots that anybody may fill.
//!
//! A slot counts rounds: it is free for the sender whose ticket equals its count, full when the count
//! is one more, and free for the next round when the receiver adds the rest. A datagram that finds no
//! free slot waits a little and is then lost, as on a wire.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_QPS_ERR, IBV_QPS_RTR, IBV_WC_GRH, IBV_WC_LOC_LEN_ERR,
    IBV_WC_LOC_PROT_ERR, IBV_WC_RECV, IBV_WC_WITH_IMM, IBV_WR_SEND_WITH_IMM, ibv_sge, ibv_wc,
    ibv_wc_imm,
};

use crate::provider::soft::{Qp, Recv, Sink};

use super::Shm;
use super::engine::{Engine, Mailbox, Rx, Tx, mailbox};
use super::node::Node;
use super::ring::SOLICITED;
use super::rx::with_recv;
use super::tx::{Request, Start, local, solicited};

/// The largest datagram.
const MTU: usize = 4096;
/// Bytes before the payload in the receiver's buffer.
const GRH: usize = 40;
const SLOTS: u32 = 64;
/// How long a full inbox is waited for: longer than a busy machine lets a receiver wait for its turn.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a slot may be claimed and not filled, before its sender is taken for dead.
const CLAIM: Duration = Duration::from_secs(2);

/// A slot, with its payload behind it.
#[repr(C, align(64))]
struct Slot {
    round: AtomicU32,
    len: u32,
    imm: u32,
    source: u32,
    /// Bit 0: solicited; bit 1: an immediate; bit 2: the 40 bytes are a GRH.
    flags: u32,
    payload: [u8; GRH + MTU],
}

/// The slots through which a queue pair receives datagrams from anybody.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inbox(NonNull<u8>);

// SAFETY: it is an address in a mapping that is valid from any thread.
unsafe impl Send for Inbox {}
// SAFETY: as above.
unsafe impl Sync for Inbox {}

impl Inbox {
    pub(super) const LEN: usize = 64 + SLOTS as usize * size_of::<Slot>();

    /// # Safety
    ///
    /// `at` begins a mapping of [`Inbox::LEN`] bytes, aligned to a line, that outlives the value.
    pub(super) unsafe fn new(at: NonNull<u8>) -> Self {
        Self(at)
    }

    /// The next ticket for a sender.
    fn next(&self) -> &AtomicU32 {
        // SAFETY: the first line of the mapping holds it, and it is used as an atomic only.
        unsafe { self.0.cast::<AtomicU32>().as_ref() }
    }

    fn slot(&self, ticket: u32) -> *mut Slot {
        let index = (ticket % SLOTS) as usize;
        let first = self.0.as_ptr().wrapping_add(64).cast::<Slot>();
        first.wrapping_add(index)
    }

    fn round(&self, ticket: u32) -> &AtomicU32 {
        // SAFETY: the slot is in the mapping, and the word is used as an atomic only.
        unsafe { &(*self.slot(ticket)).round }
    }

    /// Makes all slots free, for the receiver's position 0.
    pub(super) fn reset(&self) {
        for ticket in 0..SLOTS {
            self.round(ticket).store(ticket, Ordering::Release);
        }
        self.next().store(0, Ordering::SeqCst);
    }

    /// Claims a slot.
    fn claim(&self) -> Option<u32> {
        loop {
            let ticket = self.next().load(Ordering::Acquire);
            let ahead = self
                .round(ticket)
                .load(Ordering::Acquire)
                .wrapping_sub(ticket);
            if ahead == 0 {
                let claim = self.next().compare_exchange_weak(
                    ticket,
                    ticket.wrapping_add(1),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                );
                if claim.is_ok() {
                    return Some(ticket);
                }
            } else if ahead > u32::MAX / 2 {
                return None;
            }
        }
    }
}

/// Sends a datagram.
pub(super) fn send(node: &Node, qp: &Qp<Shm>, tx: &mut Tx, request: &Request<'_>) -> Start {
    let Request { job, sges, len } = request;
    if *len as usize > MTU {
        return Start::Failed(IBV_WC_LOC_LEN_ERR);
    }
    let Some(mailbox) = known(node, tx, job.qpn) else {
        // Nobody is there; a datagram goes nowhere without notice.
        return Start::Done;
    };
    let control = &mailbox.header().control;
    let state = control.state.load(Ordering::Acquire);
    // The highest bit asks for the key of the sending queue pair.
    let qkey = if job.qkey.leading_zeros() == 0 {
        qp.attr().qkey
    } else {
        job.qkey
    };
    if !(IBV_QPS_RTR..IBV_QPS_ERR).contains(&state) || control.qkey.load(Ordering::Relaxed) != qkey
    {
        return Start::Done;
    }
    let mut parts = [(core::ptr::null_mut::<u8>(), 0_usize); 32];
    for (part, sge) in parts.iter_mut().zip(*sges) {
        match local(node, qp, job, sge, 0) {
            Ok(from) => *part = (from, sge.length as usize),
            Err(status) => return Start::Failed(status),
        }
    }
    let inbox = mailbox.inbox;
    let Some(ticket) = inbox.claim() else {
        let since = *tx.stalled.get_or_insert_with(Instant::now);
        if since.elapsed() < PATIENCE {
            return Start::Wait;
        }
        tx.stalled = None;
        return Start::Done;
    };
    tx.stalled = None;
    let slot = inbox.slot(ticket);
    // SAFETY: the slot is claimed, so it is this sender's until its round is counted on; local
    // ranges were checked and stay registered while the lock is held, and their sum fits.
    unsafe {
        (*slot).len = *len;
        (*slot).imm = job.imm;
        (*slot).source = qp.qpn;
        (*slot).flags = u32::from(solicited(job.flags))
            | u32::from(job.opcode == IBV_WR_SEND_WITH_IMM) << 1
            | u32::from(job.global) << 2;
        let mut to = (&raw mut (*slot).payload).cast::<u8>();
        if job.global {
            let grh = grh(qp, *len);
            to.copy_from_nonoverlapping(grh.as_ptr(), GRH);
        }
        to = to.wrapping_add(GRH);
        for (from, len) in parts {
            if len > 0 {
                to.copy_from_nonoverlapping(from, len);
                to = to.wrapping_add(len);
            }
        }
    }
    inbox
        .round(ticket)
        .store(ticket.wrapping_add(1), Ordering::Release);
    fence(Ordering::SeqCst);
    match mailbox.header().armed.recv.load(Ordering::Relaxed) {
        0 => {}
        2 if solicited(job.flags) & SOLICITED == 0 => {}
        _ => mailbox.node.ring(),
    }
    Start::Done
}

/// The route header of a datagram: version 6, next header 0x1b, from and to GID 0 of the device.
fn grh(qp: &Qp<Shm>, len: u32) -> [u8; GRH] {
    let mut grh = [0; GRH];
    grh[0] = 0x60;
    // BTH, DETH and ICRC, as they would be on a wire.
    let length = u16::try_from(len).unwrap_or(u16::MAX).saturating_add(24);
    grh[4..6].copy_from_slice(&length.to_be_bytes());
    grh[6] = 0x1b;
    grh[7] = 64;
    if let Some(gid) = qp.pd.context.transport.attributes.gids.first() {
        grh[8..24].copy_from_slice(&gid.raw);
        grh[24..40].copy_from_slice(&gid.raw);
    }
    grh
}

/// The inbox of a queue pair, found once.
fn known(node: &Node, tx: &mut Tx, qpn: u32) -> Option<Arc<Mailbox>> {
    let found = tx.mailboxes.get(&qpn);
    if let Some(found) = found.filter(|found| found.valid()) {
        return Some(Arc::clone(found));
    }
    tx.mailboxes.remove(&qpn);
    let found = Arc::new(mailbox(node, qpn)?);
    tx.mailboxes.insert(qpn, Arc::clone(&found));
    Some(found)
}

/// Whether there may be something to receive, without a lock.
#[inline]
pub(super) fn pending(qp: &Qp<Shm>, inbox: &Inbox) -> bool {
    let at = qp.engine.consumed.load(Ordering::Relaxed);
    inbox.round(at).load(Ordering::Relaxed) == at.wrapping_add(1)
        || (qp.state() == IBV_QPS_ERR && !qp.rq.is_empty())
}

/// Takes datagrams until there is none, or no room for a completion.
pub(super) fn progress(
    node: &Node,
    qp: &Qp<Shm>,
    inbox: &Inbox,
    rx: &mut Rx,
    mut sink: Option<&mut Sink<'_>>,
) {
    loop {
        if sink.as_ref().is_some_and(|sink| sink.room() == 0) {
            return;
        }
        let state = qp.state();
        if state == IBV_QPS_ERR {
            super::rx::flush(qp, rx, sink);
            return;
        }
        let at = rx.tail;
        if inbox.round(at).load(Ordering::Acquire) != at.wrapping_add(1) {
            stuck(inbox, rx, &qp.engine);
            return;
        }
        if state >= IBV_QPS_RTR {
            // Without a receive request the datagram is lost.
            let received = with_recv(qp, |recv| receive(node, qp, inbox.slot(at), &recv));
            if let Some((wc, solicited)) = received {
                qp.recv_cq.give(wc, solicited, sink.as_deref_mut());
            }
        }
        free(inbox, rx, &qp.engine);
    }
}

/// Gives the slot at the receiver's position free, and goes on.
fn free(inbox: &Inbox, rx: &mut Rx, engine: &Engine) {
    let at = rx.tail;
    inbox
        .round(at)
        .store(at.wrapping_add(SLOTS), Ordering::Release);
    rx.tail = at.wrapping_add(1);
    engine.consumed.store(rx.tail, Ordering::Release);
    rx.stuck = None;
}

/// Skips a slot that was claimed long ago and never filled: its sender died.
fn stuck(inbox: &Inbox, rx: &mut Rx, engine: &Engine) {
    if inbox.next().load(Ordering::Relaxed) == rx.tail {
        rx.stuck = None;
    } else if rx.stuck.get_or_insert_with(Instant::now).elapsed() > CLAIM {
        free(inbox, rx, engine);
    }
}

/// Copies a datagram to where a request wants it, and gives the completion.
fn receive(node: &Node, qp: &Qp<Shm>, slot: *mut Slot, recv: &Recv<'_>) -> (ibv_wc, bool) {
    // SAFETY: a full slot is the receiver's until it counts the round on.
    let (len, imm, source, flags) = unsafe {
        (
            (&raw const (*slot).len).read_volatile(),
            (&raw const (*slot).imm).read_volatile(),
            (&raw const (*slot).source).read_volatile(),
            (&raw const (*slot).flags).read_volatile(),
        )
    };
    let len = (len as usize).min(MTU) + GRH;
    // SAFETY: the field is in the mapping.
    let from = unsafe { (&raw const (*slot).payload).cast::<u8>() };
    let status = scatter(node, qp, from, len, recv.sges);
    let solicited = flags & u32::from(SOLICITED) != 0;
    let with_imm = flags & 2 != 0;
    let wc = ibv_wc {
        wr_id: recv.wr_id,
        status,
        opcode: IBV_WC_RECV,
        byte_len: crate::provider::small(len),
        imm: ibv_wc_imm {
            imm_data: if with_imm { imm } else { 0 },
        },
        qp_num: qp.qpn,
        src_qp: source,
        wc_flags: if with_imm { IBV_WC_WITH_IMM } else { 0 }
            | if flags & 4 != 0 { IBV_WC_GRH } else { 0 },
        slid: 1,
        ..ibv_wc::default()
    };
    (wc, solicited || status != 0)
}

/// Copies to a scatter list; gives an `ibv_wc_status`.
fn scatter(node: &Node, qp: &Qp<Shm>, from: *const u8, len: usize, sges: &[ibv_sge]) -> u32 {
    let mut at = 0;
    for sge in sges {
        let take = (len - at).min(sge.length as usize);
        let to = node.keys.local(
            sge.lkey,
            sge.addr,
            take as u64,
            qp.pd.id,
            IBV_ACCESS_LOCAL_WRITE,
        );
        let Ok(to) = to else {
            return IBV_WC_LOC_PROT_ERR;
        };
        // SAFETY: the range was checked for writing and stays registered while the lock is held;
        // the slot's payload is as long as `len` may be.
        unsafe { to.copy_from_nonoverlapping(from.wrapping_add(at), take) };
        at += take;
        if at == len {
            return 0;
        }
    }
    IBV_WC_LOC_LEN_ERR
}
