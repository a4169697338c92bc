//! Moving bytes: within mapped memory, and by the kernel between processes.

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use rverbs_sys::ibv_sge;

/// Copies so that the last bytes arrive last: a program that watches them sees the rest too, as
/// with an adapter that writes a message in order.
///
/// # Safety
///
/// `from` can be read and `to` written for `len` bytes; they don't overlap.
#[inline]
pub(super) unsafe fn place(to: *mut u8, from: *const u8, len: usize) {
    let end = to.addr().wrapping_add(len);
    let tail = if len == 0 {
        return;
    } else if len >= 8 && end.is_multiple_of(8) {
        8
    } else if len >= 4 && end.is_multiple_of(4) {
        4
    } else if len >= 2 && end.is_multiple_of(2) {
        2
    } else {
        1
    };
    let body = len - tail;
    if body > 0 {
        // SAFETY: as the caller promises.
        unsafe { to.copy_from_nonoverlapping(from, body) };
        fence(Ordering::Release);
    }
    let last = from.wrapping_add(body);
    let at = to.wrapping_add(body);
    // SAFETY: the caller's ranges; `at` is aligned to the width, by the choice of it. An atomic of
    // that width has no other layout than the integer.
    unsafe {
        match tail {
            8 => (*at.cast::<AtomicU64>())
                .store(last.cast::<u64>().read_unaligned(), Ordering::Release),
            4 => (*at.cast::<AtomicU32>())
                .store(last.cast::<u32>().read_unaligned(), Ordering::Release),
            2 => (*at.cast::<AtomicU16>())
                .store(last.cast::<u16>().read_unaligned(), Ordering::Release),
            _ => (*at.cast::<AtomicU8>()).store(last.read(), Ordering::Release),
        }
    }
}

/// Which way the kernel copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// From the other process.
    Read,
    /// To the other process.
    Write,
}

/// Copies between ranges of this process and one range of another. Returns whether all went.
///
/// # Safety
///
/// The local ranges can be read (to write) or written (to read).
pub(super) unsafe fn between(
    pid: i32,
    local: &[(*mut u8, usize)],
    remote: u64,
    len: usize,
    way: Way,
) -> bool {
    let mut at = remote;
    let mut left = len;
    for &(addr, part) in local {
        let part = part.min(left);
        let mut done = 0;
        while done < part {
            let Ok(address) = usize::try_from(at) else {
                return false;
            };
            let here = libc::iovec {
                iov_base: addr.wrapping_add(done).cast(),
                iov_len: part - done,
            };
            let there = libc::iovec {
                iov_base: core::ptr::without_provenance_mut(address),
                iov_len: part - done,
            };
            // SAFETY: the local range is the caller's; the remote one the kernel checks.
            let moved = unsafe {
                match way {
                    Way::Read => {
                        libc::process_vm_readv(pid, &raw const here, 1, &raw const there, 1, 0)
                    }
                    Way::Write => {
                        libc::process_vm_writev(pid, &raw const here, 1, &raw const there, 1, 0)
                    }
                }
            };
            let Ok(moved @ 1..) = usize::try_from(moved) else {
                return false;
            };
            done += moved;
            at = at.wrapping_add(moved as u64);
        }
        left -= part;
    }
    left == 0
}

/// Sum of the lengths of a scatter list.
#[inline]
pub(super) fn total(sges: &[ibv_sge]) -> u64 {
    sges.iter().map(|sge| u64::from(sge.length)).sum()
}
