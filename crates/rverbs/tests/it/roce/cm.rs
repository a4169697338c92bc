//! Connection management over a network that loses and repeats.

use std::net::{IpAddr, SocketAddr};

use rverbs::provider::roce::proto::cm::wire::{IpHeader, Reason, service_id};
use rverbs::provider::roce::proto::cm::{CmEvent, ConnId, Manager, Params, Private, SidrReply};
use rverbs::provider::roce::proto::packet::icrc::Flow;
use rverbs::provider::roce::proto::{Destination, Mad, Time};

use super::link::Random;

const INTERVAL: u64 = 100_000_000;

struct Net {
    now: Time,
    ends: [Manager; 2],
    random: Random,
    loss: u64,
    wire: Vec<(Time, usize, Mad)>,
}

fn addr(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end as u8 + 1], 4791))
}

fn towards(end: usize) -> Destination {
    Destination {
        flow: Flow {
            src: addr(1 - end),
            dst: addr(end),
        },
        tos: 0,
    }
}

impl Net {
    fn new(seed: u64, loss: u64) -> Self {
        let ends = [
            Manager::new(seed, INTERVAL),
            Manager::new(seed.rotate_left(17) ^ 99, INTERVAL),
        ];
        Self {
            now: Time(1),
            ends,
            random: Random(seed),
            loss,
            wire: Vec::new(),
        }
    }

    /// Until there is an event, or nothing goes on.
    fn next(&mut self) -> Option<(usize, CmEvent)> {
        loop {
            for end in 0..2 {
                if let Some(event) = self.ends[end].poll_event() {
                    return Some((end, event));
                }
            }
            for end in 0..2 {
                while let Some(mad) = self.ends[end].poll_transmit() {
                    assert_eq!(mad.destination.flow.dst, addr(1 - end));
                    let copies = if self.random.chance(self.loss) {
                        0
                    } else {
                        1 + usize::from(self.random.chance(100))
                    };
                    for _ in 0..copies {
                        let at = self.now.after(1000 + self.random.below(5000));
                        // What the receiver sees: the way back.
                        let mad = Mad {
                            destination: towards(end),
                            ..mad
                        };
                        self.wire.push((at, 1 - end, mad));
                    }
                }
            }
            let arrival = self.wire.iter().map(|(at, ..)| *at).min();
            let timeout = self.ends.iter().filter_map(Manager::poll_timeout).min();
            let next = [arrival, timeout].into_iter().flatten().min()?;
            self.now = self.now.max(next);
            let now = self.now;
            let (due, left): (Vec<_>, Vec<_>) =
                self.wire.drain(..).partition(|(at, ..)| *at <= now);
            self.wire = left;
            for (_, to, mad) in due {
                self.ends[to].handle_mad(now, &mad);
            }
            for end in &mut self.ends {
                end.handle_timeout(now);
            }
        }
    }

    fn expect(&mut self) -> (usize, CmEvent) {
        self.next().unwrap()
    }
}

fn params(qpn: u32) -> Params {
    Params {
        qpn,
        psn: qpn + 7,
        responder_resources: 3,
        initiator_depth: 2,
        retry_count: 7,
        rnr_retry: 6,
        mtu: 3,
        ..Params::default()
    }
}

#[test]
fn a_connection_lives_and_ends_whatever_is_lost() {
    for seed in 0..300 {
        let mut net = Net::new(seed, if seed % 3 == 0 { 0 } else { 250 });
        let service = service_id(0x0106, 7174);
        net.ends[1].listen(service).unwrap();
        let ip = IpHeader::new(addr(0).ip(), 4000, addr(1).ip());
        let mut private = bytemuck::bytes_of(&ip).to_vec();
        private.extend_from_slice(b"hello");
        let now = net.now;
        let active = net.ends[0]
            .connect(now, towards(1), service, &params(0x12345), &private)
            .unwrap();
        let (end, event) = net.expect();
        let CmEvent::Request {
            conn: passive,
            peer,
            private,
            service_id,
            ..
        } = event
        else {
            panic!("{event:?}")
        };
        assert_eq!(
            (end, service_id, peer.qpn, peer.psn),
            (1, service, 0x12345, 0x12345 + 7)
        );
        assert_eq!(
            (
                peer.responder_resources,
                peer.initiator_depth,
                peer.retry_count,
                peer.rnr_retry,
                peer.mtu
            ),
            (3, 2, 7, 6, 3)
        );
        let seen: IpHeader = bytemuck::pod_read_unaligned(&private.bytes()[..36]);
        assert_eq!(seen.addresses(), Some((addr(0).ip(), addr(1).ip())));
        assert_eq!(private.bytes()[36..41], *b"hello");
        let now = net.now;
        net.ends[1]
            .accept(now, passive, &params(0x54321), b"welcome")
            .unwrap();
        let (end, event) = net.expect();
        let CmEvent::Reply {
            conn,
            peer,
            private,
        } = event
        else {
            panic!("seed {seed}: {event:?}")
        };
        assert_eq!((end, conn, peer.qpn), (0, active, 0x54321));
        assert_eq!(private.bytes()[..7], *b"welcome");
        net.ends[0].confirm(active, &[]).unwrap();
        let mut established = [false; 2];
        while established != [true; 2] {
            let (end, event) = net.expect();
            assert!(
                matches!(event, CmEvent::Established { .. }),
                "seed {seed}: {event:?}"
            );
            established[end] = true;
        }
        let first = (seed % 2) as usize;
        let now = net.now;
        net.ends[first]
            .disconnect(now, [active, passive][first])
            .unwrap();
        let mut ended = [0; 2];
        while let Some((end, event)) = net.next() {
            assert!(
                matches!(event, CmEvent::Disconnected { .. }),
                "seed {seed}: {event:?}"
            );
            ended[end] += 1;
        }
        assert_eq!(ended, [1, 1], "seed {seed}");
    }
}

#[test]
fn refusals_arrive_with_their_reason() {
    let mut net = Net::new(7, 0);
    let now = net.now;
    net.ends[0]
        .connect(now, towards(1), 5, &params(1), &[])
        .unwrap();
    let (_, event) = net.expect();
    assert!(
        matches!(
            event,
            CmEvent::Rejected {
                reason: Reason::INVALID_SERVICE_ID,
                ..
            }
        ),
        "{event:?}"
    );
    net.ends[1].listen(5).unwrap();
    net.ends[0]
        .connect(now, towards(1), 5, &params(1), &[])
        .unwrap();
    let (_, event) = net.expect();
    let CmEvent::Request { conn, .. } = event else {
        panic!("{event:?}")
    };
    net.ends[1]
        .reject(now, conn, Reason::CONSUMER, b"no")
        .unwrap();
    let (end, event) = net.expect();
    let CmEvent::Rejected {
        reason, private, ..
    } = event
    else {
        panic!("{event:?}")
    };
    assert_eq!(
        (end, reason, &private.bytes()[..2]),
        (0, Reason::CONSUMER, &b"no"[..])
    );
    assert_eq!(net.next(), None);
}

#[test]
fn nobody_there_is_said_after_the_retries() {
    let mut net = Net::new(8, 1000);
    let now = net.now;
    let conn = net.ends[0]
        .connect(now, towards(1), 5, &params(1), &[])
        .unwrap();
    assert_eq!(net.next(), Some((0, CmEvent::Unreachable { conn })));
    assert!(net.now.0 >= 15 * INTERVAL);
}

#[test]
fn datagram_services_are_found() {
    let mut net = Net::new(9, 300);
    let service = service_id(0x0111, 99);
    net.ends[1].listen(service).unwrap();
    let now = net.now;
    let asked = net.ends[0].ask(now, towards(1), service, b"?").unwrap();
    let (_, event) = net.expect();
    let CmEvent::Question { conn, private, .. } = event else {
        panic!("{event:?}")
    };
    assert_eq!(private.bytes()[0], b'?');
    let reply = SidrReply {
        status: 0,
        qpn: 77,
        q_key: 0x1ee7,
    };
    let now = net.now;
    net.ends[1].answer(now, conn, &reply, b"!").unwrap();
    let (_, event) = net.expect();
    let CmEvent::Answer {
        conn, reply: got, ..
    } = event
    else {
        panic!("{event:?}")
    };
    assert_eq!((conn, got), (asked, reply));
}

#[test]
fn any_bytes_are_survived() {
    let mut random = Random(3);
    let mut manager = Manager::new(1, INTERVAL);
    manager.listen(1).unwrap();
    for round in 0..6_000_u32 {
        let mut bytes = [0; 256];
        random.fill(&mut bytes);
        bytes[..4].copy_from_slice(&[1, 7, 2, 3]);
        bytes[16] = 0;
        bytes[17] = 0x10 + (round % 11) as u8;
        bytes[24..27].fill(0);
        if round % 2 == 0 {
            bytes[32..40].copy_from_slice(&1_u64.to_be_bytes());
        }
        let mad = Mad {
            destination: towards(0),
            qpn: 1,
            bytes,
        };
        manager.handle_mad(Time(round.into()), &mad);
        while let Some(mad) = manager.poll_transmit() {
            assert_eq!(mad.destination, towards(0));
        }
        while let Some(event) = manager.poll_event() {
            if let CmEvent::Request { conn, .. } = event
                && round % 3 == 0
            {
                let _ = manager.accept(Time(round.into()), conn, &Params::default(), &[]);
            }
        }
    }
    manager.forget(Time(0), ConnId(5));
    assert!(Private::EMPTY.bytes().is_empty());
    let v6: IpAddr = "fd00::1".parse().unwrap();
    assert_eq!(IpHeader::new(v6, 1, v6).addresses(), Some((v6, v6)));
}
