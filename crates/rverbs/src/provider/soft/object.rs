//! What objects have in common, and the two smallest: protection domains and memory regions.

use core::cell::UnsafeCell;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

use rverbs_sys::{ibv_mr, ibv_pd};

use super::{Context, Errno, Transport};

/// An object whose first field is a C struct.
///
/// # Safety
///
/// The implementor is `repr(C)`, with an `UnsafeCell<Self::C>` first.
pub unsafe trait Object: Sized {
    /// The C struct.
    type C;

    /// Hands a reference to C.
    fn into_raw(this: Arc<Self>) -> NonNull<Self::C> {
        let raw = Arc::into_raw(this).cast_mut().cast::<Self::C>();
        // SAFETY: an `Arc` is never null.
        unsafe { NonNull::new_unchecked(raw) }
    }

    /// The object behind a pointer that C holds.
    ///
    /// # Safety
    ///
    /// The pointer came from [`Object::into_raw`] and was not taken back, and is not while the
    /// reference lives.
    #[inline]
    #[must_use]
    unsafe fn from_raw<'a>(raw: NonNull<Self::C>) -> &'a Self {
        // SAFETY: the C struct is the first field of a `repr(C)` struct.
        unsafe { raw.cast::<Self>().as_ref() }
    }

    /// Another reference to the object behind a pointer that C holds.
    ///
    /// # Safety
    ///
    /// As for [`Object::from_raw`].
    #[must_use]
    unsafe fn share(raw: NonNull<Self::C>) -> Arc<Self> {
        let this = raw.cast::<Self>().as_ptr().cast_const();
        // SAFETY: the pointer is an `Arc`'s that C still owns a count of.
        unsafe { Arc::increment_strong_count(this) };
        // SAFETY: the count that was just added is the one that this takes.
        unsafe { Arc::from_raw(this) }
    }

    /// Takes the reference back that C held.
    ///
    /// # Safety
    ///
    /// As for [`Object::from_raw`], and C uses the pointer no more.
    #[must_use]
    unsafe fn take(raw: NonNull<Self::C>) -> Arc<Self> {
        // SAFETY: as the caller promises.
        unsafe { Arc::from_raw(raw.cast::<Self>().as_ptr().cast_const()) }
    }
}

/// How many objects use an object, so that it refuses to go before them.
#[derive(Debug, Default)]
pub(super) struct Users(AtomicU32);

impl Users {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn remove(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn none(&self) -> Result<(), Errno> {
        match self.0.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => Err(Errno(libc::EBUSY)),
        }
    }
}

/// A protection domain.
#[repr(C)]
pub struct Pd<T: Transport> {
    pub(super) raw: UnsafeCell<ibv_pd>,
    /// The device.
    pub context: Arc<Context<T>>,
    /// Its number, which no other domain of this process has.
    pub id: u32,
    pub(super) users: Users,
}

/// A memory region.
#[repr(C)]
pub struct Mr<T: Transport> {
    pub(super) raw: UnsafeCell<ibv_mr>,
    /// Its domain.
    pub pd: Arc<Pd<T>>,
    /// Its key, local and remote.
    pub key: u32,
}

macro_rules! object {
    ($($name:ident $c:ty;)*) => { $(
        // SAFETY: the struct is `repr(C)` and its first field is the C struct's cell.
        unsafe impl<T: Transport> Object for $name<T> {
            type C = $c;
        }
        // SAFETY: the C struct is written while the object is made; what changes afterwards is
        // atomic or behind a lock.
        unsafe impl<T: Transport> Send for $name<T> {}
        // SAFETY: as above.
        unsafe impl<T: Transport> Sync for $name<T> {}
    )* };
}
pub(super) use object;

object! {
    Pd ibv_pd;
    Mr ibv_mr;
}

impl<T: Transport> fmt::Debug for Pd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pd")
            .field("id", &self.id)
            .field("users", &self.users)
            .finish_non_exhaustive()
    }
}

impl<T: Transport> fmt::Debug for Mr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mr")
            .field("pd", &self.pd.id)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
