//! Queues of fixed depth whose slots are used again.

use super::memory::Memory;
use super::work::{PostError, RecvRequest, Sge};

/// A ring whose slots are made once.
#[derive(Debug)]
pub(super) struct Ring<T> {
    slots: Box<[T]>,
    head: usize,
    len: usize,
}

impl<T> Ring<T> {
    pub(super) fn new(depth: usize, make: impl FnMut() -> T) -> Self {
        Self {
            slots: core::iter::repeat_with(make).take(depth).collect(),
            head: 0,
            len: 0,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    const fn index(&self, at: usize) -> usize {
        let index = self.head + at;
        if index >= self.slots.len() {
            index - self.slots.len()
        } else {
            index
        }
    }

    /// The entry `at` places behind the oldest.
    pub(super) fn get(&self, at: usize) -> Option<&T> {
        if at >= self.len {
            return None;
        }
        self.slots.get(self.index(at))
    }

    pub(super) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// A slot for a new entry, which is taken by this.
    pub(super) fn push(&mut self) -> Option<&mut T> {
        if self.len == self.slots.len() {
            return None;
        }
        let index = self.index(self.len);
        self.len += 1;
        self.slots.get_mut(index)
    }

    /// Gives the slot of the oldest entry back; what it holds stays until it is used again.
    pub(super) fn pop(&mut self) -> Option<&mut T> {
        if self.len == 0 {
            return None;
        }
        let index = self.head;
        self.head = self.index(1);
        self.len -= 1;
        self.slots.get_mut(index)
    }

    pub(super) fn clear(&mut self) {
        self.head = 0;
        self.len = 0;
    }
}

/// A posted receive, on its way from a queue to the queue pair that uses it.
#[derive(Clone, Debug, Default)]
pub struct RecvWqe {
    /// A number for the completion.
    pub wr_id: u64,
    /// Where the bytes go.
    pub sges: Vec<Sge>,
}

/// A receive queue, of one queue pair or shared.
#[derive(Debug)]
pub(super) struct RecvQueue {
    pub(super) ring: Ring<RecvWqe>,
    pub(super) max_sge: usize,
    pub(super) shared: bool,
    /// The driver keeps the receives: [`Memory::take_receive`].
    pub(super) outside: bool,
}

impl RecvQueue {
    pub(super) fn new(depth: usize, max_sge: usize, shared: bool) -> Self {
        let make = || RecvWqe {
            wr_id: 0,
            sges: Vec::with_capacity(max_sge),
        };
        Self {
            ring: Ring::new(depth, make),
            max_sge,
            shared,
            outside: false,
        }
    }

    /// Takes the oldest receive out. The vectors of both keep their capacity.
    pub(super) fn take<M: Memory>(&mut self, mem: &mut M, qpn: u32, into: &mut RecvWqe) -> bool {
        if self.outside {
            return mem.take_receive(qpn, into);
        }
        let Some(wqe) = self.ring.pop() else {
            return false;
        };
        into.wr_id = wqe.wr_id;
        core::mem::swap(&mut into.sges, &mut wqe.sges);
        true
    }

    pub(super) fn post(&mut self, request: &RecvRequest<'_>) -> Result<(), PostError> {
        if request.sges.len() > self.max_sge {
            return Err(PostError::TooManySges {
                got: request.sges.len(),
                max: self.max_sge,
            });
        }
        let wqe = self.ring.push().ok_or(PostError::Full)?;
        wqe.wr_id = request.wr_id;
        wqe.sges.clear();
        wqe.sges.extend_from_slice(request.sges);
        Ok(())
    }
}
