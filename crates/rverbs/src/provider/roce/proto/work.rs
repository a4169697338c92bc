//! Work requests as the user posts them.

use super::burst::Destination;
use super::memory::{Access, Fault, Memory};
use super::packet::Operation;

/// A piece of registered memory.
#[doc(alias = "ibv_sge")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sge {
    /// Virtual address.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Local key.
    pub lkey: u32,
}

/// Whom a datagram goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressHandle {
    /// Both addresses and the type of service.
    pub destination: Destination,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendOp {
    /// SEND.
    Send,
    /// SEND with immediate data.
    SendImm(u32),
    /// SEND that takes a key of the receiver back.
    SendInvalidate(u32),
    /// RDMA WRITE.
    Write {
        /// Address at the peer.
        addr: u64,
        /// Key of the peer's region.
        rkey: u32,
    },
    /// RDMA WRITE with immediate data.
    WriteImm {
        /// Address at the peer.
        addr: u64,
        /// Key of the peer's region.
        rkey: u32,
        /// What the peer's receive is told.
        imm: u32,
    },
    /// RDMA READ.
    Read {
        /// Address at the peer.
        addr: u64,
        /// Key of the peer's region.
        rkey: u32,
    },
    /// FETCH_ADD on eight bytes.
    FetchAdd {
        /// Address at the peer.
        addr: u64,
        /// Key of the peer's region.
        rkey: u32,
        /// What is added.
        add: u64,
    },
    /// CMP_SWAP on eight bytes.
    CompareSwap {
        /// Address at the peer.
        addr: u64,
        /// Key of the peer's region.
        rkey: u32,
        /// What the memory is compared with.
        compare: u64,
        /// What is stored if it is equal.
        swap: u64,
    },
}

impl SendOp {
    /// Whether the peer answers with data.
    pub(super) const fn is_answered(self) -> bool {
        matches!(
            self,
            Self::Read { .. } | Self::FetchAdd { .. } | Self::CompareSwap { .. }
        )
    }

    /// What the packet at this place of the message is.
    pub(super) const fn operation(self, first: bool, last: bool) -> Operation {
        match self {
            Self::Send => Operation::Send {
                first,
                last,
                imm: false,
                invalidate: false,
            },
            Self::SendImm(_) => Operation::Send {
                first,
                last,
                imm: last,
                invalidate: false,
            },
            Self::SendInvalidate(_) => Operation::Send {
                first,
                last,
                imm: false,
                invalidate: last,
            },
            Self::Write { .. } => Operation::Write {
                first,
                last,
                imm: false,
            },
            Self::WriteImm { .. } => Operation::Write {
                first,
                last,
                imm: last,
            },
            Self::Read { .. } => Operation::ReadRequest,
            Self::FetchAdd { .. } | Self::CompareSwap { .. } => Operation::Atomic,
        }
    }

    /// Address and key at the peer.
    pub(super) const fn remote(self) -> Option<(u64, u32)> {
        match self {
            Self::Write { addr, rkey }
            | Self::WriteImm { addr, rkey, .. }
            | Self::Read { addr, rkey }
            | Self::FetchAdd { addr, rkey, .. }
            | Self::CompareSwap { addr, rkey, .. } => Some((addr, rkey)),
            Self::Send | Self::SendImm(_) | Self::SendInvalidate(_) => None,
        }
    }
}

/// How a request is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendFlags {
    /// Report its end even if it went well.
    pub signaled: bool,
    /// Ask for an event at the peer.
    pub solicited: bool,
    /// Wait for earlier READs and atomics.
    pub fence: bool,
}

/// A request to send.
#[derive(Clone, Copy, Debug)]
pub struct SendRequest<'a> {
    /// A number for the completion.
    pub wr_id: u64,
    /// What is asked for.
    pub op: SendOp,
    /// How.
    pub flags: SendFlags,
    /// Where the bytes are; ignored if `inline` is given.
    pub sges: &'a [Sge],
    /// The bytes themselves, which are copied.
    pub inline: Option<&'a [u8]>,
    /// For datagrams: to whom.
    pub to: Option<Datagram>,
}

/// Whom a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The port.
    pub ah: AddressHandle,
    /// The queue pair.
    pub qpn: u32,
    /// Its key.
    pub q_key: u32,
}

/// A request to receive.
#[derive(Clone, Copy, Debug)]
pub struct RecvRequest<'a> {
    /// A number for the completion.
    pub wr_id: u64,
    /// Where the bytes go.
    pub sges: &'a [Sge],
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// No such queue.
    #[error("no such queue")]
    NoQueue,
    /// The queue is full.
    #[error("the queue is full")]
    Full,
    /// The queue pair is not in a state that takes it.
    #[error("the queue pair does not take requests in its state")]
    State,
    /// Too many pieces.
    #[error("{got} pieces of memory where {max} are allowed")]
    TooManySges {
        /// How many there are.
        got: usize,
        /// How many are allowed.
        max: usize,
    },
    /// Too many bytes given inline.
    #[error("{got} bytes inline where {max} are allowed")]
    TooMuchInline {
        /// How many there are.
        got: usize,
        /// How many are allowed.
        max: usize,
    },
    /// Too long for the transport.
    #[error("a message of {0} bytes is too long")]
    TooLong(u64),
    /// Not an operation of this transport, or one that the connection does not allow.
    #[error("the transport does not carry this operation")]
    Operation,
    /// A datagram without an address.
    #[error("a datagram needs an address")]
    NoAddress,
}

/// A piece of work in the send queue. Its two vectors keep their capacity.
#[derive(Clone, Debug, Default)]
pub(super) struct SendWqe {
    pub(super) wr_id: u64,
    pub(super) op: Option<SendOp>,
    pub(super) flags: SendFlags,
    pub(super) sges: Vec<Sge>,
    pub(super) inline: Vec<u8>,
    pub(super) is_inline: bool,
    pub(super) len: u32,
    pub(super) to: Option<Datagram>,
    pub(super) first: super::psn::Psn,
    pub(super) packets: u32,
}

impl SendWqe {
    pub(super) fn with_capacity(sges: usize, inline: usize) -> Self {
        Self {
            sges: Vec::with_capacity(sges),
            inline: Vec::with_capacity(inline),
            ..Self::default()
        }
    }

    /// Takes a request over. Nothing allocates while it is within the capacities.
    pub(super) fn set(&mut self, request: &SendRequest<'_>, len: u32) {
        self.wr_id = request.wr_id;
        self.op = Some(request.op);
        self.flags = request.flags;
        self.to = request.to;
        self.len = len;
        self.sges.clear();
        self.inline.clear();
        self.is_inline = request.inline.is_some();
        match request.inline {
            Some(bytes) => self.inline.extend_from_slice(bytes),
            None => self.sges.extend_from_slice(request.sges),
        }
    }

    /// Copies what is to be sent, from byte `at` of the message on.
    pub(super) fn gather<M: Memory>(
        &self,
        mem: &mut M,
        pd: u32,
        at: u32,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        if self.is_inline {
            let start = at as usize;
            let bytes = self
                .inline
                .get(start..start + out.len())
                .ok_or(Fault::Bounds)?;
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let mut rest = out;
        walk(&self.sges, at, rest.len(), |sge, addr, len| {
            let (part, left) = core::mem::take(&mut rest)
                .split_at_mut_checked(len)
                .ok_or(Fault::Bounds)?;
            rest = left;
            mem.read(pd, sge.lkey, Access::LOCAL_READ, addr, part)
        })
    }
}

/// Copies what arrived to the memory of a request, from byte `at` on.
pub(super) fn scatter<M: Memory>(
    sges: &[Sge],
    mem: &mut M,
    pd: u32,
    at: u32,
    data: &[u8],
) -> Result<(), Fault> {
    let mut rest = data;
    walk(sges, at, data.len(), |sge, addr, len| {
        let (part, left) = rest.split_at_checked(len).ok_or(Fault::Bounds)?;
        rest = left;
        mem.write(pd, sge.lkey, Access::LOCAL_WRITE, addr, part)
    })
}

/// The length of all pieces.
pub(super) fn total(sges: &[Sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.len)).sum()
}

/// Calls `each` with the pieces that `len` bytes from byte `at` on fall into.
fn walk(
    sges: &[Sge],
    at: u32,
    len: usize,
    mut each: impl FnMut(&Sge, u64, usize) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut skip = at as usize;
    let mut left = len;
    for sge in sges {
        if left == 0 {
            break;
        }
        let here = sge.len as usize;
        if skip >= here {
            skip -= here;
            continue;
        }
        let part = (here - skip).min(left);
        let addr = sge.addr.checked_add(skip as u64).ok_or(Fault::Bounds)?;
        each(sge, addr, part)?;
        left -= part;
        skip = 0;
    }
    if left == 0 {
        Ok(())
    } else {
        Err(Fault::Bounds)
    }
}
