//! What the two sides of a connection tell each other, and its bytes on a local socket.
//!
//! The kinds and their order are those of the InfiniBand communication manager (IBTA 12.6): request,
//! reply, ready to use; reject; disconnect and its reply; and for datagrams a lookup and its reply.

use std::net::{IpAddr, SocketAddr};

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// REQ: connect to me.
    Request = 1,
    /// REP: yes.
    Reply,
    /// RTU: my queue pair is ready.
    Ready,
    /// REJ: no.
    Reject,
    /// DREQ: the connection ends.
    Disconnect,
    /// DREP: so it does.
    Disconnected,
    /// SIDR_REQ: where do I send datagrams to?
    Lookup,
    /// SIDR_REP: there.
    Found,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Request,
        Self::Reply,
        Self::Ready,
        Self::Reject,
        Self::Disconnect,
        Self::Disconnected,
        Self::Lookup,
        Self::Found,
    ];

    /// How many bytes of the user's own the message carries at most: what the MAD has room for.
    pub(crate) const fn room(self) -> usize {
        match self {
            Self::Request => 56,
            Self::Reply => 196,
            Self::Ready | Self::Disconnected => 224,
            Self::Reject => 148,
            Self::Disconnect => 220,
            Self::Lookup => 180,
            Self::Found => 136,
        }
    }
}

/// A message. Fields that a kind has no use for are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) kind: Kind,
    /// `rdma_port_space`.
    pub(crate) space: u32,
    /// Why not, in a rejection (IBTA table 110); 0 for yes in what a lookup found.
    pub(crate) reason: u16,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    pub(crate) qkey: u32,
    pub(crate) gid: [u8; 16],
    pub(crate) lid: u16,
    /// `ibv_mtu`.
    pub(crate) mtu: u8,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    pub(crate) flow_control: u8,
    pub(crate) retry_count: u8,
    pub(crate) rnr_retry_count: u8,
    pub(crate) srq: u8,
    /// Who asks, and whom.
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    /// The user's own bytes.
    pub(crate) data: Vec<u8>,
}

/// Marks messages of this layout.
const MAGIC: [u8; 4] = *b"RVC1";

/// No message is longer.
pub(crate) const MAX: usize = 512;

const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);

impl Message {
    /// A message of that kind that says nothing.
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            space: 0,
            reason: 0,
            qpn: 0,
            psn: 0,
            qkey: 0,
            gid: [0; 16],
            lid: 0,
            mtu: 0,
            responder_resources: 0,
            initiator_depth: 0,
            flow_control: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            srq: 0,
            source: NOWHERE,
            destination: NOWHERE,
            data: Vec::new(),
        }
    }

    /// Its bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAX);
        out.extend(MAGIC);
        out.push(self.kind as u8);
        out.extend(self.space.to_le_bytes());
        out.extend(self.reason.to_le_bytes());
        for word in [self.qpn, self.psn, self.qkey] {
            out.extend(word.to_le_bytes());
        }
        out.extend(self.gid);
        out.extend(self.lid.to_le_bytes());
        out.extend([
            self.mtu,
            self.responder_resources,
            self.initiator_depth,
            self.flow_control,
            self.retry_count,
            self.rnr_retry_count,
            self.srq,
        ]);
        for address in [&self.source, &self.destination] {
            let ip = match address.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            out.extend(ip);
            out.extend(address.port().to_le_bytes());
        }
        out.extend(self.data.iter().take(self.kind.room()));
        out
    }

    /// A message from its bytes; `None` where they are none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        if rest.take::<4>()? != MAGIC {
            return None;
        }
        let code = rest.byte()?;
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == code)?;
        let message = Self {
            kind,
            space: rest.word()?,
            reason: rest.half()?,
            qpn: rest.word()?,
            psn: rest.word()?,
            qkey: rest.word()?,
            gid: rest.take()?,
            lid: rest.half()?,
            mtu: rest.byte()?,
            responder_resources: rest.byte()?,
            initiator_depth: rest.byte()?,
            flow_control: rest.byte()?,
            retry_count: rest.byte()?,
            rnr_retry_count: rest.byte()?,
            srq: rest.byte()?,
            source: rest.address()?,
            destination: rest.address()?,
            data: rest.0.to_vec(),
        };
        (message.data.len() <= kind.room()).then_some(message)
    }
}

/// What was not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn half(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn address(&mut self) -> Option<SocketAddr> {
        let ip = IpAddr::from(self.take::<16>()?).to_canonical();
        Some(SocketAddr::new(ip, self.half()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Message {
        Message {
            space: 0x106,
            reason: 8,
            qpn: 0x12_3456,
            psn: 0xab_cdef,
            qkey: 0x0123_4567,
            gid: [7; 16],
            lid: 3,
            mtu: 5,
            responder_resources: 16,
            initiator_depth: 15,
            flow_control: 1,
            retry_count: 7,
            rnr_retry_count: 6,
            srq: 1,
            source: "127.0.0.1:40000".parse().unwrap(),
            destination: "[::1]:7471".parse().unwrap(),
            data: vec![9; 56],
            ..Message::new(Kind::Request)
        }
    }

    #[test]
    fn a_message_comes_back_as_it_was() {
        for kind in Kind::ALL {
            let message = Message { kind, ..full() };
            let bytes = message.encode();
            assert!(bytes.len() <= MAX);
            assert_eq!(Message::decode(&bytes), Some(message));
        }
    }

    #[test]
    fn cut_or_foreign_bytes_are_no_message() {
        let bytes = full().encode();
        let fixed = bytes.len() - 56;
        for cut in 0..fixed {
            assert_eq!(Message::decode(&bytes[..cut]), None, "{cut} bytes");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert_eq!(
            Message::decode(&longer),
            None,
            "more than a request has room for"
        );
        let mut other = bytes;
        other[4] = 99;
        assert_eq!(Message::decode(&other), None, "an unknown kind");
    }
}
