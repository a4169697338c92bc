//! A message that is coming in: SEND or WRITE, packet by packet, for RC and UC alike.

use super::completion::{Completion, CompletionOp, Status};
use super::memory::{Access, Memory};
use super::packet::header::NakCode;
use super::packet::{Operation, Packet};
use super::qp::{Cx, Link};
use super::queue::{RecvQueue, RecvWqe};
use super::work::{scatter, total};

/// Why a packet of a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No receive is posted.
    NoReceive,
    /// The peer asked for what it may not.
    Nak(NakCode),
    /// A receive of ours does not fit; it ends so.
    Local(NakCode, Status),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Message {
    #[default]
    None,
    Send {
        got: u32,
    },
    Write {
        addr: u64,
        rkey: u32,
        left: u32,
        total: u32,
    },
}

/// The message in progress and the receive it uses.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    message: Message,
    recv: RecvWqe,
    held: bool,
}

impl Inbound {
    pub(super) fn with_capacity(max_sge: usize) -> Self {
        Self {
            recv: RecvWqe {
                wr_id: 0,
                sges: Vec::with_capacity(max_sge),
            },
            ..Self::default()
        }
    }

    /// Forgets everything, also the receive.
    pub(super) fn reset(&mut self) {
        self.message = Message::None;
        self.held = false;
    }

    /// Whether no message is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.message == Message::None
    }

    /// Drops the message; the receive it took serves the next one.
    pub(super) fn abandon(&mut self) {
        self.message = Message::None;
    }

    /// Ends the receive that is held, if one is.
    pub(super) fn fail<M: Memory>(&mut self, cx: &mut Cx<'_, M>, link: &Link, status: Status) {
        if core::mem::take(&mut self.held) {
            let end = Completion::of(
                link.recv_cq,
                link.qpn,
                self.recv.wr_id,
                CompletionOp::Receive,
                status,
            );
            cx.completions.push_back(end);
        }
        self.message = Message::None;
    }

    /// Takes a packet that is the next in sequence. True if it ended a message.
    pub(super) fn take<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
        packet: &Packet<'_>,
    ) -> Result<bool, Refusal> {
        let invalid = Refusal::Nak(NakCode::INVALID_REQUEST);
        let (Some(Operation::Send { first, last, .. } | Operation::Write { first, last, .. }), len) =
            (packet.op, packet.payload.len())
        else {
            return Err(invalid);
        };
        let mtu = link.mtu as usize;
        let fits = match (first, last) {
            (_, false) => len == mtu,
            (true, true) => len <= mtu,
            (false, true) => (1..=mtu).contains(&len),
        };
        if !fits {
            return Err(invalid);
        }
        let len = u32::try_from(len).map_err(|_| invalid)?;
        match packet.op {
            Some(Operation::Send { imm, .. }) => {
                self.take_send(cx, link, rq, packet, (first, last, imm), len)?;
            }
            _ => self.take_write(cx, link, rq, packet, (first, last), len)?,
        }
        Ok(last)
    }

    fn take_send<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
        packet: &Packet<'_>,
        (first, last, _): (bool, bool, bool),
        len: u32,
    ) -> Result<(), Refusal> {
        let got = match (first, self.message) {
            (true, Message::None) => 0,
            (false, Message::Send { got }) => got,
            _ => return Err(Refusal::Nak(NakCode::INVALID_REQUEST)),
        };
        self.hold(cx, link, rq)?;
        if u64::from(got) + u64::from(len) > total(&self.recv.sges) {
            return Err(Refusal::Local(
                NakCode::INVALID_REQUEST,
                Status::LocalLength,
            ));
        }
        scatter(&self.recv.sges, cx.mem, link.pd, got, packet.payload)
            .map_err(|_| Refusal::Local(NakCode::REMOTE_OPERATION, Status::LocalProtection))?;
        let got = got + len;
        self.message = Message::Send { got };
        if last {
            if let Some(key) = packet.invalidate {
                cx.mem
                    .invalidate(link.pd, key)
                    .map_err(|_| Refusal::Local(NakCode::REMOTE_ACCESS, Status::LocalProtection))?;
            }
            self.finish(cx, link, packet, CompletionOp::Receive, got);
        }
        Ok(())
    }

    fn take_write<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
        packet: &Packet<'_>,
        (first, last): (bool, bool),
        len: u32,
    ) -> Result<(), Refusal> {
        let invalid = Refusal::Nak(NakCode::INVALID_REQUEST);
        let denied = Refusal::Nak(NakCode::REMOTE_ACCESS);
        let (addr, rkey, left, whole) = match (first, self.message, packet.reth) {
            (true, Message::None, Some(reth)) => {
                let (addr, rkey, dma) = (reth.va.get(), reth.r_key.get(), reth.len.get());
                if dma > 0 {
                    if !link.access.contains(Access::REMOTE_WRITE) {
                        return Err(denied);
                    }
                    cx.mem
                        .check(link.pd, rkey, Access::REMOTE_WRITE, addr, u64::from(dma))
                        .map_err(|_| denied)?;
                }
                (addr, rkey, dma, dma)
            }
            (
                false,
                Message::Write {
                    addr,
                    rkey,
                    left,
                    total,
                },
                _,
            ) => (addr, rkey, left, total),
            _ => return Err(invalid),
        };
        let rest = left.checked_sub(len).ok_or(invalid)?;
        if last != (rest == 0) {
            // Too little in all, or nothing left for the packets to come.
            return Err(invalid);
        }
        if packet.imm.is_some() {
            self.hold(cx, link, rq)?;
        }
        if len > 0 {
            cx.mem
                .write(link.pd, rkey, Access::REMOTE_WRITE, addr, packet.payload)
                .map_err(|_| denied)?;
        }
        self.message = Message::Write {
            addr: addr.wrapping_add(u64::from(len)),
            rkey,
            left: rest,
            total: whole,
        };
        if last {
            if packet.imm.is_some() {
                self.finish(cx, link, packet, CompletionOp::ReceiveWriteImm, whole);
            } else {
                self.message = Message::None;
            }
        }
        Ok(())
    }

    /// Takes a receive for the message, unless one is held.
    fn hold<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
    ) -> Result<(), Refusal> {
        if !self.held {
            if !rq.take(cx.mem, link.qpn, &mut self.recv) {
                return Err(Refusal::NoReceive);
            }
            self.held = true;
        }
        Ok(())
    }

    fn finish<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        packet: &Packet<'_>,
        op: CompletionOp,
        len: u32,
    ) {
        self.message = Message::None;
        self.held = false;
        cx.completions.push_back(Completion {
            len,
            imm: packet.imm,
            invalidated: packet.invalidate,
            src_qp: link.peer_qpn,
            solicited: packet.bth.flags & super::packet::header::Bth::SOLICITED != 0,
            ..Completion::of(link.recv_cq, link.qpn, self.recv.wr_id, op, Status::Success)
        });
    }
}
