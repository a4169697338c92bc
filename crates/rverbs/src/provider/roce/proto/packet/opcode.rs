//! BTH opcodes: the transport in the upper three bits, the operation in the lower five.

use rdma_wire::open_enum;

use super::header::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Reth};

open_enum! {
    /// The opcode of a packet (IBTA table 38).
    #[doc(alias = "OpCode")]
    pub struct Opcode: u8 {
        RC_SEND_FIRST = 0x00,
        RC_SEND_MIDDLE = 0x01,
        RC_SEND_LAST = 0x02,
        RC_SEND_LAST_IMM = 0x03,
        RC_SEND_ONLY = 0x04,
        RC_SEND_ONLY_IMM = 0x05,
        RC_WRITE_FIRST = 0x06,
        RC_WRITE_MIDDLE = 0x07,
        RC_WRITE_LAST = 0x08,
        RC_WRITE_LAST_IMM = 0x09,
        RC_WRITE_ONLY = 0x0a,
        RC_WRITE_ONLY_IMM = 0x0b,
        RC_READ_REQUEST = 0x0c,
        RC_READ_RESPONSE_FIRST = 0x0d,
        RC_READ_RESPONSE_MIDDLE = 0x0e,
        RC_READ_RESPONSE_LAST = 0x0f,
        RC_READ_RESPONSE_ONLY = 0x10,
        RC_ACKNOWLEDGE = 0x11,
        RC_ATOMIC_ACKNOWLEDGE = 0x12,
        RC_COMPARE_SWAP = 0x13,
        RC_FETCH_ADD = 0x14,
        RC_SEND_LAST_INVALIDATE = 0x16,
        RC_SEND_ONLY_INVALIDATE = 0x17,
        UC_SEND_FIRST = 0x20,
        UC_SEND_MIDDLE = 0x21,
        UC_SEND_LAST = 0x22,
        UC_SEND_LAST_IMM = 0x23,
        UC_SEND_ONLY = 0x24,
        UC_SEND_ONLY_IMM = 0x25,
        UC_WRITE_FIRST = 0x26,
        UC_WRITE_MIDDLE = 0x27,
        UC_WRITE_LAST = 0x28,
        UC_WRITE_LAST_IMM = 0x29,
        UC_WRITE_ONLY = 0x2a,
        UC_WRITE_ONLY_IMM = 0x2b,
        UD_SEND_ONLY = 0x64,
        UD_SEND_ONLY_IMM = 0x65,
        CNP = 0x81
    }
}

impl Opcode {
    /// The bits that say which transport: 0x00 RC, 0x20 UC, 0x60 UD.
    #[must_use]
    pub const fn class(self) -> u8 {
        self.0 & 0xe0
    }

    /// What the packet is, whatever the transport; `None` for what we do not know.
    #[must_use]
    pub const fn operation(self) -> Option<Operation> {
        use Operation as O;
        let op = match self.0 & 0x1f {
            0x00 => O::send(true, false),
            0x01 => O::send(false, false),
            0x02 => O::send(false, true),
            0x03 => O::send(false, true).with_imm(),
            0x04 => O::send(true, true),
            0x05 => O::send(true, true).with_imm(),
            0x06 => O::write(true, false),
            0x07 => O::write(false, false),
            0x08 => O::write(false, true),
            0x09 => O::write(false, true).with_imm(),
            0x0a => O::write(true, true),
            0x0b => O::write(true, true).with_imm(),
            0x0c => O::ReadRequest,
            0x0d => O::ReadResponse { aeth: true },
            0x0e => O::ReadResponse { aeth: false },
            0x0f | 0x10 => O::ReadResponse { aeth: true },
            0x11 => O::Acknowledge,
            0x12 => O::AtomicAcknowledge,
            0x13 | 0x14 => O::Atomic,
            0x16 => O::Send {
                first: false,
                last: true,
                imm: false,
                invalidate: true,
            },
            0x17 => O::Send {
                first: true,
                last: true,
                imm: false,
                invalidate: true,
            },
            _ => return None,
        };
        match (self.class(), op) {
            (0x00, _) => Some(op),
            (
                0x20,
                O::Send {
                    invalidate: false, ..
                }
                | O::Write { .. },
            )
            | (
                0x60,
                O::Send {
                    first: true,
                    last: true,
                    invalidate: false,
                    ..
                },
            ) => Some(op),
            _ => None,
        }
    }

    /// Bytes of headers from the BTH up to the payload; `None` for what we do not know.
    #[must_use]
    pub const fn header_len(self) -> Option<usize> {
        if self.0 == Self::CNP.0 {
            return Some(size_of::<Bth>());
        }
        let Some(op) = self.operation() else {
            return None;
        };
        let deth = if self.class() == 0x60 {
            size_of::<Deth>()
        } else {
            0
        };
        let extended = match op {
            Operation::Send {
                imm, invalidate, ..
            } => {
                if imm || invalidate {
                    4
                } else {
                    0
                }
            }
            Operation::Write { first, imm, .. } => {
                (if first { size_of::<Reth>() } else { 0 }) + if imm { 4 } else { 0 }
            }
            Operation::ReadRequest => size_of::<Reth>(),
            Operation::ReadResponse { aeth: false } => 0,
            Operation::ReadResponse { aeth: true } | Operation::Acknowledge => size_of::<Aeth>(),
            Operation::AtomicAcknowledge => size_of::<Aeth>() + size_of::<AtomicAckEth>(),
            Operation::Atomic => size_of::<AtomicEth>(),
        };
        Some(size_of::<Bth>() + deth + extended)
    }
}

/// What a packet is, whatever its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A part of a SEND.
    Send {
        /// It begins a message.
        first: bool,
        /// It ends a message.
        last: bool,
        /// It carries immediate data.
        imm: bool,
        /// It takes a key of the receiver back.
        invalidate: bool,
    },
    /// A part of an RDMA WRITE.
    Write {
        /// It begins a message, and carries address, key and length.
        first: bool,
        /// It ends a message.
        last: bool,
        /// It carries immediate data.
        imm: bool,
    },
    /// A request to read.
    ReadRequest,
    /// A part of what was read.
    ReadResponse {
        /// Whether it carries an AETH: all but the middle ones do.
        aeth: bool,
    },
    /// An acknowledgement, positive or not.
    Acknowledge,
    /// The result of an atomic.
    AtomicAcknowledge,
    /// FETCH_ADD or CMP_SWAP.
    Atomic,
}

impl Operation {
    const fn send(first: bool, last: bool) -> Self {
        Self::Send {
            first,
            last,
            imm: false,
            invalidate: false,
        }
    }

    const fn write(first: bool, last: bool) -> Self {
        Self::Write {
            first,
            last,
            imm: false,
        }
    }

    const fn with_imm(self) -> Self {
        match self {
            Self::Send { first, last, .. } => Self::Send {
                first,
                last,
                imm: true,
                invalidate: false,
            },
            Self::Write { first, last, .. } => Self::Write {
                first,
                last,
                imm: true,
            },
            other => other,
        }
    }

    /// The opcode of a SEND or WRITE packet of RC.
    #[must_use]
    pub(crate) const fn request_opcode(self) -> Opcode {
        let op = match self {
            Self::Send {
                first: true,
                last: false,
                ..
            } => 0x00,
            Self::Send {
                first: false,
                last: false,
                ..
            } => 0x01,
            Self::Send {
                first: false,
                last: true,
                invalidate: true,
                ..
            } => 0x16,
            Self::Send {
                first: true,
                last: true,
                invalidate: true,
                ..
            } => 0x17,
            Self::Send {
                first: false,
                last: true,
                imm,
                ..
            } => 0x02 + imm as u8,
            Self::Send {
                first: true,
                last: true,
                imm,
                ..
            } => 0x04 + imm as u8,
            Self::Write {
                first: true,
                last: false,
                ..
            } => 0x06,
            Self::Write {
                first: false,
                last: false,
                ..
            } => 0x07,
            Self::Write {
                first: false,
                last: true,
                imm,
            } => 0x08 + imm as u8,
            Self::Write {
                first: true,
                last: true,
                imm,
            } => 0x0a + imm as u8,
            Self::ReadRequest => 0x0c,
            Self::ReadResponse { aeth: false } => 0x0e,
            Self::ReadResponse { aeth: true } => 0x10,
            Self::Acknowledge => 0x11,
            Self::AtomicAcknowledge => 0x12,
            Self::Atomic => 0x14,
        };
        Opcode(op)
    }
}
