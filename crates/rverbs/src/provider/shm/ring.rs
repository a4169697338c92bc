//! The ring through which a connected queue pair receives: records on cache lines.
//!
//! A record begins with a stamp, which is not zero; the receiver looks at one place only. So a short
//! message costs one cache line to hand over, as a flag would.
//!
//! The receiver zeroes the first word of every line that it has consumed, later, when it has nothing
//! else to do: a store to a line that the sender has would hold up the answer that is stored after it.
//! What it acknowledges may be uncleaned by [`UNCLEAN`] lines, which the sender leaves free.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering, compiler_fence, fence};

use crate::provider::small;

use super::layout::RING;

pub(super) const LINE: usize = 64;
/// Lines of the ring.
pub(super) const LINES: u32 = 4096;
const _: () = assert!(LINES as usize * LINE == RING);
/// Lines that may be acknowledged before they are cleaned.
pub(super) const UNCLEAN: u32 = LINES / 4;
/// Bytes of a record before its payload.
pub(super) const HEAD: usize = 24;
/// Messages up to this are copied into the ring; longer ones the receiver fetches.
pub(super) const EAGER: u32 = 8192;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Op {
    /// Skip to the start of the ring.
    Wrap = 1,
    Send = 2,
    SendImm = 3,
    SendInvalidate = 4,
    /// The data of a write is in place; only the notice comes by the ring.
    WriteImm = 5,
    /// Payload: address, rkey, kind, compare or add, swap.
    Atomic = 6,
}

impl Op {
    fn parse(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Wrap,
            2 => Self::Send,
            3 => Self::SendImm,
            4 => Self::SendInvalidate,
            5 => Self::WriteImm,
            6 => Self::Atomic,
            _ => return None,
        })
    }
}

pub(super) const SOLICITED: u8 = 1;
/// The payload is not the message but where the receiver fetches it: a list of `ibv_sge`.
pub(super) const FETCH: u8 = 2;

/// A record's head.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) op: Op,
    pub(super) flags: u8,
    pub(super) lines: u32,
    /// Bytes of the message.
    pub(super) len: u32,
    /// Immediate or key, as it was posted.
    pub(super) imm: u32,
    /// What the sender consumed of the other ring.
    pub(super) ack: u32,
    /// Number of entries to fetch.
    pub(super) entries: u32,
}

/// Writes a word that others look at; nothing that follows is done before they can see it.
#[inline]
pub(super) fn write_in_order(word: &AtomicU32, value: u32) {
    word.swap(value, Ordering::SeqCst);
    if cfg!(target_arch = "x86_64") {
        // There an exchange is a barrier, and a cheaper one.
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// A ring in a mapped file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring(NonNull<u8>);

// SAFETY: it is an address in a mapping that is valid from any thread.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// # Safety
    ///
    /// `at` begins a mapping of [`RING`] bytes, aligned to a line, that outlives the value.
    pub(super) unsafe fn new(at: NonNull<u8>) -> Self {
        Self(at)
    }

    /// The first byte of a line.
    #[inline]
    pub(super) fn line(self, at: u32) -> *mut u8 {
        let index = (at % LINES) as usize;
        self.0.as_ptr().wrapping_add(index * LINE)
    }

    /// The stamp of a line.
    #[inline]
    pub(super) fn stamp<'a>(self, at: u32) -> &'a AtomicU32 {
        // SAFETY: the line is in the mapping and aligned; every use of a first word that is not
        // the sender's own is atomic.
        unsafe { &*self.line(at).cast::<AtomicU32>() }
    }

    /// Writes the head of a record but for its stamp, which is returned.
    ///
    /// # Safety
    ///
    /// The lines of the record are free, and the caller is the only sender.
    #[inline]
    unsafe fn head(self, at: u32, record: &Record) -> u32 {
        let line = self.line(at).cast::<u32>();
        // SAFETY: the line is free and the caller's.
        unsafe {
            line.add(1).write(record.len);
            line.add(2).write(record.imm);
            line.add(3).write(record.ack);
            line.add(4).write(record.entries);
        }
        record.lines << 16 | u32::from(record.flags) << 8 | u32::from(record.op as u8)
    }

    /// Writes the head of a record, whose payload is there already, and shows it to the receiver.
    ///
    /// # Safety
    ///
    /// The lines of the record are free, and the caller is the only sender.
    #[inline]
    pub(super) unsafe fn publish(self, at: u32, record: &Record) {
        // SAFETY: as the caller promises.
        let stamp = unsafe { self.head(at, record) };
        self.stamp(at).store(stamp, Ordering::Release);
    }

    /// As [`Ring::publish`], and nothing that follows is done before it is seen.
    ///
    /// # Safety
    ///
    /// As for [`Ring::publish`].
    #[inline]
    pub(super) unsafe fn publish_in_order(self, at: u32, record: &Record) {
        // SAFETY: as the caller promises.
        let stamp = unsafe { self.head(at, record) };
        write_in_order(self.stamp(at), stamp);
    }

    /// The record at a line, where one was published. `Err` for one that makes no sense.
    #[inline]
    pub(super) fn read(self, at: u32) -> Option<Result<Record, ()>> {
        let stamp = self.stamp(at).load(Ordering::Acquire);
        if stamp == 0 {
            return None;
        }
        let [op, flags, ..] = stamp.to_le_bytes();
        let line = self.line(at).cast::<u32>();
        let word = |index: usize| {
            // SAFETY: the stamp says that the sender is done with the line.
            unsafe { line.add(index).read_volatile() }
        };
        let lines = stamp >> 16;
        let fits = lines > 0 && lines <= LINES - at % LINES;
        let Some(op) = Op::parse(op).filter(|_| fits) else {
            return Some(Err(()));
        };
        let record = Record {
            op,
            flags,
            lines,
            len: word(1),
            imm: word(2),
            ack: word(3),
            entries: word(4),
        };
        // What is said to be in the record must be in its lines.
        let room = lines as usize * LINE - HEAD;
        let inside = match op {
            Op::Wrap | Op::WriteImm => 0,
            Op::Atomic => ATOMIC,
            _ if flags & FETCH != 0 => record.entries as usize * 16,
            _ => record.len as usize,
        };
        Some(if inside <= room { Ok(record) } else { Err(()) })
    }

    /// Makes consumed lines ready for the next round.
    #[inline]
    pub(super) fn clean(self, from: u32, to: u32) {
        let mut at = from;
        while at != to {
            self.stamp(at).store(0, Ordering::Release);
            at = at.wrapping_add(1);
        }
    }

    /// The payload of a record.
    #[inline]
    pub(super) fn payload(self, at: u32) -> *mut u8 {
        self.line(at).wrapping_add(HEAD)
    }
}

/// Bytes of the payload of an atomic operation.
pub(super) const ATOMIC: usize = 32;

/// Lines of a record with that many bytes of payload.
#[inline]
pub(super) fn lines_for(payload: usize) -> u32 {
    small((HEAD + payload).div_ceil(LINE))
}
