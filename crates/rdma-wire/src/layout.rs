//! Views of structures in place, and the assertion that they are what the specification says.

use bytemuck::AnyBitPattern;

use crate::{DecodeError, Result};

/// Asserts at compile time that a type takes exactly `N` bytes and has alignment 1.
///
/// Put it after every structure of the wire. Padding is refused by `derive(Pod)` already.
///
/// ```
/// # use rdma_wire::{Be32, assert_layout};
/// # #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)] #[repr(C)]
/// struct Header { magic: Be32, length: Be32 }
/// assert_layout!(Header, 8);
/// ```
///
/// ```compile_fail
/// # use rdma_wire::{Be32, assert_layout};
/// # #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)] #[repr(C)]
/// struct Header { magic: Be32, length: Be32 }
/// assert_layout!(Header, 12);
/// ```
#[macro_export]
macro_rules! assert_layout {
    ($type:ty, $bytes:expr) => {
        const _: () = {
            assert!(
                ::core::mem::size_of::<$type>() == $bytes,
                concat!(
                    stringify!($type),
                    ": its size is not what the specification says"
                )
            );
            assert!(
                ::core::mem::align_of::<$type>() == 1,
                concat!(
                    stringify!($type),
                    ": a field has an alignment other than 1; use a Be* integer"
                )
            );
        };
    };
}

/// Views the start of `bytes` as a `T` and returns it with what follows.
///
/// `T` must have alignment 1 (see [`assert_layout!`](crate::assert_layout)).
///
/// # Errors
/// [`DecodeError::Truncated`] at offset 0 where `bytes` is shorter than `T`.
pub fn prefix<'a, T: AnyBitPattern>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a T, &'a [u8])> {
    const { assert!(align_of::<T>() == 1, "a wire structure has alignment 1") };
    let Some((head, rest)) = bytes.split_at_checked(size_of::<T>()) else {
        return Err(DecodeError::truncated(what, 0, size_of::<T>(), bytes.len()));
    };
    match bytemuck::try_from_bytes(head) {
        Ok(value) => Ok((value, rest)),
        // Not reachable: size and alignment fit. Said as an error rather than a panic.
        Err(_) => Err(DecodeError::truncated(what, 0, size_of::<T>(), bytes.len())),
    }
}

/// Views `bytes` at `offset` as a `T`.
///
/// # Errors
/// [`DecodeError::Truncated`] naming the offset where `bytes` ends before the `T` does.
pub fn view<'a, T: AnyBitPattern>(
    what: &'static str,
    bytes: &'a [u8],
    offset: usize,
) -> Result<&'a T> {
    let rest = bytes.get(offset..).unwrap_or_default();
    match prefix(what, rest) {
        Ok((value, _)) => Ok(value),
        Err(error) => Err(error.at(offset as u64)),
    }
}

/// The `len` bytes at `offset`.
///
/// # Errors
/// [`DecodeError::Truncated`] naming the offset where `bytes` ends before.
pub fn slice<'a>(
    what: &'static str,
    bytes: &'a [u8],
    offset: usize,
    len: usize,
) -> Result<&'a [u8]> {
    let had = bytes.len().saturating_sub(offset);
    offset
        .checked_add(len)
        .and_then(|end| bytes.get(offset..end))
        .ok_or_else(|| DecodeError::truncated(what, offset as u64, len, had))
}
