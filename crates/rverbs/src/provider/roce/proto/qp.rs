//! A queue pair: what it is made with, how it is connected, its states.

use std::collections::VecDeque;

use super::burst::Destination;
use super::completion::{Completion, CompletionOp, Status};
use super::inbound::Inbound;
use super::memory::{Access, Memory};
use super::psn::Psn;
use super::queue::RecvWqe;
use super::rc::{Requester, Responder};
use super::time::Time;
use super::work::{SendOp, SendWqe};

/// The service of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection.
    Rc,
    /// Unreliable connection.
    Uc,
    /// Datagrams.
    Ud,
}

/// The states of a queue pair (IBTA 10.3.1); SQD is a flag of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QpState {
    /// Made, and nothing more.
    Reset,
    /// Takes receives.
    Init,
    /// Ready to receive.
    Rtr,
    /// Ready to send.
    Rts,
    /// Sends no new request.
    Sqd,
    /// Everything is flushed.
    Error,
}

/// What a queue pair is made with.
#[derive(Clone, Copy, Debug)]
pub struct QpConfig {
    /// Its service.
    pub transport: Transport,
    /// Its protection domain.
    pub pd: u32,
    /// Where ends of sends go.
    pub send_cq: u32,
    /// Where ends of receives go.
    pub recv_cq: u32,
    /// A shared receive queue; `None` makes one of its own.
    pub srq: Option<u32>,
    /// Sends that can be posted.
    pub send_depth: usize,
    /// Receives that can be posted.
    pub recv_depth: usize,
    /// Pieces of memory of one request.
    pub max_sge: usize,
    /// Bytes that can be given inline.
    pub max_inline: usize,
    /// The driver keeps the receives, and gives them by [`Memory::take_receive`].
    pub outside_receives: bool,
    /// Report every send.
    pub signal_all: bool,
}

/// The peer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Both addresses and the type of service.
    pub destination: Destination,
    /// Its queue pair.
    pub qpn: u32,
}

/// What a queue pair learns to receive (`RTR`).
#[derive(Clone, Copy, Debug)]
pub struct Receive {
    /// The peer; datagram queue pairs have none.
    pub peer: Option<Peer>,
    /// Bytes of payload in a packet.
    pub mtu: u32,
    /// The first sequence number of the peer.
    pub psn: Psn,
    /// READs and atomics that the peer may have under way.
    pub max_dest_rd_atomic: u8,
    /// What to ask for when no receive is posted, as a code.
    pub min_rnr_timer: u8,
}

/// What a queue pair learns to send (`RTS`).
#[derive(Clone, Copy, Debug)]
pub struct Send {
    /// The first sequence number.
    pub psn: Psn,
    /// 4.096 µs · 2^code, 0 for ever.
    pub timeout: u8,
    /// How often a request is sent again.
    pub retry_count: u8,
    /// How often again without a receive at the peer; 7 for ever.
    pub rnr_retry: u8,
    /// READs and atomics under way.
    pub max_rd_atomic: u8,
}

/// What does not work on a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QpError {
    /// No such queue pair.
    #[error("no queue pair {0:#x}")]
    NoQp(u32),
    /// No such shared receive queue.
    #[error("no shared receive queue {0}")]
    NoSrq(u32),
    /// Not from this state.
    #[error("not possible in state {0:?}")]
    State(QpState),
    /// A value out of range.
    #[error("{what} {value} is out of range")]
    Range {
        /// What it is.
        what: &'static str,
        /// The value.
        value: u64,
    },
    /// No more queue pairs.
    #[error("all {0} queue pairs are in use")]
    TooMany(usize),
}

/// What a packet needs to know of its queue pair.
#[derive(Clone, Debug)]
pub(super) struct Link {
    pub(super) qpn: u32,
    pub(super) pd: u32,
    pub(super) send_cq: u32,
    pub(super) recv_cq: u32,
    pub(super) signal_all: bool,
    pub(super) access: Access,
    pub(super) p_key: u16,
    pub(super) q_key: u32,
    pub(super) peer_qpn: u32,
    pub(super) destination: Destination,
    pub(super) mtu: u32,
    pub(super) timeout: u8,
    pub(super) retry_count: u8,
    pub(super) rnr_retry: u8,
    pub(super) min_rnr_timer: u8,
    pub(super) max_rd_atomic: u8,
    pub(super) max_dest_rd_atomic: u8,
    /// Packets under way.
    pub(super) window: u32,
    /// Packets between two requests for acknowledgement.
    pub(super) ack_every: u32,
    /// Nanoseconds that a silent peer is tried for at least.
    pub(super) patience: u64,
}

/// What handling a packet may use.
pub(super) struct Cx<'a, M> {
    pub(super) now: Time,
    pub(super) mem: &'a mut M,
    pub(super) completions: &'a mut VecDeque<Completion>,
}

impl<M: Memory> Cx<'_, M> {
    /// Reports the end of a send, if it is to be reported.
    pub(super) fn complete_send(&mut self, link: &Link, wqe: &SendWqe, status: Status) {
        if status == Status::Success && !wqe.flags.signaled && !link.signal_all {
            return;
        }
        let op = match wqe.op {
            Some(SendOp::Write { .. } | SendOp::WriteImm { .. }) => CompletionOp::Write,
            Some(SendOp::Read { .. }) => CompletionOp::Read,
            Some(SendOp::FetchAdd { .. }) => CompletionOp::FetchAdd,
            Some(SendOp::CompareSwap { .. }) => CompletionOp::CompareSwap,
            _ => CompletionOp::Send,
        };
        let len = wqe.len;
        self.completions.push_back(Completion {
            len,
            ..Completion::of(link.send_cq, link.qpn, wqe.wr_id, op, status)
        });
    }
}

/// The part that differs by service.
#[derive(Debug)]
pub(super) enum Service {
    Rc {
        requester: Box<Requester>,
        responder: Box<Responder>,
    },
    Uc {
        sender: Box<super::uc::Sender>,
        inbound: Inbound,
        expected: Psn,
    },
    Ud {
        sender: Box<super::ud::Sender>,
        recv: super::ud::Receiver,
    },
}

/// A queue pair.
#[derive(Debug)]
pub(super) struct Qp {
    pub(super) link: Link,
    pub(super) config: QpConfig,
    pub(super) state: QpState,
    pub(super) rq: usize,
    pub(super) service: Service,
    /// A congestion notification is due.
    pub(super) notify: bool,
    pub(super) last_notify: Time,
    /// It is on the list of those with something to send.
    pub(super) active: bool,
    /// [`super::Event::Established`] was given.
    pub(super) established: bool,
    /// [`super::Event::Drained`] was given.
    pub(super) drained: bool,
    /// Scratch for flushing receives.
    pub(super) flushed: RecvWqe,
}
