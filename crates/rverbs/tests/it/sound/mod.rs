//! What safe code may do at the wrong moment: drop in any order, forget, panic, with work in flight.
//!
//! Each case ends with traffic on a fresh pair: what a case broke would show there, or as a crash.

mod future;
mod panic;
mod teardown;

use rverbs::provider::Kind;
use rverbs::qp::{Flags, Rc};

use crate::conformance::lab::Lab;

/// Runs a case on both software devices.
pub(crate) fn on_each(case: impl Fn(&Lab)) {
    for kind in [Kind::Shm, Kind::Roce] {
        if let Some(lab) = Lab::open(kind) {
            case(&lab);
        }
    }
}

/// A message, there and back.
pub(crate) fn still_works(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(64);
    pair.b.qp.recv.post(room).unwrap();
    let text = pair.a.buf(b"still here");
    pair.a.qp.send.send(text, Flags::SIGNALED).unwrap();
    let (_, buf) = pair.wait_b().received();
    assert_eq!(&crate::conformance::lab::bytes(&buf)[..10], b"still here");
    pair.wait_a().sent();
}
