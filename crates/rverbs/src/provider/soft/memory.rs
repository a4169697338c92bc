//! Memory keys: what an adapter's translation and protection table is.
//!
//! A key is `index << 8 | generation`; local and remote key are the same number, as on mlx5. The
//! table is an array of [`Entry`]s, in ordinary memory or in shared memory where peers look keys up
//! themselves.
//!
//! # Who keeps memory valid
//!
//! A lookup ([`KeyTable::find`]) only says what was true at that moment. The access that follows is
//! made inside a *section* that deregistering waits for: a lock of the queue pair for local keys,
//! a published mark for peers. [`KeyTable::remove`] first makes the key invalid and then calls the
//! transport's [`super::Transport::quiesce`], which returns when no section that could have seen the
//! key is left. So memory that was deregistered is never touched, whoever asks.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rverbs_sys::{
    IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_READ,
    IBV_ACCESS_REMOTE_WRITE,
};

use crate::provider::Errno;

use super::lock::Lock;

/// One registration, as peers see it too.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Entry {
    /// The key, 0 while the entry is free. Written last and cleared first.
    key: AtomicU32,
    /// `ibv_access_flags`.
    access: AtomicU32,
    /// Protection domain.
    pd: AtomicU32,
    /// Number of the file that holds the memory, 0 where no peer can map it.
    file: AtomicU32,
    /// Address by which work requests and peers call the first byte.
    iova: AtomicU64,
    /// Length in bytes.
    len: AtomicU64,
    /// Address of the first byte in the process that registered it.
    addr: AtomicU64,
    /// Where in the file the first byte is.
    file_offset: AtomicU64,
}

/// A registration, read from the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// `ibv_access_flags`.
    pub access: u32,
    /// Protection domain.
    pub pd: u32,
    /// Address by which work requests and peers call the first byte.
    pub iova: u64,
    /// Length in bytes.
    pub len: u64,
    /// Address of the first byte in the process that registered it.
    pub addr: u64,
    /// Number of the file that holds the memory, 0 where no peer can map it.
    pub file: u32,
    /// Where in the file the first byte is.
    pub file_offset: u64,
}

/// Why a key does not give access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No such key, or one that was deregistered.
    Key,
    /// The key belongs to another protection domain.
    Domain,
    /// The range is not inside the registration.
    Bounds,
    /// The registration does not grant the right.
    Access,
}

impl Region {
    /// The offset of a range in the region.
    ///
    /// # Errors
    ///
    /// Why the range may not be accessed so.
    #[inline]
    pub fn offset(&self, iova: u64, len: u64, pd: u32, needed: u32) -> Result<u64, Refusal> {
        if self.pd != pd {
            return Err(Refusal::Domain);
        }
        if self.access & needed != needed {
            return Err(Refusal::Access);
        }
        let offset = iova.wrapping_sub(self.iova);
        if offset > self.len || len > self.len - offset {
            return Err(Refusal::Bounds);
        }
        Ok(offset)
    }
}

/// The table of keys of one process or device.
#[derive(Debug)]
pub struct KeyTable {
    entries: Entries,
    free: Lock<Free>,
}

#[derive(Debug)]
enum Entries {
    Own(Box<[Entry]>),
    /// Shared memory that stays mapped for ever.
    Shared(&'static [Entry]),
}

#[derive(Debug)]
struct Free {
    /// Entries that were used before.
    list: Vec<u32>,
    /// Entries from here on were never used.
    fresh: u32,
    generation: Box<[u8]>,
}

impl KeyTable {
    /// A table of this many entries in ordinary memory.
    #[must_use]
    pub fn new(entries: usize) -> Self {
        Self::with(Entries::Own(
            (0..entries).map(|_| Entry::default()).collect(),
        ))
    }

    /// A table in memory that others see too. All entries are free.
    #[must_use]
    pub fn shared(entries: &'static [Entry]) -> Self {
        Self::with(Entries::Shared(entries))
    }

    fn with(entries: Entries) -> Self {
        let mut table = Self {
            entries,
            free: Lock::new(Free {
                list: Vec::new(),
                fresh: 0,
                generation: Box::default(),
            }),
        };
        let len = table.entries().len();
        table.free.get_mut().generation = vec![0; len].into();
        table
    }

    #[inline]
    fn entries(&self) -> &[Entry] {
        match &self.entries {
            Entries::Own(entries) => entries,
            Entries::Shared(entries) => entries,
        }
    }

    /// How many registrations the table holds at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.entries().len()
    }

    /// Adds a registration and gives its key, which is never 0.
    ///
    /// # Errors
    ///
    /// `ENOMEM` when the table is full, `EINVAL` for rights that don't go together (remote writes
    /// and atomics need local writes) and for a range that wraps around.
    pub fn insert(&self, region: &Region) -> Result<u32, Errno> {
        let writes = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
        if region.access & writes != 0 && region.access & IBV_ACCESS_LOCAL_WRITE == 0 {
            return Err(Errno(libc::EINVAL));
        }
        if region.iova.checked_add(region.len).is_none()
            || region.addr.checked_add(region.len).is_none()
        {
            return Err(Errno(libc::EINVAL));
        }
        let mut free = self.free.lock();
        let index = match free.list.pop() {
            Some(index) => index,
            None if (free.fresh as usize) < self.entries().len() => {
                free.fresh += 1;
                free.fresh - 1
            }
            None => return Err(Errno(libc::ENOMEM)),
        };
        let (Some(entry), Some(generation)) = (
            self.entries().get(index as usize),
            free.generation.get_mut(index as usize),
        ) else {
            return Err(Errno(libc::ENOMEM));
        };
        // Generation 0 is left out, so that no key is 0.
        *generation = generation.checked_add(1).unwrap_or(1);
        let key = index << 8 | u32::from(*generation);
        entry.access.store(region.access, Ordering::Relaxed);
        entry.pd.store(region.pd, Ordering::Relaxed);
        entry.file.store(region.file, Ordering::Relaxed);
        entry.iova.store(region.iova, Ordering::Relaxed);
        entry.len.store(region.len, Ordering::Relaxed);
        entry.addr.store(region.addr, Ordering::Relaxed);
        entry
            .file_offset
            .store(region.file_offset, Ordering::Relaxed);
        entry.key.store(key, Ordering::Release);
        Ok(key)
    }

    /// Makes a key invalid, lets `quiesce` wait until nobody uses it, and frees it.
    ///
    /// # Errors
    ///
    /// `EINVAL` where there is no such key.
    pub fn remove(&self, key: u32, quiesce: impl FnOnce()) -> Result<(), Errno> {
        let index = key >> 8;
        let entry = self
            .entries()
            .get(index as usize)
            .ok_or(Errno(libc::EINVAL))?;
        entry
            .key
            .compare_exchange(key, 0, Ordering::SeqCst, Ordering::Relaxed)
            .map_err(|_| Errno(libc::EINVAL))?;
        quiesce();
        self.free.lock().list.push(index);
        Ok(())
    }

    /// The registration of a key. See the module for how long it stays.
    #[inline]
    #[must_use]
    pub fn find(&self, key: u32) -> Option<Region> {
        find(self.entries(), key)
    }

    /// Checks a range for local use and gives its address in this process.
    ///
    /// `needed` is `IBV_ACCESS_LOCAL_WRITE` where the provider will write, else 0.
    ///
    /// # Errors
    ///
    /// Why the range may not be accessed so.
    #[inline]
    pub fn local(
        &self,
        key: u32,
        iova: u64,
        len: u64,
        pd: u32,
        needed: u32,
    ) -> Result<*mut u8, Refusal> {
        let region = self.find(key).ok_or(Refusal::Key)?;
        let offset = region.offset(iova, len, pd, needed)?;
        let addr = usize::try_from(region.addr + offset).map_err(|_| Refusal::Bounds)?;
        // The address was exposed when the memory was registered.
        Ok(core::ptr::with_exposed_provenance_mut(addr))
    }
}

/// The registration of a key in anybody's table.
#[inline]
#[must_use]
pub fn find(entries: &[Entry], key: u32) -> Option<Region> {
    let entry = entries.get((key >> 8) as usize)?;
    if key == 0 || entry.key.load(Ordering::Acquire) != key {
        return None;
    }
    Some(Region {
        access: entry.access.load(Ordering::Relaxed),
        pd: entry.pd.load(Ordering::Relaxed),
        iova: entry.iova.load(Ordering::Relaxed),
        len: entry.len.load(Ordering::Relaxed),
        addr: entry.addr.load(Ordering::Relaxed),
        file: entry.file.load(Ordering::Relaxed),
        file_offset: entry.file_offset.load(Ordering::Relaxed),
    })
}

/// Rights that let a peer at the memory.
pub const REMOTE: u32 = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: Region = Region {
        access: IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
        pd: 7,
        iova: 0x1000,
        len: 0x100,
        addr: 0x5000,
        file: 0,
        file_offset: 0,
    };

    #[test]
    fn a_key_opens_its_region_and_nothing_else() {
        let table = KeyTable::new(4);
        let key = table.insert(&REGION).unwrap();
        assert_ne!(key, 0);
        let local = |iova, len, pd, access| table.local(key, iova, len, pd, access);
        assert_eq!(local(0x1010, 0xf0, 7, 0).unwrap().addr(), 0x5010);
        assert_eq!(local(0x1100, 0, 7, 0).unwrap().addr(), 0x5100);
        assert_eq!(local(0x1010, 0xf1, 7, 0), Err(Refusal::Bounds));
        assert_eq!(local(0xfff, 1, 7, 0), Err(Refusal::Bounds));
        assert_eq!(local(0x1000, u64::MAX, 7, 0), Err(Refusal::Bounds));
        assert_eq!(local(0x1000, 1, 8, 0), Err(Refusal::Domain));
        assert_eq!(
            local(0x1000, 1, 7, IBV_ACCESS_REMOTE_WRITE),
            Err(Refusal::Access)
        );
        assert_eq!(table.local(key + 1, 0x1000, 1, 7, 0), Err(Refusal::Key));
        assert_eq!(table.local(0, 0x1000, 1, 7, 0), Err(Refusal::Key));
        assert_eq!(table.local(u32::MAX, 0x1000, 1, 7, 0), Err(Refusal::Key));
    }

    #[test]
    fn a_key_is_dead_before_the_wait_and_its_slot_comes_back_under_another() {
        let table = KeyTable::new(1);
        let key = table.insert(&REGION).unwrap();
        assert_eq!(table.insert(&REGION), Err(Errno(libc::ENOMEM)));
        let mut waited = false;
        table
            .remove(key, || {
                waited = true;
                assert_eq!(table.find(key), None);
            })
            .unwrap();
        assert!(waited);
        assert_eq!(table.remove(key, || ()), Err(Errno(libc::EINVAL)));
        let mut keys = vec![key];
        for _ in 0..255 {
            let next = table.insert(&REGION).unwrap();
            assert_ne!(next, 0);
            table.remove(next, || ()).unwrap();
            keys.push(next);
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 255, "a slot has 255 generations");
    }

    #[test]
    fn remote_writes_need_local_writes() {
        let table = KeyTable::new(1);
        for access in [IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_ATOMIC] {
            let region = Region { access, ..REGION };
            assert_eq!(table.insert(&region), Err(Errno(libc::EINVAL)));
        }
        let region = Region {
            len: u64::MAX,
            ..REGION
        };
        assert_eq!(table.insert(&region), Err(Errno(libc::EINVAL)));
    }
}
