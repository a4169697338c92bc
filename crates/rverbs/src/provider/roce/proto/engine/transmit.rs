//! What goes out next.

use super::*;

impl Engine {
    /// Whether a completion waits.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    /// Whether acknowledgements are to be sent and nothing else: they may wait a moment for a request to
    /// travel with.
    #[must_use]
    pub fn owes_only_acks(&self) -> bool {
        let mut owes = false;
        self.mads_out.is_empty()
            && self.active.iter().all(|index| {
                let qp = self
                    .slots
                    .get(*index as usize)
                    .and_then(|slot| slot.qp.as_deref());
                qp.is_none_or(|qp| match &qp.service {
                    Service::Rc {
                        requester,
                        responder,
                    } => {
                        let ack = responder.owes_only_an_ack();
                        owes |= ack;
                        !qp.notify
                            && requester.has_nothing_new()
                            && (ack || !responder.has_replies())
                    }
                    _ => false,
                })
            })
            && owes
    }

    /// Fills the burst with what may leave now. False if that is nothing; otherwise send it and
    /// call again.
    pub fn poll_transmit<M: Memory>(&mut self, now: Time, mem: &mut M, burst: &mut Burst) -> bool {
        burst.clear();
        while let Some(mad) = self.mads_out.front() {
            if !put_mad(burst, mad, self.mad_psn) {
                break;
            }
            self.mad_psn = self.mad_psn.plus(1);
            self.mads_out.pop_front();
        }
        while let Some(&place) = self.active.front() {
            let index = place as usize;
            let filled = self.fill_qp(now, mem, index, burst);
            match filled {
                Filled::Full => {
                    // The next burst begins with another one, if there is another one.
                    self.active.rotate_left(1);
                    break;
                }
                Filled::Idle => {}
                Filled::Failed(status) => {
                    let by_peer = status == Status::Flushed;
                    self.break_off(
                        now,
                        mem,
                        index,
                        (!by_peer).then_some(status),
                        Status::Flushed,
                        by_peer,
                    );
                    if by_peer {
                        // The refusal is still to be sent.
                        continue;
                    }
                }
            }
            self.active.pop_front();
            if let Some(qp) = self
                .slots
                .get_mut(index)
                .and_then(|slot| slot.qp.as_deref_mut())
            {
                qp.active = false;
            }
        }
        self.counters.sent += u64::from(burst.count());
        burst.count() > 0
    }

    pub(super) fn fill_qp<M: Memory>(
        &mut self,
        now: Time,
        mem: &mut M,
        index: usize,
        burst: &mut Burst,
    ) -> Filled {
        let Self {
            slots,
            completions,
            events,
            wake,
            ..
        } = self;
        let Some(qp) = slots.get_mut(index).and_then(|slot| slot.qp.as_deref_mut()) else {
            return Filled::Idle;
        };
        let mut cx = Cx {
            now,
            mem,
            completions,
        };
        let link = &qp.link;
        if qp.notify {
            let bth = link.bth(Opcode::CNP, Psn::default());
            let bth = Bth {
                congestion: Bth::BECN,
                ..bth
            };
            if !burst.push(&link.destination, &bth, [&[0; 16], &[], &[]]) {
                return Filled::Full;
            }
            qp.notify = false;
        }
        let (sends, drains) = (qp.state == QpState::Rts, qp.state == QpState::Sqd);
        let filled = match &mut qp.service {
            Service::Rc {
                requester,
                responder,
            } => {
                // A lone acknowledgement leaves behind the requests: being shorter, it then fits
                // into the same burst.
                let late = responder.owes_only_an_ack() && sends;
                if responder.has_replies() && !late {
                    match responder.fill(&mut cx, link, burst) {
                        Filled::Idle => {}
                        other => return other,
                    }
                }
                if !sends && !drains {
                    return Filled::Idle;
                }
                let mut filled = requester.fill(&mut cx, link, burst, drains);
                Self::watch(wake, requester.deadline());
                if late && filled == Filled::Idle {
                    filled = responder.fill(&mut cx, link, burst);
                }
                if requester.is_under_way() && filled == Filled::Idle {
                    return filled;
                }
                filled
            }
            // What is in the burst has been sent, as far as these services know.
            Service::Uc { sender, .. } if sends || (drains && sender.is_under_way()) => {
                sender.fill(&mut cx, link, burst, drains)
            }
            Service::Ud { sender, .. } if sends => sender.fill(&mut cx, link, burst),
            _ => Filled::Idle,
        };
        if filled == Filled::Idle
            && drains
            && !core::mem::replace(&mut qp.drained, true)
            && events.len() < MAX_EVENTS
        {
            events.push_back(Event::Drained { qpn: link.qpn });
        }
        filled
    }
}

fn put_mad(burst: &mut Burst, mad: &Mad, psn: Psn) -> bool {
    let Some(header) = Opcode::UD_SEND_ONLY.header_len() else {
        return false;
    };
    let whole = header + MAD_LEN + icrc::LEN;
    if !burst.fits(&mad.destination, whole) {
        return false;
    }
    let mut writer = Writer::new(burst.place(whole));
    writer.put(&Bth {
        opcode: Opcode::UD_SEND_ONLY,
        flags: Bth::MIGRATED,
        p_key: 0xffff.into(),
        dest_qp: Be24::new(mad.qpn),
        psn: Be24::new(psn.get()),
        ..Bth::default()
    });
    writer.put(&Deth::new(GSI_Q_KEY, 1));
    writer.bytes(&mad.bytes);
    burst.seal(&mad.destination, whole);
    true
}
