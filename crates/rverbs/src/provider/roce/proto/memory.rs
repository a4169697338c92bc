//! What the protocol may do with memory: only by key, and every access is checked.

use core::fmt;

use super::queue::RecvWqe;

/// A set of rights, with the bits of `ibv_access_flags`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Access(pub u8);

impl Access {
    /// Reading by the owner, which every region allows.
    pub const LOCAL_READ: Self = Self(0);
    /// Writing by the owner's own requests: receives, READ responses, results of atomics.
    pub const LOCAL_WRITE: Self = Self(1);
    /// RDMA WRITE by the peer.
    pub const REMOTE_WRITE: Self = Self(2);
    /// RDMA READ by the peer.
    pub const REMOTE_READ: Self = Self(4);
    /// Atomics by the peer.
    pub const REMOTE_ATOMIC: Self = Self(8);
    /// All of them.
    pub const ALL: Self = Self(15);

    /// Whether every right of `other` is here.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The rights of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({:#x})", self.0)
    }
}

/// Why an access was not allowed. The peer is told no more than "access error".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// No region has this key, or it is of another protection domain.
    Key,
    /// The range is not within the region.
    Bounds,
    /// The region does not allow this access.
    Rights,
    /// An atomic whose address is not a multiple of 8.
    Alignment,
}

/// An atomic operation on 8 bytes, in the byte order of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicOp {
    /// Adds, wrapping.
    FetchAdd {
        /// What is added.
        add: u64,
    },
    /// Stores `swap` if the memory holds `compare`.
    CompareSwap {
        /// What the memory is compared with.
        compare: u64,
        /// What is stored if it is equal.
        swap: u64,
    },
}

impl AtomicOp {
    /// What the memory holds afterwards, if it held `old`.
    #[must_use]
    pub const fn apply(self, old: u64) -> u64 {
        match self {
            Self::FetchAdd { add } => old.wrapping_add(add),
            Self::CompareSwap { compare, swap } if old == compare => swap,
            Self::CompareSwap { .. } => old,
        }
    }
}

/// Registered memory, reached by key.
///
/// An implementation must check key, protection domain, rights and bounds on every call and must
/// touch nothing if one of them fails: the protocol passes on what peers sent.
pub trait Memory {
    /// Whether `len` bytes at `addr` could be accessed so.
    ///
    /// # Errors
    /// Why not.
    fn check(&self, pd: u32, key: u32, access: Access, addr: u64, len: u64) -> Result<(), Fault>;

    /// Copies from the region into `out`.
    ///
    /// # Errors
    /// Why not; `out` may then hold anything.
    fn read(
        &mut self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        out: &mut [u8],
    ) -> Result<(), Fault>;

    /// Copies `data` into the region.
    ///
    /// # Errors
    /// Why not; nothing was then written.
    fn write(
        &mut self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        data: &[u8],
    ) -> Result<(), Fault>;

    /// Carries out an atomic for a peer and returns what the memory held before.
    ///
    /// # Errors
    /// Why not; nothing was then changed.
    fn atomic(&mut self, pd: u32, key: u32, addr: u64, op: AtomicOp) -> Result<u64, Fault>;

    /// Takes the oldest receive of a queue pair whose receives the driver keeps
    /// ([`super::QpConfig::outside_receives`]). False if there is none.
    fn take_receive(&mut self, qpn: u32, into: &mut RecvWqe) -> bool {
        let _ = (qpn, into);
        false
    }

    /// Takes a remote key back, for SEND with invalidate.
    ///
    /// # Errors
    /// Why not.
    fn invalidate(&mut self, pd: u32, key: u32) -> Result<(), Fault>;
}
