//! Memory: buffers, and their registration.
//!
//! Who may touch a buffer when is what makes verbs unsafe in C. Here it is a matter of types:
//!
//! - [`LocalMr`]: no peer has a key. It is cut into [`Slice`]s, each of which is an owned `[u8]`; posting
//!   moves a slice away and completion gives it back, so it is never used by two.
//! - [`RemoteMr`]: peers may read or write it at any time, without a trace on this side. So there is no
//!   `&[u8]` of it, ever: it is read and written by copy, or word by word with atomics. Its [`Shared`]
//!   ranges can be posted too.
//!
//! Memory is freed only after it was deregistered; where that fails, it is leaked.

use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::ptr::NonNull;
use std::sync::Arc;

use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE, ibv_mr, ibv_sge,
};

use crate::Error;
use crate::device::Context;
use crate::pd::Pd;
use crate::provider::{Errno, Memory, native, small};

/// Zeroed memory of whole pages, as the provider likes it best.
pub struct Buffer {
    memory: Option<Memory>,
    context: Context,
}

// SAFETY: it owns its memory, as a `Vec` does.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl Context {
    /// Memory of at least `len` bytes.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    pub fn alloc(&self, len: usize) -> Result<Buffer, Error> {
        // A slice's length is 32 bits, as a message's is.
        let memory = self.0.alloc(len).map_err(Error::verb("mmap"))?;
        Ok(Buffer {
            memory: Some(memory),
            context: self.clone(),
        })
    }
}

impl Buffer {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.len)
    }

    /// Whether it has no bytes, which it never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn addr(&self) -> NonNull<u8> {
        self.memory
            .as_ref()
            .map_or(NonNull::dangling(), |memory| memory.addr)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is this value's alone, as it is not registered yet.
        unsafe { core::slice::from_raw_parts(self.addr().as_ptr(), self.len()) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(self.addr().as_ptr(), self.len()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            // SAFETY: the memory came from this context; a registration keeps the buffer, so there
            // is none.
            unsafe { self.context.0.free(memory) };
        }
    }
}

/// What peers may do with memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[doc(alias = "ibv_access_flags")]
pub struct Access(u32);

impl Access {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Read it.
    pub const READ: Self = Self(IBV_ACCESS_REMOTE_READ);
    /// Write it.
    pub const WRITE: Self = Self(IBV_ACCESS_REMOTE_WRITE);
    /// Atomic operations on it.
    pub const ATOMIC: Self = Self(IBV_ACCESS_REMOTE_ATOMIC);
    /// All of these.
    pub const ALL: Self =
        Self(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);

    /// This and that.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// `ibv_access_flags`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

#[derive(Debug)]
struct MrInner {
    pd: Pd,
    raw: NonNull<ibv_mr>,
    buffer: Option<Buffer>,
    lkey: u32,
    rkey: u32,
}

// SAFETY: verbs may be called from any thread, and nobody writes the struct.
unsafe impl Send for MrInner {}
// SAFETY: as above.
unsafe impl Sync for MrInner {}

impl Drop for MrInner {
    fn drop(&mut self) {
        // SAFETY: everything that was posted holds the region until its completion, or the end of
        // its queue pair; so this is the last use.
        if unsafe { self.pd.context().0.dereg_mr(self.raw) }.is_err() {
            // The device may still write to it.
            core::mem::forget(self.buffer.take());
        }
    }
}

fn register(pd: &Pd, buffer: Buffer, access: u32) -> Result<Arc<MrInner>, Error> {
    if buffer.context.0.raw() != pd.context().0.raw() {
        return Err(Error::Verb {
            verb: "ibv_reg_mr",
            errno: Errno(libc::EINVAL),
        });
    }
    let addr = buffer.addr();
    // SAFETY: the memory is mapped for as long as the buffer is, which is kept until it is
    // deregistered; it is accessed only as this module's types allow.
    let raw = unsafe {
        pd.context().0.reg_mr(
            pd.as_raw(),
            addr.as_ptr().cast(),
            buffer.len(),
            addr.as_ptr().expose_provenance() as u64,
            access,
        )
    }
    .map_err(Error::verb("ibv_reg_mr"))?;
    // SAFETY: the region is live.
    let (lkey, rkey) = unsafe { (raw.as_ref().lkey, raw.as_ref().rkey) };
    Ok(Arc::new(MrInner {
        pd: pd.clone(),
        raw,
        buffer: Some(buffer),
        lkey,
        rkey,
    }))
}

impl MrInner {
    fn addr(&self) -> NonNull<u8> {
        self.buffer
            .as_ref()
            .map_or(NonNull::dangling(), Buffer::addr)
    }

    fn len(&self) -> usize {
        self.buffer.as_ref().map_or(0, Buffer::len)
    }

    /// A range as posting wants it.
    fn entry(&self, offset: usize, length: u32) -> ibv_sge {
        let at = self.addr().as_ptr().wrapping_add(offset);
        ibv_sge {
            addr: at.expose_provenance() as u64,
            length,
            lkey: self.lkey,
        }
    }
}

/// The first byte of a range, whose provenance was exposed when the entry was made.
#[inline]
fn place(sge: &ibv_sge) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(native(sge.addr))
}

impl Pd {
    /// Registers a buffer for this side only.
    ///
    /// # Errors
    ///
    /// What the provider said; `EINVAL` for a buffer of another device.
    #[doc(alias = "ibv_reg_mr")]
    pub fn register(&self, buffer: Buffer) -> Result<LocalMr, Error> {
        Ok(LocalMr(register(self, buffer, IBV_ACCESS_LOCAL_WRITE)?))
    }

    /// Registers a buffer for peers too.
    ///
    /// # Errors
    ///
    /// As [`Pd::register`].
    pub fn register_remote(&self, buffer: Buffer, access: Access) -> Result<RemoteMr, Error> {
        let access = IBV_ACCESS_LOCAL_WRITE | access.bits();
        Ok(RemoteMr(register(self, buffer, access)?))
    }
}

/// Memory that only this side's requests may use.
#[derive(Debug)]
pub struct LocalMr(Arc<MrInner>);

impl LocalMr {
    /// All of it as one slice, cut to 4 GiB less one.
    #[must_use]
    pub fn into_slice(self) -> Slice {
        Slice(Box::new(Range {
            sge: self.0.entry(0, small(self.0.len())),
            mr: self.0,
        }))
    }

    /// Slices of `len` bytes each, as many as there are; a rest that is shorter is left out.
    #[must_use]
    pub fn into_slices(self, len: u32) -> Vec<Slice> {
        let count = self.0.len() / (len.max(1) as usize);
        (0..count)
            .map(|index| Range {
                sge: self.0.entry(index * len as usize, len),
                mr: Arc::clone(&self.0),
            })
            .map(|range| Slice(Box::new(range)))
            .collect()
    }
}

/// A range of registered memory that is owned like a `Box<[u8]>`.
///
/// It is as small as a pointer, to be moved to the device and back at no cost. Cutting memory into slices
/// allocates, posting them does not.
pub struct Slice(Box<Range>);

struct Range {
    /// As posting wants it.
    sge: ibv_sge,
    mr: Arc<MrInner>,
}

// SAFETY: it owns its range, as a `Box<[u8]>` does.
unsafe impl Send for Slice {}
// SAFETY: as above.
unsafe impl Sync for Slice {}

impl Slice {
    /// Cuts it in two, the first of `at` bytes or all.
    #[must_use]
    pub fn split_at(mut self, at: u32) -> (Self, Self) {
        let whole = self.0.sge;
        let length = at.min(whole.length);
        self.0.sge.length = length;
        let rest = Range {
            sge: ibv_sge {
                addr: whole.addr + u64::from(length),
                length: whole.length - length,
                ..whole
            },
            mr: Arc::clone(&self.0.mr),
        };
        (self, Self(Box::new(rest)))
    }
}

impl Deref for Slice {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the range is this value's alone, and initialised; the device gives it up before
        // a completion gives the value back.
        unsafe { core::slice::from_raw_parts(place(&self.0.sge), self.0.sge.length as usize) }
    }
}

impl DerefMut for Slice {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { core::slice::from_raw_parts_mut(place(&self.0.sge), self.0.sge.length as usize) }
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slice")
            .field("len", &self.0.sge.length)
            .finish_non_exhaustive()
    }
}

/// Memory that peers may use too. Clones are the same memory.
#[derive(Debug, Clone)]
pub struct RemoteMr(Arc<MrInner>);

/// What a peer needs to use memory of this side: a capability. Whoever has it may do what the
/// memory was registered for, on any queue pair of its domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RemoteRegion {
    /// Address of the first byte.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// The key.
    pub rkey: u32,
}

impl RemoteRegion {
    /// Bytes of the encoding.
    pub const LEN: usize = 20;

    /// For the wire: address, length and key in network byte order.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.addr.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.len.to_be_bytes());
        bytes[16..].copy_from_slice(&self.rkey.to_be_bytes());
        bytes
    }

    /// From the wire. Whatever it says is safe to use: the peer checks it.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h, rest @ ..] = *bytes;
        let [i, j, k, l, m, n, o, p, key @ ..] = rest;
        Self {
            addr: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            len: u64::from_be_bytes([i, j, k, l, m, n, o, p]),
            rkey: u32::from_be_bytes(key),
        }
    }

    /// The part from `offset` on.
    #[must_use]
    pub fn from(self, offset: u64) -> Self {
        Self {
            addr: self.addr.wrapping_add(offset),
            len: self.len.saturating_sub(offset),
            rkey: self.rkey,
        }
    }
}

impl RemoteMr {
    /// Gives the right to use the memory away.
    #[must_use]
    pub fn export(&self) -> RemoteRegion {
        RemoteRegion {
            addr: self.0.addr().as_ptr().expose_provenance() as u64,
            len: self.0.len() as u64,
            rkey: self.0.rkey,
        }
    }

    /// A range for posting; `None` where it is not inside.
    #[must_use]
    pub fn slice(&self, offset: usize, len: u32) -> Option<Shared> {
        (offset.checked_add(len as usize)? <= self.0.len()).then(|| Shared {
            sge: self.0.entry(offset, len),
            mr: Arc::clone(&self.0),
        })
    }

    /// All of it, cut to 4 GiB less one.
    #[must_use]
    pub fn all(&self) -> Shared {
        Shared {
            sge: self.0.entry(0, small(self.0.len())),
            mr: Arc::clone(&self.0),
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has no bytes, which it never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A range of memory that others may use at any time.
#[derive(Clone)]
pub struct Shared {
    /// As posting wants it.
    sge: ibv_sge,
    mr: Arc<MrInner>,
}

// SAFETY: it is accessed by atomics only.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("len", &self.sge.length)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sge.length as usize
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sge.length == 0
    }

    /// What a peer needs to use this range.
    #[must_use]
    pub fn export(&self) -> RemoteRegion {
        RemoteRegion {
            addr: self.sge.addr,
            len: self.sge.length.into(),
            rkey: self.mr.rkey,
        }
    }

    /// A byte, with what was written before it: to wait for a write's last one.
    ///
    /// `None` behind the end.
    #[inline]
    #[must_use]
    pub fn byte(&self, at: usize) -> Option<&AtomicU8> {
        // SAFETY: the byte is inside; all that this side does to it is atomic.
        (at < self.len()).then(|| unsafe { &*place(&self.sge).add(at).cast::<AtomicU8>() })
    }

    /// A word, for atomic operations. `None` behind the end or where it is not aligned.
    #[inline]
    #[must_use]
    pub fn word(&self, at: usize) -> Option<&AtomicU64> {
        let inside = at.checked_add(8)? <= self.len();
        let place = place(&self.sge).wrapping_add(at);
        // SAFETY: the word is inside and aligned; all that this side does to it is atomic.
        (inside && place.addr().is_multiple_of(8)).then(|| unsafe { &*place.cast::<AtomicU64>() })
    }

    /// Copies out, from `at` on; returns how many bytes there were.
    ///
    /// What a peer writes meanwhile may be seen in part.
    pub fn read(&self, at: usize, to: &mut [u8]) -> usize {
        let len = self.len().saturating_sub(at).min(to.len());
        let mut done = 0;
        while done < len {
            match (len - done >= 8).then(|| self.word(at + done)).flatten() {
                Some(word) => {
                    let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
                    to[done..done + 8].copy_from_slice(&bytes);
                    done += 8;
                }
                None => {
                    to[done] = self
                        .byte(at + done)
                        .map_or(0, |b| b.load(Ordering::Relaxed));
                    done += 1;
                }
            }
        }
        core::sync::atomic::fence(Ordering::Acquire);
        len
    }

    /// Copies in, from `at` on; returns how many bytes found room.
    pub fn write(&self, at: usize, from: &[u8]) -> usize {
        core::sync::atomic::fence(Ordering::Release);
        let len = self.len().saturating_sub(at).min(from.len());
        let mut rest = &from[..len];
        let mut at = at;
        while let Some((first, tail)) = rest.split_first() {
            if let Some((chunk, after)) = rest.split_first_chunk::<8>()
                && let Some(word) = self.word(at)
            {
                word.store(u64::from_ne_bytes(*chunk), Ordering::Relaxed);
                (rest, at) = (after, at + 8);
            } else {
                if let Some(byte) = self.byte(at) {
                    byte.store(*first, Ordering::Relaxed);
                }
                (rest, at) = (tail, at + 1);
            }
        }
        len
    }
}

/// Something that can be posted: it owns registered memory, or a share of it.
///
/// # Safety
///
/// The entries stay registered, and are used by nobody in a way that conflicts with the device,
/// for as long as the value lives, wherever it is moved.
pub unsafe trait Buf: Send + 'static {
    /// Its scatter list.
    type Entries: AsRef<[ibv_sge]> + AsMut<[ibv_sge]>;

    /// Its scatter list.
    fn entries(&self) -> Self::Entries;

    /// Its scatter list, where that is one entry which lies in the value or behind it: what need not be
    /// copied to be posted.
    fn entry(&self) -> Option<&ibv_sge> {
        None
    }

    /// The domain of its memory, which must be the queue pair's. A device finds that out too; this is
    /// for those that have no memory.
    fn len(&self) -> u64 {
        let entries = self.entries();
        entries
            .as_ref()
            .iter()
            .map(|sge| u64::from(sge.length))
            .sum()
    }

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

// SAFETY: the value keeps the registration, and owns the range.
unsafe impl Buf for Slice {
    type Entries = [ibv_sge; 1];

    #[inline]
    fn entries(&self) -> [ibv_sge; 1] {
        [self.0.sge]
    }

    #[inline]
    fn entry(&self) -> Option<&ibv_sge> {
        Some(&self.0.sge)
    }
}

// SAFETY: the value keeps the registration; this side accesses the range by atomics only.
unsafe impl Buf for Shared {
    type Entries = [ibv_sge; 1];

    #[inline]
    fn entries(&self) -> [ibv_sge; 1] {
        [self.sge]
    }

    #[inline]
    fn entry(&self) -> Option<&ibv_sge> {
        Some(&self.sge)
    }
}

// SAFETY: it has no memory.
unsafe impl Buf for () {
    type Entries = [ibv_sge; 0];

    fn entries(&self) -> [ibv_sge; 0] {
        []
    }
}

// SAFETY: each part keeps its own memory.
unsafe impl<const N: usize> Buf for [Slice; N] {
    type Entries = [ibv_sge; N];

    fn entries(&self) -> [ibv_sge; N] {
        self.each_ref().map(|slice| slice.entries()[0])
    }
}

// SAFETY: each part keeps its own memory.
unsafe impl<const N: usize> Buf for [Shared; N] {
    type Entries = [ibv_sge; N];

    fn entries(&self) -> [ibv_sge; N] {
        self.each_ref().map(|shared| shared.entries()[0])
    }
}

// SAFETY: each part keeps its own memory.
unsafe impl Buf for Vec<Slice> {
    type Entries = Vec<ibv_sge>;

    fn entries(&self) -> Vec<ibv_sge> {
        self.iter().map(|slice| slice.entries()[0]).collect()
    }
}

/// Memory of either kind.
#[derive(Debug)]
pub enum Piece {
    /// Memory of this side alone.
    Own(Slice),
    /// Memory that peers use too.
    Shared(Shared),
}

// SAFETY: both kinds keep their memory.
unsafe impl Buf for Piece {
    type Entries = [ibv_sge; 1];

    #[inline]
    fn entries(&self) -> [ibv_sge; 1] {
        match self {
            Self::Own(slice) => slice.entries(),
            Self::Shared(shared) => shared.entries(),
        }
    }

    #[inline]
    fn entry(&self) -> Option<&ibv_sge> {
        match self {
            Self::Own(slice) => slice.entry(),
            Self::Shared(shared) => shared.entry(),
        }
    }
}

impl From<Slice> for Piece {
    fn from(slice: Slice) -> Self {
        Self::Own(slice)
    }
}

impl From<Shared> for Piece {
    fn from(shared: Shared) -> Self {
        Self::Shared(shared)
    }
}
