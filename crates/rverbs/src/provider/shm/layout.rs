//! What lies in the shared files.
//!
//! All of it is written by processes of the same user, which could as well attach a debugger to
//! each other; it is a matter of robustness, not of security, that numbers are checked before they
//! are used as indices. Each cache line has one writer.

use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64};

use crate::provider::soft::memory::Entry;

/// "rvq" and "rvn" with the version of the layout: processes of different versions don't meet.
pub(super) const QP_MAGIC: u32 = 0x7276_7101;
pub(super) const NODE_MAGIC: u32 = 0x7276_6e01;

/// Registrations of a process.
pub(super) const KEYS: usize = 8192;

/// Bytes of the ring through which a connected queue pair receives.
pub(super) const RING: usize = 256 << 10;

/// Where the ring begins in a queue pair's file.
pub(super) const RING_AT: usize = 4096;

/// State of a queue pair that was destroyed or reset: behind the verbs' own states.
pub(super) const GONE: u32 = 100;

/// A process.
#[derive(Debug)]
#[repr(C)]
pub(super) struct NodeHeader {
    pub(super) magic: AtomicU32,
    pub(super) pid: AtomicU32,
    /// Inode of the PID namespace: a PID means something only within.
    pub(super) pid_namespace: AtomicU64,
    pub(super) bell: Bell,
}

/// What wakes the thread of a process.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Bell {
    /// Counts rings; the futex that the thread sleeps on.
    pub(super) rings: AtomicU32,
    /// Whether the thread sleeps.
    pub(super) asleep: AtomicU32,
}

pub(super) const KEYS_AT: usize = 4096;
pub(super) const NODE_LEN: usize = KEYS_AT + KEYS * size_of::<Entry>();

/// A queue pair.
#[derive(Debug)]
#[repr(C)]
pub(super) struct QpHeader {
    /// Written before the file has its name or never changed afterwards.
    pub(super) magic: AtomicU32,
    pub(super) kind: AtomicU32,
    pub(super) node: AtomicU32,
    pub(super) pd: AtomicU32,
    pub(super) control: Control,
    pub(super) received: Received,
    pub(super) armed: Armed,
    pub(super) hazard: Hazard,
    pub(super) fault: Fault,
    pub(super) producer: Producer,
    /// Old values that atomic operations returned, by the count of operations.
    pub(super) results: [AtomicU64; RESULTS],
}

/// How many atomic operations may wait for the peer's thread.
pub(super) const RESULTS: usize = 16;

/// Written by the owner at transitions.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Control {
    /// `ibv_qp_state`, or [`GONE`].
    pub(super) state: AtomicU32,
    /// The queue pair that this one is connected to.
    pub(super) peer: AtomicU32,
    /// Counts resets: who connected before one may not send any more.
    pub(super) epoch: AtomicU32,
    /// `qp_access_flags`.
    pub(super) access: AtomicU32,
    pub(super) qkey: AtomicU32,
}

/// Written by the owner, as a receiver.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Received {
    /// Lines of the ring that were consumed, modulo 2³².
    pub(super) consumed: AtomicU32,
    /// Lines consumed when no receive request was there for the next message, plus 1.
    pub(super) not_ready: AtomicU32,
    /// `ibv_wc_status` by which the message at `consumed` was refused, or 0.
    pub(super) refused: AtomicU32,
}

/// Written by the owner: which completions it wants to be woken for (0, 1 any, 2 solicited).
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Armed {
    pub(super) recv: AtomicU32,
    pub(super) send: AtomicU32,
}

/// Written by the owner: odd while it accesses memory of its peer's process.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Hazard {
    pub(super) sending: AtomicU32,
    pub(super) receiving: AtomicU32,
}

/// Written by the peer: its one-sided access was refused, so this queue pair has to fail.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Fault {
    pub(super) access: AtomicU32,
}

/// Written by who sends into the ring: number of the queue pair that has the right to, or 0.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Producer {
    pub(super) qpn: AtomicU32,
}

const _: () = {
    assert!(size_of::<NodeHeader>() <= KEYS_AT);
    assert!(size_of::<QpHeader>() <= RING_AT);
    assert!(offset_of!(QpHeader, control) == 64);
    assert!(size_of::<Entry>() == 64);
};
