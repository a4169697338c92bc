//! The unreliable connection: as RC without answers (IBTA 9.8.2).

use rdma_wire::{Be32, Be64};

use super::burst::{Burst, Writer};
use super::completion::Status;
use super::memory::Memory;
use super::packet::header::{Bth, Reth};
use super::packet::{Opcode, Operation, icrc};
use super::psn::Psn;
use super::qp::{Cx, Link};
use super::queue::Ring;
use super::rc::{Filled, pad_bits};
use super::work::{PostError, SendOp, SendRequest, SendWqe, total};

/// The send queue of an unreliable connection: a request has ended when its last packet left.
#[derive(Debug)]
pub(super) struct Sender {
    sq: Ring<SendWqe>,
    next: Psn,
    /// Packets of the oldest request that left.
    offset: u32,
}

impl Sender {
    pub(super) fn new(depth: usize, max_sge: usize, max_inline: usize) -> Self {
        Self {
            sq: Ring::new(depth, || SendWqe::with_capacity(max_sge, max_inline)),
            next: Psn::default(),
            offset: 0,
        }
    }

    pub(super) fn start(&mut self, psn: Psn) {
        self.sq.clear();
        self.next = psn;
        self.offset = 0;
    }

    /// Whether a message has begun to leave.
    pub(super) const fn is_under_way(&self) -> bool {
        self.offset > 0
    }

    pub(super) fn post(&mut self, request: &SendRequest<'_>, link: &Link) -> Result<(), PostError> {
        if request.op.is_answered() || matches!(request.op, SendOp::SendInvalidate(_)) {
            return Err(PostError::Operation);
        }
        let len = request
            .inline
            .map_or_else(|| total(request.sges), |bytes| bytes.len() as u64);
        let len32 = u32::try_from(len)
            .ok()
            .filter(|len| *len <= 1 << 31)
            .ok_or(PostError::TooLong(len))?;
        let wqe = self.sq.push().ok_or(PostError::Full)?;
        wqe.set(request, len32);
        wqe.packets = len32.div_ceil(link.mtu).max(1);
        Ok(())
    }

    pub(super) fn fill<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        burst: &mut Burst,
        draining: bool,
    ) -> Filled {
        while let Some(wqe) = self.sq.front() {
            let Some(op) = wqe.op else {
                return Filled::Idle;
            };
            let (first, last) = (self.offset == 0, self.offset + 1 == wqe.packets);
            let at = self.offset * link.mtu;
            let len = (wqe.len - at).min(link.mtu) as usize;
            let pad = len.wrapping_neg() & 3;
            let operation = op.operation(first, last);
            let opcode = Opcode(operation.request_opcode().0 | 0x20);
            let Some(header) = opcode.header_len() else {
                return Filled::Idle;
            };
            let whole = header + len + pad + icrc::LEN;
            if !burst.fits(&link.destination, whole) {
                return Filled::Full;
            }
            let mut writer = Writer::new(burst.place(whole));
            let solicited = last && wqe.flags.solicited;
            let bth = link.bth(opcode, self.next);
            writer.put(&Bth {
                flags: bth.flags | if solicited { Bth::SOLICITED } else { 0 } | pad_bits(pad),
                ..bth
            });
            if let (Operation::Write { first: true, .. }, Some((addr, rkey))) =
                (operation, op.remote())
            {
                let len = Be32::new(wqe.len);
                writer.put(&Reth {
                    va: Be64::new(addr),
                    r_key: Be32::new(rkey),
                    len,
                });
            }
            match op {
                SendOp::SendImm(imm) | SendOp::WriteImm { imm, .. } if last => {
                    writer.put(&Be32::new(imm));
                }
                _ => {}
            }
            if wqe.gather(cx.mem, link.pd, at, writer.space(len)).is_err() {
                return Filled::Failed(Status::LocalProtection);
            }
            writer.space(pad).fill(0);
            burst.seal(&link.destination, whole);
            self.next = self.next.plus(1);
            self.offset += 1;
            if last {
                self.offset = 0;
                if let Some(wqe) = self.sq.pop() {
                    cx.complete_send(link, wqe, Status::Success);
                }
                if draining {
                    break;
                }
            }
        }
        Filled::Idle
    }

    pub(super) fn flush<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        status: Option<Status>,
    ) {
        let mut status = status.unwrap_or(Status::Flushed);
        while let Some(wqe) = self.sq.pop() {
            cx.complete_send(link, wqe, status);
            status = Status::Flushed;
        }
        self.offset = 0;
    }
}
