//! How C functions report failure.

use core::ffi::c_int;
use core::ptr::{NonNull, null_mut};

use rverbs::provider::Errno;

/// Sets `errno`.
pub(crate) fn set(errno: c_int) {
    // SAFETY: the address is this thread's own `errno`.
    unsafe { *libc::__errno_location() = errno };
}

/// The result of a verb that returns 0 or an error number. `errno` is set too, as libibverbs does.
pub(crate) fn code(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Errno(errno)) => {
            set(errno);
            errno
        }
    }
}

/// The result of a function that returns 0, or -1 with `errno` set.
pub(crate) fn minus_one(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Errno(errno)) => {
            set(errno);
            -1
        }
    }
}

/// The result of a function that returns a pointer, or null with `errno` set.
pub(crate) fn pointer<T>(result: Result<NonNull<T>, Errno>) -> *mut T {
    match result {
        Ok(pointer) => pointer.as_ptr(),
        Err(Errno(errno)) => {
            set(errno);
            null_mut()
        }
    }
}

/// The pointer that a program passed, where it is one.
pub(crate) fn given<T>(pointer: *mut T) -> Result<NonNull<T>, Errno> {
    NonNull::new(pointer).ok_or(Errno(libc::EINVAL))
}

/// What a program asked for and this library does not do.
pub(crate) const UNSUPPORTED: Errno = Errno(libc::EOPNOTSUPP);
