//! Requests that are posted again and again, and the way back of their buffers.

use rverbs::qp::{Flags, Rc};
use rverbs::wc::{Status, Wc};

use super::lab::{Lab, Pair, bytes, len, wait};

/// Waits for a completion of one side, whatever it is for.
fn completion(pair: &Pair<Rc>) -> Wc {
    let mut wc = Wc::default();
    wait(|| pair.a.cq.poll_one(&mut wc).unwrap().then_some(()));
    wc
}

pub(crate) fn a_request_is_repeated(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let to = pair.b.shared.export();
    let buf = pair.a.buf(b"again");
    let mut write = pair.a.qp.send.repeat_write(buf, to.from(8)).unwrap();
    for round in 0..40_u8 {
        write.post(Flags::SIGNALED).unwrap();
        assert!(write.get_mut().is_none(), "the device has it");
        let mut wc = Wc::default();
        wait(|| pair.a.cq.poll_one(&mut wc).unwrap().then_some(()));
        write.complete(&wc).unwrap().unwrap();
        assert!(write.complete(&wc).is_none(), "a completion counts once");
        assert_eq!(write.in_flight(), 0);
        assert!(write.get_mut().is_some(), "round {round}");
    }
    assert_eq!(len(&write.finish().unwrap()), 5);
    let mut there = [0; 5];
    assert_eq!(pair.b.shared.all().read(8, &mut there), 5);
    assert_eq!(&there, b"again");
    // The queue goes on as before.
    let room = pair.b.room(5);
    pair.b.qp.recv.post(room).unwrap();
    let buf = pair.a.buf(b"other");
    pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
    assert_eq!(bytes(&pair.wait_b().received().1), b"other");
    pair.wait_a().sent();
}

pub(crate) fn a_repeated_request_fills_the_queue_and_no_more(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let from = pair.b.shared.export();
    pair.b.shared.all().write(0, b"remote");
    let buf = pair.a.room(6);
    let mut read = pair.a.qp.send.repeat_read(buf, from).unwrap();
    let mut posted = 0_u64;
    while posted < 4096 && read.post(Flags::SILENT).is_ok() {
        posted += 1;
    }
    assert!((16..4096).contains(&posted), "{posted}");
    assert_eq!(read.in_flight(), posted);
    drop(read);
    pair.a.qp.handle().fail().unwrap();
    // Teardown with the buffer parked.
}

pub(crate) fn a_repeated_request_counts_only_its_own(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let to = pair.b.shared.export();
    let buf = pair.a.buf(b"before");
    pair.a.qp.send.write(buf, to, Flags::SIGNALED).unwrap();
    let before = completion(&pair);
    let buf = pair.a.buf(b"repeat");
    let mut write = pair.a.qp.send.repeat_write(buf, to.from(64)).unwrap();
    write.post(Flags::SIGNALED).unwrap();
    assert!(write.complete(&before).is_none());
    let mut own = Wc::default();
    wait(|| pair.a.cq.poll_one(&mut own).unwrap().then_some(()));
    write.complete(&own).unwrap().unwrap();
    assert!(write.finish().is_some());
    let send = &mut pair.a.qp.send;
    assert!(send.complete(&own).is_none());
    send.complete(&before).unwrap().unwrap();
    assert_eq!(bytes(&send.reclaim().unwrap()), b"before");
}

pub(crate) fn a_repeated_request_may_be_forgotten(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let to = pair.b.shared.export();
    for forget in [true, false] {
        let buf = pair.a.buf(b"gone");
        let mut write = pair.a.qp.send.repeat_write(buf, to).unwrap();
        write.post(Flags::SIGNALED).unwrap();
        if forget {
            core::mem::forget(write);
        } else {
            drop(write);
        }
        // Nobody's completion, and nothing of the queue's.
        let wc = completion(&pair);
        assert!(wc.is_ok());
        assert!(pair.a.qp.send.complete(&wc).is_none());
    }
    let buf = pair.a.buf(b"next");
    let wrong = rverbs::mr::RemoteRegion {
        rkey: !to.rkey,
        ..to
    };
    let mut write = pair.a.qp.send.repeat_write(buf, wrong).unwrap();
    write.post(Flags::SIGNALED).unwrap();
    let mut wc = Wc::default();
    wait(|| pair.a.cq.poll_one(&mut wc).unwrap().then_some(()));
    let failed = write.complete(&wc).unwrap().unwrap_err();
    assert_eq!(failed.status, Status::REM_ACCESS_ERR);
    assert!(write.finish().is_some());
}

pub(crate) fn buffers_come_back_one_by_one(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let to = pair.b.shared.export();
    let mut last = Wc::default();
    assert!(pair.a.qp.send.complete_one(&last).is_none());
    for round in 0..40_u8 {
        let buf = pair.a.buf(&[round; 3]);
        pair.a.qp.send.write(buf, to, Flags::SIGNALED).unwrap();
        assert!(pair.a.qp.send.complete_one(&last).is_none(), "done before");
        last = completion(&pair);
        assert!(pair.b.qp.send.complete_one(&last).is_none(), "another's");
        let (result, buf) = pair.a.qp.send.complete_one(&last).unwrap();
        result.unwrap();
        let buf = buf.unwrap();
        assert_eq!(bytes(&buf), [round; 3]);
        pair.a.put_back(buf);
        let send = &mut pair.a.qp.send;
        assert!(send.complete_one(&last).is_none() && send.complete(&last).is_none());
        assert_eq!((send.in_flight(), send.room()), (0, 16));
    }
    // Silent ones before it are left to be reclaimed, and inline ones have none.
    for round in 0..9_u8 {
        for silent in 0..4 {
            let buf = pair.a.buf(&[round, silent]);
            pair.a.qp.send.write(buf, to, Flags::SILENT).unwrap();
        }
        let send = &mut pair.a.qp.send;
        send.write_inline(&[1; 8], to, Flags::SIGNALED).unwrap();
        let wc = completion(&pair);
        let (result, none) = pair.a.qp.send.complete_one(&wc).unwrap();
        result.unwrap();
        assert!(none.is_none());
        for silent in 0..4 {
            let buf = pair.a.qp.send.reclaim().unwrap();
            assert_eq!(bytes(&buf), [round, silent]);
            pair.a.put_back(buf);
        }
        assert!(pair.a.qp.send.reclaim().is_none());
        assert_eq!(pair.a.qp.send.room(), 16);
    }
}
