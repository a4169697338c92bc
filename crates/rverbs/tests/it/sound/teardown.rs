//! Dropping and forgetting everything that a pair consists of, in any order, with work in flight.

use std::any::Any;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use rverbs::qp::{Flags, Rc};

use crate::conformance::lab::{Lab, Pair};

use super::{on_each, still_works};

/// What is made, by name; of each there is one on either side.
const PARTS: usize = 14;

/// A pair in pieces: reads, writes, messages and receive requests are under way.
fn pieces(lab: &Lab, traffic: u8) -> Vec<Box<dyn Any>> {
    let mut pair: Pair<Rc> = lab.pair();
    let target = pair.b.shared.export();
    for _ in 0..3 {
        let room = pair.b.room(4096);
        pair.b.qp.recv.post(room).unwrap();
        if traffic & 1 != 0 {
            let buf = pair.a.room(4096);
            pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
        }
        if traffic & 2 != 0 {
            let buf = pair.a.room(8192);
            pair.a.qp.send.write(buf, target, Flags::SILENT).unwrap();
        }
        if traffic & 4 != 0 {
            let buf = pair.a.room(8192);
            pair.a.qp.send.read(buf, target, Flags::SIGNALED).unwrap();
        }
    }
    if traffic & 8 != 0 {
        pair.a.qp.handle().fail().unwrap();
    }
    if traffic & 16 != 0 {
        pair.b.qp.handle().fail().unwrap();
    }
    let mut parts: Vec<Box<dyn Any>> = Vec::new();
    for side in [pair.a, pair.b] {
        let (send, recv, handle) = side.qp.split();
        parts.push(Box::new(send));
        parts.push(Box::new(recv));
        parts.push(Box::new(handle));
        parts.push(Box::new(side.cq));
        parts.push(Box::new(side.pd));
        parts.push(Box::new(side.bufs));
        parts.push(Box::new(side.shared));
    }
    assert_eq!(parts.len(), PARTS);
    parts
}

fn take_apart(lab: &Lab, order: &[usize], forgotten: u16, traffic: u8) {
    let mut parts: Vec<_> = pieces(lab, traffic).into_iter().map(Some).collect();
    for at in order {
        let Some(part) = parts[*at].take() else {
            continue;
        };
        if forgotten >> at & 1 == 1 {
            std::mem::forget(part);
        } else {
            drop(part);
        }
    }
}

#[test]
fn parts_are_dropped_in_any_order() {
    on_each(|lab| {
        let mut runner = TestRunner::new(ProptestConfig::with_cases(48));
        let order = Just((0..PARTS).collect::<Vec<_>>()).prop_shuffle();
        runner
            .run(&(order, any::<u8>()), |(order, traffic)| {
                take_apart(lab, &order, 0, traffic);
                Ok(())
            })
            .unwrap();
        still_works(lab);
    });
}

#[test]
fn each_part_is_forgotten_once() {
    on_each(|lab| {
        let order: Vec<_> = (0..PARTS).collect();
        for at in 0..PARTS {
            // What is dropped before, and what after.
            take_apart(lab, &order, 1 << at, 7);
            let back: Vec<_> = order.iter().rev().copied().collect();
            take_apart(lab, &back, 1 << at, 7);
        }
        still_works(lab);
    });
}

#[test]
fn a_forgotten_batch_posts_nothing_and_frees_its_room() {
    on_each(|lab| {
        let mut pair: Pair<Rc> = lab.pair();
        for _ in 0..4 {
            let buf = pair.a.room(64);
            let mut batch = pair.a.qp.send.batch();
            batch.send(buf, Flags::SIGNALED).unwrap();
            std::mem::forget(batch);
        }
        assert_eq!(pair.a.qp.send.in_flight(), 0);
        let room = pair.b.room(64);
        pair.b.qp.recv.post(room).unwrap();
        let text = pair.a.buf(b"after");
        pair.a.qp.send.send(text, Flags::SIGNALED).unwrap();
        let (success, _) = pair.wait_b().received();
        assert_eq!(success.byte_len, 5);
        pair.wait_a().sent();
    });
}
