//! What a packet that came in does.

use super::*;

impl Engine {
    /// A UDP payload came. Call [`Engine::poll_transmit`] once the batch that it came with is
    /// handled: acknowledgements then become one.
    pub fn handle_packet<M: Memory>(&mut self, now: Time, mem: &mut M, meta: &Meta, bytes: &[u8]) {
        let Ok(packet) = Packet::parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if !self.config.ignore_icrc && self.checker.check(&meta.flow, bytes).is_none() {
            self.counters.bad_icrc += 1;
            return;
        }
        let qpn = packet.bth.dest_qp.get();
        if qpn == 1 {
            self.handle_mad(meta, &packet);
            return;
        }
        let Some(index) = self.index(qpn) else {
            self.counters.unwanted += 1;
            return;
        };
        self.handle_qp_packet(now, mem, meta, index, &packet);
    }

    pub(super) fn handle_mad(&mut self, meta: &Meta, packet: &Packet<'_>) {
        let bytes = <[u8; MAD_LEN]>::try_from(packet.payload);
        match (packet.deth, bytes) {
            (Some(deth), Ok(bytes)) if deth.q_key == GSI_Q_KEY && self.mads_in.len() < MAX_MADS => {
                self.counters.received += 1;
                // Most senders choose the source port freely and listen on the standard one; ours
                // send from the port that they listen on.
                let mut dst = meta.flow.src;
                let base = self.config.base_port;
                if dst.port().wrapping_sub(base) >= 128 {
                    dst.set_port(base);
                }
                let flow = Flow {
                    src: meta.flow.dst,
                    dst,
                };
                let destination = Destination {
                    flow,
                    tos: meta.tos & 0xfc,
                };
                self.mads_in.push_back(Mad {
                    destination,
                    qpn: deth.src_qp.get(),
                    bytes,
                });
            }
            _ => self.counters.unwanted += 1,
        }
    }

    pub(super) fn handle_qp_packet<M: Memory>(
        &mut self,
        now: Time,
        mem: &mut M,
        meta: &Meta,
        index: usize,
        packet: &Packet<'_>,
    ) {
        let Self {
            slots,
            rqs,
            completions,
            counters,
            events,
            ..
        } = self;
        let Some(qp) = slots.get_mut(index).and_then(|slot| slot.qp.as_deref_mut()) else {
            return;
        };
        let Some(Some(rq)) = rqs.get_mut(qp.rq) else {
            return;
        };
        let link = &qp.link;
        let (transport, qpn) = (qp.config.transport, link.qpn);
        let connected = transport != Transport::Ud;
        let listens = matches!(qp.state, QpState::Rtr | QpState::Rts | QpState::Sqd)
            && (!connected || meta.flow.src.ip() == link.destination.flow.dst.ip())
            && same_partition(link.p_key, packet.bth.p_key.get());
        let class = match transport {
            Transport::Rc => 0x00,
            Transport::Uc => 0x20,
            Transport::Ud => 0x60,
        };
        if !listens || !(packet.is_cnp() || packet.bth.opcode.class() == class) {
            counters.unwanted += 1;
            return;
        }
        counters.received += 1;
        if meta.tos & 3 == 3 && connected && now.since(qp.last_notify) >= NOTIFY_INTERVAL_NS {
            qp.notify = true;
            qp.last_notify = now;
        }
        let mut cx = Cx {
            now,
            mem,
            completions,
        };
        let mut by_peer = false;
        // How the queue pair fails, if it does: the status of its oldest send, and of the receive
        // that is in progress.
        let mut failed: Option<(Option<Status>, Status)> = None;
        match &mut qp.service {
            Service::Rc {
                requester,
                responder,
            } => match packet.op {
                None => {
                    counters.notified += 1;
                    requester.on_congestion(now);
                }
                Some(
                    Operation::ReadResponse { .. }
                    | Operation::Acknowledge
                    | Operation::AtomicAcknowledge,
                ) => {
                    if matches!(qp.state, QpState::Rts | QpState::Sqd)
                        && let Outcome::Failed(status) = requester.handle(&mut cx, &qp.link, packet)
                    {
                        failed = Some((Some(status), Status::Flushed));
                    }
                    Self::watch(&mut self.wake, requester.deadline());
                }
                Some(_) => {
                    if qp.state == QpState::Rtr
                        && !core::mem::replace(&mut qp.established, true)
                        && events.len() < MAX_EVENTS
                    {
                        events.push_back(Event::Established { qpn });
                    }
                    if let Outcome::Failed(status) = responder.handle(&mut cx, &qp.link, rq, packet)
                    {
                        by_peer = true;
                        failed = Some((None, status));
                    }
                }
            },
            Service::Uc {
                inbound, expected, ..
            } => {
                if !packet.is_cnp()
                    && let Err(status) =
                        receive_uc(&mut cx, &qp.link, rq, inbound, expected, packet)
                {
                    by_peer = true;
                    failed = Some((None, status));
                }
            }
            Service::Ud { recv, .. } => {
                if !packet.is_cnp()
                    && let Err(status) = recv.handle(&mut cx, &qp.link, rq, meta, packet)
                {
                    failed = Some((None, status));
                }
            }
        }
        if let Some((send, recv)) = failed {
            self.break_off(now, mem, index, send, recv, by_peer);
        }
        self.activate(qpn);
    }

    /// The queue pair fails by itself.
    pub(super) fn break_off<M: Memory>(
        &mut self,
        now: Time,
        mem: &mut M,
        index: usize,
        send: Option<Status>,
        recv: Status,
        by_peer: bool,
    ) {
        if let Some(qp) = self.slots.get(index).and_then(|slot| slot.qp.as_deref())
            && qp.state != QpState::Error
            && self.events.len() < MAX_EVENTS
        {
            self.events.push_back(Event::Failed {
                qpn: qp.link.qpn,
                by_peer,
            });
        }
        self.flush(now, mem, index, send, recv);
    }

    pub(super) fn flush<M: Memory>(
        &mut self,
        now: Time,
        mem: &mut M,
        index: usize,
        send: Option<Status>,
        recv: Status,
    ) {
        let Self {
            slots,
            rqs,
            completions,
            ..
        } = self;
        let Some(qp) = slots.get_mut(index).and_then(|slot| slot.qp.as_deref_mut()) else {
            return;
        };
        qp.state = QpState::Error;
        let mut cx = Cx {
            now,
            mem,
            completions,
        };
        match &mut qp.service {
            Service::Rc {
                requester,
                responder,
            } => {
                requester.flush(&mut cx, &qp.link, send);
                responder.inbound().fail(&mut cx, &qp.link, recv);
            }
            Service::Uc {
                sender, inbound, ..
            } => {
                sender.flush(&mut cx, &qp.link, send);
                inbound.fail(&mut cx, &qp.link, recv);
            }
            Service::Ud { sender, .. } => sender.flush(&mut cx, &qp.link, send),
        }
        if let Some(Some(rq)) = rqs.get_mut(qp.rq)
            && !rq.shared
        {
            let (cq, qpn) = (qp.link.recv_cq, qp.link.qpn);
            while rq.take(mem, qpn, &mut qp.flushed) {
                let op = CompletionOp::Receive;
                let wr_id = qp.flushed.wr_id;
                completions.push_back(Completion::of(cq, qpn, wr_id, op, Status::Flushed));
            }
        }
    }
}

/// A packet of an unreliable connection. A message with a hole is dropped.
fn receive_uc<M: Memory>(
    cx: &mut Cx<'_, M>,
    link: &Link,
    rq: &mut RecvQueue,
    inbound: &mut Inbound,
    expected: &mut Psn,
    packet: &Packet<'_>,
) -> Result<(), Status> {
    let psn = packet.bth.psn();
    let first = matches!(
        packet.op,
        Some(Operation::Send { first: true, .. } | Operation::Write { first: true, .. })
    );
    let ahead = psn.cmp_to(*expected);
    if ahead < 0 {
        // Old or twice: a datagram network may do that.
        return Ok(());
    }
    if ahead > 0 || first {
        inbound.abandon();
    }
    *expected = psn.plus(1);
    if !first && inbound.is_idle() {
        return Ok(());
    }
    match inbound.take(cx, link, rq, packet) {
        Ok(_) => Ok(()),
        Err(Refusal::NoReceive | Refusal::Nak(_)) => {
            inbound.abandon();
            Ok(())
        }
        Err(Refusal::Local(_, status)) => Err(status),
    }
}
