//! The port that is worse than the one it wraps.

use std::time::Duration;

use ib_mad::client::{Client, ClientConfig, Event};
use ib_mad::fault::{FaultPlan, FaultPort};
use ib_mad::port::MadPort;

use crate::world::{Echo, drive, request};

const ALL: FaultPlan = FaultPlan {
    drop: 20,
    duplicate: 20,
    corrupt: 0,
    delay: 20,
    delay_up_to: Duration::from_millis(3),
    silent_after: None,
};

fn run(seed: u64, plan: FaultPlan) -> (Vec<Event<u32>>, String) {
    let mut client = Client::new(ClientConfig {
        window: 8,
        timeout: Duration::from_millis(1),
        retries: 60,
        first_tid: 0,
    });
    for number in 0..200 {
        client.submit(number, request(number));
    }
    let mut port = FaultPort::new(Echo::new(), seed, plan);
    let events = drive(&mut client, &mut port, 100_000);
    (
        events,
        format!("{:?} {:?} {}", client.stats(), port.counts(), port.now()),
    )
}

#[test]
fn loss_doubling_and_delay_are_survived() {
    for seed in 0..20 {
        let (events, told) = run(seed, ALL);
        assert_eq!(events.len(), 200, "{told}");
        assert!(
            events
                .iter()
                .all(|event| matches!(event, Event::Response { .. })),
            "{told}"
        );
    }
}

#[test]
fn the_same_seed_does_the_same() {
    let plan = FaultPlan { corrupt: 10, ..ALL };
    assert_eq!(run(7, plan), run(7, plan));
    assert_ne!(run(7, plan).1, run(8, plan).1);
}

#[test]
fn silence_ends_in_failures() {
    let plan = FaultPlan {
        silent_after: Some(50),
        ..FaultPlan::default()
    };
    let mut client = Client::new(ClientConfig {
        window: 8,
        timeout: Duration::from_millis(1),
        retries: 1,
        first_tid: 0,
    });
    for number in 0..100 {
        client.submit(number, request(number));
    }
    let mut port = FaultPort::new(Echo::new(), 1, plan);
    let events = drive(&mut client, &mut port, 10_000);
    let answered = events
        .iter()
        .filter(|it| matches!(it, Event::Response { .. }))
        .count();
    assert_eq!((answered, events.len()), (50, 100));
}
