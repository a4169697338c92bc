//! A spin lock for the data path, as libibverbs' providers use: one atomic exchange to take, one
//! plain store to release, and a yield where the holder does not run.

use core::cell::UnsafeCell;
use core::fmt;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value behind a spin lock.
pub struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock hands the value to one thread at a time, so sharing it needs no more than that
// the value may move between threads.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// A lock that is free.
    pub const fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Takes the lock, waiting for it.
    #[inline]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.taken.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Guard { lock: self }
    }

    /// Takes the lock where it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        (!self.taken.swap(true, Ordering::Acquire)).then_some(Guard { lock: self })
    }

    /// The value, by right of owning the lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    fn wait(&self) {
        let mut spins = 0_u32;
        loop {
            if !self.taken.load(Ordering::Relaxed) && !self.taken.swap(true, Ordering::Acquire) {
                return;
            }
            spins = spins.wrapping_add(1);
            if spins.is_multiple_of(128) {
                std::thread::yield_now();
            } else {
                core::hint::spin_loop();
            }
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Lock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(value) => f.debug_tuple("Lock").field(&*value).finish(),
            None => f.write_str("Lock(taken)"),
        }
    }
}

/// The right to the value until this is dropped.
#[derive(Debug)]
pub struct Guard<'a, T> {
    lock: &'a Lock<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: a guard exists only while its thread holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: a guard exists only while its thread holds the lock.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}
