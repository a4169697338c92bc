//! The transport headers, as they stand on the wire.

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be16, Be24, Be32, Be64, assert_layout};

use super::super::psn::Psn;
use super::Opcode;

/// The base transport header, in every packet (IBTA 9.2).
///
/// | byte | bits | field |
/// |---|---|---|
/// | 0 | 8 | opcode |
/// | 1 | 1, 1, 2, 4 | solicited event, migration state, pad count, version |
/// | 2 | 16 | P_Key |
/// | 4 | 1, 1, 6 | FECN, BECN, reserved (not covered by the ICRC) |
/// | 5 | 24 | destination QP |
/// | 8 | 1, 7 | acknowledge request, reserved |
/// | 9 | 24 | PSN |
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub struct Bth {
    /// What the packet is.
    pub opcode: Opcode,
    /// Solicited event, migration state, pad count, version.
    pub flags: u8,
    /// Partition key.
    pub p_key: Be16,
    /// FECN and BECN.
    pub congestion: u8,
    /// Destination queue pair.
    pub dest_qp: Be24,
    /// Acknowledge request in the top bit.
    pub ack: u8,
    /// Packet sequence number.
    pub psn: Be24,
}
assert_layout!(Bth, 12);

impl Bth {
    /// Solicited event.
    pub const SOLICITED: u8 = 0x80;
    /// Migration state; what rxe and adapters send outside path migration.
    pub const MIGRATED: u8 = 0x40;
    /// The requester wants an acknowledgement.
    pub const ACK_REQUEST: u8 = 0x80;
    /// Backward explicit congestion notification.
    pub const BECN: u8 = 0x40;

    /// Bytes of padding after the payload.
    #[must_use]
    pub const fn pad(&self) -> usize {
        (self.flags >> 4 & 3) as usize
    }

    /// The sequence number.
    #[must_use]
    pub const fn psn(&self) -> Psn {
        Psn::new(self.psn.get())
    }
}

/// What a READ or WRITE is about (IBTA 9.3.3).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Reth {
    /// Virtual address at the responder.
    pub va: Be64,
    /// Key of the region.
    pub r_key: Be32,
    /// Bytes of the whole message.
    pub len: Be32,
}
assert_layout!(Reth, 16);

/// What an atomic is about (IBTA 9.3.4).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct AtomicEth {
    /// Virtual address at the responder, a multiple of 8.
    pub va: Be64,
    /// Key of the region.
    pub r_key: Be32,
    /// What is stored, or what is added.
    pub swap_add: Be64,
    /// What is compared with.
    pub compare: Be64,
}
assert_layout!(AtomicEth, 28);

/// An acknowledgement (IBTA 9.3.5).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Aeth {
    /// See [`Syndrome`].
    pub syndrome: u8,
    /// How many messages the responder has completed.
    pub msn: Be24,
}
assert_layout!(Aeth, 4);

/// What an [`Aeth`] says (IBTA table 43).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// All is well; the credit count is not used by us.
    Ack,
    /// No receive was posted; wait for the time of this code.
    Rnr(u8),
    /// A NAK, with its code.
    Nak(NakCode),
    /// A reserved value.
    Reserved(u8),
}

impl Syndrome {
    /// Reads the byte.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Self {
        match byte >> 5 {
            0 => Self::Ack,
            1 => Self::Rnr(byte & 0x1f),
            3 => Self::Nak(NakCode(byte & 0x1f)),
            _ => Self::Reserved(byte),
        }
    }

    /// Writes the byte; credits are not limited.
    #[must_use]
    pub const fn to_byte(self) -> u8 {
        match self {
            Self::Ack => 0x1f,
            Self::Rnr(code) => 0x20 | code & 0x1f,
            Self::Nak(code) => 0x60 | code.0 & 0x1f,
            Self::Reserved(byte) => byte,
        }
    }
}

rdma_wire::open_enum! {
    /// Why a request was refused (IBTA table 44).
    pub struct NakCode: u8 {
        PSN_SEQUENCE = 0,
        INVALID_REQUEST = 1,
        REMOTE_ACCESS = 2,
        REMOTE_OPERATION = 3,
        INVALID_RD_REQUEST = 4
    }
}

/// What memory held before an atomic (IBTA 9.3.5.3).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct AtomicAckEth {
    /// The eight bytes.
    pub original: Be64,
}
assert_layout!(AtomicAckEth, 8);

/// Who sent a datagram, and the key that lets it in (IBTA 9.3.2).
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Deth {
    /// Queue key.
    pub q_key: Be32,
    reserved: u8,
    /// Queue pair of the sender.
    pub src_qp: Be24,
}
assert_layout!(Deth, 8);

impl Deth {
    /// A header.
    #[must_use]
    pub const fn new(q_key: u32, src_qp: u32) -> Self {
        Self {
            q_key: Be32::new(q_key),
            reserved: 0,
            src_qp: Be24::new(src_qp),
        }
    }
}
