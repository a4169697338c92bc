//! What programs ask an open device: attributes, port, GIDs, PKeys.

use core::ffi::{c_int, c_uint};
use core::mem::{offset_of, size_of};

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_GID_TYPE_ROCE_V2, ibv_context, ibv_device_attr, ibv_device_attr_ex, ibv_gid, ibv_gid_entry,
    ibv_port_attr,
};

use crate::device::{Open, firmware_version};
use crate::errno;

/// Attributes of the device, with the version of what there is instead of firmware.
pub(crate) fn device_attr(open: &Open) -> Result<ibv_device_attr_ex, Errno> {
    let mut attr = open.provider.query_device()?;
    firmware_version(&mut attr.orig_attr.fw_ver, open.provider.kind());
    Ok(attr)
}

/// Copies the first `len` bytes of a struct to where a program wants them; what it knows more of the
/// struct than we do becomes zero.
///
/// # Safety
///
/// `to` has room for `len` bytes.
pub(crate) unsafe fn copy_prefix<T>(from: &T, to: *mut T, len: usize) {
    let to = to.cast::<u8>();
    let known = len.min(size_of::<T>());
    // SAFETY: both are at least that long, and one is ours.
    unsafe {
        core::ptr::from_ref(from)
            .cast::<u8>()
            .copy_to_nonoverlapping(to, known);
        to.add(known).write_bytes(0, len - known);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_device(
    context: *mut ibv_context,
    attr: *mut ibv_device_attr,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    errno::code(device_attr(open).map(|found| {
        // SAFETY: C's contract: `attr` is writable.
        unsafe { attr.write(found.orig_attr) };
    }))
}

/// The exported function is older than the end of the struct: it may only fill the first part.
/// Newer programs call the operation of the extended context instead.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_port(
    context: *mut ibv_context,
    port: u8,
    attr: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    errno::code(open.provider.query_port(port).map(|found| {
        // SAFETY: C's contract: `attr` is writable as far as the old struct went.
        unsafe { copy_prefix(&found, attr, offset_of!(ibv_port_attr, port_cap_flags2)) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    gid: *mut ibv_gid,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    let entry = u32::try_from(index)
        .map_err(|_| Errno(libc::EINVAL))
        .and_then(|index| open.provider.query_gid(port, index));
    errno::minus_one(entry.map(|entry| {
        // SAFETY: C's contract: `gid` is writable.
        unsafe { gid.write(entry.gid) };
    }))
}

/// `libibverbs.so` exports it for its own tools; 0 is InfiniBand or RoCE v1, 1 RoCE v2.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_gid_type(
    context: *mut ibv_context,
    port: u8,
    index: c_uint,
    kind: *mut c_uint,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    errno::minus_one(open.provider.query_gid(port, index).map(|entry| {
        let v2 = c_uint::from(entry.gid_type == IBV_GID_TYPE_ROCE_V2);
        // SAFETY: C's contract: `kind` is writable.
        unsafe { kind.write(v2) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_ex(
    context: *mut ibv_context,
    port: u32,
    index: u32,
    entry: *mut ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    let found = match (u8::try_from(port), flags) {
        (Ok(port), 0) => open.provider.query_gid(port, index),
        _ => Err(Errno(libc::EINVAL)),
    };
    errno::code(found.map(|found| {
        // SAFETY: C's contract: `entry` is writable for `size` bytes.
        unsafe { copy_prefix(&found, entry, size) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn _ibv_query_gid_table(
    context: *mut ibv_context,
    entries: *mut ibv_gid_entry,
    max: usize,
    flags: u32,
    size: usize,
) -> isize {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    if flags != 0 || size < size_of::<ibv_gid_entry>() {
        return -(libc::EINVAL as isize);
    }
    let table =
        (0..u32::from(u16::MAX)).map_while(|index| match open.provider.query_gid(1, index) {
            Ok(entry) => Some(Some(entry)),
            Err(Errno(libc::ENODATA)) => Some(None),
            Err(_) => None,
        });
    let mut count = 0;
    for entry in table.flatten() {
        if count == max {
            return -(libc::EINVAL as isize);
        }
        // SAFETY: C's contract: the array has room for `max` entries of `size` bytes.
        unsafe { copy_prefix(&entry, entries.byte_add(count * size), size) };
        count += 1;
    }
    count.cast_signed()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_query_pkey(
    context: *mut ibv_context,
    port: u8,
    index: c_int,
    pkey: *mut u16,
) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    let found = u16::try_from(index)
        .map_err(|_| Errno(libc::EINVAL))
        .and_then(|index| open.provider.query_pkey(port, index));
    errno::minus_one(found.map(|found| {
        // SAFETY: C's contract: `pkey` is writable.
        unsafe { pkey.write(found.to_be()) };
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int {
    // SAFETY: C's contract: the context is open.
    let open = unsafe { Open::of(context) };
    for index in 0..u16::MAX {
        match open.provider.query_pkey(port, index) {
            Ok(found) if found == u16::from_be(pkey) => return c_int::from(index),
            Ok(_) => {}
            Err(Errno(errno)) => {
                errno::set(errno);
                break;
            }
        }
    }
    -1
}
