//! The directory where processes of one user meet, and the files in it.
//!
//! Every file is memory that its owner shares: a process (`n…`), a queue pair (`q…`), a buffer (`m…`).
//! The owner holds a lock on it (`flock`) for as long as it lives, whatever way it ends, so a file
//! whose lock can be had is the file of a dead process: peers see it, and the next process to start
//! removes it.
//!
//! The directory is on tmpfs where there is one (`/dev/shm/rverbs-UID`), has mode 0700 and belongs to
//! the user; anything else is refused. Space is reserved when a file is made, so a full tmpfs is
//! an error then and not a signal later.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use crate::provider::Errno;

/// The directory.
#[derive(Debug)]
pub(super) struct Dir(PathBuf);

/// A mapped file.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) addr: NonNull<u8>,
    pub(super) len: usize,
    /// Keeps the lock of an owner.
    file: File,
}

// SAFETY: a mapping is valid from any thread; what is read and written in it is the users' affair.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and users hold a reference to it.
        unsafe { libc::munmap(self.addr.as_ptr().cast(), self.len) };
    }
}

fn flock(file: &File, operation: i32) -> bool {
    // SAFETY: acts on an open descriptor only.
    unsafe { libc::flock(file.as_raw_fd(), operation) == 0 }
}

fn map(file: File, len: usize) -> io::Result<Map> {
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let addr = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if addr == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let addr = NonNull::new(addr.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Map { addr, len, file })
}

/// The user's number.
fn uid() -> u32 {
    // SAFETY: asks for a number.
    unsafe { libc::geteuid() }
}

impl Dir {
    /// Opens the directory, makes it if need be, and removes what dead processes left.
    pub(super) fn open() -> io::Result<Self> {
        let path = match std::env::var_os("RVERBS_SHM_DIR") {
            Some(path) => PathBuf::from(path),
            None if Path::new("/dev/shm").is_dir() => {
                PathBuf::from(format!("/dev/shm/rverbs-{}", uid()))
            }
            None => match std::env::var_os("XDG_RUNTIME_DIR") {
                Some(path) => Path::new(&path).join("rverbs"),
                None => std::env::temp_dir().join(format!("rverbs-{}", uid())),
            },
        };
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&path)?;
        if !found.is_dir() || found.uid() != uid() || found.mode() & 0o077 != 0 {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        let dir = Self(path);
        dir.collect()?;
        Ok(dir)
    }

    /// Excludes makers and collectors from each other, until the file is closed.
    fn exclude(&self) -> io::Result<File> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.0.join("lock"))?;
        if !flock(&lock, libc::LOCK_EX) {
            return Err(io::Error::last_os_error());
        }
        Ok(lock)
    }

    /// Removes the files of dead processes.
    fn collect(&self) -> io::Result<()> {
        let _lock = self.exclude()?;
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            if entry.file_name() == "lock" {
                continue;
            }
            let path = entry.path();
            let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else {
                continue;
            };
            if flock(&file, libc::LOCK_EX | libc::LOCK_NB) {
                fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Makes a file of that size, zeroed, that this process owns.
    ///
    /// Fails with `AlreadyExists` where there is one.
    pub(super) fn create(&self, name: &str, len: usize) -> Result<Map, Errno> {
        let _lock = self.exclude()?;
        let path = self.0.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        let made = (|| {
            if !flock(&file, libc::LOCK_EX | libc::LOCK_NB) {
                return Err(io::Error::last_os_error());
            }
            let size = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
            // SAFETY: acts on an open descriptor only.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size) } {
                0 => map(file, len),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        })();
        if made.is_err() {
            fs::remove_file(&path)?;
        }
        Ok(made?)
    }

    /// Maps a file of another owner.
    pub(super) fn attach(&self, name: &str) -> Result<Map, Errno> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(self.0.join(name))?;
        let len = usize::try_from(file.metadata()?.len()).map_err(|_| Errno(libc::EINVAL))?;
        if len == 0 {
            return Err(Errno(libc::EINVAL));
        }
        Ok(map(file, len)?)
    }

    /// Removes the name of a file; mappings of it stay.
    pub(super) fn remove(&self, name: &str) {
        // Where it is gone already, nothing is left to do.
        let _ = fs::remove_file(self.0.join(name));
    }
}

impl Map {
    /// Whether the owner of this file still lives. For mappings made by [`Dir::attach`].
    pub(super) fn owner_lives(&self) -> bool {
        if flock(&self.file, libc::LOCK_SH | libc::LOCK_NB) {
            flock(&self.file, libc::LOCK_UN);
            return false;
        }
        true
    }
}
