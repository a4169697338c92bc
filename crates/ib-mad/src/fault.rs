//! A port that is worse than the one it wraps, by a seed.

use core::time::Duration;
use std::collections::VecDeque;

use crate::port::{LocalPort, MadPort, Packet, PortError};
use crate::{MAD_LEN, Time};

/// How often what goes wrong, in percent of the packets, each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// Packets that vanish.
    pub drop: u8,
    /// Packets that come twice.
    pub duplicate: u8,
    /// Packets of which one bit is turned over.
    pub corrupt: u8,
    /// Packets that come later than those behind them.
    pub delay: u8,
    /// How much later, at most.
    pub delay_up_to: Duration,
    /// After so many packets received the other side falls silent, for good.
    pub silent_after: Option<u64>,
}

/// What has gone wrong so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Packets that vanished.
    pub dropped: u64,
    /// Packets that came twice.
    pub duplicated: u64,
    /// Packets with a bit turned over.
    pub corrupted: u64,
    /// Packets that came late.
    pub delayed: u64,
}

/// The wrapper. The same seed, the same packets: the same faults.
///
/// ```
/// # use ib_mad::fault::{FaultPlan, FaultPort};
/// # fn wrap<P: ib_mad::MadPort>(port: P) -> FaultPort<P> {
/// FaultPort::new(port, 42, FaultPlan { drop: 10, ..FaultPlan::default() })
/// # }
/// ```
#[derive(Debug)]
pub struct FaultPort<P> {
    inner: P,
    plan: FaultPlan,
    random: u64,
    received: u64,
    late: Vec<(Time, Packet)>,
    ready: VecDeque<Packet>,
    counts: FaultCounts,
}

impl<P: MadPort> FaultPort<P> {
    /// Wraps a port.
    pub fn new(inner: P, seed: u64, plan: FaultPlan) -> Self {
        Self {
            inner,
            plan,
            random: seed,
            received: 0,
            late: Vec::new(),
            ready: VecDeque::new(),
            counts: FaultCounts::default(),
        }
    }

    /// What has gone wrong so far.
    pub const fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// The port inside.
    pub fn into_inner(self) -> P {
        self.inner
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn hit(&mut self, percent: u8) -> bool {
        percent > 0 && self.next() % 100 < u64::from(percent)
    }

    fn damage(&mut self, packet: &mut Packet) {
        if !self.hit(self.plan.corrupt) {
            return;
        }
        self.counts.corrupted += 1;
        let random = self.next();
        let bit = u8::try_from(random % 8).unwrap_or(0);
        let index = usize::try_from((random >> 8) % MAD_LEN as u64).unwrap_or(0);
        if let Some(byte) = packet.mad.get_mut(index) {
            *byte ^= 1 << bit;
        }
    }

    /// The late packet whose time has come first.
    fn due(&mut self) -> Option<Packet> {
        let now = self.inner.now();
        let (index, _) = self
            .late
            .iter()
            .enumerate()
            .filter(|(_, (time, _))| *time <= now)
            .min_by_key(|(_, (time, _))| *time)?;
        Some(self.late.swap_remove(index).1)
    }

    fn accept(&mut self, mut packet: Packet) {
        self.received += 1;
        if self.plan.silent_after.is_some_and(|n| self.received > n) || self.hit(self.plan.drop) {
            self.counts.dropped += 1;
            return;
        }
        if self.hit(self.plan.duplicate) {
            self.counts.duplicated += 1;
            self.ready.push_back(packet);
        }
        self.damage(&mut packet);
        if self.hit(self.plan.delay) {
            self.counts.delayed += 1;
            let most = u64::try_from(self.plan.delay_up_to.as_micros()).unwrap_or(u64::MAX);
            let by = Duration::from_micros(self.next() % most.max(1));
            self.late.push((self.inner.now() + by, packet));
        } else {
            self.ready.push_back(packet);
        }
    }
}

impl<P: MadPort> MadPort for FaultPort<P> {
    fn local(&self) -> &LocalPort {
        self.inner.local()
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        if self.hit(self.plan.drop) {
            self.counts.dropped += 1;
            return Ok(());
        }
        let mut packet = *packet;
        if self.hit(self.plan.duplicate) {
            self.counts.duplicated += 1;
            self.inner.send(&packet)?;
        }
        self.damage(&mut packet);
        self.inner.send(&packet)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        let end = self.inner.now() + wait;
        loop {
            if let Some(packet) = self.ready.pop_front().or_else(|| self.due()) {
                return Ok(Some(packet));
            }
            let now = self.inner.now();
            let until = self.late.iter().map(|(time, _)| *time).fold(end, Time::min);
            match self.inner.receive(until.since(now))? {
                Some(packet) => self.accept(packet),
                None if self.inner.now() >= end && self.late.iter().all(|(t, _)| *t > end) => {
                    return Ok(None);
                }
                // A clock that does not move must not hold us here.
                None if until == now => return Ok(None),
                None => {}
            }
        }
    }
}
