//! What the provider keeps with a queue pair.

use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use rverbs_sys::{IBV_QPS_ERR, IBV_QPT_UD, ibv_qp_cap, ibv_sge};

use crate::provider::Errno;
use crate::provider::soft::lock::Lock;
use crate::provider::soft::{NewQp, Qp};

use super::Shm;
use super::dir::Map;
use super::layout::{QP_MAGIC, QpHeader, RING, RING_AT};
use super::node::{Node, Other, random};
use super::ring::Ring;
use super::ud::Inbox;

/// A queue pair of another process, or of this one, that ours is connected to.
#[derive(Debug)]
pub(super) struct Peer {
    map: Map,
    pub(super) qpn: u32,
    pub(super) node: Arc<Other>,
    pub(super) ring: Ring,
    /// What [`super::layout::Control::epoch`] was when we connected.
    pub(super) epoch: u32,
}

impl Peer {
    /// Whether it failed, or is not any more what we connected to.
    #[inline]
    pub(super) fn is_gone(&self) -> bool {
        let control = &self.header().control;
        control.state.load(Ordering::Relaxed) >= IBV_QPS_ERR
            || control.epoch.load(Ordering::Relaxed) != self.epoch
    }

    #[inline]
    pub(super) fn header(&self) -> &QpHeader {
        // SAFETY: the file is long enough (checked when it was mapped), aligned to a page, and the
        // header is made of atomics only.
        unsafe { self.map.addr.cast::<QpHeader>().as_ref() }
    }
}

/// The sending side.
pub(super) struct Tx {
    pub(super) peer: Option<Arc<Peer>>,
    pub(super) wqes: Box<[Wqe]>,
    /// What to do, of requests that wait.
    pub(super) jobs: Box<[Job]>,
    /// Where the old values of atomic operations go, and their counts.
    pub(super) results: Box<[(Place, u32)]>,
    /// For requests that wait: their scatter lists and inline data.
    pub(super) sges: Box<[ibv_sge]>,
    pub(super) inline: Box<[u8]>,
    /// Requests that were ever posted, started and reported, modulo 2³².
    pub(super) posted: u32,
    pub(super) started: u32,
    pub(super) reported: u32,
    /// Lines that were ever written to the peer's ring, modulo 2³².
    pub(super) head: u32,
    /// Atomic operations that were ever given to the peer's thread, and that are not back.
    pub(super) atomics: u32,
    pub(super) atomics_open: u32,
    /// Since when an inbox has been full.
    pub(super) stalled: Option<Instant>,
    /// Since when the first request has waited for a peer that is not there or not ready, and what
    /// the peer had consumed then.
    pub(super) trouble: Option<(Instant, u32)>,
    /// Whether the peer could not be reached when a request was last tried.
    pub(super) unreachable: bool,
    /// Whether the peer's process is gone.
    pub(super) dead: bool,
    /// Where datagrams went before.
    pub(super) mailboxes: HashMap<u32, Arc<Mailbox>>,
    /// The buffer that was mapped last.
    pub(super) last_buffer: Option<(u32, Arc<Map>)>,
}

/// A send request.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wqe {
    pub(super) wr_id: u64,
    /// It is done when the peer has consumed so many lines.
    pub(super) need: u32,
    pub(super) len: u32,
    /// `ibv_wc_opcode`.
    pub(super) opcode: u32,
    pub(super) signaled: bool,
    /// `ibv_wc_status` where it failed.
    pub(super) status: u32,
    /// Whether it is an atomic operation that the peer's thread does.
    pub(super) result: bool,
}

/// An `ibv_sge`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    pub(super) addr: u64,
    pub(super) lkey: u32,
}

/// A request without its lists.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Job {
    pub(super) opcode: u32,
    pub(super) flags: u32,
    pub(super) imm: u32,
    pub(super) rkey: u32,
    pub(super) remote: u64,
    pub(super) compare: u64,
    pub(super) swap: u64,
    pub(super) sges: u32,
    /// Of datagrams: destination and its key.
    pub(super) qpn: u32,
    pub(super) qkey: u32,
    /// Whether the address has a route header.
    pub(super) global: bool,
}

/// The receiving side.
#[derive(Debug)]
pub(super) struct Rx {
    pub(super) peer: Option<Arc<Peer>>,
    /// Lines that were ever consumed, modulo 2³².
    pub(super) tail: u32,
    /// Polls in a row that found nothing.
    pub(super) idle: u32,
    /// Lines that were ever made ready for the next round.
    pub(super) clean: u32,
    /// Whether the event was given that no more is taken from a shared queue.
    pub(super) last_wqe: bool,
    /// Since when a slot of the inbox has been claimed.
    pub(super) stuck: Option<Instant>,
}

/// The provider's part of a queue pair.
pub(super) struct Engine {
    map: Map,
    pub(super) ring: Ring,
    pub(super) tx: Lock<Tx>,
    pub(super) rx: Lock<Rx>,
    /// `rx.tail`, for those that don't hold the lock.
    pub(super) consumed: AtomicU32,
    /// How much of it the peer was told, in a record or in the header.
    pub(super) told: AtomicU32,
    /// What the peer consumed, as far as it told.
    pub(super) acked: AtomicU32,
    /// `tx.posted` and `tx.reported`, for those that don't hold the lock.
    pub(super) posted: AtomicU32,
    pub(super) reported: AtomicU32,
    /// Polls in a row during which requests waited for the peer.
    pub(super) patience: AtomicU32,
    /// Atomic operations that were done for the peer.
    pub(super) atomics: AtomicU32,
    /// Of a queue pair for datagrams.
    pub(super) inbox: Option<Inbox>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("consumed", &self.consumed)
            .field("acked", &self.acked)
            .field("posted", &self.posted)
            .field("reported", &self.reported)
            .finish_non_exhaustive()
    }
}

/// The name of a queue pair's file.
pub(super) fn qp_name(qpn: u32) -> String {
    format!("q{qpn:06x}")
}

fn header_of(map: &Map) -> &QpHeader {
    // SAFETY: the file is long enough, aligned to a page, and the header is made of atomics only.
    unsafe { map.addr.cast::<QpHeader>().as_ref() }
}

impl Engine {
    pub(super) fn create(node: &Node, new: &NewQp) -> Result<(u32, Self), Errno> {
        let datagrams = new.kind == IBV_QPT_UD;
        let body = if datagrams { Inbox::LEN } else { RING };
        let (qpn, map) = loop {
            // 24 bits, of which 0 and 1 are the management's and the last is for multicast.
            let qpn = random() & 0x00ff_ffff;
            if !(0x10..0x00ff_ffff).contains(&qpn) {
                continue;
            }
            match node.dir.create(&qp_name(qpn), RING_AT + body) {
                Err(Errno(libc::EEXIST)) => {}
                map => break (qpn, map?),
            }
        };
        let header = header_of(&map);
        header.kind.store(new.kind, Ordering::Relaxed);
        header.node.store(node.id, Ordering::Relaxed);
        header.pd.store(new.pd, Ordering::Relaxed);
        header.magic.store(QP_MAGIC, Ordering::Release);
        // SAFETY: the file is that long.
        let at = unsafe { map.addr.add(RING_AT) };
        // SAFETY: the mapping is kept by the same struct.
        let ring = unsafe { Ring::new(at) };
        // SAFETY: the body of such a file is an inbox, and the mapping is kept beside it.
        let inbox = datagrams.then(|| unsafe { Inbox::new(at) });
        if let Some(inbox) = &inbox {
            inbox.reset();
        }
        Ok((
            qpn,
            Self {
                map,
                ring,
                tx: Lock::new(Tx::new(&new.cap)),
                rx: Lock::new(Rx {
                    peer: None,
                    tail: 0,
                    idle: 0,
                    clean: 0,
                    last_wqe: false,
                    stuck: None,
                }),
                consumed: AtomicU32::new(0),
                told: AtomicU32::new(0),
                acked: AtomicU32::new(0),
                posted: AtomicU32::new(0),
                reported: AtomicU32::new(0),
                patience: AtomicU32::new(0),
                atomics: AtomicU32::new(0),
                inbox,
            },
        ))
    }

    #[inline]
    pub(super) fn header(&self) -> &QpHeader {
        header_of(&self.map)
    }

    /// Everything as it was at first, but for the epoch, by which former peers see that they are.
    pub(super) fn reset(&self) {
        let header = self.header();
        header.control.epoch.fetch_add(1, Ordering::SeqCst);
        header.control.peer.store(0, Ordering::SeqCst);
        let mut tx = self.tx.lock();
        let mut rx = self.rx.lock();
        (tx.posted, tx.started, tx.reported, tx.head) = (0, 0, 0, 0);
        (tx.atomics, tx.atomics_open, tx.last_buffer) = (0, 0, None);
        (rx.tail, rx.idle, rx.clean) = (0, 0, 0);
        tx.mailboxes.clear();
        (tx.trouble, tx.unreachable, tx.dead) = (None, false, false);
        (rx.stuck, rx.last_wqe) = (None, false);
        if let Some(inbox) = &self.inbox {
            inbox.reset();
        } else {
            for line in 0..super::ring::LINES {
                self.ring.stamp(line).store(0, Ordering::SeqCst);
            }
        }
        let received = &header.received;
        for word in [
            &self.consumed,
            &self.told,
            &self.acked,
            &self.posted,
            &self.reported,
            &self.patience,
            &self.atomics,
            &received.consumed,
            &received.not_ready,
            &received.refused,
            &header.armed.recv,
            &header.armed.send,
            &header.fault.access,
            &header.producer.qpn,
            &header.control.state,
        ] {
            word.store(0, Ordering::SeqCst);
        }
    }
}

impl Tx {
    fn new(cap: &ibv_qp_cap) -> Self {
        let depth = cap.max_send_wr.max(1) as usize;
        let width = cap.max_send_sge.max(1) as usize;
        let slots = depth.next_power_of_two();
        Self {
            peer: None,
            wqes: vec![Wqe::default(); slots].into(),
            jobs: vec![Job::default(); slots].into(),
            results: vec![(Place::default(), 0); slots].into(),
            sges: vec![ibv_sge::default(); slots * width].into(),
            inline: vec![0; slots * cap.max_inline_data as usize].into(),
            posted: 0,
            started: 0,
            reported: 0,
            head: 0,
            atomics: 0,
            atomics_open: 0,
            stalled: None,
            trouble: None,
            unreachable: false,
            dead: false,
            mailboxes: HashMap::new(),
            last_buffer: None,
        }
    }

    /// The slot of a request.
    #[inline]
    pub(super) fn slot(&self, count: u32) -> usize {
        count as usize & (self.wqes.len() - 1)
    }
}

/// Maps the queue pair of that number, of the same type, and claims its ring.
///
/// `None` where there is none that we can send to.
pub(super) fn connect(node: &Node, qp: &Qp<Shm>, qpn: u32) -> Option<Arc<Peer>> {
    let map = node.dir.attach(&qp_name(qpn)).ok()?;
    if map.len != RING_AT + RING || !map.owner_lives() {
        return None;
    }
    let header = header_of(&map);
    if header.magic.load(Ordering::Acquire) != QP_MAGIC
        || header.kind.load(Ordering::Relaxed) != qp.kind
    {
        return None;
    }
    let claim = header
        .producer
        .qpn
        .compare_exchange(0, qp.qpn, Ordering::SeqCst, Ordering::SeqCst);
    if claim.is_err_and(|owner| owner != qp.qpn) {
        return None;
    }
    let epoch = header.control.epoch.load(Ordering::SeqCst);
    let other = node.other(header.node.load(Ordering::Relaxed)).ok()?;
    // SAFETY: the file is that long.
    let at = unsafe { map.addr.add(RING_AT) };
    Some(Arc::new(Peer {
        qpn,
        node: other,
        // SAFETY: the mapping is kept by the same struct.
        ring: unsafe { Ring::new(at) },
        epoch,
        map,
    }))
}

/// A queue pair for datagrams, of another process or of this one.
#[derive(Debug)]
pub(super) struct Mailbox {
    map: Map,
    pub(super) node: Arc<Other>,
    pub(super) inbox: Inbox,
}

impl Mailbox {
    #[inline]
    pub(super) fn header(&self) -> &QpHeader {
        header_of(&self.map)
    }

    /// Whether the queue pair is still the one that was found.
    pub(super) fn valid(&self) -> bool {
        self.header().control.state.load(Ordering::Relaxed) != super::layout::GONE
    }
}

/// Maps the queue pair for datagrams of that number.
pub(super) fn mailbox(node: &Node, qpn: u32) -> Option<Mailbox> {
    let map = node.dir.attach(&qp_name(qpn)).ok()?;
    if map.len != RING_AT + Inbox::LEN || !map.owner_lives() {
        return None;
    }
    let header = header_of(&map);
    if header.magic.load(Ordering::Acquire) != QP_MAGIC
        || header.kind.load(Ordering::Relaxed) != IBV_QPT_UD
    {
        return None;
    }
    let node = node.other(header.node.load(Ordering::Relaxed)).ok()?;
    // SAFETY: the file is that long, and the mapping is kept beside it.
    let inbox = unsafe { Inbox::new(map.addr.add(RING_AT)) };
    Some(Mailbox { map, node, inbox })
}

/// Waits until the peer is in no access to this process's memory that began before now.
pub(super) fn wait_section(peer: &Peer) {
    let hazard = &peer.header().hazard;
    for section in [&hazard.sending, &hazard.receiving] {
        let seen = section.load(Ordering::SeqCst);
        let mut spins = 0_u32;
        while !seen.is_multiple_of(2) && section.load(Ordering::SeqCst) == seen {
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            }
            if spins.is_multiple_of(4096) && !peer.node.lives() {
                return;
            }
            core::hint::spin_loop();
        }
    }
}

/// An address in a mapping.
pub(super) fn at(map: &Map, offset: u64, len: u64) -> Option<NonNull<u8>> {
    let offset = usize::try_from(offset).ok()?;
    let len = usize::try_from(len).ok()?;
    if offset.checked_add(len)? > map.len {
        return None;
    }
    // SAFETY: the range is in the mapping.
    Some(unsafe { map.addr.add(offset) })
}
