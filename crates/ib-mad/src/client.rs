//! Many requests in flight, each answered, failed or given up, in bounded time.
//!
//! ```text
//!   submit ──► queue ──poll_transmit──► in flight ──handle_mad──► event: Response
//!                                        │   ▲
//!                          handle_timeout│   │ attempts left
//!                                        ▼   │
//!                                       expired ──► event: Failed
//! ```
//!
//! The driver's loop: drain [`Client::poll_transmit`], then [`Client::poll_event`], then wait for a
//! packet or for [`Client::poll_timeout`], and hand over what came.

use core::time::Duration;
use std::collections::VecDeque;

use rdma_wire::Be64;

use crate::port::{Delivery, Packet};
use crate::{MAD_LEN, Time};

/// How many requests are in flight, and how long each is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Requests in flight at once, 1 to 32 768.
    pub window: u16,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How often a request is sent again after that.
    pub retries: u8,
    /// Where transaction ids start, so that answers to an earlier client are not taken for ours.
    pub first_tid: u16,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            window: 32,
            timeout: Duration::from_millis(1000),
            retries: 2,
            first_tid: 1,
        }
    }
}

/// A request: where to, and what. Its transaction id is overwritten.
pub type Request = Packet;

/// Why a request has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// Nobody answered, to none of the attempts.
    TimedOut,
    /// The answerer was busy, at every attempt.
    Busy,
    /// The port could not send it: the system's error number.
    NotSent(u32),
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<T> {
    /// An answer. Its status is not judged here.
    Response {
        /// What was given to [`Client::submit`].
        token: T,
        /// The answer.
        mad: [u8; MAD_LEN],
        /// How often the request was sent.
        attempts: u8,
    },
    /// No answer.
    Failed {
        /// What was given to [`Client::submit`].
        token: T,
        /// Why.
        failure: Failure,
        /// How often the request was sent.
        attempts: u8,
    },
    /// A packet that answers none of our requests and is no answer: a trap, somebody's request.
    Unsolicited(Packet),
}

/// What a client has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStats {
    /// Packets handed out, first attempts and repeats.
    pub sent: u64,
    /// Of those, repeats.
    pub retried: u64,
    /// Answers taken.
    pub answered: u64,
    /// Requests given up.
    pub failed: u64,
    /// Answers that fit no request in flight: late, doubled, or not what was asked for.
    pub stray: u64,
    /// The most requests that were in flight at once.
    pub peak_in_flight: u16,
}

/// A request in flight.
#[derive(Debug)]
struct Flight<T> {
    packet: Packet,
    token: T,
    deadline: Time,
    attempts: u8,
    busy: bool,
    /// Waits in `resend` for the next transmit.
    queued: bool,
}

#[derive(Debug)]
struct Slot<T> {
    /// Upper half of the transaction id; changes with every request that uses the slot.
    generation: u16,
    flight: Option<Flight<T>>,
}

/// The client. `T` is whatever its user wants back with an answer.
#[derive(Debug)]
pub struct Client<T> {
    config: ClientConfig,
    slots: Vec<Slot<T>>,
    free: Vec<u16>,
    resend: VecDeque<u16>,
    queue: VecDeque<(T, Packet)>,
    events: VecDeque<Event<T>>,
    in_flight: u16,
    /// Not later than the earliest deadline.
    next_deadline: Time,
    stats: ClientStats,
}

impl<T> Client<T> {
    /// A client with nothing to do.
    #[must_use]
    pub fn new(config: ClientConfig) -> Self {
        let config = ClientConfig {
            window: config.window.clamp(1, 0x8000),
            ..config
        };
        Self {
            config,
            slots: Vec::new(),
            free: Vec::new(),
            resend: VecDeque::new(),
            queue: VecDeque::new(),
            events: VecDeque::new(),
            in_flight: 0,
            next_deadline: Time::FAR,
            stats: ClientStats::default(),
        }
    }

    /// How it was set up.
    #[must_use]
    pub const fn config(&self) -> &ClientConfig {
        &self.config
    }

    /// What it has done so far.
    #[must_use]
    pub const fn stats(&self) -> ClientStats {
        self.stats
    }

    /// Requests that have been sent and have no end yet.
    #[must_use]
    pub const fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Requests that wait for the window to open.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether nothing is queued, in flight, or left to be polled.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.queue.is_empty() && self.events.is_empty()
    }

    /// Queues a request. It goes out when [`poll_transmit`](Self::poll_transmit) is next called
    /// and the window is open.
    pub fn submit(&mut self, token: T, request: Request) {
        self.queue.push_back((token, request));
    }

    /// The next packet to be sent, if the window is open. Call until it gives none.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Packet> {
        while let Some(index) = self.resend.pop_front() {
            if let Some(packet) = self.again(index, now) {
                return Some(packet);
            }
        }
        if self.in_flight >= self.config.window {
            return None;
        }
        let (token, mut packet) = self.queue.pop_front()?;
        let index = self.free.pop().unwrap_or_else(|| {
            // The window is a u16, so the number of slots is one too.
            let index = u16::try_from(self.slots.len()).unwrap_or(u16::MAX);
            self.slots.push(Slot {
                generation: self.config.first_tid,
                flight: None,
            });
            index
        });
        let slot = self.slots.get_mut(usize::from(index))?;
        slot.generation = slot.generation.wrapping_add(1);
        let tid = (u32::from(slot.generation) << 16) | u32::from(index);
        packet.header_mut().tid = Be64::new(u64::from(tid));
        packet.response_time = self.config.timeout;
        let deadline = now + self.config.timeout;
        slot.flight = Some(Flight {
            packet,
            token,
            deadline,
            attempts: 1,
            busy: false,
            queued: false,
        });
        self.in_flight += 1;
        self.next_deadline = self.next_deadline.min(deadline);
        self.stats.sent += 1;
        self.stats.peak_in_flight = self.stats.peak_in_flight.max(self.in_flight);
        Some(packet)
    }

    fn again(&mut self, index: u16, now: Time) -> Option<Packet> {
        let flight = self.slots.get_mut(usize::from(index))?.flight.as_mut()?;
        if !flight.queued {
            return None;
        }
        flight.queued = false;
        flight.busy = false;
        flight.attempts = flight.attempts.saturating_add(1);
        flight.deadline = now + self.config.timeout;
        self.next_deadline = self.next_deadline.min(flight.deadline);
        self.stats.sent += 1;
        self.stats.retried += 1;
        Some(flight.packet)
    }

    /// Takes a packet that came in.
    pub fn handle_mad(&mut self, now: Time, packet: &Packet) {
        match packet.delivery {
            Delivery::Received => {}
            Delivery::TimedOut => {
                if let Some(index) = self.find(packet) {
                    self.expire(index, Failure::TimedOut);
                }
                return;
            }
            Delivery::Failed(error) => {
                if let Some(index) = self.find(packet) {
                    self.give_up(index, Failure::NotSent(error));
                }
                return;
            }
        }
        let header = packet.header();
        if !header.method.is_response() {
            self.events.push_back(Event::Unsolicited(*packet));
            return;
        }
        let Some(index) = self.find(packet) else {
            self.stats.stray += 1;
            return;
        };
        if packet.smp().status().is_busy() {
            self.defer(index, now);
            return;
        }
        if let Some(flight) = self.take(index) {
            self.stats.answered += 1;
            self.events.push_back(Event::Response {
                token: flight.token,
                mad: packet.mad,
                attempts: flight.attempts,
            });
        }
    }

    /// The slot whose request this packet answers, or is.
    fn find(&self, packet: &Packet) -> Option<u16> {
        let header = packet.header();
        // The upper half is the kernel's.
        #[expect(clippy::cast_possible_truncation, reason = "the low 32 bits are ours")]
        let tid = header.tid.get() as u32;
        let [high_a, high_b, low_a, low_b] = tid.to_be_bytes();
        let index = u16::from_be_bytes([low_a, low_b]);
        let slot = self.slots.get(usize::from(index))?;
        let flight = slot.flight.as_ref()?;
        let asked = flight.packet.header();
        let fits = slot.generation == u16::from_be_bytes([high_a, high_b])
            && header.mgmt_class == asked.mgmt_class
            && header.attribute_id == asked.attribute_id
            && header.attribute_modifier == asked.attribute_modifier;
        fits.then_some(index)
    }

    fn take(&mut self, index: u16) -> Option<Flight<T>> {
        let flight = self.slots.get_mut(usize::from(index))?.flight.take()?;
        self.free.push(index);
        self.in_flight -= 1;
        Some(flight)
    }

    /// A busy answerer is asked again when its time is over, not at once.
    fn defer(&mut self, index: u16, now: Time) {
        let slot = self.slots.get_mut(usize::from(index));
        if let Some(flight) = slot.and_then(|slot| slot.flight.as_mut()) {
            flight.busy = true;
            flight.deadline = flight.deadline.max(now);
        }
    }

    fn expire(&mut self, index: u16, failure: Failure) {
        let retries = self.config.retries;
        let slot = self.slots.get_mut(usize::from(index));
        let Some(flight) = slot.and_then(|slot| slot.flight.as_mut()) else {
            return;
        };
        if flight.queued {
            return;
        }
        if flight.attempts > retries {
            let failure = if flight.busy { Failure::Busy } else { failure };
            self.give_up(index, failure);
        } else {
            flight.queued = true;
            self.resend.push_back(index);
        }
    }

    fn give_up(&mut self, index: u16, failure: Failure) {
        if let Some(flight) = self.take(index) {
            self.stats.failed += 1;
            self.events.push_back(Event::Failed {
                token: flight.token,
                failure,
                attempts: flight.attempts,
            });
        }
    }

    /// Lets requests expire. Call when [`poll_timeout`](Self::poll_timeout) has come, or whenever.
    pub fn handle_timeout(&mut self, now: Time) {
        if now < self.next_deadline {
            return;
        }
        let mut earliest = Time::FAR;
        let mut expired = Vec::new();
        for (index, slot) in (0_u16..).zip(&self.slots) {
            let Some(flight) = &slot.flight else { continue };
            if flight.queued {
                continue;
            }
            if flight.deadline <= now {
                expired.push(index);
            } else {
                earliest = earliest.min(flight.deadline);
            }
        }
        self.next_deadline = earliest;
        for index in expired {
            self.expire(index, Failure::TimedOut);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called at the latest; none where
    /// nothing is in flight. It may come before anything expires.
    #[must_use]
    pub const fn poll_timeout(&self) -> Option<Time> {
        if self.in_flight == 0 {
            None
        } else {
            Some(self.next_deadline)
        }
    }

    /// What has become of requests. Call until it gives none.
    pub fn poll_event(&mut self) -> Option<Event<T>> {
        self.events.pop_front()
    }
}
