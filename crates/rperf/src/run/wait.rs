//! Waiting without hanging: spinning, with a look at the clock and at the peer now and then.

use std::time::{Duration, Instant};

use crate::Error;

/// Says whether the peer has gone, without waiting.
pub trait Watch {
    /// Whether the conversation beside the measurement has ended.
    fn is_gone(&mut self) -> bool;
}

/// Spins between two looks.
const SPINS: u32 = 1024;
/// Time between two looks at the peer.
const LOOK: Duration = Duration::from_millis(20);

/// The patience of a measurement.
pub(super) struct Patience<'a> {
    watch: &'a mut dyn Watch,
    spins: u32,
    /// Somethings since the last look.
    busy: u32,
    limit: Duration,
    /// When something last came, as far as was looked.
    since: Option<Instant>,
    looked: Option<Instant>,
    gone: Option<Instant>,
    /// When a measurement by time is over.
    end: Option<Instant>,
}

impl<'a> Patience<'a> {
    pub(super) fn new(watch: &'a mut dyn Watch, limit: Duration) -> Self {
        Self {
            watch,
            spins: 0,
            busy: 0,
            limit,
            since: None,
            looked: None,
            gone: None,
            end: None,
        }
    }

    /// A measurement by time ends then.
    pub(super) const fn until(&mut self, end: Option<Instant>) {
        self.end = end;
        self.since = None;
        self.gone = None;
    }

    /// Whether a measurement by time is over; for who never waits for long.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Something came, of which a peer's end may not be seen: memory that is written and read outlives who
    /// has exported it.
    #[inline]
    pub(super) fn came(&mut self, done: u64) -> Result<(), Error> {
        self.spins = 0;
        self.since = None;
        self.busy += 1;
        if self.busy < SPINS {
            return Ok(());
        }
        self.busy = 0;
        self.see(Instant::now(), done)
    }

    /// Looks at the peer, unless that was done just now.
    #[cold]
    fn see(&mut self, now: Instant, done: u64) -> Result<(), Error> {
        let looked = *self.looked.get_or_insert(now);
        if now - looked < LOOK {
            return Ok(());
        }
        self.looked = Some(now);
        if self.watch.is_gone() {
            // What it sent before it left may still be on its way.
            let gone = *self.gone.get_or_insert(now);
            if now - gone >= LOOK * 10 {
                return Err(Error::Left { done });
            }
        }
        Ok(())
    }

    /// Nothing came. Returns whether the measurement is over by time.
    #[inline]
    pub(super) fn none(&mut self, done: u64) -> Result<bool, Error> {
        core::hint::spin_loop();
        self.spins += 1;
        if self.spins < SPINS {
            return Ok(false);
        }
        self.look(done)
    }

    #[cold]
    fn look(&mut self, done: u64) -> Result<bool, Error> {
        self.spins = 0;
        let now = Instant::now();
        if self.end.is_some_and(|end| now >= end) {
            return Ok(true);
        }
        let since = *self.since.get_or_insert(now);
        if now - since >= self.limit {
            return Err(Error::Silent {
                seconds: self.limit.as_secs(),
                done,
            });
        }
        self.see(now, done)?;
        // Both sides may share a processor.
        std::thread::yield_now();
        Ok(false)
    }
}
