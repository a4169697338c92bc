//! The messages, as they stand on the wire: 256 bytes, of which 24 are the MAD header.

use bytemuck::{Pod, Zeroable};
use core::net::IpAddr;
use rdma_wire::{Be16, Be24, Be32, Be64, assert_layout, open_enum};

use super::super::engine::MAD_LEN;

open_enum! {
    /// Which message it is (IBTA table 105).
    pub struct Attribute: Be16 as u16 {
        CLASS_PORT_INFO = 0x0001,
        REQ = 0x0010,
        MRA = 0x0011,
        REJ = 0x0012,
        REP = 0x0013,
        RTU = 0x0014,
        DREQ = 0x0015,
        DREP = 0x0016,
        SIDR_REQ = 0x0017,
        SIDR_REP = 0x0018,
        LAP = 0x0019,
        APR = 0x001a
    }
}

open_enum! {
    /// Why a connection was refused (IBTA table 112).
    pub struct Reason: Be16 as u16 {
        NO_QP = 1,
        NO_RESOURCES = 3,
        TIMEOUT = 4,
        INVALID_COMM_ID = 6,
        INVALID_COMM_INSTANCE = 7,
        INVALID_SERVICE_ID = 8,
        INVALID_TRANSPORT_TYPE = 9,
        STALE_CONNECTION = 10,
        INVALID_GID = 13,
        CONSUMER = 28,
        DUPLICATE_LOCAL_COMM_ID = 30,
        INVALID_CLASS_VERSION = 31
    }
}

/// The head of every management datagram (IBTA 13.4.2).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Header {
    /// 1.
    pub base_version: u8,
    /// 7 for communication management.
    pub class: u8,
    /// 2.
    pub class_version: u8,
    /// 3, Send.
    pub method: u8,
    /// 0.
    pub status: Be16,
    /// 0.
    pub class_specific: Be16,
    /// Pairs requests and answers.
    pub tid: Be64,
    /// Which message it is.
    pub attribute: Attribute,
    reserved: Be16,
    /// 0.
    pub modifier: Be32,
}
assert_layout!(Header, 24);

impl Header {
    /// The class of communication management.
    pub const CLASS: u8 = 7;
    /// The method of its messages.
    pub const SEND: u8 = 3;

    /// The head of a message.
    #[must_use]
    pub const fn new(attribute: Attribute, tid: u64) -> Self {
        Self {
            base_version: 1,
            class: Self::CLASS,
            class_version: 2,
            method: Self::SEND,
            status: Be16::ZERO,
            class_specific: Be16::ZERO,
            tid: Be64::new(tid),
            attribute,
            reserved: Be16::ZERO,
            modifier: Be32::ZERO,
        }
    }
}

/// A request for a connection (IBTA 12.6.5), up to its private data of 92 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Req {
    /// Number of the connection at the sender.
    pub local_comm_id: Be32,
    pub(crate) reserved4: Be32,
    /// What is asked for.
    pub service_id: Be64,
    /// GUID of the adapter.
    pub local_ca_guid: Be64,
    pub(crate) reserved24: Be32,
    /// Of datagram queue pairs.
    pub local_q_key: Be32,
    /// Queue pair of the sender.
    pub local_qpn: Be24,
    /// READs and atomics that the sender takes at a time.
    pub responder_resources: u8,
    pub(crate) local_eecn: Be24,
    /// READs and atomics that the sender makes at a time.
    pub initiator_depth: u8,
    pub(crate) remote_eecn: Be24,
    /// Remote response timeout 5, transport 2 (0 RC, 1 UC), end-to-end flow control 1.
    pub timeout_transport: u8,
    /// The first sequence number that the receiver is to send.
    pub starting_psn: Be24,
    /// Local response timeout 5, retry count 3.
    pub timeout_retry: u8,
    /// Partition.
    pub p_key: Be16,
    /// Path MTU code 4, RDC 1, RNR retry count 3.
    pub mtu_rnr: u8,
    /// CM retries 4, SRQ 1, extended transport 3.
    pub retries_srq: u8,
    /// Of the sender; all ones where there are no LIDs.
    pub local_lid: Be16,
    /// Of the receiver.
    pub remote_lid: Be16,
    /// Of the sender.
    pub local_gid: [u8; 16],
    /// Of the receiver.
    pub remote_gid: [u8; 16],
    /// Flow label 20, reserved 6, packet rate 6.
    pub flow_rate: Be32,
    /// Traffic class.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Service level 4, subnet local 1, reserved 3.
    pub sl_local: u8,
    /// Local acknowledgement timeout 5, reserved 3.
    pub ack_timeout: u8,
    pub(crate) alternate: [u8; 44],
}
assert_layout!(Req, 140);

/// Agreement to a connection (IBTA 12.6.8), up to its private data of 196 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Rep {
    /// Number of the connection at the sender.
    pub local_comm_id: Be32,
    /// Number of the connection at the receiver.
    pub remote_comm_id: Be32,
    /// Of datagram queue pairs.
    pub local_q_key: Be32,
    /// Queue pair of the sender.
    pub local_qpn: Be24,
    pub(crate) reserved15: u8,
    pub(crate) local_eecn: Be24,
    pub(crate) reserved19: u8,
    /// The first sequence number that the receiver is to send.
    pub starting_psn: Be24,
    pub(crate) reserved23: u8,
    /// READs and atomics that the sender takes at a time.
    pub responder_resources: u8,
    /// READs and atomics that the sender makes at a time.
    pub initiator_depth: u8,
    /// Target acknowledgement delay 5, failover accepted 2, end-to-end flow control 1.
    pub delay_failover: u8,
    /// RNR retry count 3, SRQ 1, reserved 4.
    pub rnr_srq: u8,
    /// GUID of the adapter.
    pub local_ca_guid: Be64,
}
assert_layout!(Rep, 36);

/// What RTU and DREP consist of, and what the other answers begin with.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Ids {
    /// Number of the connection at the sender.
    pub local_comm_id: Be32,
    /// Number of the connection at the receiver.
    pub remote_comm_id: Be32,
}
assert_layout!(Ids, 8);

/// A refusal (IBTA 12.6.7), up to its private data of 148 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Rej {
    /// Which connection.
    pub ids: Ids,
    /// Message refused 2 (0 REQ, 1 REP, 2 other), reserved 6.
    pub message: u8,
    /// Bytes of further information 7, reserved 1.
    pub info_len: u8,
    /// Why.
    pub reason: Reason,
    /// Further information.
    pub info: [u8; 72],
}
assert_layout!(Rej, 84);

/// "Received, wait" (IBTA 12.6.6), up to its private data.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Mra {
    /// Which connection.
    pub ids: Ids,
    /// Message received 2, reserved 6.
    pub message: u8,
    /// How long it may take, 4.096 µs · 2^code, in the upper 5 bits.
    pub timeout: u8,
}
assert_layout!(Mra, 10);

/// A request to end a connection (IBTA 12.6.10), up to its private data.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Dreq {
    /// Which connection.
    pub ids: Ids,
    /// Queue pair of the receiver.
    pub remote_qpn: Be24,
    pub(crate) reserved: u8,
}
assert_layout!(Dreq, 12);

/// A question for a datagram queue pair (IBTA 12.11.1), up to its private data of 216 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SidrReq {
    /// Number of the question.
    pub request_id: Be32,
    /// Partition.
    pub p_key: Be16,
    pub(crate) reserved: Be16,
    /// What is asked for.
    pub service_id: Be64,
}
assert_layout!(SidrReq, 16);

/// The answer (IBTA 12.11.2), up to its private data of 136 bytes.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct SidrRep {
    /// Number of the question.
    pub request_id: Be32,
    /// 0 if there is one.
    pub status: u8,
    /// Bytes of further information.
    pub info_len: u8,
    pub(crate) reserved6: Be16,
    /// Queue pair of the service.
    pub qpn: Be24,
    pub(crate) reserved11: u8,
    /// What was asked for.
    pub service_id: Be64,
    /// Its key.
    pub q_key: Be32,
    /// Further information.
    pub info: [u8; 72],
}
assert_layout!(SidrRep, 96);

/// What rdma_cm puts before the private data of REQ and SIDR_REQ: IP addresses and port
/// (IBTA annex A11).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct IpHeader {
    /// 0.
    pub version: u8,
    /// IP version in the upper four bits.
    pub ip_version: u8,
    /// Port of the sender.
    pub port: Be16,
    /// Address of the sender; IPv4 in the last four bytes.
    pub src: [u8; 16],
    /// Address of the receiver.
    pub dst: [u8; 16],
}
assert_layout!(IpHeader, 36);

impl IpHeader {
    /// A header.
    #[must_use]
    pub fn new(src: IpAddr, port: u16, dst: IpAddr) -> Self {
        let bytes = |addr: IpAddr| match addr {
            IpAddr::V4(v4) => {
                let [a, b, c, d] = v4.octets();
                [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
            }
            IpAddr::V6(v6) => v6.octets(),
        };
        let ip_version = if src.is_ipv4() { 0x40 } else { 0x60 };
        Self {
            version: 0,
            ip_version,
            port: Be16::new(port),
            src: bytes(src),
            dst: bytes(dst),
        }
    }

    /// Both addresses; `None` for a version that is neither 4 nor 6.
    #[must_use]
    pub fn addresses(&self) -> Option<(IpAddr, IpAddr)> {
        let v4 = |bytes: [u8; 16]| {
            let [.., a, b, c, d] = bytes;
            IpAddr::from([a, b, c, d])
        };
        match self.ip_version >> 4 {
            4 => Some((v4(self.src), v4(self.dst))),
            6 => Some((IpAddr::from(self.src), IpAddr::from(self.dst))),
            _ => None,
        }
    }
}

/// The service of an rdma_cm port: `RDMA_PS_TCP` 0x0106, `RDMA_PS_UDP` 0x0111.
#[must_use]
pub const fn service_id(port_space: u16, port: u16) -> u64 {
    (port_space as u64) << 16 | port as u64
}

/// Puts a message together.
#[must_use]
pub fn message<T: Pod>(header: &Header, body: &T, private: &[u8]) -> [u8; MAD_LEN] {
    let mut bytes = [0; MAD_LEN];
    let parts = [
        bytemuck::bytes_of(header),
        bytemuck::bytes_of(body),
        private,
    ];
    for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    bytes
}
