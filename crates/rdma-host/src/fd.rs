//! A file by the plain calls of libc.
//!
//! ibsim's preload library stands in for `open`, `close`, `read`, `write`, `ioctl` and `poll` of
//! libc and for nothing else. The standard library opens by `open64` and checks with `fcntl` when
//! it closes, so a simulated device can neither be opened nor held by it. This module is the only
//! one with `unsafe`.
#![expect(
    unsafe_code,
    reason = "libc's calls, so that a preload library can stand in for them"
)]

use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// An open file. Closed when dropped.
#[derive(Debug)]
pub(crate) struct Fd(RawFd);

/// The error number of a call that returned -1.
fn last_error() -> io::Error {
    io::Error::last_os_error()
}

/// What read, write and poll return: a count, or -1 and errno, or (from the preload library) the
/// negative error number itself.
fn count(result: isize) -> io::Result<usize> {
    match usize::try_from(result) {
        Ok(count) => Ok(count),
        Err(_) if result == -1 => Err(last_error()),
        Err(_) => {
            let number = i32::try_from(result.saturating_neg()).unwrap_or(libc::EIO);
            Err(io::Error::from_raw_os_error(number))
        }
    }
}

impl Fd {
    pub(crate) fn open(path: &Path, flags: i32) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: `path` ends in a zero and lives during the call; no mode is needed, since no
        // flag creates a file.
        let fd = unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC) };
        if fd < 0 {
            Err(last_error())
        } else {
            Ok(Self(fd))
        }
    }

    /// Whether the kernel knows the file. It does not where a preload library made it up.
    pub(crate) fn is_real(&self) -> bool {
        // SAFETY: F_GETFD takes no argument and touches no memory.
        let flags = unsafe { libc::fcntl(self.0, libc::F_GETFD) };
        flags != -1
    }

    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `buffer` is valid for writes of its length during the call.
        count(unsafe { libc::read(self.0, buffer.as_mut_ptr().cast(), buffer.len()) })
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        // SAFETY: `bytes` is valid for reads of its length during the call.
        count(unsafe { libc::write(self.0, bytes.as_ptr().cast(), bytes.len()) })
    }

    /// An ioctl without an argument.
    pub(crate) fn ioctl(&self, request: libc::c_ulong) -> io::Result<()> {
        // SAFETY: the callers' requests take no argument, so the kernel touches no memory.
        let result = unsafe { libc::ioctl(self.0, request) };
        if result < 0 {
            Err(last_error())
        } else {
            Ok(())
        }
    }

    /// An ioctl that reads and writes `argument`, whose size the request number holds.
    pub(crate) fn ioctl_with<T: bytemuck::Pod>(
        &self,
        request: libc::c_ulong,
        argument: &mut T,
    ) -> io::Result<()> {
        // Bits 16 to 29 of a request are the size of its argument.
        assert_eq!((request >> 16) & 0x3fff, size_of::<T>() as libc::c_ulong);
        // SAFETY: the kernel reads and writes as many bytes as the request says, which is the size
        // of `T`; any bytes are a valid `T`, since it is `Pod`.
        let result = unsafe { libc::ioctl(self.0, request, std::ptr::from_mut(argument)) };
        if result < 0 {
            Err(last_error())
        } else {
            Ok(())
        }
    }

    /// Waits until there is something to read. Whether there is, is for `read` to say.
    pub(crate) fn wait_readable(&self, wait: Duration) -> io::Result<()> {
        let millis = i32::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(i32::MAX);
        let mut entry = libc::pollfd {
            fd: self.0,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry is passed, valid for reads and writes during the call.
        let result = unsafe { libc::poll(&raw mut entry, 1, millis) };
        match count(result as isize) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the number came from `open`, is owned by this value alone and closed once.
        let _ = unsafe { libc::close(self.0) };
    }
}
