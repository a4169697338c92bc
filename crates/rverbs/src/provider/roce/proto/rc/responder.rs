//! The side that carries requests out: sequence, duplicates, answers, refusals.

use std::collections::VecDeque;

use bytemuck::bytes_of;
use rdma_wire::{Be24, Be64};

use super::super::burst::{Burst, Writer};
use super::super::completion::Status;
use super::super::inbound::{Inbound, Refusal};
use super::super::memory::{Access, AtomicOp, Memory};
use super::super::packet::header::{Aeth, AtomicAckEth, Bth, NakCode, Syndrome};
use super::super::packet::{Opcode, Operation, Packet, icrc};
use super::super::psn::Psn;
use super::super::qp::{Cx, Link};
use super::super::queue::RecvQueue;
use super::requester::{Filled, Outcome, pad_bits};

/// Something to be sent back, in the order of the requests.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Ack {
        psn: Psn,
        msn: u32,
        syndrome: Syndrome,
    },
    Read {
        psn: Psn,
        msn: u32,
        addr: u64,
        rkey: u32,
        left: u32,
        begun: bool,
    },
    Atomic {
        psn: Psn,
        msn: u32,
        original: u64,
    },
}

/// The receiving side of a reliable connection.
#[derive(Debug)]
pub(in super::super) struct Responder {
    /// The next in sequence.
    expected: Psn,
    /// Messages completed.
    msn: u32,
    /// A refusal went out; packets further on are ignored until the one refused is here.
    refused: bool,
    inbound: Inbound,
    replies: VecDeque<Reply>,
    max_replies: usize,
    /// Results of the latest atomics, for duplicates.
    saved: VecDeque<(Psn, u64)>,
    max_saved: usize,
}

impl Responder {
    pub(in super::super) fn new(max_sge: usize, max_reads: usize) -> Self {
        let max_saved = max_reads.max(1);
        let max_replies = 2 * max_saved + 8;
        Self {
            expected: Psn::default(),
            msn: 0,
            refused: false,
            inbound: Inbound::with_capacity(max_sge),
            replies: VecDeque::with_capacity(max_replies + 1),
            max_replies,
            saved: VecDeque::with_capacity(max_saved + 1),
            max_saved,
        }
    }

    /// Begins at a sequence number.
    pub(in super::super) fn start(&mut self, psn: Psn) {
        self.expected = psn;
        self.msn = 0;
        self.refused = false;
        self.inbound.reset();
        self.replies.clear();
        self.saved.clear();
    }

    pub(in super::super) fn inbound(&mut self) -> &mut Inbound {
        &mut self.inbound
    }

    /// Whether nothing is to be sent back but one acknowledgement.
    pub(in super::super) fn owes_only_an_ack(&self) -> bool {
        matches!(
            (self.replies.front(), self.replies.len()),
            (
                Some(Reply::Ack {
                    syndrome: Syndrome::Ack,
                    ..
                }),
                1
            )
        )
    }

    pub(in super::super) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// A request packet.
    pub(in super::super) fn handle<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
        packet: &Packet<'_>,
    ) -> Outcome {
        let psn = packet.bth.psn();
        let ahead = psn.cmp_to(self.expected);
        if ahead < 0 {
            self.duplicate(cx, link, psn, packet);
            return Outcome::Done;
        }
        if ahead > 0 {
            if !self.refused {
                self.refused = true;
                self.reply(Reply::Ack {
                    psn: self.expected,
                    msn: self.msn,
                    syndrome: Syndrome::Nak(NakCode::PSN_SEQUENCE),
                });
            }
            return Outcome::Done;
        }
        let taken = match packet.op {
            Some(Operation::ReadRequest) => self.read(cx, link, psn, packet),
            Some(Operation::Atomic) => self.atomic(cx, link, psn, packet),
            _ => self.message(cx, link, rq, psn, packet),
        };
        match taken {
            Ok(()) => Outcome::Done,
            Err(Refusal::NoReceive) => {
                self.refused = true;
                self.reply(Reply::Ack {
                    psn,
                    msn: self.msn,
                    syndrome: Syndrome::Rnr(link.min_rnr_timer),
                });
                Outcome::Done
            }
            Err(Refusal::Nak(code)) => self.give_up(psn, code, Status::Flushed),
            Err(Refusal::Local(code, status)) => self.give_up(psn, code, status),
        }
    }

    /// Refuses for good: the queue pair goes into error.
    fn give_up(&mut self, psn: Psn, code: NakCode, status: Status) -> Outcome {
        self.refused = true;
        self.reply(Reply::Ack {
            psn,
            msn: self.msn,
            syndrome: Syndrome::Nak(code),
        });
        Outcome::Failed(status)
    }

    fn message<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
        psn: Psn,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let ended = self.inbound.take(cx, link, rq, packet)?;
        self.refused = false;
        self.expected = psn.plus(1);
        if ended {
            self.msn = self.msn.wrapping_add(1);
        }
        if packet.bth.ack & Bth::ACK_REQUEST != 0 {
            self.acknowledge(psn);
        }
        Ok(())
    }

    fn read<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let Some(reth) = packet
            .reth
            .filter(|_| self.inbound.is_idle() && link.max_dest_rd_atomic > 0)
        else {
            return Err(Refusal::Nak(NakCode::INVALID_REQUEST));
        };
        let (addr, rkey, len) = (reth.va.get(), reth.r_key.get(), reth.len.get());
        if len > 1 << 31 {
            return Err(Refusal::Nak(NakCode::INVALID_REQUEST));
        }
        if !readable(cx, link, addr, rkey, len) {
            return Err(Refusal::Nak(NakCode::REMOTE_ACCESS));
        }
        if self.replies.len() >= self.max_replies {
            // More than a peer may have under way. As if it had been lost.
            return Ok(());
        }
        self.refused = false;
        self.expected = psn.plus(len.div_ceil(link.mtu).max(1));
        self.msn = self.msn.wrapping_add(1);
        self.reply(Reply::Read {
            psn,
            msn: self.msn,
            addr,
            rkey,
            left: len,
            begun: false,
        });
        Ok(())
    }

    fn atomic<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        packet: &Packet<'_>,
    ) -> Result<(), Refusal> {
        let Some(eth) = packet
            .atomic
            .filter(|_| self.inbound.is_idle() && link.max_dest_rd_atomic > 0)
        else {
            return Err(Refusal::Nak(NakCode::INVALID_REQUEST));
        };
        let addr = eth.va.get();
        if !addr.is_multiple_of(8) {
            return Err(Refusal::Nak(NakCode::INVALID_REQUEST));
        }
        if !link.access.contains(Access::REMOTE_ATOMIC) {
            return Err(Refusal::Nak(NakCode::REMOTE_ACCESS));
        }
        if self.replies.len() >= self.max_replies {
            return Ok(());
        }
        let op = if packet.bth.opcode == Opcode::RC_FETCH_ADD {
            AtomicOp::FetchAdd {
                add: eth.swap_add.get(),
            }
        } else {
            AtomicOp::CompareSwap {
                compare: eth.compare.get(),
                swap: eth.swap_add.get(),
            }
        };
        let original = cx
            .mem
            .atomic(link.pd, eth.r_key.get(), addr, op)
            .map_err(|_| Refusal::Nak(NakCode::REMOTE_ACCESS))?;
        if self.saved.len() == self.max_saved {
            self.saved.pop_front();
        }
        self.saved.push_back((psn, original));
        self.refused = false;
        self.expected = psn.plus(1);
        self.msn = self.msn.wrapping_add(1);
        self.reply(Reply::Atomic {
            psn,
            msn: self.msn,
            original,
        });
        Ok(())
    }

    /// A packet that was carried out before: its answer has been lost, or it came twice.
    fn duplicate<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        packet: &Packet<'_>,
    ) {
        match (packet.op, packet.reth) {
            (Some(Operation::ReadRequest), Some(reth)) => {
                let (addr, rkey, len) = (reth.va.get(), reth.r_key.get(), reth.len.get());
                let packets = len.div_ceil(link.mtu).max(1);
                let behind = self.expected.since(psn);
                if len <= 1 << 31 && packets <= behind && readable(cx, link, addr, rkey, len) {
                    self.reply(Reply::Read {
                        psn,
                        msn: self.msn,
                        addr,
                        rkey,
                        left: len,
                        begun: false,
                    });
                }
            }
            (Some(Operation::Atomic), _) => {
                if let Some((_, original)) = self.saved.iter().find(|(saved, _)| *saved == psn) {
                    self.reply(Reply::Atomic {
                        psn,
                        msn: self.msn,
                        original: *original,
                    });
                }
            }
            (Some(Operation::Send { .. } | Operation::Write { .. }), _) => {
                self.acknowledge(self.expected.prev());
            }
            _ => {}
        }
    }

    /// Acknowledges everything up to `psn`, together with what is not yet sent.
    fn acknowledge(&mut self, psn: Psn) {
        let ack = Reply::Ack {
            psn,
            msn: self.msn,
            syndrome: Syndrome::Ack,
        };
        match self.replies.back_mut() {
            Some(
                last @ Reply::Ack {
                    syndrome: Syndrome::Ack,
                    ..
                },
            ) => *last = ack,
            _ => self.reply(ack),
        }
    }

    /// One that does not fit is dropped, as the network might have: the peer asks again.
    fn reply(&mut self, reply: Reply) {
        if self.replies.len() <= self.max_replies {
            self.replies.push_back(reply);
        }
    }

    /// Puts answers into the burst.
    pub(in super::super) fn fill<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        burst: &mut Burst,
    ) -> Filled {
        while let Some(reply) = self.replies.front_mut() {
            let sent = match reply {
                Reply::Ack { psn, msn, syndrome } => {
                    let aeth = aeth(*syndrome, *msn);
                    let bth = link.bth(Opcode::RC_ACKNOWLEDGE, *psn);
                    burst.push(&link.destination, &bth, [bytes_of(&aeth), &[], &[]])
                }
                Reply::Atomic { psn, msn, original } => {
                    let aeth = aeth(Syndrome::Ack, *msn);
                    let value = AtomicAckEth {
                        original: Be64::new(*original),
                    };
                    let bth = link.bth(Opcode::RC_ATOMIC_ACKNOWLEDGE, *psn);
                    burst.push(
                        &link.destination,
                        &bth,
                        [bytes_of(&aeth), bytes_of(&value), &[]],
                    )
                }
                Reply::Read { .. } => match send_read(cx, link, burst, reply) {
                    Filled::Idle => true,
                    Filled::Full => false,
                    Filled::Failed(_) => {
                        let Reply::Read { psn, .. } = *reply else {
                            return Filled::Idle;
                        };
                        self.replies.clear();
                        self.give_up(psn, NakCode::REMOTE_ACCESS, Status::Flushed);
                        return Filled::Failed(Status::Flushed);
                    }
                },
            };
            if !sent {
                return Filled::Full;
            }
            self.replies.pop_front();
        }
        Filled::Idle
    }
}

/// Sends what is left of an answer to a READ: `Full` until all of it has been sent.
fn send_read<M: Memory>(
    cx: &mut Cx<'_, M>,
    link: &Link,
    burst: &mut Burst,
    reply: &mut Reply,
) -> Filled {
    let Reply::Read {
        psn,
        msn,
        addr,
        rkey,
        left,
        begun,
    } = reply
    else {
        return Filled::Idle;
    };
    loop {
        let len = (*left).min(link.mtu);
        let last = *left <= link.mtu;
        let opcode = match (*begun, last) {
            (false, false) => Opcode::RC_READ_RESPONSE_FIRST,
            (false, true) => Opcode::RC_READ_RESPONSE_ONLY,
            (true, false) => Opcode::RC_READ_RESPONSE_MIDDLE,
            (true, true) => Opcode::RC_READ_RESPONSE_LAST,
        };
        let size = len as usize;
        let pad = size.wrapping_neg() & 3;
        let Some(header) = opcode.header_len() else {
            return Filled::Idle;
        };
        let whole = header + size + pad + icrc::LEN;
        if !burst.fits(&link.destination, whole) {
            return Filled::Full;
        }
        let mut writer = Writer::new(burst.place(whole));
        let bth = link.bth(opcode, *psn);
        writer.put(&Bth {
            flags: bth.flags | pad_bits(pad),
            ..bth
        });
        if opcode != Opcode::RC_READ_RESPONSE_MIDDLE {
            writer.put(&aeth(Syndrome::Ack, *msn));
        }
        if size > 0
            && cx
                .mem
                .read(
                    link.pd,
                    *rkey,
                    Access::REMOTE_READ,
                    *addr,
                    writer.space(size),
                )
                .is_err()
        {
            return Filled::Failed(Status::Flushed);
        }
        writer.space(pad).fill(0);
        burst.seal(&link.destination, whole);
        *begun = true;
        *psn = psn.plus(1);
        *addr = addr.wrapping_add(u64::from(len));
        *left -= len;
        if last {
            return Filled::Idle;
        }
    }
}

fn readable<M: Memory>(cx: &Cx<'_, M>, link: &Link, addr: u64, rkey: u32, len: u32) -> bool {
    len == 0
        || link.access.contains(Access::REMOTE_READ)
            && cx
                .mem
                .check(link.pd, rkey, Access::REMOTE_READ, addr, u64::from(len))
                .is_ok()
}

const fn aeth(syndrome: Syndrome, msn: u32) -> Aeth {
    Aeth {
        syndrome: syndrome.to_byte(),
        msn: Be24::new(msn),
    }
}
