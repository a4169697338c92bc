//! From bytes to a packet, every length checked first.

use rdma_wire::{Be32, DecodeError, prefix};

use super::header::{Aeth, AtomicAckEth, AtomicEth, Bth, Deth, Reth};
use super::{Opcode, Operation, icrc};

/// Why bytes are not a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// Shorter than its headers.
    #[error(transparent)]
    Short(#[from] DecodeError),
    /// Not a multiple of four bytes.
    #[error("{len} bytes are not a multiple of 4")]
    Unaligned {
        /// How many there are.
        len: usize,
    },
    /// More padding than payload, or padding where there is none.
    #[error("{pad} bytes of padding after {len} bytes of payload")]
    Padding {
        /// Bytes of padding.
        pad: usize,
        /// Bytes of payload with the padding.
        len: usize,
    },
    /// A transport header version other than 0.
    #[error("transport header version {0}")]
    Version(u8),
    /// An opcode we do not know.
    #[error("opcode {0:?}")]
    Opcode(Opcode),
    /// The check sequence is wrong.
    #[error("wrong invariant CRC")]
    Icrc,
}

/// A packet, viewed in place. The header fields that the opcode does not have are `None`.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The base header.
    pub bth: &'a Bth,
    /// What it is; [`Operation::Acknowledge`] never stands for a CNP, see [`Packet::is_cnp`].
    pub op: Option<Operation>,
    /// Of datagrams.
    pub deth: Option<&'a Deth>,
    /// Of READ requests and the first packet of a WRITE.
    pub reth: Option<&'a Reth>,
    /// Of atomics.
    pub atomic: Option<&'a AtomicEth>,
    /// Of acknowledgements and READ responses.
    pub aeth: Option<&'a Aeth>,
    /// Of the answer to an atomic.
    pub original: Option<u64>,
    /// Immediate data, in host order as the verbs program sees the wire bytes read big-endian.
    pub imm: Option<u32>,
    /// The key to take back.
    pub invalidate: Option<u32>,
    /// What it carries, without padding.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Views a UDP payload. The ICRC is *not* checked here: see [`icrc::Checker`].
    ///
    /// # Errors
    /// Says in which way the bytes are not a packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, PacketError> {
        if !bytes.len().is_multiple_of(4) {
            return Err(PacketError::Unaligned { len: bytes.len() });
        }
        let (bth, _) = prefix::<Bth>("BTH", bytes)?;
        // The ICRC is at least there once the BTH and 4 more bytes are.
        let body = bytes.len().saturating_sub(icrc::LEN).max(size_of::<Bth>());
        let (body, _) = bytes.split_at_checked(body).unwrap_or((bytes, &[]));
        let (_, mut rest) = prefix::<Bth>("BTH", body)?;
        if bytes.len() < size_of::<Bth>() + icrc::LEN {
            return Err(prefix::<[u8; 4]>("ICRC", &[])
                .err()
                .map_or(PacketError::Icrc, Into::into));
        }
        if bth.flags & 0x0f != 0 {
            return Err(PacketError::Version(bth.flags & 0x0f));
        }
        let mut packet = Self {
            bth,
            op: None,
            deth: None,
            reth: None,
            atomic: None,
            aeth: None,
            original: None,
            imm: None,
            invalidate: None,
            payload: &[],
        };
        if bth.opcode == Opcode::CNP {
            return Ok(packet);
        }
        let op = bth
            .opcode
            .operation()
            .ok_or(PacketError::Opcode(bth.opcode))?;
        packet.op = Some(op);
        if bth.opcode.class() == 0x60 {
            packet.deth = Some(take("DETH", &mut rest)?);
        }
        let carries = match op {
            Operation::Send {
                imm, invalidate, ..
            } => {
                if imm {
                    packet.imm = Some(take::<Be32>("ImmDt", &mut rest)?.get());
                }
                if invalidate {
                    packet.invalidate = Some(take::<Be32>("IETH", &mut rest)?.get());
                }
                true
            }
            Operation::Write { first, imm, .. } => {
                if first {
                    packet.reth = Some(take("RETH", &mut rest)?);
                }
                if imm {
                    packet.imm = Some(take::<Be32>("ImmDt", &mut rest)?.get());
                }
                true
            }
            Operation::ReadRequest => {
                packet.reth = Some(take("RETH", &mut rest)?);
                false
            }
            Operation::ReadResponse { aeth } => {
                if aeth {
                    packet.aeth = Some(take("AETH", &mut rest)?);
                }
                true
            }
            Operation::Acknowledge => {
                packet.aeth = Some(take("AETH", &mut rest)?);
                false
            }
            Operation::AtomicAcknowledge => {
                packet.aeth = Some(take("AETH", &mut rest)?);
                packet.original = Some(
                    take::<AtomicAckEth>("AtomicAckETH", &mut rest)?
                        .original
                        .get(),
                );
                false
            }
            Operation::Atomic => {
                packet.atomic = Some(take("AtomicETH", &mut rest)?);
                false
            }
        };
        let pad = bth.pad();
        if carries {
            let len = rest.len();
            let kept = len
                .checked_sub(pad)
                .ok_or(PacketError::Padding { pad, len })?;
            packet.payload = rest.get(..kept).unwrap_or(&[]);
        } else if pad != 0 || !rest.is_empty() {
            return Err(PacketError::Padding {
                pad,
                len: rest.len(),
            });
        }
        Ok(packet)
    }

    /// A congestion notification.
    #[must_use]
    pub fn is_cnp(&self) -> bool {
        self.op.is_none()
    }
}

fn take<'a, T: bytemuck::Pod>(
    what: &'static str,
    rest: &mut &'a [u8],
) -> Result<&'a T, DecodeError> {
    let (value, left) = prefix::<T>(what, rest)?;
    *rest = left;
    Ok(value)
}
