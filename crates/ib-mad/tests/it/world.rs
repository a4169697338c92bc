//! A world of one clock and one node that answers NodeInfo, for clients to be tried in.

use std::collections::VecDeque;
use std::time::Duration;

use ib_mad::client::{Client, Event};
use ib_mad::header::AttributeId;
use ib_mad::header::Method;
use ib_mad::port::{LocalPort, MadPort, Packet, PortError};
use ib_mad::smp::{DrPath, Smp};
use ib_mad::{Request, Time};

/// How long the node takes.
pub(crate) const LATENCY: Duration = Duration::from_micros(10);

/// A port behind which one node echoes every request.
#[derive(Debug)]
pub(crate) struct Echo {
    local: LocalPort,
    now: Time,
    on_way: VecDeque<(Time, Packet)>,
    /// How many requests it answers with "busy" before it obeys.
    pub(crate) busy: u32,
}

impl Echo {
    pub(crate) fn new() -> Self {
        Self {
            local: LocalPort::new("echo", 1),
            now: Time::ZERO,
            on_way: VecDeque::new(),
            busy: 0,
        }
    }
}

impl MadPort for Echo {
    fn local(&self) -> &LocalPort {
        &self.local
    }

    fn now(&self) -> Time {
        self.now
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        let mut answer = *packet;
        let header = answer.header_mut();
        header.method = Method::GET_RESP;
        // As the kernel does.
        header.tid.set(header.tid.get() | 0xabcd_0123_0000_0000);
        if self.busy > 0 {
            self.busy -= 1;
            header.status.set(0x8001);
        }
        self.on_way.push_back((self.now + LATENCY, answer));
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        let end = self.now + wait;
        match self.on_way.front() {
            Some((time, _)) if *time <= end => {
                self.now = self.now.max(*time);
                Ok(self.on_way.pop_front().map(|(_, packet)| packet))
            }
            _ => {
                self.now = end;
                Ok(None)
            }
        }
    }
}

/// A request that can be told from others.
pub(crate) fn request(number: u32) -> Request {
    let smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, number);
    Packet::directed(&smp, Duration::from_millis(1))
}

/// Drives a client until it is idle, for so many rounds at most.
pub(crate) fn drive(
    client: &mut Client<u32>,
    port: &mut impl MadPort,
    rounds: usize,
) -> Vec<Event<u32>> {
    let mut events = Vec::new();
    for _ in 0..rounds {
        let now = port.now();
        client.handle_timeout(now);
        while let Some(packet) = client.poll_transmit(now) {
            port.send(&packet).expect("it takes packets");
        }
        events.extend(std::iter::from_fn(|| client.poll_event()));
        if client.is_idle() {
            return events;
        }
        let wait = client
            .poll_timeout()
            .map_or(Duration::ZERO, |time| time.since(now));
        if let Some(packet) = port.receive(wait).expect("it gives packets") {
            client.handle_mad(port.now(), &packet);
        }
    }
    panic!("not idle after {rounds} rounds: {:?}", client.stats());
}
