//! This process among the processes that share memory, and its view of the others.

use core::sync::atomic::{AtomicU32, Ordering, fence};
use core::time::Duration;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, OnceLock, Weak};

use crate::provider::Errno;
use crate::provider::soft::Qp;
use crate::provider::soft::lock::Lock;
use crate::provider::soft::memory::{Entry, KeyTable};

use super::Shm;
use super::dir::{Dir, Map};
use super::layout::{KEYS, KEYS_AT, NODE_LEN, NODE_MAGIC, NodeHeader};

/// This process.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) dir: Dir,
    pub(super) id: u32,
    /// Mapped for the life of the process.
    pub(super) header: &'static NodeHeader,
    pub(super) keys: KeyTable,
    /// Queue pairs of this process, of all its contexts.
    pub(super) qps: Lock<HashMap<u32, Weak<Qp<Shm>>>>,
    /// Buffers of this process that peers can map, by address.
    pub(super) buffers: Lock<Vec<Buffer>>,
    pub(super) next_buffer: AtomicU32,
    others: Lock<HashMap<u32, Weak<Other>>>,
}

/// A buffer in a file of this process.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) id: u32,
    pub(super) map: Map,
}

/// Another process (or this one, seen from outside).
#[derive(Debug)]
pub(super) struct Other {
    map: Map,
    pub(super) id: u32,
    pub(super) pid: i32,
    /// Whether its PID means the same here.
    pub(super) same_pids: bool,
    pub(super) own: bool,
    buffers: Lock<HashMap<u32, Option<Arc<Map>>>>,
}

fn pid_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// The name of a buffer's file.
pub(super) fn buffer_name(node: u32, id: u32) -> String {
    format!("m{node:08x}-{id:08x}")
}

impl Node {
    /// This process; it is made known to others at the first call.
    pub(super) fn get() -> Result<&'static Self, Errno> {
        static NODE: OnceLock<Result<Node, Errno>> = OnceLock::new();
        match NODE.get_or_init(Self::create) {
            Ok(node) => Ok(node),
            Err(errno) => Err(*errno),
        }
    }

    fn create() -> Result<Self, Errno> {
        let dir = Dir::open()?;
        let (id, map) = loop {
            let id = random();
            match dir.create(&format!("n{id:08x}"), NODE_LEN) {
                Err(Errno(libc::EEXIST)) => {}
                map => break (id, map?),
            }
        };
        // The table of keys lives as long as the process: peers may look at it at any time.
        let map: &'static Map = Box::leak(Box::new(map));
        // SAFETY: the mapping is longer than the header, aligned to a page, zeroed (which is a value
        // of every atomic) and never unmapped.
        let header = unsafe { map.addr.cast::<NodeHeader>().as_ref() };
        // SAFETY: as above, for the entries behind the header.
        let entries = unsafe {
            let first = map.addr.add(KEYS_AT).cast::<Entry>();
            core::slice::from_raw_parts(first.as_ptr(), KEYS)
        };
        header.pid.store(std::process::id(), Ordering::Relaxed);
        header
            .pid_namespace
            .store(pid_namespace(), Ordering::Relaxed);
        header.magic.store(NODE_MAGIC, Ordering::Release);
        std::thread::Builder::new()
            .name("rverbs-shm".into())
            .spawn(super::thread::run)?;
        Ok(Self {
            dir,
            id,
            header,
            keys: KeyTable::shared(entries),
            qps: Lock::new(HashMap::new()),
            buffers: Lock::new(Vec::new()),
            next_buffer: AtomicU32::new(1),
            others: Lock::new(HashMap::new()),
        })
    }

    /// The queue pairs of this process that are alive.
    pub(super) fn live_qps(&self) -> Vec<Arc<Qp<Shm>>> {
        let mut live = Vec::new();
        self.live_qps_into(&mut live);
        live
    }

    /// As [`Node::live_qps`], into a list that is used again.
    pub(super) fn live_qps_into(&self, live: &mut Vec<Arc<Qp<Shm>>>) {
        let qps = self.qps.lock();
        live.extend(qps.values().filter_map(Weak::upgrade));
    }

    /// A process by its number, mapped once.
    pub(super) fn other(&self, id: u32) -> Result<Arc<Other>, Errno> {
        if let Some(other) = self.others.lock().get(&id).and_then(Weak::upgrade) {
            return Ok(other);
        }
        let map = self.dir.attach(&format!("n{id:08x}"))?;
        if map.len != NODE_LEN {
            return Err(Errno(libc::EPROTO));
        }
        let mut other = Other {
            map,
            id,
            pid: 0,
            same_pids: false,
            own: id == self.id,
            buffers: Lock::new(HashMap::new()),
        };
        let header = other.header();
        if header.magic.load(Ordering::Acquire) != NODE_MAGIC {
            return Err(Errno(libc::EPROTO));
        }
        let pid = header.pid.load(Ordering::Relaxed);
        let same = header.pid_namespace.load(Ordering::Relaxed) == pid_namespace();
        other.pid = pid.cast_signed();
        other.same_pids = same;
        let other = Arc::new(other);
        self.others.lock().insert(id, Arc::downgrade(&other));
        Ok(other)
    }

    /// The buffer that an address range lies in, and where in it.
    pub(super) fn buffer_at(&self, addr: usize, len: usize) -> Option<(u32, u64)> {
        let buffers = self.buffers.lock();
        buffers.iter().find_map(|buffer| {
            let offset = addr.checked_sub(buffer.map.addr.addr().get())?;
            let fits = offset.checked_add(len)? <= buffer.map.len;
            fits.then_some((buffer.id, offset as u64))
        })
    }
}

impl Other {
    pub(super) fn header(&self) -> &NodeHeader {
        // SAFETY: the file is as long as a node's (checked when it was mapped), aligned to a page,
        // and made of atomics only.
        unsafe { self.map.addr.cast::<NodeHeader>().as_ref() }
    }

    /// Its table of keys.
    #[inline]
    pub(super) fn keys(&self) -> &[Entry] {
        // SAFETY: as for the header.
        unsafe {
            let first = self.map.addr.add(KEYS_AT).cast::<Entry>();
            core::slice::from_raw_parts(first.as_ptr(), KEYS)
        }
    }

    /// Whether the process still lives.
    pub(super) fn lives(&self) -> bool {
        self.own || self.map.owner_lives()
    }

    /// Wakes its thread.
    #[cold]
    pub(super) fn ring(&self) {
        ring(self.header());
    }

    /// One of its buffers, mapped once.
    pub(super) fn buffer(&self, node: &Node, id: u32) -> Option<Arc<Map>> {
        let mut buffers = self.buffers.lock();
        buffers
            .entry(id)
            .or_insert_with(|| {
                let name = buffer_name(self.id, id);
                node.dir.attach(&name).ok().map(Arc::new)
            })
            .clone()
    }
}

/// Wakes the thread of a process.
pub(super) fn ring(header: &NodeHeader) {
    header.bell.rings.fetch_add(1, Ordering::SeqCst);
    if header.bell.asleep.load(Ordering::SeqCst) != 0 {
        futex(&header.bell.rings, libc::FUTEX_WAKE, 1, None);
    }
}

/// Sleeps until the bell has rung since `seen`, or the time is over.
pub(super) fn wait(header: &NodeHeader, seen: u32, timeout: Option<Duration>) {
    header.bell.asleep.store(1, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    if header.bell.rings.load(Ordering::SeqCst) == seen {
        futex(&header.bell.rings, libc::FUTEX_WAIT, seen, timeout);
    }
    header.bell.asleep.store(0, Ordering::SeqCst);
}

fn futex(word: &AtomicU32, operation: i32, value: u32, timeout: Option<Duration>) {
    let timeout = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().cast_signed(),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let timeout = timeout
        .as_ref()
        .map_or(core::ptr::null(), core::ptr::from_ref);
    // SAFETY: the word is a live atomic, and the time is null or ours; the call changes neither.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout) };
}

/// A number that is not 0 and that nobody else is likely to have.
pub(super) fn random() -> u32 {
    let seed = RandomState::new().hash_one(std::process::id());
    #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
    let low = seed as u32;
    low.max(1)
}
