//! Datagrams (IBTA 9.8.3).

use core::net::IpAddr;

use rdma_wire::{Be24, Be32};

use super::burst::{Burst, Writer};
use super::completion::{Completion, CompletionOp, Status};
use super::engine::Meta;
use super::memory::Memory;
use super::packet::header::{Bth, Deth};
use super::packet::{Opcode, Packet, icrc};
use super::psn::Psn;
use super::qp::{Cx, Link};
use super::queue::{RecvQueue, RecvWqe, Ring};
use super::rc::{Filled, pad_bits};
use super::work::{PostError, SendOp, SendRequest, SendWqe, scatter, total};

/// Bytes before the payload that say who sent it: a GRH, or an IPv4 header in the last 20.
pub const GRH_LEN: usize = 40;
const GRH_OFFSET: u32 = 40;

/// The send queue of datagrams.
#[derive(Debug)]
pub(super) struct Sender {
    sq: Ring<SendWqe>,
    next: Psn,
}

impl Sender {
    pub(super) fn new(depth: usize, max_sge: usize, max_inline: usize) -> Self {
        Self {
            sq: Ring::new(depth, || SendWqe::with_capacity(max_sge, max_inline)),
            next: Psn::default(),
        }
    }

    pub(super) fn start(&mut self, psn: Psn) {
        self.sq.clear();
        self.next = psn;
    }

    pub(super) fn post(&mut self, request: &SendRequest<'_>, link: &Link) -> Result<(), PostError> {
        if !matches!(request.op, SendOp::Send | SendOp::SendImm(_)) {
            return Err(PostError::Operation);
        }
        if request.to.is_none() {
            return Err(PostError::NoAddress);
        }
        let len = request
            .inline
            .map_or_else(|| total(request.sges), |bytes| bytes.len() as u64);
        let len32 = u32::try_from(len)
            .ok()
            .filter(|len| *len <= link.mtu)
            .ok_or(PostError::TooLong(len))?;
        let wqe = self.sq.push().ok_or(PostError::Full)?;
        wqe.set(request, len32);
        Ok(())
    }

    pub(super) fn fill<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        burst: &mut Burst,
    ) -> Filled {
        while let Some(wqe) = self.sq.front() {
            let Some(to) = wqe.to else {
                return Filled::Failed(Status::LocalQpOperation);
            };
            let imm = match wqe.op {
                Some(SendOp::SendImm(imm)) => Some(imm),
                _ => None,
            };
            let opcode = if imm.is_some() {
                Opcode::UD_SEND_ONLY_IMM
            } else {
                Opcode::UD_SEND_ONLY
            };
            let len = wqe.len as usize;
            let pad = len.wrapping_neg() & 3;
            let Some(header) = opcode.header_len() else {
                return Filled::Idle;
            };
            let whole = header + len + pad + icrc::LEN;
            let destination = to.ah.destination;
            if !burst.fits(&destination, whole) {
                return Filled::Full;
            }
            let mut writer = Writer::new(burst.place(whole));
            let bth = link.bth(opcode, self.next);
            writer.put(&Bth {
                flags: bth.flags
                    | if wqe.flags.solicited {
                        Bth::SOLICITED
                    } else {
                        0
                    }
                    | pad_bits(pad),
                dest_qp: Be24::new(to.qpn),
                ..bth
            });
            // A key with the top bit set stands for the one of the queue pair.
            let q_key = if to.q_key & 1 << 31 == 0 {
                to.q_key
            } else {
                link.q_key
            };
            writer.put(&Deth::new(q_key, link.qpn));
            if let Some(imm) = imm {
                writer.put(&Be32::new(imm));
            }
            if wqe.gather(cx.mem, link.pd, 0, writer.space(len)).is_err() {
                return Filled::Failed(Status::LocalProtection);
            }
            writer.space(pad).fill(0);
            burst.seal(&destination, whole);
            self.next = self.next.plus(1);
            if let Some(wqe) = self.sq.pop() {
                cx.complete_send(link, wqe, Status::Success);
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
    }
}

/// The receiving side of datagrams: each packet is a message.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    recv: RecvWqe,
}

impl Receiver {
    pub(super) fn with_capacity(max_sge: usize) -> Self {
        Self {
            recv: RecvWqe {
                wr_id: 0,
                sges: Vec::with_capacity(max_sge),
            },
        }
    }

    /// Takes a datagram. What does not fit or does not know the key is dropped, as the standard
    /// has it; a failure is one of the receive.
    pub(super) fn handle<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        rq: &mut RecvQueue,
        meta: &Meta,
        packet: &Packet<'_>,
    ) -> Result<(), Status> {
        let Some(deth) = packet.deth else {
            return Ok(());
        };
        if deth.q_key != link.q_key || packet.payload.len() > link.mtu as usize {
            return Ok(());
        }
        if !rq.take(cx.mem, link.qpn, &mut self.recv) {
            return Ok(());
        }
        let whole = GRH_LEN + packet.payload.len();
        let head = grh(meta, packet.payload.len());
        let fits = whole as u64 <= total(&self.recv.sges);
        let status = if !fits {
            Err(Status::LocalLength)
        } else if scatter(&self.recv.sges, cx.mem, link.pd, 0, &head).is_err()
            || scatter(&self.recv.sges, cx.mem, link.pd, GRH_OFFSET, packet.payload).is_err()
        {
            Err(Status::LocalProtection)
        } else {
            Ok(())
        };
        cx.completions.push_back(Completion {
            len: u32::try_from(whole).unwrap_or(u32::MAX),
            imm: packet.imm,
            src_qp: deth.src_qp.get(),
            grh: true,
            solicited: packet.bth.flags & Bth::SOLICITED != 0,
            ..Completion::of(
                link.recv_cq,
                link.qpn,
                self.recv.wr_id,
                CompletionOp::Receive,
                status.err().unwrap_or(Status::Success),
            )
        });
        status
    }
}

/// The header that a datagram came with, made again from what the socket tells.
fn grh(meta: &Meta, payload: usize) -> [u8; GRH_LEN] {
    let mut head = [0; GRH_LEN];
    let len = u16::try_from(payload + 8 + 12 + 8 + 4).unwrap_or(u16::MAX);
    match (meta.flow.src.ip(), meta.flow.dst.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let total = len.saturating_add(20).to_be_bytes();
            let mut ip = [
                0x45, meta.tos, total[0], total[1], 0, 0, 0x40, 0, 64, 17, 0, 0,
            ];
            let (s, d) = (src.octets(), dst.octets());
            let sum = checksum(&[&ip, &s, &d]).to_be_bytes();
            ip[10] = sum[0];
            ip[11] = sum[1];
            let mut writer = Writer::new(&mut head);
            writer.space(20);
            writer.bytes(&ip);
            writer.bytes(&s);
            writer.bytes(&d);
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            let l = len.to_be_bytes();
            let mut writer = Writer::new(&mut head);
            writer.bytes(&[
                0x60 | meta.tos >> 4,
                meta.tos << 4,
                0,
                0,
                l[0],
                l[1],
                17,
                64,
            ]);
            writer.bytes(&src.octets());
            writer.bytes(&dst.octets());
        }
        _ => {}
    }
    head
}

/// The checksum of IP.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u32;
    for part in parts {
        for pair in part.chunks(2) {
            if let [a, b] = *pair {
                sum += u32::from(u16::from_be_bytes([a, b]));
            }
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}
