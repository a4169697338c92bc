//! Protection domains and memory regions.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::NonNull;

use rverbs::provider::Errno;
use rverbs_sys::{IBV_ACCESS_ZERO_BASED, ibv_context, ibv_dm, ibv_mr, ibv_pd};

use super::adopt;
use crate::device::{Open, open_of};
use crate::errno::{self, UNSUPPORTED, given};

/// Rights that a library may ignore when it does not know them (`IBV_ACCESS_OPTIONAL_RANGE`).
const OPTIONAL: u32 = 0x3ff0_0000;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    errno::pointer(open.provider.alloc_pd().map(|pd| adopt!(open, pd)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int {
    let open = open_of!(pd);
    // SAFETY: C's contract: the domain is live, and not used again if this succeeds.
    errno::code(given(pd).and_then(|pd| unsafe { open.provider.dealloc_pd(pd) }))
}

/// # Safety
///
/// As for `ibv_reg_mr`.
unsafe fn register(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: u32,
) -> Result<NonNull<ibv_mr>, Errno> {
    let pd = given(pd)?;
    let open = open_of!(pd.as_ptr());
    let iova = if access & IBV_ACCESS_ZERO_BASED == 0 {
        iova
    } else {
        0
    };
    // SAFETY: the caller's domain is live and its memory stays.
    let mr = unsafe {
        open.provider
            .reg_mr(pd, addr, len, iova, access & !OPTIONAL)
    }?;
    Ok(adopt!(open, mr))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: C's contract.
    errno::pointer(unsafe { register(pd, addr, len, addr.addr() as u64, access.cast_unsigned()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_int,
) -> *mut ibv_mr {
    // SAFETY: C's contract.
    errno::pointer(unsafe { register(pd, addr, len, iova, access.cast_unsigned()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut ibv_pd,
    addr: *mut c_void,
    len: usize,
    iova: u64,
    access: c_uint,
) -> *mut ibv_mr {
    // SAFETY: C's contract.
    errno::pointer(unsafe { register(pd, addr, len, iova, access) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_reg_dmabuf_mr(
    pd: *mut ibv_pd,
    offset: u64,
    len: usize,
    iova: u64,
    fd: c_int,
    access: c_int,
) -> *mut ibv_mr {
    let open = open_of!(pd);
    let access = access.cast_unsigned() & !OPTIONAL;
    errno::pointer(given(pd).and_then(|pd| {
        // SAFETY: C's contract: the domain is live, and the buffer is the program's affair.
        let mr = unsafe {
            open.provider
                .reg_dmabuf_mr(pd, offset, len, iova, fd, access)
        }?;
        Ok(adopt!(open, mr))
    }))
}

/// The region stays as it is: -1 is `IBV_REREG_MR_ERR_INPUT`.
#[unsafe(no_mangle)]
extern "C" fn ibv_rereg_mr(
    _mr: *mut ibv_mr,
    _flags: c_int,
    _pd: *mut ibv_pd,
    _addr: *mut c_void,
    _len: usize,
    _access: c_int,
) -> c_int {
    errno::minus_one(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int {
    let open = open_of!(mr);
    // SAFETY: C's contract: the region is live, and not used again if this succeeds.
    errno::code(given(mr).and_then(|mr| unsafe { open.provider.dereg_mr(mr) }))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_pd(_context: *mut ibv_context, _handle: u32) -> *mut ibv_pd {
    errno::pointer(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_unimport_pd(_pd: *mut ibv_pd) {}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_mr(_pd: *mut ibv_pd, _handle: u32) -> *mut ibv_mr {
    errno::pointer(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_unimport_mr(_mr: *mut ibv_mr) {}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_dm(_context: *mut ibv_context, _handle: u32) -> *mut ibv_dm {
    errno::pointer(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_unimport_dm(_dm: *mut ibv_dm) {}

// After `fork` the pages of the parent stay where peers and the provider find them: they are looked
// up by process and address, or in a file that both map. So there is nothing to prepare.

#[unsafe(no_mangle)]
extern "C" fn ibv_fork_init() -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_is_fork_initialized() -> c_uint {
    rverbs_sys::IBV_FORK_UNNEEDED
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dontfork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_dofork_range(_base: *mut c_void, _size: usize) -> c_int {
    0
}
