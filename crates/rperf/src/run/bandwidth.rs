//! Many requests at a time.

use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use rverbs::cq::Cq;
use rverbs::mr::Shared;
use rverbs::qp::{Flags, RecvQueue, Repeat};
use rverbs::wc::Wc;

use super::carrier::{Carrier, Lane};
use super::plan::Plan;
use super::setup::Ends;
use super::wait::Patience;
use super::{post_failed, verb_failed};
use crate::Error;
use crate::result::Run;
use crate::spec::Verb;
use crate::stats::{Throughput, Timeline};

/// Completions that are taken at once.
const BATCH: usize = 16;

/// Counts what is done, and when.
struct Count {
    begin: Instant,
    /// From when on and until when it counts, for measurements by time.
    window: Option<(Instant, Instant)>,
    counted: u64,
    /// The last time looked at for the peak, and how many were done then.
    mark: (Instant, u64),
    peak: f64,
    /// Messages between two looks.
    stride: u64,
    size: u32,
    timeline: Timeline,
}

/// A slice of the time line at first.
const SLICE: NonZeroU64 = NonZeroU64::new(10_000_000).unwrap();

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Count {
    fn new(plan: &Plan, size: u32, stride: u64) -> Self {
        let now = Instant::now();
        Self {
            begin: now,
            window: plan
                .times()
                .map(|(length, margin)| (now + margin, now + margin + length)),
            counted: 0,
            mark: (now, 0),
            peak: 0.0,
            stride: stride.max(1),
            size,
            timeline: Timeline::new(SLICE),
        }
    }

    fn end(&self, plan: &Plan) -> Option<Instant> {
        let (_, margin) = plan.times()?;
        Some(self.window?.1 + margin)
    }

    #[inline]
    fn add(&mut self, messages: u64) {
        if let Some((from, to)) = self.window {
            let now = Instant::now();
            if now < from || now > to {
                return;
            }
        }
        self.counted += messages;
        if self.counted - self.mark.1 >= self.stride {
            self.look();
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        let some = self.counted - self.mark.1;
        let rate = some as f64 / (now - self.mark.0).as_secs_f64();
        self.peak = self.peak.max(rate);
        self.mark = (now, self.counted);
        let from = self.window.map_or(self.begin, |(from, _)| from);
        let bytes = some * u64::from(self.size);
        self.timeline
            .record(nanoseconds(now - from), some, bytes, None);
    }

    /// The run, and the messages a second at the best time, where requests were counted.
    fn finish(mut self) -> (Run, Option<f64>) {
        let elapsed = match self.window {
            Some((from, to)) => to - from,
            None => Instant::now() - self.begin,
        };
        if self.counted > self.mark.1 && self.window.is_none() {
            self.look();
        }
        let mut run = Run::of(Throughput {
            messages: self.counted,
            bytes: self.counted * u64::from(self.size),
            elapsed: nanoseconds(elapsed),
        });
        run.timeline = Some(self.timeline);
        (run, self.window.is_none().then_some(self.peak))
    }
}

/// What one queue pair still has to send.
struct Sender<'q, T: Carrier> {
    request: Repeat<'q, T, Shared>,
    qpn: u32,
    posted: u64,
    done: u64,
}

/// What one queue pair still has to receive.
struct Receiver<'q> {
    queue: &'q mut RecvQueue<Shared>,
    qpn: u32,
    posted: u64,
}

/// Who has a queue pair.
trait Owner {
    fn qpn(&self) -> u32;
}

impl<T: Carrier> Owner for Sender<'_, T> {
    fn qpn(&self) -> u32 {
        self.qpn
    }
}

impl Owner for Receiver<'_> {
    fn qpn(&self) -> u32 {
        self.qpn
    }
}

/// Whose queue pair a completion is of: mostly the one it was last.
#[inline]
fn owner<'l, L: Owner>(lanes: &'l mut [L], hint: &mut usize, wc: &Wc) -> Option<&'l mut L> {
    let qpn = wc.qp_num();
    if lanes.get(*hint).is_none_or(|lane| lane.qpn() != qpn) {
        *hint = lanes.iter().position(|lane| lane.qpn() == qpn)?;
    }
    lanes.get_mut(*hint)
}

struct Sending<'a, 'q, T: Carrier> {
    lanes: Vec<Sender<'q, T>>,
    cq: &'a Cq,
    hint: usize,
    total: u64,
    depth: u64,
    every: u64,
    flags: Flags,
    left: u64,
}

impl<T: Carrier> Sending<'_, '_, T> {
    /// Posts as much as there is room for.
    #[inline]
    fn fill(&mut self) -> Result<(), Error> {
        for lane in &mut self.lanes {
            while lane.posted < self.total && lane.request.in_flight() < self.depth {
                lane.posted += 1;
                let signaled = lane.posted.is_multiple_of(self.every) || lane.posted == self.total;
                let flags = if signaled {
                    self.flags.and(Flags::SIGNALED)
                } else {
                    self.flags
                };
                lane.request
                    .post(flags)
                    .map_err(verb_failed("ibv_post_send"))?;
            }
        }
        Ok(())
    }

    /// Takes completions; how many messages are done by them.
    #[inline]
    fn take(&mut self, wcs: &mut [Wc; BATCH]) -> Result<u64, Error> {
        let mut all = 0;
        for wc in self.cq.poll(wcs)? {
            let Some(lane) = owner(&mut self.lanes, &mut self.hint, wc) else {
                continue;
            };
            if let Some(Err(error)) = lane.request.complete(wc) {
                return Err(Error::Completion {
                    qpn: lane.qpn,
                    done: lane.done,
                    error,
                });
            }
            let done = lane.posted - lane.request.in_flight();
            all += done - lane.done;
            lane.done = done;
        }
        self.left -= all;
        Ok(all)
    }
}

struct Receiving<'a, 'q> {
    lanes: Vec<Receiver<'q>>,
    cq: &'a Cq,
    hint: usize,
    total: u64,
    left: u64,
    done: u64,
}

impl Receiving<'_, '_> {
    #[inline]
    fn take(&mut self, wcs: &mut [Wc; BATCH]) -> Result<u64, Error> {
        let mut all = 0;
        for wc in self.cq.poll(wcs)? {
            let Some(lane) = owner(&mut self.lanes, &mut self.hint, wc) else {
                continue;
            };
            let Some((result, room)) = lane.queue.complete(wc) else {
                continue;
            };
            result.map_err(|error| Error::Completion {
                qpn: lane.qpn,
                done: self.done,
                error,
            })?;
            all += 1;
            if lane.posted < self.total {
                lane.queue
                    .post(room)
                    .map_err(post_failed("ibv_post_recv"))?;
                lane.posted += 1;
            }
        }
        self.done += all;
        self.left -= all;
        Ok(all)
    }
}

/// Whether this side sends, and whether it receives with its processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) sends: bool,
    pub(super) receives: bool,
}

impl<T: Carrier> Ends<T> {
    /// Returns what was sent, or where this side only receives, what was received.
    pub(super) fn bandwidth(
        &mut self,
        part: Part,
        plan: &Plan,
        size: u32,
        patience: &mut Patience<'_>,
    ) -> Result<(Run, Option<f64>), Error> {
        let per_lane = plan.iterations().unwrap_or(u64::MAX);
        let all = per_lane.saturating_mul(self.lanes.len() as u64);
        let sources: Vec<_> = (0..self.lanes.len())
            .map(|at| self.source(at, size))
            .collect();
        let remotes: Vec<_> = (0..self.lanes.len()).map(|at| self.remote(at)).collect();
        let inline = matches!(plan.verb, Verb::Send | Verb::Write) && size <= plan.inline;
        let mut sending = Sending {
            lanes: Vec::new(),
            cq: &self.send_cq,
            hint: 0,
            total: if part.sends { per_lane } else { 0 },
            depth: plan.tx_depth.into(),
            every: plan.moderation(size),
            flags: if inline { Flags::INLINE } else { Flags::SILENT },
            left: if part.sends { all } else { 0 },
        };
        let mut receiving = Receiving {
            lanes: Vec::new(),
            cq: &self.recv_cq,
            hint: 0,
            total: if part.receives { per_lane } else { 0 },
            left: if part.receives { all } else { 0 },
            done: 0,
        };
        let lanes = self.lanes.iter_mut().zip(&self.targets);
        for (((lane, target), source), remote) in lanes.zip(sources).zip(remotes) {
            let qpn = lane.qpn();
            let Lane::<T> { send, recv, .. } = lane;
            if let (true, Some(source)) = (part.sends, source) {
                let request = T::request(send, plan, source, remote, target);
                sending.lanes.push(Sender {
                    request: request.map_err(post_failed("ibv_post_send"))?,
                    qpn,
                    posted: 0,
                    done: 0,
                });
            }
            if part.receives {
                receiving.lanes.push(Receiver {
                    posted: recv.in_flight(),
                    queue: recv,
                    qpn,
                });
            }
        }
        let mut wcs = [Wc::default(); BATCH];
        let mut before = 0;
        if !part.sends {
            // Time begins with the first message.
            while receiving.left > 0 && before == 0 {
                before = receiving.take(&mut wcs)?;
                if before == 0 {
                    patience.none(0)?;
                }
            }
        }
        // A look costs a clock: one for each MiB, at least for each completion, at most for each queue.
        let stride = (1 << 20) / u64::from(size.max(1));
        let stride = stride.min(plan.tx_depth.into()).max(sending.every);
        let mut count = Count::new(plan, size, stride);
        patience.until(count.end(plan));
        if count.window.is_none() {
            count.counted = before;
        }
        while sending.left > 0 || receiving.left > 0 {
            sending.fill()?;
            let sent = sending.take(&mut wcs)?;
            let received = if part.receives {
                receiving.take(&mut wcs)?
            } else {
                0
            };
            if sent + received == 0 {
                if patience.none(count.counted)? {
                    break;
                }
                continue;
            }
            patience.came(count.counted)?;
            count.add(if part.sends { sent } else { received });
            if count.window.is_some() && patience.is_over() {
                break;
            }
        }
        let counted = count.counted;
        let result = count.finish();
        // What is on its way at the end of a time is waited for, so that the next one begins with nothing.
        sending.total = 0;
        patience.until(None);
        while sending
            .lanes
            .iter()
            .any(|lane| lane.request.in_flight() > 0)
        {
            let before: u64 = sending
                .lanes
                .iter()
                .map(|lane| lane.request.in_flight())
                .sum();
            if sending.every > 1 && before < sending.every {
                break;
            }
            if sending.take(&mut wcs)? == 0 {
                patience.none(counted)?;
            } else {
                patience.came(counted)?;
            }
        }
        Ok(result)
    }
}
