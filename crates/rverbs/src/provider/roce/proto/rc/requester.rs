//! The side that sends requests: segmentation, window, acknowledgements, retries.

use std::collections::VecDeque;

use bytemuck::bytes_of;
use rdma_wire::{Be16, Be24, Be32, Be64};

use super::super::burst::{Burst, Writer};
use super::super::completion::Status;
use super::super::memory::Memory;
use super::super::packet::header::{AtomicEth, Bth, NakCode, Reth, Syndrome};
use super::super::packet::{Opcode, Operation, Packet, icrc};
use super::super::psn::Psn;
use super::super::qp::{Cx, Link};
use super::super::queue::Ring;
use super::super::time::{Time, ack_timeout, rnr_delay};
use super::super::work::{PostError, SendOp, SendRequest, SendWqe, scatter, total};
use super::window::Window;

/// More packets without a request for acknowledgement than any limit.
const ASK_AT_ONCE: u32 = 1 << 16;

/// Why filling a burst ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Filled {
    /// Nothing more can be sent now.
    Idle,
    /// There is more, but the burst takes no more.
    Full,
    /// The oldest request cannot be carried out.
    Failed(Status),
}

/// What became of a packet for the requester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Outcome {
    /// Dealt with, or rightly ignored.
    Done,
    /// The oldest request has failed, and with it the queue pair.
    Failed(Status),
}

/// The send queue of a reliable connection.
///
/// A request owns its sequence numbers from the moment it is posted, so the place to send from is
/// nothing but a number, and going back is setting it.
#[derive(Debug)]
pub(in super::super) struct Requester {
    sq: Ring<SendWqe>,
    /// The entry, counted from the oldest, that `next` falls into.
    cursor: usize,
    /// For the next request to be posted.
    post: Psn,
    /// The oldest that is not acknowledged.
    una: Psn,
    /// The next to be sent.
    next: Psn,
    /// One past the last that ever was sent.
    sent: Psn,
    /// Ends of the READs and atomics that are under way.
    reads: VecDeque<Psn>,
    window: Window,
    /// Packets since the last that asked for an acknowledgement.
    since_ack: u32,
    /// The last that asked for an acknowledgement.
    asked: Option<Psn>,
    retries: u8,
    rnr_retries: u8,
    /// When the first of the retries was, since the last answer.
    tried_since: Option<Time>,
    timer: Option<Time>,
    /// Send nothing before, because the peer had no receive posted.
    rnr_until: Option<Time>,
    /// Went back because of a hole in the answers, and nothing has been answered since.
    recovering: bool,
    /// The entry at `cursor` has a local fault; it is reported once it is the oldest.
    stuck: bool,
    /// Packets sent again.
    retransmitted: u64,
}

impl Requester {
    pub(in super::super) fn new(
        depth: usize,
        max_sge: usize,
        max_inline: usize,
        window: u32,
        max_reads: usize,
    ) -> Self {
        Self {
            sq: Ring::new(depth, || SendWqe::with_capacity(max_sge, max_inline)),
            cursor: 0,
            post: Psn::default(),
            una: Psn::default(),
            next: Psn::default(),
            sent: Psn::default(),
            reads: VecDeque::with_capacity(max_reads.max(1)),
            window: Window::new(window),
            since_ack: 0,
            asked: None,
            retries: 0,
            rnr_retries: 0,
            tried_since: None,
            timer: None,
            rnr_until: None,
            recovering: false,
            stuck: false,
            retransmitted: 0,
        }
    }

    /// Begins at a sequence number.
    pub(in super::super) fn start(&mut self, psn: Psn, link: &Link) {
        self.sq.clear();
        self.reads.clear();
        self.cursor = 0;
        self.post = psn;
        self.una = psn;
        self.next = psn;
        self.sent = psn;
        self.window = Window::new(link.window);
        self.since_ack = 0;
        self.asked = None;
        self.retries = link.retry_count;
        self.rnr_retries = link.rnr_retry;
        self.tried_since = None;
        self.timer = None;
        self.rnr_until = None;
        self.recovering = false;
        self.stuck = false;
    }

    pub(in super::super) const fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Whether everything posted has been sent.
    pub(in super::super) fn has_nothing_new(&self) -> bool {
        self.next == self.post
    }

    /// Whether a packet that was sent is not acknowledged.
    pub(in super::super) fn is_under_way(&self) -> bool {
        self.sent != self.una
    }

    /// When [`Requester::on_timeout`] is due.
    pub(in super::super) fn deadline(&self) -> Option<Time> {
        match (self.timer, self.rnr_until) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Takes a request over.
    pub(in super::super) fn post(
        &mut self,
        request: &SendRequest<'_>,
        link: &Link,
    ) -> Result<(), PostError> {
        let len = request
            .inline
            .map_or_else(|| total(request.sges), |bytes| bytes.len() as u64);
        let len32 = u32::try_from(len)
            .ok()
            .filter(|len| *len <= 1 << 31)
            .ok_or(PostError::TooLong(len))?;
        if request.op.is_answered() && link.max_rd_atomic == 0 {
            return Err(PostError::Operation);
        }
        let packets = match request.op {
            SendOp::FetchAdd { .. } | SendOp::CompareSwap { .. } => {
                if len != 8 {
                    return Err(PostError::TooLong(len));
                }
                1
            }
            _ => len32.div_ceil(link.mtu).max(1),
        };
        if u64::from(self.post.since(self.una)) + u64::from(packets) >= 1 << 23 {
            return Err(PostError::Full);
        }
        let first = self.post;
        let wqe = self.sq.push().ok_or(PostError::Full)?;
        wqe.set(request, len32);
        wqe.first = first;
        wqe.packets = packets;
        self.post = first.plus(packets);
        Ok(())
    }

    /// Puts packets into the burst while the window, the peer and the burst allow.
    pub(in super::super) fn fill<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        burst: &mut Burst,
        draining: bool,
    ) -> Filled {
        if let Some(until) = self.rnr_until {
            if cx.now < until {
                return Filled::Idle;
            }
            self.rnr_until = None;
        }
        if burst.count() == 0 && self.holds_back() {
            return Filled::Idle;
        }
        while !self.blocked(link) {
            let Some(wqe) = self.sq.get(self.cursor) else {
                return Filled::Idle;
            };
            let offset = self.next.since(wqe.first);
            if offset >= wqe.packets {
                self.cursor += 1;
                continue;
            }
            if draining && offset == 0 && self.next == self.sent {
                return Filled::Idle;
            }
            let Some(op) = wqe.op else {
                return Filled::Idle;
            };
            let filled = match op {
                SendOp::Read { addr, rkey } => self.send_read(link, burst, offset, addr, rkey),
                SendOp::FetchAdd { addr, rkey, add } => {
                    self.send_atomic(link, burst, Opcode::RC_FETCH_ADD, (addr, rkey), add, 0)
                }
                SendOp::CompareSwap {
                    addr,
                    rkey,
                    compare,
                    swap,
                } => self.send_atomic(
                    link,
                    burst,
                    Opcode::RC_COMPARE_SWAP,
                    (addr, rkey),
                    swap,
                    compare,
                ),
                _ => self.send_data(cx, link, burst, offset, op),
            };
            match filled {
                Filled::Idle => {}
                other => return other,
            }
            if self.timer.is_none() {
                self.timer = ack_timeout(link.timeout).map(|ns| cx.now.after(ns));
            }
        }
        Filled::Idle
    }

    /// Whether the packet at `next` may not be sent now.
    fn blocked(&self, link: &Link) -> bool {
        let Some(mut wqe) = self.sq.get(self.cursor) else {
            return true;
        };
        let mut offset = self.next.since(wqe.first);
        if offset >= wqe.packets {
            let Some(following) = self.sq.get(self.cursor + 1) else {
                return true;
            };
            wqe = following;
            offset = 0;
        }
        if self.stuck {
            return true;
        }
        let under_way = self.next.since(self.una);
        let window = self.window.size();
        if under_way >= window {
            return true;
        }
        if offset == 0 && wqe.flags.fence && !self.reads.is_empty() {
            return true;
        }
        if wqe.op.is_some_and(SendOp::is_answered)
            && self.reads.len() >= usize::from(link.max_rd_atomic)
        {
            return true;
        }
        matches!(wqe.op, Some(SendOp::Read { .. }))
            && under_way > 0
            && under_way + read_chunk(link, offset, wqe.packets) > window
    }

    /// Packets that a burst is worth to be begun for: a burst costs hardly more than a packet.
    fn quantum(&self) -> u32 {
        (self.window.size() / 4).clamp(1, 15)
    }

    /// Whether to wait for the acknowledgement that is on its way and lets more go at once, rather than
    /// begin a burst for the few packets that may go now.
    fn holds_back(&self) -> bool {
        let under_way = self.next.since(self.una);
        let room = self.window.size().saturating_sub(under_way);
        under_way > 0
            && room < self.quantum()
            && self.next == self.sent
            && self.post.since(self.next) > room
    }

    fn advance(&mut self, packets: u32) {
        if self.next.cmp_to(self.sent) < 0 {
            self.retransmitted += u64::from(packets);
        }
        self.next = self.next.plus(packets);
        if self.next.cmp_to(self.sent) > 0 {
            self.sent = self.next;
        }
    }

    fn send_data<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        burst: &mut Burst,
        offset: u32,
        op: SendOp,
    ) -> Filled {
        let Some(wqe) = self.sq.get(self.cursor) else {
            return Filled::Idle;
        };
        let (first, last) = (offset == 0, offset + 1 == wqe.packets);
        let at = offset * link.mtu;
        let len = (wqe.len - at).min(link.mtu) as usize;
        let pad = len.wrapping_neg() & 3;
        let opcode = op.operation(first, last).request_opcode();
        let Some(header) = opcode.header_len() else {
            return Filled::Idle;
        };
        let whole = header + len + pad + icrc::LEN;
        if !burst.fits(&link.destination, whole) {
            return Filled::Full;
        }
        let mut writer = Writer::new(burst.place(whole));
        let head = writer.space(header);
        if wqe.gather(cx.mem, link.pd, at, writer.space(len)).is_err() {
            // Requests before it may still succeed, so it waits for its turn to fail.
            if self.cursor == 0 {
                return Filled::Failed(Status::LocalProtection);
            }
            self.stuck = true;
            return Filled::Idle;
        }
        writer.space(pad).fill(0);
        let solicited = last && wqe.flags.solicited;
        let (total, psn) = (wqe.len, self.next);
        self.advance(1);
        self.since_ack += 1;
        let under_way = self.next.since(self.una);
        let room = self.window.size().saturating_sub(under_way);
        // Each acknowledgement costs the peer as much as a burst. One that is on its way opens the window.
        let awaits = self.asked.is_some_and(|asked| asked.cmp_to(self.una) >= 0);
        let ask = self.since_ack >= link.ack_every
            || (!awaits && room < self.quantum())
            || (last && room > 0 && self.blocked(link));
        if ask {
            self.since_ack = 0;
            self.asked = Some(psn);
        }
        let bth = Bth {
            flags: Bth::MIGRATED | if solicited { Bth::SOLICITED } else { 0 } | pad_bits(pad),
            ack: if ask { Bth::ACK_REQUEST } else { 0 },
            ..link.bth(opcode, psn)
        };
        let mut writer = Writer::new(head);
        writer.put(&bth);
        if let (Operation::Write { first: true, .. }, Some((addr, rkey))) =
            (op.operation(first, last), op.remote())
        {
            writer.put(&Reth {
                va: Be64::new(addr),
                r_key: Be32::new(rkey),
                len: Be32::new(total),
            });
        }
        match op {
            SendOp::SendImm(word)
            | SendOp::WriteImm { imm: word, .. }
            | SendOp::SendInvalidate(word)
                if last =>
            {
                writer.put(&Be32::new(word));
            }
            _ => {}
        }
        burst.seal(&link.destination, whole);
        Filled::Idle
    }

    /// Asks for a part of a READ, not for all at once, so that the answers cannot be more than the
    /// window and our socket's buffer hold. The sequence numbers are those of one request for all.
    fn send_read(
        &mut self,
        link: &Link,
        burst: &mut Burst,
        offset: u32,
        addr: u64,
        rkey: u32,
    ) -> Filled {
        let Some(wqe) = self.sq.get(self.cursor) else {
            return Filled::Idle;
        };
        let packets = read_chunk(link, offset, wqe.packets);
        let at = offset * link.mtu;
        let len = (wqe.len - at).min(packets.saturating_mul(link.mtu));
        let reth = Reth {
            va: Be64::new(addr.wrapping_add(u64::from(at))),
            r_key: Be32::new(rkey),
            len: Be32::new(len),
        };
        let bth = Bth {
            ack: Bth::ACK_REQUEST,
            ..link.bth(Opcode::RC_READ_REQUEST, self.next)
        };
        if !burst.push(&link.destination, &bth, [bytes_of(&reth), &[], &[]]) {
            return Filled::Full;
        }
        self.advance(packets);
        self.reads.push_back(self.next);
        self.since_ack = 0;
        Filled::Idle
    }

    fn send_atomic(
        &mut self,
        link: &Link,
        burst: &mut Burst,
        opcode: Opcode,
        (addr, rkey): (u64, u32),
        swap_add: u64,
        compare: u64,
    ) -> Filled {
        let eth = AtomicEth {
            va: Be64::new(addr),
            r_key: Be32::new(rkey),
            swap_add: Be64::new(swap_add),
            compare: Be64::new(compare),
        };
        let bth = Bth {
            ack: Bth::ACK_REQUEST,
            ..link.bth(opcode, self.next)
        };
        if !burst.push(&link.destination, &bth, [bytes_of(&eth), &[], &[]]) {
            return Filled::Full;
        }
        self.advance(1);
        self.reads.push_back(self.next);
        self.since_ack = 0;
        Filled::Idle
    }

    /// The time of [`Requester::deadline`] may have come.
    pub(in super::super) fn on_timeout(&mut self, now: Time, link: &Link) -> Outcome {
        if self.rnr_until.is_some_and(|until| until <= now) {
            self.rnr_until = None;
        }
        if self.timer.is_none_or(|timer| timer > now) {
            return Outcome::Done;
        }
        self.timer = None;
        if self.una == self.sent {
            return Outcome::Done;
        }
        if self.retries == 0 {
            let Some(again) = self.again(now, link) else {
                return Outcome::Failed(Status::RetryExceeded);
            };
            self.go_back(now, link);
            self.timer = self.timer.max(Some(again));
            return Outcome::Done;
        }
        self.tried_since.get_or_insert(now);
        self.retries -= 1;
        self.go_back(now, link);
        Outcome::Done
    }

    /// When to try again although the retries are over; `None` when that was done for long enough.
    ///
    /// An adapter answers whatever its processes do. A peer of our kind may wait for a processor.
    fn again(&mut self, now: Time, link: &Link) -> Option<Time> {
        let since = *self.tried_since.get_or_insert(now);
        (now.since(since) < link.patience).then(|| now.after(link.patience / 32))
    }

    /// A congestion notification came.
    pub(in super::super) fn on_congestion(&mut self, now: Time) {
        self.window.congested(now);
    }

    /// An acknowledgement, a READ response or the result of an atomic.
    pub(in super::super) fn handle<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        packet: &Packet<'_>,
    ) -> Outcome {
        let psn = packet.bth.psn();
        // What was never sent cannot be answered.
        if psn.cmp_to(self.sent) >= 0 {
            return Outcome::Done;
        }
        match (packet.op, packet.aeth) {
            (Some(Operation::Acknowledge), Some(aeth)) => {
                match Syndrome::from_byte(aeth.syndrome) {
                    Syndrome::Ack => self.on_ack(cx, link, psn.plus(1)),
                    Syndrome::Rnr(code) => self.on_rnr(cx, link, psn, code),
                    Syndrome::Nak(code) => self.on_nak(cx, link, psn, code),
                    Syndrome::Reserved(_) => Outcome::Done,
                }
            }
            (Some(Operation::ReadResponse { .. }), _) => {
                self.on_read_response(cx, link, psn, packet.payload)
            }
            (Some(Operation::AtomicAcknowledge), _) => {
                self.on_atomic_result(cx, link, psn, packet.original.unwrap_or_default())
            }
            _ => Outcome::Done,
        }
    }

    fn on_ack<M: Memory>(&mut self, cx: &mut Cx<'_, M>, link: &Link, limit: Psn) -> Outcome {
        if limit.cmp_to(self.una) <= 0 {
            return Outcome::Done;
        }
        if self.progress(cx, link, limit) {
            Outcome::Done
        } else {
            self.hole(cx.now, link)
        }
    }

    fn on_rnr<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        code: u8,
    ) -> Outcome {
        if psn.cmp_to(self.una) < 0 {
            return Outcome::Done;
        }
        if !self.progress(cx, link, psn) {
            return self.hole(cx.now, link);
        }
        if self.rnr_until.is_some() {
            // The same refusal, twice.
            return Outcome::Done;
        }
        let mut until = cx.now.after(rnr_delay(code));
        if link.rnr_retry != 7 {
            if self.rnr_retries == 0 {
                let Some(again) = self.again(cx.now, link) else {
                    return Outcome::Failed(Status::RnrRetryExceeded);
                };
                until = until.max(again);
            } else {
                self.tried_since.get_or_insert(cx.now);
                self.rnr_retries -= 1;
            }
        }
        self.rewind();
        self.timer = None;
        self.rnr_until = Some(until);
        Outcome::Done
    }

    fn on_nak<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        code: NakCode,
    ) -> Outcome {
        if psn.cmp_to(self.una) < 0 {
            return Outcome::Done;
        }
        if !self.progress(cx, link, psn) {
            if code == NakCode::PSN_SEQUENCE {
                return self.hole(cx.now, link);
            }
            // The answers that are missing will not come any more.
            while self
                .sq
                .front()
                .is_some_and(|wqe| psn.cmp_to(wqe.first.plus(wqe.packets)) >= 0)
            {
                self.retire(cx, link, Status::Flushed);
            }
        }
        match code {
            NakCode::PSN_SEQUENCE => {
                if self.next == self.una {
                    // Already gone back, and nothing sent since.
                    return Outcome::Done;
                }
                self.window.lost();
                self.rewind();
                self.restart_timer(cx.now, link);
                Outcome::Done
            }
            NakCode::INVALID_REQUEST | NakCode::INVALID_RD_REQUEST => {
                Outcome::Failed(Status::RemoteInvalidRequest)
            }
            NakCode::REMOTE_ACCESS => Outcome::Failed(Status::RemoteAccess),
            _ => Outcome::Failed(Status::RemoteOperation),
        }
    }

    fn on_read_response<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        payload: &[u8],
    ) -> Outcome {
        if psn.cmp_to(self.una) < 0 {
            return Outcome::Done;
        }
        if !self.progress(cx, link, psn) {
            return self.hole(cx.now, link);
        }
        let Some(wqe) = self.sq.front() else {
            return Outcome::Done;
        };
        if !matches!(wqe.op, Some(SendOp::Read { .. })) || self.una != psn {
            return Outcome::Failed(Status::BadResponse);
        }
        let offset = psn.since(wqe.first);
        if offset >= wqe.packets {
            return Outcome::Done;
        }
        let at = offset * link.mtu;
        let want = (wqe.len - at).min(link.mtu) as usize;
        if payload.len() != want {
            return Outcome::Failed(Status::BadResponse);
        }
        if scatter(&wqe.sges, cx.mem, link.pd, at, payload).is_err() {
            return Outcome::Failed(Status::LocalProtection);
        }
        self.answered(cx, link, psn.plus(1));
        Outcome::Done
    }

    fn on_atomic_result<M: Memory>(
        &mut self,
        cx: &mut Cx<'_, M>,
        link: &Link,
        psn: Psn,
        original: u64,
    ) -> Outcome {
        if psn.cmp_to(self.una) < 0 {
            return Outcome::Done;
        }
        if !self.progress(cx, link, psn) {
            return self.hole(cx.now, link);
        }
        let Some(wqe) = self.sq.front() else {
            return Outcome::Done;
        };
        if !matches!(
            wqe.op,
            Some(SendOp::FetchAdd { .. } | SendOp::CompareSwap { .. })
        ) || self.una != psn
        {
            return Outcome::Failed(Status::BadResponse);
        }
        // The local side of an atomic is in host order.
        if scatter(&wqe.sges, cx.mem, link.pd, 0, &original.to_ne_bytes()).is_err() {
            return Outcome::Failed(Status::LocalProtection);
        }
        self.answered(cx, link, psn.plus(1));
        Outcome::Done
    }

    /// An answer with data took the oldest request on to `una`.
    fn answered<M: Memory>(&mut self, cx: &mut Cx<'_, M>, link: &Link, una: Psn) {
        self.una = una;
        if self
            .sq
            .front()
            .is_some_and(|wqe| wqe.first.plus(wqe.packets) == una)
        {
            self.retire(cx, link, Status::Success);
        }
        self.moved(cx.now, link, 1);
    }

    /// Takes everything before `limit` as acknowledged. False if that would skip the data of a
    /// READ or atomic: then everything before that one is.
    fn progress<M: Memory>(&mut self, cx: &mut Cx<'_, M>, link: &Link, limit: Psn) -> bool {
        let before = self.una;
        let mut whole = true;
        while limit.cmp_to(self.una) > 0 {
            let Some(wqe) = self.sq.front() else { break };
            if wqe.op.is_some_and(SendOp::is_answered) {
                whole = false;
                break;
            }
            let end = wqe.first.plus(wqe.packets);
            if limit.cmp_to(end) >= 0 {
                self.una = end;
                self.retire(cx, link, Status::Success);
            } else {
                self.una = limit;
            }
        }
        let packets = self.una.since(before);
        if packets > 0 {
            self.moved(cx.now, link, packets);
        }
        whole
    }

    /// `una` went on by so many packets.
    fn moved(&mut self, now: Time, link: &Link, packets: u32) {
        if self.next.cmp_to(self.una) < 0 {
            // What was about to be sent again has been answered after all.
            self.next = self.una;
            self.cursor = 0;
        }
        while self
            .reads
            .front()
            .is_some_and(|end| end.cmp_to(self.una) <= 0)
        {
            self.reads.pop_front();
        }
        self.retries = link.retry_count;
        self.rnr_retries = link.rnr_retry;
        self.tried_since = None;
        self.recovering = false;
        self.window.acked(packets);
        self.restart_timer(now, link);
        if self.stuck && self.cursor == 0 {
            self.stuck = false;
        }
    }

    fn restart_timer(&mut self, now: Time, link: &Link) {
        self.timer = if self.una == self.next {
            None
        } else {
            ack_timeout(link.timeout).map(|ns| now.after(ns))
        };
    }

    /// The answer to a READ or atomic is missing while later ones are here.
    fn hole(&mut self, now: Time, link: &Link) -> Outcome {
        if self.recovering {
            return Outcome::Done;
        }
        if self.retries == 0 {
            return Outcome::Failed(Status::RetryExceeded);
        }
        self.retries -= 1;
        self.recovering = true;
        self.go_back(now, link);
        Outcome::Done
    }

    fn go_back(&mut self, now: Time, link: &Link) {
        self.window.lost();
        self.rewind();
        // From now on, whether or not it can be sent at once.
        self.timer = ack_timeout(link.timeout).map(|ns| now.after(ns));
    }

    /// Sets the place to send from back to the oldest that is not acknowledged.
    fn rewind(&mut self) {
        self.next = self.una;
        self.cursor = 0;
        // The first packet that is sent again asks for an acknowledgement, so that it is known soon
        // how far the peer has come.
        self.since_ack = ASK_AT_ONCE;
        self.asked = None;
        self.stuck = false;
        while self
            .reads
            .back()
            .is_some_and(|end| end.cmp_to(self.next) > 0)
        {
            self.reads.pop_back();
        }
    }

    /// Ends the oldest request.
    fn retire<M: Memory>(&mut self, cx: &mut Cx<'_, M>, link: &Link, status: Status) {
        if let Some(wqe) = self.sq.pop() {
            cx.complete_send(link, wqe, status);
        }
        self.cursor = self.cursor.saturating_sub(1);
    }

    /// Ends the oldest request with `status`, if given, and all others as flushed.
    pub(in super::super) fn flush<M: Memory>(
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
        self.cursor = 0;
        self.una = self.post;
        self.next = self.post;
        self.sent = self.post;
        self.reads.clear();
        self.timer = None;
        self.rnr_until = None;
        self.stuck = false;
    }
}

/// How many packets a READ request asks for that begins at packet `offset` of the message.
///
/// The places where one request ends and the next begins never change, whatever the window and
/// however often a part is asked for again: a responder takes a request either for a new one or
/// for a duplicate, and one that is partly both for neither.
fn read_chunk(link: &Link, offset: u32, packets: u32) -> u32 {
    let share = (link.window / u32::from(link.max_rd_atomic.clamp(1, 4))).max(1);
    (share - offset % share).min(packets - offset)
}

pub(in super::super) const fn pad_bits(pad: usize) -> u8 {
    match pad {
        1 => 0x10,
        2 => 0x20,
        3 => 0x30,
        _ => 0,
    }
}

impl Link {
    /// A base header with what does not change on the connection.
    pub(in super::super) const fn bth(&self, opcode: Opcode, psn: Psn) -> Bth {
        Bth {
            opcode,
            flags: Bth::MIGRATED,
            p_key: Be16::new(self.p_key),
            congestion: 0,
            dest_qp: Be24::new(self.peer_qpn),
            ack: 0,
            psn: Be24::new(psn.get()),
        }
    }
}
