//! One request at a time.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rverbs::cq::Cq;
use rverbs::mr::Shared;
use rverbs::qp::{Flags, RecvQueue, Repeat};
use rverbs::wc::Wc;

use super::carrier::Carrier;
use super::plan::Plan;
use super::setup::Ends;
use super::wait::Patience;
use super::{post_failed, verb_failed};
use crate::Error;
use crate::compat::stats as perftest;
use crate::peer::Role;
use crate::result::Run;
use crate::spec::Verb;
use crate::stats::{Histogram, Throughput, Timeline, WarmUp};

/// Takes the time between one post and the next.
struct Stamps {
    begin: Instant,
    last: Option<Instant>,
    /// What one sample is divided by.
    ways: u64,
    /// All of them in order, where requests are counted.
    samples: Option<Vec<u64>>,
    histogram: Histogram,
    timeline: Timeline,
    /// From when on and until when it counts.
    window: Option<(Instant, Instant)>,
    size: u32,
}

/// The most samples that are kept one by one.
const MOST_SAMPLES: u64 = 1 << 24;
/// Ways of a slice of the time line at first.
const SLICE: NonZeroU64 = NonZeroU64::new(10_000_000).unwrap();

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Stamps {
    fn new(plan: &Plan, size: u32) -> Self {
        let count = plan.iterations().filter(|count| *count <= MOST_SAMPLES);
        let room = count.and_then(|count| usize::try_from(count).ok());
        let now = Instant::now();
        Self {
            begin: now,
            last: None,
            ways: if matches!(plan.verb, Verb::Send | Verb::Write) {
                2
            } else {
                1
            },
            samples: room.map(Vec::with_capacity),
            histogram: Histogram::default(),
            timeline: Timeline::new(SLICE),
            window: plan
                .times()
                .map(|(length, margin)| (now + margin, now + margin + length)),
            size,
        }
    }

    /// When all is over, margins and all.
    fn end(&self, plan: &Plan) -> Option<Instant> {
        let (_, margin) = plan.times()?;
        Some(self.window?.1 + margin)
    }

    #[inline]
    fn mark(&mut self) {
        let now = Instant::now();
        if let Some(last) = self.last.replace(now) {
            let took = nanoseconds(now - last);
            match &mut self.samples {
                Some(samples) => samples.push(took),
                None => self.count(took, now),
            }
        }
    }

    #[inline]
    fn count(&mut self, took: u64, now: Instant) {
        if self
            .window
            .is_none_or(|(from, to)| now >= from && now <= to)
        {
            let from = self.window.map_or(self.begin, |(from, _)| from);
            let took = took / self.ways;
            self.histogram.record(took);
            let at = nanoseconds(now - from);
            self.timeline.record(at, 1, self.size.into(), Some(took));
        }
    }

    fn finish(mut self) -> Run {
        let mut run = Run::of(Throughput::default());
        let mut elapsed = self.window.map_or(0, |(from, to)| nanoseconds(to - from));
        if let Some(mut samples) = self.samples.take() {
            let halved: Vec<u64> = samples.iter().map(|took| took / self.ways).collect();
            elapsed = 0;
            for (whole, took) in samples.iter().zip(&halved) {
                elapsed += whole;
                self.histogram.record(*took);
                self.timeline
                    .record(elapsed, 1, self.size.into(), Some(*took));
            }
            run.warm_up = Some(WarmUp::of(&halved));
            run.perftest = perftest::Latency::of(&mut samples, 1000.0, self.ways == 2);
        }
        run.throughput = Throughput {
            messages: self.histogram.count(),
            bytes: self.histogram.count() * u64::from(self.size),
            elapsed,
        };
        run.latency = Some(self.histogram.distribution());
        run.timeline = Some(self.timeline);
        run
    }
}

/// The sending end, with its completions taken when there are many.
struct Sender<'a, 'q, T: Carrier> {
    request: Repeat<'q, T, Shared>,
    cq: &'a Cq,
    qpn: u32,
    flags: Flags,
    every: u64,
    /// Which one is the last.
    total: u64,
    posted: u64,
}

impl<T: Carrier> Sender<'_, '_, T> {
    /// Posts the request once more; false where the time is over.
    #[inline]
    fn post(&mut self, patience: &mut Patience<'_>) -> Result<bool, Error> {
        self.posted += 1;
        let signaled = self.posted.is_multiple_of(self.every) || self.posted == self.total;
        let flags = if signaled {
            self.flags.and(Flags::SIGNALED)
        } else {
            self.flags
        };
        self.request
            .post(flags)
            .map_err(verb_failed("ibv_post_send"))?;
        if signaled {
            return self.collect(patience);
        }
        Ok(true)
    }

    /// Waits until all that was posted is done; false where the time is over before.
    #[inline]
    fn collect(&mut self, patience: &mut Patience<'_>) -> Result<bool, Error> {
        let mut wc = Wc::default();
        while self.request.in_flight() > 0 {
            if !self.cq.poll_one(&mut wc)? {
                if patience.none(self.posted)? {
                    return Ok(false);
                }
                continue;
            }
            if let Some(Err(error)) = self.request.complete(&wc) {
                return Err(Error::Completion {
                    qpn: self.qpn,
                    done: self.posted,
                    error,
                });
            }
            patience.came(self.posted)?;
        }
        Ok(true)
    }
}

impl<T: Carrier> Ends<T> {
    /// Receive requests of one queue pair for one size: as many as messages will come, up to its depth.
    pub(super) fn post_receives(&mut self, plan: &Plan, size: u32) -> Result<u64, Error> {
        let count = plan.iterations().unwrap_or(u64::MAX);
        let count = count.min(plan.rx_depth.into());
        for at in 0..self.lanes.len() {
            let Some(sink) = self.sink(at, size) else {
                continue;
            };
            let Some(lane) = self.lanes.get_mut(at) else {
                continue;
            };
            while lane.recv.in_flight() < count {
                lane.recv
                    .post(sink.clone())
                    .map_err(post_failed("ibv_post_recv"))?;
            }
        }
        Ok(count)
    }

    pub(super) fn latency(
        &mut self,
        role: Role,
        plan: &Plan,
        size: u32,
        patience: &mut Patience<'_>,
    ) -> Result<Run, Error> {
        let (Some(source), Some(sink)) = (self.source(0, size), self.sink(0, size)) else {
            return Err(Error::Spec {
                what: "a message is larger than its memory".to_owned(),
            });
        };
        let remote = self.remote(0);
        let (Some(lane), Some(target)) = (self.lanes.first_mut(), self.targets.first()) else {
            return Err(Error::Spec {
                what: "a test has at least one queue pair".to_owned(),
            });
        };
        let qpn = lane.qpn();
        let inline = matches!(plan.verb, Verb::Send | Verb::Write) && size <= plan.inline;
        // An answered message proves that it arrived, so that its own completion can wait. A write's is
        // asked for at once: a device in software works where it is polled, and memory is looked at without it.
        let every = match plan.verb {
            Verb::Send => u64::from(plan.tx_depth),
            Verb::Write | Verb::Read | Verb::Atomic => 1,
        };
        let total = plan.iterations().unwrap_or(u64::MAX);
        let request = T::request(&mut lane.send, plan, source.clone(), remote, target);
        let mut sender = Sender {
            request: request.map_err(post_failed("ibv_post_send"))?,
            cq: &self.send_cq,
            qpn,
            flags: if inline { Flags::INLINE } else { Flags::SILENT },
            every,
            total,
            posted: 0,
        };
        let mut stamps = Stamps::new(plan, size);
        patience.until(stamps.end(plan));
        match plan.verb {
            Verb::Send => {
                let ball = Ball {
                    recv: &mut lane.recv,
                    cq: &self.recv_cq,
                    qpn,
                    depth: plan.rx_depth.into(),
                };
                ball.play(&mut sender, role, total, &mut stamps, patience)?;
            }
            Verb::Write => flags(
                &mut sender,
                role,
                total,
                (&source, &sink),
                &mut stamps,
                patience,
            )?,
            Verb::Read | Verb::Atomic if role == Role::Client => {
                for _ in 0..total {
                    stamps.mark();
                    if !sender.post(patience)? || stamps.window.is_some() && patience.is_over() {
                        break;
                    }
                }
            }
            _ => {}
        }
        Ok(stamps.finish())
    }
}

/// The receiving end of a message that goes to and fro.
struct Ball<'a> {
    recv: &'a mut RecvQueue<Shared>,
    cq: &'a Cq,
    qpn: u32,
    depth: u64,
}

impl Ball<'_> {
    fn play<T: Carrier>(
        self,
        sender: &mut Sender<'_, '_, T>,
        role: Role,
        total: u64,
        stamps: &mut Stamps,
        patience: &mut Patience<'_>,
    ) -> Result<(), Error> {
        let mut wc = Wc::default();
        let (mut sent, mut received) = (0, 0);
        while sent < total || received < total {
            if received < total && (sent > 0 || role == Role::Server) {
                while !self.cq.poll_one(&mut wc)? {
                    if patience.none(received)? {
                        return Ok(());
                    }
                }
                patience.came(received)?;
                let Some((result, room)) = self.recv.complete(&wc) else {
                    continue;
                };
                result.map_err(|error| Error::Completion {
                    qpn: self.qpn,
                    done: received,
                    error,
                })?;
                received += 1;
                if total == u64::MAX || received + self.depth <= total {
                    self.recv.post(room).map_err(post_failed("ibv_post_recv"))?;
                }
            }
            if sent < total {
                stamps.mark();
                sent += 1;
                if !sender.post(patience)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Writes to and fro: each side waits for the last byte of what the other writes. The server begins, as in
/// perftest.
fn flags<T: Carrier>(
    sender: &mut Sender<'_, '_, T>,
    role: Role,
    total: u64,
    (source, sink): (&Shared, &Shared),
    stamps: &mut Stamps,
    patience: &mut Patience<'_>,
) -> Result<(), Error> {
    let last = source.len().saturating_sub(1);
    let (Some(mine), Some(theirs)) = (source.byte(last), sink.byte(last)) else {
        return Ok(());
    };
    let (mut sent, mut received) = (0_u64, 0_u64);
    while sent < total || received < total {
        if received < total && (sent > 0 || role == Role::Client) {
            received += 1;
            let [expected, ..] = received.to_le_bytes();
            while theirs.load(Ordering::Acquire) != expected {
                if patience.none(received)? {
                    return Ok(());
                }
            }
            patience.came(received)?;
        }
        if sent < total {
            stamps.mark();
            sent += 1;
            mine.store(sent.to_le_bytes()[0], Ordering::Release);
            if !sender.post(patience)? {
                return Ok(());
            }
        }
    }
    Ok(())
}
