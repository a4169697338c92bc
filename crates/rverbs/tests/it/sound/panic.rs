//! A panic at each point at which code of the caller runs.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rverbs::mr::{Buf, Slice};
use rverbs::qp::{Flags, Qp, Rc};
use rverbs_sys::ibv_sge;

use crate::conformance::lab::{Lab, Pair};

use super::{on_each, still_works};

thread_local! {
    /// After how many more calls a scatter list panics.
    static FUSE: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// A slice whose scatter list panics when it is asked for once too often.
struct Fused(Slice);

// SAFETY: the slice keeps its memory.
unsafe impl Buf for Fused {
    type Entries = [ibv_sge; 1];

    fn entries(&self) -> [ibv_sge; 1] {
        FUSE.with(|fuse| match fuse.get() {
            0 => panic!("the fuse"),
            left => fuse.set(left - 1),
        });
        self.0.entries()
    }
}

/// Runs `body`, which burns one fuse a step, with a panic at each step, until one run needs none.
fn at_each_point(mut body: impl FnMut()) -> u32 {
    let mut point = 0;
    loop {
        FUSE.with(|fuse| fuse.set(point));
        let ended = catch_unwind(AssertUnwindSafe(&mut body));
        if ended.is_ok() || point > 64 {
            break;
        }
        point += 1;
    }
    FUSE.with(|fuse| fuse.set(u32::MAX));
    point
}

/// A point of a closure.
fn step() {
    FUSE.with(|fuse| match fuse.get() {
        0 => panic!("the fuse"),
        left => fuse.set(left - 1),
    });
}

#[test]
fn a_scatter_list_panics_at_each_post() {
    on_each(|lab| {
        let points = at_each_point(|| {
            let pair: Pair<Rc> = lab.pair();
            let qp: Qp<Rc, Fused> = pair.a.pd.qp(&pair.a.cq).depth(8, 8).build().unwrap();
            qp.init(&lab.how()).unwrap();
            let (mut send, mut recv, _) = qp.split();
            let mut bufs = pair.a.bufs;
            let mut next = || Fused(bufs.pop().unwrap());
            recv.post(next()).unwrap();
            recv.post(next()).unwrap();
            // Not connected, so refused; the buffer comes back, or is dropped by the panic.
            let _ = send.send(next(), Flags::SIGNALED);
            let mut batch = send.batch();
            batch.send(next(), Flags::SIGNALED).unwrap();
            batch.send(next(), Flags::SIGNALED).unwrap();
            let _ = batch.commit();
        });
        assert_eq!(points, 5, "{}", lab.kind);
        still_works(lab);
    });
}

#[test]
fn a_scope_panics_at_each_step() {
    on_each(|lab| {
        let points = at_each_point(|| {
            let mut pair: Pair<Rc> = lab.pair();
            let target = pair.b.shared.export();
            let mut memory = vec![1_u8; 8192];
            let ran = pair.a.qp.scope(Duration::from_secs(20), |scope| {
                step();
                let mr = scope.register(&mut memory).unwrap();
                step();
                scope.write(&mr, 0..4096, target).unwrap();
                step();
                let ticket = scope.read(&mr, 4096..8192, target).unwrap();
                step();
                scope
                    .wait(ticket, Duration::from_secs(20))
                    .unwrap()
                    .unwrap();
                step();
            });
            ran.unwrap();
            // The memory is ours again, whatever happened.
            memory.fill(2);
        });
        assert_eq!(points, 5, "{}", lab.kind);
        still_works(lab);
    });
}

#[test]
fn memory_is_quiet_after_a_scope_that_panicked_with_work_in_flight() {
    on_each(|lab: &Lab| {
        let mut pair: Pair<Rc> = lab.pair();
        let target = pair.b.shared.export();
        let mut memory = vec![1_u8; 1 << 20];
        let ended = catch_unwind(AssertUnwindSafe(|| {
            pair.a.qp.scope(Duration::from_secs(20), |scope| {
                let mr = scope.register(&mut memory).unwrap();
                for at in 0..8 {
                    let range = at << 17..(at + 1) << 17;
                    scope.read(&mr, range, target).unwrap();
                }
                panic!("with eight reads in flight");
            })
        }));
        assert!(ended.is_err());
        memory.fill(7);
        still_works(lab);
        assert!(memory.iter().all(|byte| *byte == 7), "{}", lab.kind);
    });
}
