//! The state machine of connections, both ends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytemuck::Zeroable as _;
use core::fmt;
use rdma_wire::{Be16, Be24, Be32, Be64, prefix};

use super::super::burst::Destination;
use super::super::engine::{MAD_LEN, Mad};
use super::super::time::Time;
use super::wire::{
    Attribute, Dreq, Header, Ids, Mra, Reason, Rej, Rep, Req, SidrRep, SidrReq, message,
};

mod receive;

/// Number of a connection, or of a question for a datagram queue pair, on this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

/// Private data of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Private {
    bytes: [u8; MAD_LEN],
    len: usize,
}

impl Private {
    /// None.
    pub const EMPTY: Self = Self {
        bytes: [0; MAD_LEN],
        len: 0,
    };

    /// Takes bytes, cut to what any message can hold.
    #[must_use]
    pub fn new(data: &[u8]) -> Self {
        let mut private = Self::EMPTY;
        for (to, from) in private.bytes.iter_mut().zip(data) {
            *to = *from;
            private.len += 1;
        }
        private
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Private({} bytes)", self.len)
    }
}

/// What one end of a connection tells the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Its queue pair.
    pub qpn: u32,
    /// The first sequence number that the *other* end is to send, so the first that it expects.
    pub psn: u32,
    /// READs and atomics that it takes at a time.
    pub responder_resources: u8,
    /// READs and atomics that it makes at a time.
    pub initiator_depth: u8,
    /// How often it sends a request again.
    pub retry_count: u8,
    /// How often again without a receive at the peer.
    pub rnr_retry: u8,
    /// Whether it has a shared receive queue.
    pub srq: bool,
    /// Path MTU as a code.
    pub mtu: u8,
    /// Timer for acknowledgements, as a code.
    pub ack_timeout: u8,
    /// Whether it is an unreliable connection.
    pub unreliable: bool,
    /// GUID of the adapter.
    pub guid: u64,
    /// GID of this end.
    pub gid: [u8; 16],
    /// GID of the other end.
    pub peer_gid: [u8; 16],
    /// Traffic class.
    pub traffic_class: u8,
}

/// The answer to a question for a datagram queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SidrReply {
    /// 0 if there is one.
    pub status: u8,
    /// Its number.
    pub qpn: u32,
    /// Its key.
    pub q_key: u32,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CmEvent {
    /// A peer asks for a connection: [`Manager::accept`] or [`Manager::reject`].
    Request {
        /// Number of the connection.
        conn: ConnId,
        /// What is asked for.
        service_id: u64,
        /// What the peer told.
        peer: Params,
        /// Where it is.
        from: Destination,
        /// Private data, all 92 bytes.
        private: Private,
    },
    /// The peer agreed: make the queue pair ready, then [`Manager::confirm`].
    Reply {
        /// Number of the connection.
        conn: ConnId,
        /// What the peer told.
        peer: Params,
        /// Private data, all 196 bytes.
        private: Private,
    },
    /// The connection stands.
    Established {
        /// Number of the connection.
        conn: ConnId,
    },
    /// The peer refused.
    Rejected {
        /// Number of the connection.
        conn: ConnId,
        /// Why.
        reason: Reason,
        /// Private data, all 148 bytes.
        private: Private,
    },
    /// The peer does not answer.
    Unreachable {
        /// Number of the connection.
        conn: ConnId,
    },
    /// The connection has ended.
    Disconnected {
        /// Number of the connection.
        conn: ConnId,
    },
    /// A peer asks for a datagram queue pair: [`Manager::answer`].
    Question {
        /// Number of the question.
        conn: ConnId,
        /// What is asked for.
        service_id: u64,
        /// Where the peer is.
        from: Destination,
        /// Private data, all 216 bytes.
        private: Private,
    },
    /// The answer to [`Manager::ask`].
    Answer {
        /// Number of the question.
        conn: ConnId,
        /// What it is.
        reply: SidrReply,
        /// Private data, all 136 bytes.
        private: Private,
    },
}

/// What does not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CmError {
    /// No such connection, or not in this state.
    #[error("connection {0} is not in a state for this")]
    State(u32),
    /// More private data than the message holds.
    #[error("{got} bytes of private data where {max} are allowed")]
    Private {
        /// How many there are.
        got: usize,
        /// How many are allowed.
        max: usize,
    },
    /// The service is taken.
    #[error("service {0:#x} is taken")]
    Taken(u64),
    /// Too many connections.
    #[error("too many connections")]
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    ReqSent,
    ReqReceived,
    RepSent,
    RepReceived,
    Established,
    DreqSent,
    SidrSent,
    SidrReceived,
    /// Answers duplicates until its time is over.
    Over,
}

#[derive(Clone, Debug)]
struct Conn {
    state: State,
    /// Where messages go.
    peer: Destination,
    /// Number at the peer.
    remote: u32,
    tid: u64,
    peer_qpn: u32,
    service_id: u64,
    /// The last message, to be sent again.
    last: [u8; MAD_LEN],
    deadline: Option<Time>,
    retries: u8,
}

/// Connections of one port: see the [module](super).
pub struct Manager {
    conns: BTreeMap<u32, Conn>,
    services: BTreeSet<u64>,
    out: VecDeque<Mad>,
    events: VecDeque<CmEvent>,
    next: u32,
    tid: u64,
    /// Nanoseconds until a message is sent again.
    interval: u64,
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("conns", &self.conns.len())
            .field("services", &self.services)
            .finish_non_exhaustive()
    }
}

const MAX_RETRIES: u8 = 15;
const MAX_CONNS: usize = 4096;
/// How long an ended connection answers duplicates.
const LINGER_NS: u64 = 2_000_000_000;
/// How long the user may take to decide about a request.
const DECISION_NS: u64 = 60_000_000_000;
/// Of messages: 4.096 µs · 2^18 is about a second.
const RESPONSE_TIMEOUT: u8 = 18;

impl Manager {
    /// A manager without connections. `seed` chooses where its numbers start, `interval` after how
    /// many nanoseconds without an answer a message is sent again.
    #[must_use]
    pub fn new(seed: u64, interval: u64) -> Self {
        let [a, b, c, d, rest @ ..] = seed.to_le_bytes();
        let [e, f, g, h] = rest;
        Self {
            conns: BTreeMap::new(),
            services: BTreeSet::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            next: u32::from_le_bytes([a, b, c, d]) | 1,
            tid: u64::from(u32::from_le_bytes([e, f, g, h])) << 32,
            interval,
        }
    }

    /// Takes requests for a service.
    ///
    /// # Errors
    /// It is taken.
    pub fn listen(&mut self, service_id: u64) -> Result<(), CmError> {
        if self.services.insert(service_id) {
            Ok(())
        } else {
            Err(CmError::Taken(service_id))
        }
    }

    /// Takes requests for a service no more.
    pub fn unlisten(&mut self, service_id: u64) {
        self.services.remove(&service_id);
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Mad> {
        self.out.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<CmEvent> {
        self.events.pop_front()
    }

    /// When [`Manager::handle_timeout`] is to be called at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.conns.values().filter_map(|conn| conn.deadline).min()
    }

    fn number(&mut self) -> Result<u32, CmError> {
        if self.conns.len() >= MAX_CONNS {
            return Err(CmError::Full);
        }
        while self.next == 0 || self.conns.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        Ok(number)
    }

    fn new_tid(&mut self) -> u64 {
        self.tid = self.tid.wrapping_add(1);
        self.tid
    }

    fn send(&mut self, to: Destination, bytes: [u8; MAD_LEN]) {
        self.out.push_back(Mad {
            destination: to,
            qpn: 1,
            bytes,
        });
    }

    /// Sends a message that is sent again until it is answered.
    fn send_until(&mut self, now: Time, id: u32, state: State, bytes: [u8; MAD_LEN]) {
        let deadline = now.after(self.interval);
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.state = state;
            conn.last = bytes;
            conn.deadline = Some(deadline);
            conn.retries = MAX_RETRIES;
            let to = conn.peer;
            self.send(to, bytes);
        }
    }

    fn conn(&self, conn: ConnId, states: &[State]) -> Result<&Conn, CmError> {
        self.conns
            .get(&conn.0)
            .filter(|found| states.contains(&found.state))
            .ok_or(CmError::State(conn.0))
    }

    /// Asks for a connection. The private data is at most 92 bytes, of which rdma_cm uses 36 for
    /// itself ([`super::wire::IpHeader`]).
    ///
    /// # Errors
    /// Too much private data, or too many connections.
    pub fn connect(
        &mut self,
        now: Time,
        to: Destination,
        service_id: u64,
        local: &Params,
        private: &[u8],
    ) -> Result<ConnId, CmError> {
        fits(private, 92)?;
        let id = self.number()?;
        let tid = self.new_tid();
        let body = Req {
            local_comm_id: Be32::new(id),
            service_id: Be64::new(service_id),
            local_ca_guid: Be64::new(local.guid),
            local_qpn: Be24::new(local.qpn),
            responder_resources: local.responder_resources,
            initiator_depth: local.initiator_depth,
            timeout_transport: RESPONSE_TIMEOUT << 3 | u8::from(local.unreliable) << 1 | 1,
            starting_psn: Be24::new(local.psn),
            timeout_retry: RESPONSE_TIMEOUT << 3 | local.retry_count & 7,
            p_key: Be16::new(0xffff),
            mtu_rnr: local.mtu << 4 | local.rnr_retry & 7,
            retries_srq: MAX_RETRIES << 4 | u8::from(local.srq) << 3,
            // There are no LIDs here, and the path is one through routers.
            local_lid: Be16::new(0xffff),
            remote_lid: Be16::new(0xffff),
            local_gid: local.gid,
            remote_gid: local.peer_gid,
            flow_rate: Be32::new(u32::from(RATE_40G)),
            traffic_class: local.traffic_class,
            hop_limit: 64,
            ack_timeout: local.ack_timeout << 3,
            ..Req::zeroed()
        };
        let bytes = message(&Header::new(Attribute::REQ, tid), &body, private);
        self.conns.insert(
            id,
            Conn {
                state: State::ReqSent,
                peer: to,
                remote: 0,
                tid,
                peer_qpn: 0,
                service_id,
                last: bytes,
                deadline: None,
                retries: 0,
            },
        );
        self.send_until(now, id, State::ReqSent, bytes);
        Ok(ConnId(id))
    }

    /// Agrees to a request. The private data is at most 196 bytes.
    ///
    /// # Errors
    /// Not asked for, or too much private data.
    pub fn accept(
        &mut self,
        now: Time,
        conn: ConnId,
        local: &Params,
        private: &[u8],
    ) -> Result<(), CmError> {
        fits(private, 196)?;
        let found = self.conn(conn, &[State::ReqReceived])?;
        let body = Rep {
            local_comm_id: Be32::new(conn.0),
            remote_comm_id: Be32::new(found.remote),
            local_qpn: Be24::new(local.qpn),
            starting_psn: Be24::new(local.psn),
            responder_resources: local.responder_resources,
            initiator_depth: local.initiator_depth,
            delay_failover: 15 << 3 | 1,
            rnr_srq: local.rnr_retry << 5 | u8::from(local.srq) << 4,
            local_ca_guid: Be64::new(local.guid),
            ..Rep::zeroed()
        };
        let bytes = message(&Header::new(Attribute::REP, found.tid), &body, private);
        self.send_until(now, conn.0, State::RepSent, bytes);
        Ok(())
    }

    /// Refuses a request, or the agreement to one of ours. The private data is at most 148 bytes.
    ///
    /// # Errors
    /// Not asked for, or too much private data.
    pub fn reject(
        &mut self,
        now: Time,
        conn: ConnId,
        reason: Reason,
        private: &[u8],
    ) -> Result<(), CmError> {
        fits(private, 148)?;
        let found = self.conn(conn, &[State::ReqReceived, State::RepReceived])?;
        let refused = u8::from(found.state == State::RepReceived) << 6;
        let (peer, tid, remote) = (found.peer, found.tid, found.remote);
        let bytes = rej(tid, conn.0, remote, refused, reason, private);
        self.send(peer, bytes);
        self.over(now, conn.0, bytes);
        Ok(())
    }

    /// Says that our queue pair is ready, after [`CmEvent::Reply`]: the connection stands.
    ///
    /// # Errors
    /// Nothing agreed to.
    pub fn confirm(&mut self, conn: ConnId, private: &[u8]) -> Result<(), CmError> {
        fits(private, 224)?;
        let found = self.conn(conn, &[State::RepReceived])?;
        let (peer, tid, remote) = (found.peer, found.tid, found.remote);
        let bytes = message(
            &Header::new(Attribute::RTU, tid),
            &ids(conn.0, remote),
            private,
        );
        self.send(peer, bytes);
        if let Some(found) = self.conns.get_mut(&conn.0) {
            found.state = State::Established;
            found.last = bytes;
            found.deadline = None;
        }
        self.events.push_back(CmEvent::Established { conn });
        Ok(())
    }

    /// A packet of the connection came before its confirmation: that is one, too.
    pub fn communicated(&mut self, conn: ConnId) {
        if let Some(found) = self.conns.get_mut(&conn.0)
            && found.state == State::RepSent
        {
            found.state = State::Established;
            found.deadline = None;
            self.events.push_back(CmEvent::Established { conn });
        }
    }

    /// Ends a connection; [`CmEvent::Disconnected`] follows.
    ///
    /// # Errors
    /// There is none.
    pub fn disconnect(&mut self, now: Time, conn: ConnId) -> Result<(), CmError> {
        let found = self.conn(
            conn,
            &[State::Established, State::RepSent, State::RepReceived],
        )?;
        let (remote, qpn) = (found.remote, found.peer_qpn);
        let tid = self.new_tid();
        let body = Dreq {
            ids: ids(conn.0, remote),
            remote_qpn: Be24::new(qpn),
            reserved: 0,
        };
        let bytes = message(&Header::new(Attribute::DREQ, tid), &body, &[]);
        self.send_until(now, conn.0, State::DreqSent, bytes);
        Ok(())
    }

    /// Forgets a connection, in whatever state it is. A peer that waits for an answer is refused, and one
    /// that is connected is told of the end.
    pub fn forget(&mut self, now: Time, conn: ConnId) {
        if self.reject(now, conn, Reason::CONSUMER, &[]).is_err()
            && self.disconnect(now, conn).is_err()
        {
            self.conns.remove(&conn.0);
        }
    }

    /// Asks which queue pair serves a datagram service. The private data is at most 216 bytes.
    ///
    /// # Errors
    /// Too much private data, or too many connections.
    pub fn ask(
        &mut self,
        now: Time,
        to: Destination,
        service_id: u64,
        private: &[u8],
    ) -> Result<ConnId, CmError> {
        fits(private, 216)?;
        let id = self.number()?;
        let tid = self.new_tid();
        let body = SidrReq {
            request_id: Be32::new(id),
            p_key: Be16::new(0xffff),
            reserved: Be16::ZERO,
            service_id: Be64::new(service_id),
        };
        let bytes = message(&Header::new(Attribute::SIDR_REQ, tid), &body, private);
        self.conns.insert(
            id,
            Conn {
                state: State::SidrSent,
                peer: to,
                remote: 0,
                tid,
                peer_qpn: 0,
                service_id,
                last: bytes,
                deadline: None,
                retries: 0,
            },
        );
        self.send_until(now, id, State::SidrSent, bytes);
        Ok(ConnId(id))
    }

    /// Answers [`CmEvent::Question`]. The private data is at most 136 bytes.
    ///
    /// # Errors
    /// Not asked, or too much private data.
    pub fn answer(
        &mut self,
        now: Time,
        conn: ConnId,
        reply: &SidrReply,
        private: &[u8],
    ) -> Result<(), CmError> {
        fits(private, 136)?;
        let found = self.conn(conn, &[State::SidrReceived])?;
        let body = SidrRep {
            request_id: Be32::new(found.remote),
            status: reply.status,
            qpn: Be24::new(reply.qpn),
            service_id: Be64::new(found.service_id),
            q_key: Be32::new(reply.q_key),
            ..SidrRep::zeroed()
        };
        let peer = found.peer;
        let bytes = message(&Header::new(Attribute::SIDR_REP, found.tid), &body, private);
        self.send(peer, bytes);
        self.over(now, conn.0, bytes);
        Ok(())
    }

    fn over(&mut self, now: Time, id: u32, last: [u8; MAD_LEN]) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.state = State::Over;
            conn.last = last;
            conn.deadline = Some(now.after(LINGER_NS));
        }
    }

    /// The time of [`Manager::poll_timeout`] may have come.
    pub fn handle_timeout(&mut self, now: Time) {
        let due = |conn: &Conn| conn.deadline.is_some_and(|deadline| deadline <= now);
        let ids: Vec<u32> = self
            .conns
            .iter()
            .filter(|(_, conn)| due(conn))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            let Some(conn) = self.conns.get_mut(&id) else {
                continue;
            };
            if matches!(conn.state, State::Over | State::SidrReceived) {
                self.conns.remove(&id);
                continue;
            }
            if conn.retries > 0 {
                conn.retries -= 1;
                conn.deadline = Some(now.after(self.interval));
                let (to, bytes) = (conn.peer, conn.last);
                self.send(to, bytes);
                continue;
            }
            let conn = ConnId(id);
            let was = self.conns.remove(&id).map(|conn| conn.state);
            self.events.push_back(match was {
                Some(State::DreqSent) => CmEvent::Disconnected { conn },
                _ => CmEvent::Unreachable { conn },
            });
        }
    }
}

/// A packet rate of 40 Gb/s, as paths of RoCE have it.
const RATE_40G: u8 = 7;

fn ids(local: u32, remote: u32) -> Ids {
    Ids {
        local_comm_id: Be32::new(local),
        remote_comm_id: Be32::new(remote),
    }
}

fn rej(
    tid: u64,
    local: u32,
    remote: u32,
    message_refused: u8,
    reason: Reason,
    private: &[u8],
) -> [u8; MAD_LEN] {
    let body = Rej {
        ids: ids(local, remote),
        message: message_refused,
        reason,
        ..Rej::zeroed()
    };
    message(&Header::new(Attribute::REJ, tid), &body, private)
}

fn fits(private: &[u8], max: usize) -> Result<(), CmError> {
    if private.len() > max {
        return Err(CmError::Private {
            got: private.len(),
            max,
        });
    }
    Ok(())
}
