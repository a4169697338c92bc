//! What is to happen, in order of time, and in order of planning at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ib_mad::Time;

/// A queue of things to happen. The heap moves small keys; the things stay where they are.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    heap: BinaryHeap<Reverse<(Time, u64, usize)>>,
    things: Vec<Option<T>>,
    free: Vec<usize>,
    planned: u64,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            things: Vec::new(),
            free: Vec::new(),
            planned: 0,
        }
    }

    pub(crate) fn plan(&mut self, time: Time, thing: T) {
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.things.get_mut(slot) {
                    *place = Some(thing);
                }
                slot
            }
            None => {
                self.things.push(Some(thing));
                self.things.len() - 1
            }
        };
        self.planned += 1;
        self.heap.push(Reverse((time, self.planned, slot)));
    }

    /// When the next thing is to happen.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((time, ..))| *time)
    }

    /// Takes the next thing.
    pub(crate) fn take(&mut self) -> Option<(Time, T)> {
        let Reverse((time, _, slot)) = self.heap.pop()?;
        let thing = self.things.get_mut(slot)?.take()?;
        self.free.push(slot);
        Some((time, thing))
    }

    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_times_keep_their_order() {
        let mut queue = Queue::new();
        for (time, thing) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            queue.plan(Time::from_micros(time), thing);
        }
        assert_eq!(queue.next_time(), Some(Time::from_micros(3)));
        let order: String = std::iter::from_fn(|| queue.take().map(|(_, t)| t)).collect();
        assert_eq!(order, "bdac");
        assert_eq!((queue.len(), queue.things.len()), (0, 4));
    }
}
