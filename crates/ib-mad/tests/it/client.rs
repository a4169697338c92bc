//! The client: every request ends once, in time, whatever comes.

use std::time::Duration;

use ib_mad::Time;
use ib_mad::client::{Client, ClientConfig, Event, Failure};
use ib_mad::header::{AttributeId, Method, MgmtClass};
use ib_mad::port::{Delivery, MadPort, Packet};
use proptest::prelude::*;

use crate::world::{Echo, drive, request};

fn config(window: u16) -> ClientConfig {
    ClientConfig {
        window,
        timeout: Duration::from_millis(1),
        retries: 2,
        first_tid: 0xfffe,
    }
}

fn answer(packet: &Packet) -> Packet {
    let mut answer = *packet;
    answer.header_mut().method = Method::GET_RESP;
    answer
}

#[test]
fn the_window_is_kept_and_all_are_answered() {
    let mut client = Client::new(config(4));
    for number in 0..100 {
        client.submit(number, request(number));
    }
    let events = drive(&mut client, &mut Echo::new(), 1000);
    let tokens: Vec<u32> = events
        .iter()
        .map(|event| match event {
            Event::Response {
                token, attempts: 1, ..
            } => *token,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(tokens, (0..100).collect::<Vec<_>>());
    let stats = client.stats();
    assert_eq!(
        (stats.sent, stats.answered, stats.peak_in_flight),
        (100, 100, 4)
    );
    assert_eq!(client.poll_timeout(), None);
}

#[test]
fn only_the_low_half_of_a_transaction_id_is_used() {
    let mut client = Client::new(config(1));
    client.submit(7_u32, request(1));
    let sent = client.poll_transmit(Time::ZERO).expect("a packet");
    assert_eq!(sent.header().tid.get() >> 32, 0);
    let mut reply = answer(&sent);
    reply
        .header_mut()
        .tid
        .set(sent.header().tid.get() | 0xffff_ffff_0000_0000);
    client.handle_mad(Time::ZERO, &reply);
    assert!(matches!(
        client.poll_event(),
        Some(Event::Response { token: 7, .. })
    ));
}

#[test]
fn silence_is_asked_again_and_given_up() {
    let mut client = Client::new(config(1));
    client.submit(7_u32, request(1));
    let mut now = Time::ZERO;
    for attempt in 1..=3 {
        assert!(client.poll_transmit(now).is_some(), "attempt {attempt}");
        assert!(client.poll_transmit(now).is_none());
        assert_eq!(client.poll_timeout(), Some(now + Duration::from_millis(1)));
        client.handle_timeout(now + Duration::from_micros(999));
        assert!(client.poll_transmit(now).is_none(), "not before its time");
        now = now + Duration::from_millis(1);
        client.handle_timeout(now);
    }
    assert_eq!(
        client.poll_event(),
        Some(Event::Failed {
            token: 7,
            failure: Failure::TimedOut,
            attempts: 3
        })
    );
    assert!(client.is_idle());
}

#[test]
fn a_port_that_says_timed_out_is_believed_at_once() {
    let mut client = Client::new(config(1));
    client.submit(7_u32, request(1));
    for _ in 0..3 {
        let mut packet = client.poll_transmit(Time::ZERO).expect("a packet");
        packet.delivery = Delivery::TimedOut;
        client.handle_mad(Time::ZERO, &packet);
    }
    assert!(matches!(
        client.poll_event(),
        Some(Event::Failed {
            failure: Failure::TimedOut,
            ..
        })
    ));
    client.submit(8, request(2));
    let mut packet = client.poll_transmit(Time::ZERO).expect("a packet");
    packet.delivery = Delivery::Failed(5);
    client.handle_mad(Time::ZERO, &packet);
    assert!(matches!(
        client.poll_event(),
        Some(Event::Failed {
            failure: Failure::NotSent(5),
            ..
        })
    ));
}

#[test]
fn the_busy_are_asked_again_later() {
    let mut port = Echo::new();
    port.busy = 2;
    let mut client = Client::new(config(1));
    client.submit(7, request(1));
    let events = drive(&mut client, &mut port, 100);
    assert!(matches!(
        events[..],
        [Event::Response {
            token: 7,
            attempts: 3,
            ..
        }]
    ));
    assert!(
        port.now() >= Time::from_micros(2000),
        "each time after the deadline, not at once"
    );
    port.busy = 3;
    client.submit(8, request(1));
    let events = drive(&mut client, &mut port, 100);
    assert!(matches!(
        events[..],
        [Event::Failed {
            failure: Failure::Busy,
            attempts: 3,
            ..
        }]
    ));
}

#[test]
fn strangers_are_not_taken_for_answers() {
    let mut client = Client::new(config(2));
    client.submit(7_u32, request(1));
    let sent = client.poll_transmit(Time::ZERO).expect("a packet");
    let mut wrong = answer(&sent);
    wrong.header_mut().attribute_id = AttributeId::PORT_INFO;
    client.handle_mad(Time::ZERO, &wrong);
    let mut wrong = answer(&sent);
    wrong.header_mut().attribute_modifier.set(9);
    client.handle_mad(Time::ZERO, &wrong);
    let mut wrong = answer(&sent);
    wrong.header_mut().mgmt_class = MgmtClass::PERF;
    client.handle_mad(Time::ZERO, &wrong);
    let mut wrong = answer(&sent);
    wrong
        .header_mut()
        .tid
        .set(sent.header().tid.get() ^ 0x1_0000);
    client.handle_mad(Time::ZERO, &wrong);
    assert_eq!(client.poll_event(), None);
    assert_eq!(client.stats().stray, 4);
    client.handle_mad(Time::ZERO, &answer(&sent));
    assert!(client.poll_event().is_some());
    // The same once more is late.
    client.handle_mad(Time::ZERO, &answer(&sent));
    assert_eq!((client.poll_event(), client.stats().stray), (None, 5));
    // A request of somebody else's is handed on.
    client.handle_mad(Time::ZERO, &sent);
    assert!(matches!(client.poll_event(), Some(Event::Unsolicited(_))));
}

#[test]
fn an_answer_to_the_first_attempt_ends_the_second() {
    let mut client = Client::new(config(1));
    client.submit(7_u32, request(1));
    let first = client.poll_transmit(Time::ZERO).expect("a packet");
    let later = Time::from_micros(1000);
    client.handle_timeout(later);
    client.handle_mad(later, &answer(&first));
    assert!(matches!(
        client.poll_event(),
        Some(Event::Response { attempts: 1, .. })
    ));
    assert!(
        client.poll_transmit(later).is_none(),
        "nothing is sent for nothing"
    );
    assert!(client.is_idle());
}

/// What may happen to a client, in any order.
#[derive(Clone, Debug)]
enum Act {
    Submit,
    Transmit,
    Answer(usize),
    TimedOut(usize),
    Wait(u16),
    Bytes(Box<[u8; 32]>),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        Just(Act::Submit),
        Just(Act::Transmit),
        any::<usize>().prop_map(Act::Answer),
        any::<usize>().prop_map(Act::TimedOut),
        (0..1500_u16).prop_map(Act::Wait),
        any::<[u8; 32]>().prop_map(|bytes| Act::Bytes(Box::new(bytes))),
    ]
}

proptest! {
    /// Whatever happens: every request ends exactly once, and the window is never overrun.
    #[test]
    fn every_request_ends_once(acts in proptest::collection::vec(act(), 0..200), window in 1..5_u16) {
        let mut client = Client::new(config(window));
        let (mut now, mut submitted) = (Time::ZERO, 0_u32);
        let mut sent: Vec<Packet> = Vec::new();
        let mut ended = Vec::new();
        let mut collect = |client: &mut Client<u32>| {
            while let Some(event) = client.poll_event() {
                match event {
                    Event::Response { token, .. } | Event::Failed { token, .. } => ended.push(token),
                    _ => {}
                }
            }
        };
        for act in acts {
            match act {
                Act::Submit => {
                    client.submit(submitted, request(submitted));
                    submitted += 1;
                }
                Act::Transmit => sent.extend(client.poll_transmit(now)),
                Act::Answer(index) if !sent.is_empty() => {
                    client.handle_mad(now, &answer(&sent[index % sent.len()]));
                }
                Act::TimedOut(index) if !sent.is_empty() => {
                    let packet = Packet { delivery: Delivery::TimedOut, ..sent[index % sent.len()] };
                    client.handle_mad(now, &packet);
                }
                Act::Wait(micros) => {
                    now = now + Duration::from_micros(u64::from(micros));
                    client.handle_timeout(now);
                }
                Act::Bytes(bytes) => {
                    let mut packet = request(0);
                    packet.mad[..32].copy_from_slice(&bytes[..]);
                    client.handle_mad(now, &packet);
                }
                Act::Answer(_) | Act::TimedOut(_) => {}
            }
            collect(&mut client);
            prop_assert!(client.in_flight() <= window);
        }
        for _ in 0..=3 * (submitted + 1) {
            while client.poll_transmit(now).is_some() {}
            now = now + Duration::from_millis(1);
            client.handle_timeout(now);
            collect(&mut client);
        }
        prop_assert!(client.is_idle());
        ended.sort_unstable();
        prop_assert_eq!(ended, (0..submitted).collect::<Vec<_>>());
    }
}
