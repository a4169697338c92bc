//! After set-up, nothing allocates: neither the safe API nor a software device, on any thread.
//!
//! Each case is a process of its own, whose every allocation is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use rverbs::mr::{Access, Piece};
use rverbs::provider::Kind;
use rverbs::qp::{Flags, Qp, Rc, Ud};
use rverbs::wc::Wc;

use crate::conformance::lab::{Lab, Pair};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: it is the system's allocator, which is told of every call unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(at, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROUNDS: usize = 500;

/// Runs `round` until everything is warm, and then counts.
fn count(what: &str, mut round: impl FnMut()) {
    // Warm is also a device's own thread, which wakes ten times a second.
    let begin = std::time::Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS || begin.elapsed() < std::time::Duration::from_millis(250) {
        round();
        rounds += 1;
    }
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    for _ in 0..ROUNDS {
        round();
    }
    let made = ALLOCATIONS.load(Ordering::SeqCst) - before;
    assert_eq!(made, 0, "{what}: {made} allocations in {ROUNDS} rounds");
}

/// Waits for the end of a request of side A, and gives its buffer back.
fn done(pair: &mut Pair<Rc>) -> Piece {
    let mut wc = Wc::default();
    loop {
        if pair.a.cq.poll_one(&mut wc).unwrap() {
            pair.a.qp.send.complete(&wc).unwrap().unwrap();
            return pair.a.qp.send.reclaim().unwrap();
        }
    }
}

fn connected(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let (mut buf, mut room) = (Some(pair.a.buf(b"message!")), Some(pair.b.room(64)));
    count("send", || {
        pair.b.qp.recv.post(room.take().unwrap()).unwrap();
        let send = &mut pair.a.qp.send;
        send.send(buf.take().unwrap(), Flags::SIGNALED).unwrap();
        let mut wc = Wc::default();
        while buf.is_none() || room.is_none() {
            if pair.b.cq.poll_one(&mut wc).unwrap() {
                room = Some(pair.b.qp.recv.complete(&wc).unwrap().1);
            }
            if pair.a.cq.poll_one(&mut wc).unwrap() {
                pair.a.qp.send.complete(&wc).unwrap().unwrap();
                buf = pair.a.qp.send.reclaim();
            }
        }
    });
    let there = pair.b.shared.export();
    count("write", || {
        let send = &mut pair.a.qp.send;
        send.write(buf.take().unwrap(), there, Flags::SIGNALED)
            .unwrap();
        buf = Some(done(&mut pair));
    });
    count("read", || {
        let send = &mut pair.a.qp.send;
        send.read(buf.take().unwrap(), there, Flags::SIGNALED)
            .unwrap();
        buf = Some(done(&mut pair));
    });
    count("atomic", || {
        let send = &mut pair.a.qp.send;
        send.fetch_add(buf.take().unwrap(), there, 1, Flags::SIGNALED)
            .unwrap();
        buf = Some(done(&mut pair));
    });
    let mut write = pair
        .a
        .qp
        .send
        .repeat_write(buf.take().unwrap(), there)
        .unwrap();
    count("repeat", || {
        write.post(Flags::SIGNALED).unwrap();
        let mut wc = Wc::default();
        while !pair.a.cq.poll_one(&mut wc).unwrap() {}
        write.complete(&wc).unwrap().unwrap();
    });
}

fn datagrams(lab: &Lab) {
    let pd = lab.context.alloc_pd().unwrap();
    let cq = lab.context.create_cq(64).unwrap();
    let mut qp: Qp<Ud, Piece> = pd.qp(&cq).build().unwrap();
    qp.activate(1, 0x1111).unwrap();
    let ah = pd
        .create_ah(&lab.address(), 1, lab.how().sgid_index)
        .unwrap();
    let memory = lab.context.alloc(4096).unwrap();
    let shared = pd.register_remote(memory, Access::NONE).unwrap();
    let piece = |at, len| Some(Piece::from(shared.slice(at, len).unwrap()));
    // A datagram comes with 40 bytes of route header.
    let (mut buf, mut room) = (piece(0, 64), piece(1024, 256));
    let qpn = qp.qpn();
    count("datagram", || {
        qp.recv.post(room.take().unwrap()).unwrap();
        let mine = buf.take().unwrap();
        qp.send
            .send_to(mine, &ah, qpn, 0x1111, Flags::SIGNALED)
            .unwrap();
        let mut wc = Wc::default();
        while buf.is_none() || room.is_none() {
            if !cq.poll_one(&mut wc).unwrap() {
                continue;
            }
            if let Some(result) = qp.send.complete(&wc) {
                result.unwrap();
                buf = qp.send.reclaim();
            } else {
                let (result, back) = qp.recv.complete(&wc).unwrap();
                result.unwrap();
                room = Some(back);
            }
        }
    });
}

fn in_a_process(test: &str, kind: Kind) {
    if std::env::var_os("RVERBS_TEST_ALLOC").is_some() {
        let lab = Lab::open(kind).unwrap();
        connected(&lab);
        datagrams(&lab);
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1", test])
        .env("RVERBS_TEST_ALLOC", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn shm_allocates_nothing() {
    in_a_process("alloc::shm_allocates_nothing", Kind::Shm);
}

#[test]
fn roce_allocates_nothing() {
    in_a_process("alloc::roce_allocates_nothing", Kind::Roce);
}
