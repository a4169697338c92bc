//! One port with its queue pairs: who gets a packet, who may send.

use std::collections::VecDeque;

use rdma_wire::Be24;

use super::burst::{Burst, Destination, Writer};
use super::completion::{Completion, CompletionOp, Status};
use super::inbound::{Inbound, Refusal};
use super::memory::{Access, Memory};
use super::packet::header::{Bth, Deth};
use super::packet::icrc::{self, Checker, Flow};
use super::packet::{Opcode, Operation, Packet};
use super::psn::Psn;
use super::qp::{
    Cx, Link, Peer, Qp, QpConfig, QpError, QpState, Receive, Send, Service, Transport,
};
use super::queue::{RecvQueue, RecvWqe};
use super::rc::{Filled, Outcome, Requester, Responder};
use super::time::Time;
use super::work::{PostError, RecvRequest, SendRequest};
use super::{uc, ud};

mod receive;
mod transmit;

/// The key of the general services queue pair.
pub const GSI_Q_KEY: u32 = 0x8001_0000;
/// Bytes of a management datagram.
pub const MAD_LEN: usize = 256;

/// What an engine is made with.
#[derive(Clone, Copy, Debug)]
pub struct EngineConfig {
    /// Queue pairs that can exist at once, at most 1022.
    pub max_qps: usize,
    /// Upper seven bits of all queue pair numbers.
    pub qpn_prefix: u8,
    /// READs and atomics that one queue pair can have under way, in each direction.
    pub max_rd_atomic: u8,
    /// Bytes that one queue pair may have under way.
    pub window_bytes: u32,
    /// Packets that one queue pair may have under way.
    pub window_packets: u32,
    /// The port that peers listen on; our own kind may use the 127 following ones, too.
    pub base_port: u16,
    /// Whether packets with a wrong ICRC are taken all the same.
    pub ignore_icrc: bool,
    /// Nanoseconds that a peer which does not answer, or has no receive request, is tried for at least,
    /// however few and short the retries are. 0: as a queue pair's attributes say.
    pub patience: u64,
    /// Where random numbers start.
    pub seed: u64,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            max_qps: 1022,
            qpn_prefix: 0,
            max_rd_atomic: 16,
            window_bytes: 256 << 10,
            window_packets: 128,
            base_port: 4791,
            ignore_icrc: false,
            patience: 0,
            seed: 1,
        }
    }
}

/// What the socket knows of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Meta {
    /// Both addresses.
    pub flow: Flow,
    /// The byte with DSCP and ECN.
    pub tos: u8,
}

/// What happened beside completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The first packet came in while only ready to receive.
    Established {
        /// The queue pair.
        qpn: u32,
    },
    /// The queue pair went into error by itself.
    Failed {
        /// The queue pair.
        qpn: u32,
        /// Whether it was the peer's request that was wrong.
        by_peer: bool,
    },
    /// Nothing is left to send, after [`Engine::drain`].
    Drained {
        /// The queue pair.
        qpn: u32,
    },
}

/// A management datagram.
#[derive(Clone, Copy, Debug)]
pub struct Mad {
    /// Both addresses, as the packet came or is to go.
    pub destination: Destination,
    /// The queue pair at the other end.
    pub qpn: u32,
    /// What it says.
    pub bytes: [u8; MAD_LEN],
}

/// How many packets met which fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Taken.
    pub received: u64,
    /// Sent.
    pub sent: u64,
    /// Sent again, among `sent`.
    pub retransmitted: u64,
    /// Not a packet.
    pub malformed: u64,
    /// With a wrong ICRC.
    pub bad_icrc: u64,
    /// For no queue pair, or one that does not listen to the sender.
    pub unwanted: u64,
    /// Congestion notifications received.
    pub notified: u64,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u8,
    qp: Option<Box<Qp>>,
}

/// One port: see the [module](super).
#[derive(Debug)]
pub struct Engine {
    config: EngineConfig,
    slots: Vec<Slot>,
    rqs: Vec<Option<RecvQueue>>,
    active: VecDeque<u32>,
    completions: VecDeque<Completion>,
    events: VecDeque<Event>,
    mads_in: VecDeque<Mad>,
    mads_out: VecDeque<Mad>,
    mad_psn: Psn,
    random: u64,
    /// No timer is due before.
    wake: Option<Time>,
    checker: Checker,
    counters: Counters,
}

const INDEX_BITS: u32 = 10;
const GENERATION_BITS: u32 = 7;
/// Indices 0 and 1 are those of the special queue pairs.
const FIRST_INDEX: usize = 2;
const MAX_MADS: usize = 64;
const MAX_EVENTS: usize = 1024;
/// Between two congestion notifications of one queue pair.
const NOTIFY_INTERVAL_NS: u64 = 50_000;

impl Engine {
    /// An engine without queue pairs.
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        let seed = config.seed.to_le_bytes();
        Self {
            config,
            slots: Vec::new(),
            rqs: Vec::new(),
            active: VecDeque::new(),
            completions: VecDeque::new(),
            events: VecDeque::with_capacity(64),
            mads_in: VecDeque::with_capacity(MAX_MADS),
            mads_out: VecDeque::with_capacity(MAX_MADS),
            random: config.seed,
            mad_psn: Psn::new(u32::from_le_bytes([seed[0], seed[1], seed[2], 0])),
            wake: None,
            checker: Checker::new(),
            counters: Counters::default(),
        }
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        for slot in &self.slots {
            if let Some(Service::Rc { requester, .. }) = slot.qp.as_deref().map(|qp| &qp.service) {
                counters.retransmitted += requester.retransmitted();
            }
        }
        counters
    }

    fn index(&self, qpn: u32) -> Option<usize> {
        let index = (qpn & ((1 << INDEX_BITS) - 1)) as usize;
        let index = index.checked_sub(FIRST_INDEX)?;
        self.slots
            .get(index)?
            .qp
            .as_ref()
            .filter(|qp| qp.link.qpn == qpn)?;
        Some(index)
    }

    fn qp(&self, qpn: u32) -> Result<&Qp, QpError> {
        self.index(qpn)
            .and_then(|index| self.slots.get(index)?.qp.as_deref())
            .ok_or(QpError::NoQp(qpn))
    }

    fn qp_mut(&mut self, qpn: u32) -> Result<&mut Qp, QpError> {
        self.index(qpn)
            .and_then(|index| self.slots.get_mut(index)?.qp.as_deref_mut())
            .ok_or(QpError::NoQp(qpn))
    }

    /// The state of a queue pair.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn state(&self, qpn: u32) -> Result<QpState, QpError> {
        self.qp(qpn).map(|qp| qp.state)
    }

    fn add_rq(&mut self, depth: usize, max_sge: usize, shared: bool) -> usize {
        let rq = RecvQueue::new(depth, max_sge, shared);
        self.completions.reserve(depth + 1);
        if let Some((index, free)) = self.rqs.iter_mut().enumerate().find(|(_, rq)| rq.is_none()) {
            *free = Some(rq);
            return index;
        }
        self.rqs.push(Some(rq));
        self.rqs.len() - 1
    }

    /// Makes a shared receive queue and returns its number.
    pub fn create_srq(&mut self, depth: usize, max_sge: usize) -> u32 {
        u32::try_from(self.add_rq(depth, max_sge, true)).unwrap_or(u32::MAX)
    }

    /// Removes a shared receive queue; what is posted to it is dropped.
    pub fn destroy_srq(&mut self, srq: u32) {
        if let Some(rq) = self.rqs.get_mut(srq as usize)
            && rq.as_ref().is_some_and(|rq| rq.shared)
        {
            *rq = None;
        }
    }

    /// Makes a queue pair and returns its number.
    ///
    /// # Errors
    /// No room, or a shared receive queue that does not exist.
    pub fn create_qp(&mut self, config: &QpConfig) -> Result<u32, QpError> {
        let index = match self.slots.iter().position(|slot| slot.qp.is_none()) {
            Some(index) => index,
            None if self.slots.len() < self.config.max_qps.min((1 << INDEX_BITS) - FIRST_INDEX) => {
                // Not from 0 on: packets and connections of an earlier process on this port may
                // still be on their way.
                self.random = self
                    .random
                    .wrapping_mul(0x5851_f42d_4c95_7f2d)
                    .wrapping_add(1);
                let [.., generation] = self.random.to_le_bytes();
                self.slots.push(Slot {
                    generation,
                    qp: None,
                });
                self.slots.len() - 1
            }
            None => return Err(QpError::TooMany(self.slots.len())),
        };
        let rq = match config.srq {
            Some(srq) => {
                let rq = self.rqs.get(srq as usize).and_then(Option::as_ref);
                rq.filter(|rq| rq.shared).ok_or(QpError::NoSrq(srq))?;
                srq as usize
            }
            None if config.outside_receives => self.add_rq(0, config.max_sge, false),
            None => self.add_rq(config.recv_depth, config.max_sge, false),
        };
        let max_sge = self
            .rqs
            .get(rq)
            .and_then(Option::as_ref)
            .map_or(config.max_sge, |rq| rq.max_sge);
        let Some(slot) = self.slots.get_mut(index) else {
            return Err(QpError::TooMany(0));
        };
        let generation = u32::from(slot.generation) & ((1 << GENERATION_BITS) - 1);
        let place = u32::try_from(index + FIRST_INDEX).unwrap_or_default();
        let prefix = u32::from(self.config.qpn_prefix & 0x7f) << (INDEX_BITS + GENERATION_BITS);
        let qpn = prefix | generation << INDEX_BITS | place;
        let (depth, inline) = (config.send_depth, config.max_inline);
        let reads = self.config.max_rd_atomic;
        let service = match config.transport {
            Transport::Rc => Service::Rc {
                requester: Box::new(Requester::new(
                    depth,
                    config.max_sge,
                    inline,
                    1,
                    reads.into(),
                )),
                responder: Box::new(Responder::new(max_sge, reads.into())),
            },
            Transport::Uc => Service::Uc {
                sender: Box::new(uc::Sender::new(depth, config.max_sge, inline)),
                inbound: Inbound::with_capacity(max_sge),
                expected: Psn::default(),
            },
            Transport::Ud => Service::Ud {
                sender: Box::new(ud::Sender::new(depth, config.max_sge, inline)),
                recv: ud::Receiver::with_capacity(max_sge),
            },
        };
        slot.qp = Some(Box::new(Qp {
            link: Link::new(qpn, config),
            config: *config,
            state: QpState::Reset,
            rq,
            service,
            flushed: RecvWqe {
                wr_id: 0,
                sges: Vec::with_capacity(max_sge),
            },
            notify: false,
            last_notify: Time::ZERO,
            active: false,
            established: false,
            drained: false,
        }));
        if config.outside_receives
            && let Some(Some(rq)) = self.rqs.get_mut(rq)
        {
            rq.outside = true;
        }
        self.completions.reserve(depth + 1);
        self.active.reserve(self.slots.len());
        Ok(qpn)
    }

    /// Removes a queue pair with everything posted to it, without completions.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn destroy_qp(&mut self, qpn: u32) -> Result<(), QpError> {
        let index = self.index(qpn).ok_or(QpError::NoQp(qpn))?;
        if let Some(slot) = self.slots.get_mut(index) {
            slot.generation = slot.generation.wrapping_add(1);
            if let Some(qp) = slot.qp.take()
                && let Some(rq) = self.rqs.get_mut(qp.rq)
                && rq.as_ref().is_some_and(|rq| !rq.shared)
            {
                *rq = None;
            }
        }
        self.active.retain(|active| *active as usize != index);
        self.completions.retain(|completion| completion.qpn != qpn);
        Ok(())
    }

    /// Back to [`QpState::Reset`]: what is posted is dropped.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn reset(&mut self, qpn: u32) -> Result<(), QpError> {
        let qp = self.qp_mut(qpn)?;
        qp.state = QpState::Reset;
        qp.link = Link::new(qpn, &qp.config);
        let (rq, link) = (qp.rq, qp.link.clone());
        match &mut qp.service {
            Service::Rc {
                requester,
                responder,
            } => {
                requester.start(Psn::default(), &link);
                responder.start(Psn::default());
            }
            Service::Uc {
                sender, inbound, ..
            } => {
                sender.start(Psn::default());
                inbound.reset();
            }
            Service::Ud { sender, .. } => sender.start(Psn::default()),
        }
        if let Some(Some(rq)) = self.rqs.get_mut(rq)
            && !rq.shared
        {
            rq.ring.clear();
        }
        self.completions.retain(|completion| completion.qpn != qpn);
        Ok(())
    }

    /// To [`QpState::Init`].
    ///
    /// # Errors
    /// No such queue pair, or not from its state.
    pub fn init(
        &mut self,
        qpn: u32,
        access: Access,
        p_key: u16,
        q_key: u32,
    ) -> Result<(), QpError> {
        let qp = self.qp_mut(qpn)?;
        if !matches!(qp.state, QpState::Reset | QpState::Init) {
            return Err(QpError::State(qp.state));
        }
        qp.link.access = access;
        qp.link.p_key = p_key;
        qp.link.q_key = q_key;
        qp.state = QpState::Init;
        Ok(())
    }

    /// To [`QpState::Rtr`].
    ///
    /// # Errors
    /// No such queue pair, not from its state, or a value out of range.
    pub fn ready_to_receive(&mut self, qpn: u32, receive: &Receive) -> Result<(), QpError> {
        let max_reads = self.config.max_rd_atomic;
        let (bytes, packets) = (self.config.window_bytes, self.config.window_packets);
        let patience = self.config.patience;
        let qp = self.qp_mut(qpn)?;
        if qp.state != QpState::Init {
            return Err(QpError::State(qp.state));
        }
        if !(256..=4096).contains(&receive.mtu) || !receive.mtu.is_power_of_two() {
            return Err(QpError::Range {
                what: "path MTU",
                value: receive.mtu.into(),
            });
        }
        if receive.max_dest_rd_atomic > max_reads {
            let value = receive.max_dest_rd_atomic.into();
            return Err(QpError::Range {
                what: "max_dest_rd_atomic",
                value,
            });
        }
        let link = &mut qp.link;
        match (qp.config.transport, receive.peer) {
            (Transport::Ud, _) => {}
            (_, Some(peer)) => {
                link.destination = peer.destination;
                link.peer_qpn = peer.qpn & 0x00ff_ffff;
            }
            (_, None) => {
                return Err(QpError::Range {
                    what: "destination",
                    value: 0,
                });
            }
        }
        link.mtu = receive.mtu;
        link.max_dest_rd_atomic = receive.max_dest_rd_atomic;
        link.min_rnr_timer = receive.min_rnr_timer;
        link.window = (bytes / receive.mtu).clamp(4, packets.max(4));
        link.ack_every = (link.window / 4).max(1);
        link.patience = patience;
        match &mut qp.service {
            Service::Rc { responder, .. } => responder.start(receive.psn),
            Service::Uc {
                expected, inbound, ..
            } => {
                *expected = receive.psn;
                inbound.reset();
            }
            Service::Ud { .. } => {}
        }
        qp.state = QpState::Rtr;
        qp.established = false;
        Ok(())
    }

    /// To [`QpState::Rts`].
    ///
    /// # Errors
    /// No such queue pair, not from its state, or a value out of range.
    pub fn ready_to_send(&mut self, qpn: u32, send: &Send) -> Result<(), QpError> {
        let max_reads = self.config.max_rd_atomic;
        let qp = self.qp_mut(qpn)?;
        match qp.state {
            QpState::Rtr => {}
            QpState::Sqd => {
                qp.state = QpState::Rts;
                self.activate(qpn);
                return Ok(());
            }
            other => return Err(QpError::State(other)),
        }
        if send.max_rd_atomic > max_reads {
            return Err(QpError::Range {
                what: "max_rd_atomic",
                value: send.max_rd_atomic.into(),
            });
        }
        let link = &mut qp.link;
        link.timeout = send.timeout & 0x1f;
        link.retry_count = send.retry_count & 7;
        link.rnr_retry = send.rnr_retry & 7;
        link.max_rd_atomic = send.max_rd_atomic;
        match &mut qp.service {
            Service::Rc { requester, .. } => requester.start(send.psn, link),
            Service::Uc { sender, .. } => sender.start(send.psn),
            Service::Ud { sender, .. } => sender.start(send.psn),
        }
        qp.state = QpState::Rts;
        Ok(())
    }

    /// To [`QpState::Sqd`]: no new packet of a request leaves; [`Event::Drained`] follows.
    ///
    /// # Errors
    /// No such queue pair, or not from its state.
    pub fn drain(&mut self, qpn: u32) -> Result<(), QpError> {
        let qp = self.qp_mut(qpn)?;
        if qp.state != QpState::Rts {
            return Err(QpError::State(qp.state));
        }
        qp.state = QpState::Sqd;
        qp.drained = false;
        self.activate(qpn);
        Ok(())
    }

    /// To [`QpState::Error`]: everything posted is flushed.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn fail<M: Memory>(&mut self, now: Time, mem: &mut M, qpn: u32) -> Result<(), QpError> {
        let index = self.index(qpn).ok_or(QpError::NoQp(qpn))?;
        self.flush(now, mem, index, None, Status::Flushed);
        Ok(())
    }

    /// Reports every send of a queue pair, or only those that ask for it.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn signal_all(&mut self, qpn: u32, all: bool) -> Result<(), QpError> {
        self.qp_mut(qpn)?.link.signal_all = all;
        Ok(())
    }

    /// Changes what may be changed while a queue pair runs: the rights of the peer, and the time to
    /// ask for when no receive is posted.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn adjust(
        &mut self,
        qpn: u32,
        access: Option<Access>,
        min_rnr_timer: Option<u8>,
    ) -> Result<(), QpError> {
        let link = &mut self.qp_mut(qpn)?.link;
        link.access = access.unwrap_or(link.access);
        link.min_rnr_timer = min_rnr_timer.unwrap_or(link.min_rnr_timer);
        Ok(())
    }

    fn activate(&mut self, qpn: u32) {
        if let Some(index) = self.index(qpn)
            && let Some(qp) = self
                .slots
                .get_mut(index)
                .and_then(|slot| slot.qp.as_deref_mut())
            && !core::mem::replace(&mut qp.active, true)
        {
            self.active
                .push_back(u32::try_from(index).unwrap_or_default());
        }
    }

    /// Posts a send. Call [`Engine::poll_transmit`] afterwards.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn post_send(&mut self, qpn: u32, request: &SendRequest<'_>) -> Result<(), PostError> {
        let index = self.index(qpn).ok_or(PostError::NoQueue)?;
        let Some(qp) = self
            .slots
            .get_mut(index)
            .and_then(|slot| slot.qp.as_deref_mut())
        else {
            return Err(PostError::NoQueue);
        };
        if request.sges.len() > qp.config.max_sge {
            return Err(PostError::TooManySges {
                got: request.sges.len(),
                max: qp.config.max_sge,
            });
        }
        if let Some(bytes) = request.inline
            && bytes.len() > qp.config.max_inline
        {
            return Err(PostError::TooMuchInline {
                got: bytes.len(),
                max: qp.config.max_inline,
            });
        }
        match qp.state {
            QpState::Rts | QpState::Sqd => {}
            QpState::Error => {
                let op = CompletionOp::Send;
                let (cq, wr_id) = (qp.link.send_cq, request.wr_id);
                self.completions
                    .push_back(Completion::of(cq, qpn, wr_id, op, Status::Flushed));
                return Ok(());
            }
            _ => return Err(PostError::State),
        }
        match &mut qp.service {
            Service::Rc { requester, .. } => requester.post(request, &qp.link)?,
            Service::Uc { sender, .. } => sender.post(request, &qp.link)?,
            Service::Ud { sender, .. } => sender.post(request, &qp.link)?,
        }
        if !core::mem::replace(&mut qp.active, true) {
            self.active
                .push_back(u32::try_from(index).unwrap_or_default());
        }
        Ok(())
    }

    /// Posts a receive to a queue pair.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn post_recv(&mut self, qpn: u32, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let qp = self.qp(qpn).map_err(|_| PostError::NoQueue)?;
        let (state, rq, cq) = (qp.state, qp.rq, qp.link.recv_cq);
        let rq = self
            .rqs
            .get_mut(rq)
            .and_then(Option::as_mut)
            .ok_or(PostError::NoQueue)?;
        if rq.shared {
            return Err(PostError::NoQueue);
        }
        match state {
            QpState::Reset => Err(PostError::State),
            QpState::Error => {
                let op = CompletionOp::Receive;
                self.completions.push_back(Completion::of(
                    cq,
                    qpn,
                    request.wr_id,
                    op,
                    Status::Flushed,
                ));
                Ok(())
            }
            _ => rq.post(request),
        }
    }

    /// Posts a receive to a shared receive queue.
    ///
    /// # Errors
    /// Why it was not taken.
    pub fn post_srq_recv(&mut self, srq: u32, request: &RecvRequest<'_>) -> Result<(), PostError> {
        let rq = self.rqs.get_mut(srq as usize).and_then(Option::as_mut);
        rq.filter(|rq| rq.shared)
            .ok_or(PostError::NoQueue)?
            .post(request)
    }

    /// Receives posted to a shared receive queue, for its limit event.
    #[must_use]
    pub fn srq_len(&self, srq: u32) -> Option<usize> {
        self.rqs
            .get(srq as usize)
            .and_then(Option::as_ref)
            .map(|rq| rq.ring.len())
    }

    /// The next completion.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The next management datagram that came to queue pair 1.
    pub fn poll_mad(&mut self) -> Option<Mad> {
        self.mads_in.pop_front()
    }

    /// Sends a management datagram from queue pair 1. False if there is no room: as if lost.
    pub fn send_mad(&mut self, mad: &Mad) -> bool {
        let room = self.mads_out.len() < MAX_MADS;
        if room {
            self.mads_out.push_back(*mad);
        }
        room
    }

    /// When [`Engine::handle_timeout`] is to be called at the latest.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Time> {
        self.wake
    }

    fn watch(wake: &mut Option<Time>, deadline: Option<Time>) {
        if let Some(deadline) = deadline {
            *wake = Some(wake.map_or(deadline, |wake| wake.min(deadline)));
        }
    }

    /// The time of [`Engine::poll_timeout`] may have come. Call [`Engine::poll_transmit`]
    /// afterwards.
    pub fn handle_timeout<M: Memory>(&mut self, now: Time, mem: &mut M) {
        if self.wake.is_none_or(|wake| now < wake) {
            return;
        }
        self.wake = None;
        for index in 0..self.slots.len() {
            let Some(qp) = self
                .slots
                .get_mut(index)
                .and_then(|slot| slot.qp.as_deref_mut())
            else {
                continue;
            };
            let Service::Rc { requester, .. } = &mut qp.service else {
                continue;
            };
            if !matches!(qp.state, QpState::Rts | QpState::Sqd) {
                continue;
            }
            if requester.deadline().is_some_and(|deadline| deadline <= now) {
                let outcome = requester.on_timeout(now, &qp.link);
                let qpn = qp.link.qpn;
                if let Outcome::Failed(status) = outcome {
                    self.break_off(now, mem, index, Some(status), Status::Flushed, false);
                    continue;
                }
                self.activate(qpn);
            }
            if let Some(qp) = self.slots.get(index).and_then(|slot| slot.qp.as_deref())
                && let Service::Rc { requester, .. } = &qp.service
            {
                Self::watch(&mut self.wake, requester.deadline());
            }
        }
    }
}

/// Two partition keys meet if they are of one partition and one of them is a full member.
const fn same_partition(a: u16, b: u16) -> bool {
    a & 0x7fff == b & 0x7fff && (a | b) & 0x8000 != 0
}

impl Link {
    fn new(qpn: u32, config: &QpConfig) -> Self {
        let nowhere = core::net::SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            qpn,
            pd: config.pd,
            send_cq: config.send_cq,
            recv_cq: config.recv_cq,
            signal_all: config.signal_all,
            access: Access::default(),
            p_key: 0xffff,
            q_key: 0,
            peer_qpn: 0,
            destination: Destination {
                flow: Flow {
                    src: nowhere,
                    dst: nowhere,
                },
                tos: 0,
            },
            mtu: 1024,
            timeout: 0,
            retry_count: 7,
            rnr_retry: 7,
            min_rnr_timer: 12,
            max_rd_atomic: 0,
            max_dest_rd_atomic: 0,
            window: 4,
            ack_every: 1,
            patience: 0,
        }
    }
}

impl Engine {
    /// The peer of a connected queue pair, as it was given.
    ///
    /// # Errors
    /// No such queue pair.
    pub fn peer(&self, qpn: u32) -> Result<Peer, QpError> {
        self.qp(qpn).map(|qp| Peer {
            destination: qp.link.destination,
            qpn: qp.link.peer_qpn,
        })
    }
}
