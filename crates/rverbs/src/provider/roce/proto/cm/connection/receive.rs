//! What a MAD that came in does.

use super::*;

impl Manager {
    /// A management datagram came. One of another class, or not understood, is ignored.
    pub fn handle_mad(&mut self, now: Time, mad: &Mad) {
        let Ok((header, body)) = prefix::<Header>("MAD header", &mad.bytes) else {
            return;
        };
        if header.class != Header::CLASS
            || header.base_version != 1
            || header.method != Header::SEND
        {
            return;
        }
        let tid = header.tid.get();
        match header.attribute {
            Attribute::REQ => self.on_req(now, mad, tid, body),
            Attribute::REP => self.on_rep(mad, tid, body),
            Attribute::RTU => self.on_rtu(mad, body),
            Attribute::REJ => self.on_rej(mad, body),
            Attribute::MRA => self.on_mra(now, mad, body),
            Attribute::DREQ => self.on_dreq(now, mad, tid, body),
            Attribute::DREP => self.on_drep(mad, body),
            Attribute::SIDR_REQ => self.on_question(now, mad, tid, body),
            Attribute::SIDR_REP => self.on_answer(mad, body),
            _ => {}
        }
    }

    /// The connection that a message is about, if it comes from its peer.
    pub(super) fn about(&mut self, mad: &Mad, ids: &Ids) -> Option<(u32, &mut Conn)> {
        let id = ids.remote_comm_id.get();
        let from = mad.destination.flow.dst.ip();
        let conn = self.conns.get_mut(&id)?;
        let known = conn.remote == 0 || conn.remote == ids.local_comm_id.get();
        (known && conn.peer.flow.dst.ip() == from).then_some((id, conn))
    }

    pub(super) fn on_req(&mut self, now: Time, mad: &Mad, tid: u64, body: &[u8]) {
        let Ok((req, private)) = prefix::<Req>("REQ", body) else {
            return;
        };
        let (remote, from) = (req.local_comm_id.get(), mad.destination);
        let same = |conn: &&Conn| {
            conn.remote == remote && conn.peer.flow.dst == from.flow.dst && conn.tid == tid
        };
        if let Some(conn) = self.conns.values().find(same) {
            if matches!(conn.state, State::RepSent | State::Over) {
                let (to, bytes) = (conn.peer, conn.last);
                self.send(to, bytes);
            }
            return;
        }
        let service_id = req.service_id.get();
        let transport = req.timeout_transport >> 1 & 3;
        let refusal = if !self.services.contains(&service_id) {
            Some(Reason::INVALID_SERVICE_ID)
        } else if transport > 1 {
            Some(Reason::INVALID_TRANSPORT_TYPE)
        } else {
            None
        };
        let number = self.number();
        let (refusal, id) = match (refusal, number) {
            (None, Ok(id)) => (None, id),
            (refusal, number) => (
                Some(refusal.unwrap_or(Reason::NO_RESOURCES)),
                number.unwrap_or(0),
            ),
        };
        if let Some(reason) = refusal {
            self.send(from, rej(tid, id, remote, 0, reason, &[]));
            return;
        }
        let conn = Conn {
            state: State::ReqReceived,
            peer: from,
            remote,
            tid,
            peer_qpn: req.local_qpn.get(),
            service_id,
            last: [0; MAD_LEN],
            deadline: Some(now.after(DECISION_NS)),
            retries: 0,
        };
        self.conns.insert(id, conn);
        let peer = Params {
            qpn: req.local_qpn.get(),
            psn: req.starting_psn.get(),
            responder_resources: req.responder_resources,
            initiator_depth: req.initiator_depth,
            retry_count: req.timeout_retry & 7,
            rnr_retry: req.mtu_rnr & 7,
            srq: req.retries_srq & 8 != 0,
            mtu: req.mtu_rnr >> 4,
            ack_timeout: req.ack_timeout >> 3,
            unreliable: transport == 1,
            guid: req.local_ca_guid.get(),
            gid: req.local_gid,
            peer_gid: req.remote_gid,
            traffic_class: req.traffic_class,
        };
        let private = Private::new(private);
        self.events.push_back(CmEvent::Request {
            conn: ConnId(id),
            service_id,
            peer,
            from,
            private,
        });
    }

    pub(super) fn on_rep(&mut self, mad: &Mad, tid: u64, body: &[u8]) {
        let Ok((rep, private)) = prefix::<Rep>("REP", body) else {
            return;
        };
        let about = Ids {
            local_comm_id: rep.local_comm_id,
            remote_comm_id: rep.remote_comm_id,
        };
        let Some((id, conn)) = self.about(mad, &about) else {
            // Nobody waits for it any more.
            let bytes = rej(
                tid,
                about.remote_comm_id.get(),
                about.local_comm_id.get(),
                1 << 6,
                Reason::INVALID_COMM_ID,
                &[],
            );
            self.send(mad.destination, bytes);
            return;
        };
        match conn.state {
            State::ReqSent => {
                conn.state = State::RepReceived;
                conn.remote = rep.local_comm_id.get();
                conn.peer_qpn = rep.local_qpn.get();
                conn.deadline = None;
                let peer = Params {
                    qpn: rep.local_qpn.get(),
                    psn: rep.starting_psn.get(),
                    responder_resources: rep.responder_resources,
                    initiator_depth: rep.initiator_depth,
                    rnr_retry: rep.rnr_srq >> 5,
                    srq: rep.rnr_srq & 0x10 != 0,
                    guid: rep.local_ca_guid.get(),
                    ..Params::default()
                };
                let private = Private::new(private);
                self.events.push_back(CmEvent::Reply {
                    conn: ConnId(id),
                    peer,
                    private,
                });
            }
            // Our confirmation was lost.
            State::Established => {
                let (to, bytes) = (conn.peer, conn.last);
                self.send(to, bytes);
            }
            _ => {}
        }
    }

    pub(super) fn on_rtu(&mut self, mad: &Mad, body: &[u8]) {
        let Ok((about, _)) = prefix::<Ids>("RTU", body) else {
            return;
        };
        if let Some((id, conn)) = self.about(mad, about)
            && conn.state == State::RepSent
        {
            conn.state = State::Established;
            conn.deadline = None;
            self.events
                .push_back(CmEvent::Established { conn: ConnId(id) });
        }
    }

    pub(super) fn on_rej(&mut self, mad: &Mad, body: &[u8]) {
        let Ok((rej, private)) = prefix::<Rej>("REJ", body) else {
            return;
        };
        if let Some((id, conn)) = self.about(mad, &rej.ids)
            && matches!(
                conn.state,
                State::ReqSent | State::RepSent | State::RepReceived | State::Established
            )
        {
            self.conns.remove(&id);
            let (reason, private) = (rej.reason, Private::new(private));
            self.events.push_back(CmEvent::Rejected {
                conn: ConnId(id),
                reason,
                private,
            });
        }
    }

    pub(super) fn on_mra(&mut self, now: Time, mad: &Mad, body: &[u8]) {
        let Ok((mra, _)) = prefix::<Mra>("MRA", body) else {
            return;
        };
        let ns = 4096_u64 << (mra.timeout >> 3);
        let interval = self.interval;
        if let Some((_, conn)) = self.about(mad, &mra.ids)
            && matches!(conn.state, State::ReqSent | State::RepSent)
        {
            conn.deadline = Some(now.after(ns.max(interval)));
        }
    }

    pub(super) fn on_dreq(&mut self, now: Time, mad: &Mad, tid: u64, body: &[u8]) {
        let Ok((dreq, _)) = prefix::<Dreq>("DREQ", body) else {
            return;
        };
        let about = dreq.ids;
        // Also for a connection that we know no more: its answer was lost.
        let answer = ids(about.remote_comm_id.get(), about.local_comm_id.get());
        let bytes = message(&Header::new(Attribute::DREP, tid), &answer, &[]);
        self.send(mad.destination, bytes);
        if let Some((id, conn)) = self.about(mad, &about)
            && matches!(
                conn.state,
                State::Established | State::RepSent | State::RepReceived | State::DreqSent
            )
        {
            self.over(now, id, bytes);
            self.events
                .push_back(CmEvent::Disconnected { conn: ConnId(id) });
        }
    }

    pub(super) fn on_drep(&mut self, mad: &Mad, body: &[u8]) {
        let Ok((about, _)) = prefix::<Ids>("DREP", body) else {
            return;
        };
        if let Some((id, conn)) = self.about(mad, about)
            && conn.state == State::DreqSent
        {
            self.conns.remove(&id);
            self.events
                .push_back(CmEvent::Disconnected { conn: ConnId(id) });
        }
    }

    pub(super) fn on_question(&mut self, now: Time, mad: &Mad, tid: u64, body: &[u8]) {
        let Ok((question, private)) = prefix::<SidrReq>("SIDR_REQ", body) else {
            return;
        };
        let (remote, from, service_id) = (
            question.request_id.get(),
            mad.destination,
            question.service_id.get(),
        );
        let same = |conn: &&Conn| {
            conn.remote == remote && conn.peer.flow.dst == from.flow.dst && conn.tid == tid
        };
        if let Some(conn) = self.conns.values().find(same) {
            if conn.state == State::Over {
                let (to, bytes) = (conn.peer, conn.last);
                self.send(to, bytes);
            }
            return;
        }
        let Ok(id) = self.number() else { return };
        let conn = Conn {
            state: State::SidrReceived,
            peer: from,
            remote,
            tid,
            peer_qpn: 0,
            service_id,
            last: [0; MAD_LEN],
            deadline: Some(now.after(DECISION_NS)),
            retries: 0,
        };
        self.conns.insert(id, conn);
        let conn = ConnId(id);
        if self.services.contains(&service_id) {
            let private = Private::new(private);
            self.events.push_back(CmEvent::Question {
                conn,
                service_id,
                from,
                private,
            });
        } else {
            // Unsupported service.
            let reply = SidrReply {
                status: 1,
                ..SidrReply::default()
            };
            let _ = self.answer(now, conn, &reply, &[]);
        }
    }

    pub(super) fn on_answer(&mut self, mad: &Mad, body: &[u8]) {
        let Ok((answer, private)) = prefix::<SidrRep>("SIDR_REP", body) else {
            return;
        };
        let id = answer.request_id.get();
        let from = mad.destination.flow.dst.ip();
        let waits = |conn: &&Conn| conn.state == State::SidrSent && conn.peer.flow.dst.ip() == from;
        if self.conns.get(&id).filter(waits).is_some() {
            self.conns.remove(&id);
            let reply = SidrReply {
                status: answer.status,
                qpn: answer.qpn.get(),
                q_key: answer.q_key.get(),
            };
            let private = Private::new(private);
            self.events.push_back(CmEvent::Answer {
                conn: ConnId(id),
                reply,
                private,
            });
        }
    }
}
