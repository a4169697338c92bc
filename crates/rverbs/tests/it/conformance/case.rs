//! The cases. Each makes what it needs, and says by its name what holds.

use std::time::{Duration, Instant};

use rverbs::mr::{Access, Piece, RemoteRegion, Slice};
use rverbs::qp::{ConnectAttr, Flags, Qp, Rc, Uc};
use rverbs::wc::{Status, Wc};
use rverbs_sys::*;

use super::lab::{Feature, Got, Lab, Pair, bytes, len, wait};
use super::meet::both_meet_by_the_manager;

use super::object::{
    a_batch_is_posted_whole, a_datagram_with_another_key_is_lost, a_failed_access_makes_an_event,
    a_scope_borrows, a_scope_ends_without_a_message, a_shared_queue_serves_several,
    a_shared_queue_warns, datagrams_arrive_with_their_header, events_come_when_asked_for,
    objects_go_in_any_order, solicited_events_come_for_those_only,
};

use super::repeat::{
    a_repeated_request_counts_only_its_own, a_repeated_request_fills_the_queue_and_no_more,
    a_repeated_request_may_be_forgotten, a_request_is_repeated, buffers_come_back_one_by_one,
};

type Case = (&'static str, fn(&Lab));

macro_rules! cases {
    ($($name:ident)*) => {
        pub(crate) const CASES: &[Case] = &[$((stringify!($name), $name)),*];
    };
}

cases! {
    attributes_make_sense
    a_message_arrives
    messages_of_all_sizes_arrive_whole
    an_immediate_arrives
    inline_data_may_change_after_posting
    several_entries_are_gathered
    silent_requests_are_released_by_the_next_signaled_one
    a_write_needs_no_help
    a_write_with_immediate_takes_a_request
    a_read_fetches
    atomics_return_the_old_value
    a_wrong_key_is_refused_and_writes_nothing
    bounds_are_kept_to_the_byte
    rights_of_the_region_are_kept
    rights_of_the_queue_pair_are_kept
    another_domain_is_refused
    a_local_key_of_another_domain_is_refused
    a_message_too_long_fails_on_both_sides
    a_message_waits_for_a_request
    errors_flush_what_is_behind
    moving_to_err_flushes_both_ends
    order_is_kept
    a_full_queue_refuses
    a_deregistered_key_is_dead
    states_are_walked_in_order
    reset_makes_a_queue_pair_new
    unreliable_connections_send_and_write
    datagrams_arrive_with_their_header
    a_datagram_with_another_key_is_lost
    a_shared_queue_serves_several
    a_shared_queue_warns
    events_come_when_asked_for
    solicited_events_come_for_those_only
    a_failed_access_makes_an_event
    objects_go_in_any_order
    a_batch_is_posted_whole
    a_scope_borrows
    a_scope_ends_without_a_message
    a_request_is_repeated
    a_repeated_request_fills_the_queue_and_no_more
    a_repeated_request_counts_only_its_own
    a_repeated_request_may_be_forgotten
    buffers_come_back_one_by_one
    both_meet_by_the_manager
}

fn exchange(pair: &mut Pair<Rc>, text: &[u8]) {
    let room = pair.b.room(u32::try_from(text.len()).unwrap().max(1));
    pair.b.qp.recv.post(room).unwrap();
    let buf = pair.a.buf(text);
    pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
    let (success, got) = pair.wait_b().received();
    assert_eq!(success.byte_len as usize, text.len());
    assert_eq!(&bytes(&got)[..text.len()], text);
    pair.wait_a().sent();
}

fn attributes_make_sense(lab: &Lab) {
    let device = lab.context.query_device().unwrap().orig_attr;
    assert!(device.max_qp > 0 && device.max_cqe > 0 && device.phys_port_cnt >= 1);
    let port = lab.context.query_port(1).unwrap();
    assert_eq!(port.state, IBV_PORT_ACTIVE);
    assert!(!lab.context.gids(1).unwrap().is_empty());
    assert!(lab.context.query_port(99).is_err());
    assert_eq!(lab.context.kind(), lab.kind);
}

fn a_message_arrives(lab: &Lab) {
    exchange(&mut lab.pair(), b"hello");
}

fn messages_of_all_sizes_arrive_whole(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    for size in [
        0, 1, 7, 39, 40, 41, 63, 64, 65, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 8191,
        8192, 8193, 16384,
    ] {
        pair.b.bufs.truncate(2);
        let text: Vec<u8> = (0..=250).cycle().take(size).collect();
        let (mut room, mut buf) = (pair.b.bufs.pop().unwrap(), pair.a.bufs.pop().unwrap());
        room.fill(0xee);
        buf[..size].copy_from_slice(&text);
        let (buf, rest) = buf.split_at(u32::try_from(size).unwrap());
        drop(rest);
        pair.b.qp.recv.post(room.into()).unwrap();
        pair.a.qp.send.send(buf.into(), Flags::SIGNALED).unwrap();
        let (success, got) = pair.wait_b().received();
        assert_eq!(success.byte_len as usize, size);
        let got = bytes(&got);
        assert_eq!(&got[..size], text);
        assert!(got[size..].iter().all(|&byte| byte == 0xee), "{size}");
        pair.wait_a().sent();
        refill(&mut pair);
    }
}

fn refill(pair: &mut Pair<Rc>) {
    for side in [&mut pair.a, &mut pair.b] {
        let memory = side.pd.context().alloc(64 << 10).unwrap();
        side.bufs = side.pd.register(memory).unwrap().into_slices(16 << 10);
    }
}

fn an_immediate_arrives(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(8);
    pair.b.qp.recv.post(room).unwrap();
    let buf = pair.a.buf(b"x");
    pair.a
        .qp
        .send
        .send_imm(buf, 0x0102_0304, Flags::SIGNALED)
        .unwrap();
    let (success, _) = pair.wait_b().received();
    assert_eq!(success.imm, Some(0x0102_0304));
    assert!(!success.by_write);
}

fn inline_data_may_change_after_posting(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(8);
    pair.b.qp.recv.post(room).unwrap();
    let mut text = *b"inline";
    pair.a.qp.send.send_inline(&text, Flags::SIGNALED).unwrap();
    text.fill(0);
    let (_, got) = pair.wait_b().received();
    assert_eq!(&bytes(&got)[..6], b"inline");
    assert!(
        pair.a
            .qp
            .send
            .send_inline(&[0; 4096], Flags::SIGNALED)
            .is_err()
    );
}

fn several_entries_are_gathered(lab: &Lab) {
    let pd = lab.context.alloc_pd().unwrap();
    let cq = lab.context.create_cq(16).unwrap();
    let make = || -> Qp<Rc, [Slice; 3]> { pd.qp(&cq).entries(3, 3).build().unwrap() };
    let (mut a, mut b) = (make(), make());
    lab.join(&a, &b, &lab.how());
    let parts = |sizes: [u32; 3], text: &[u8]| {
        let memory = lab.context.alloc(4096).unwrap();
        let mut rest = pd.register(memory).unwrap().into_slice();
        let mut text = text.iter();
        sizes.map(|size| {
            let whole = std::mem::replace(&mut rest, empty(lab, &pd));
            let (mut part, tail) = whole.split_at(size);
            rest = tail;
            for (to, from) in part.iter_mut().zip(&mut text) {
                *to = *from;
            }
            part
        })
    };
    b.recv.post(parts([1, 6, 4], b"")).unwrap();
    a.send
        .send(parts([3, 0, 7], b"gather-all"), Flags::SIGNALED)
        .unwrap();
    let mut wcs = [Wc::default(); 4];
    let got = wait(|| {
        let wcs = cq.poll(&mut wcs).unwrap();
        wcs.iter().find_map(|wc| b.recv.complete(wc))
    });
    assert_eq!(got.0.unwrap().byte_len, 10);
    assert_eq!(
        got.1.map(|part| part.to_vec()).concat()[..10],
        *b"gather-all"
    );
}

fn empty(lab: &Lab, pd: &rverbs::Pd) -> Slice {
    let memory = lab.context.alloc(1).unwrap();
    pd.register(memory).unwrap().into_slice().split_at(0).0
}

fn silent_requests_are_released_by_the_next_signaled_one(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    for _ in 0..3 {
        let room = pair.b.room(8);
        pair.b.qp.recv.post(room).unwrap();
    }
    for flags in [Flags::SILENT, Flags::SILENT, Flags::SIGNALED] {
        let buf = pair.a.buf(b"x");
        pair.a.qp.send.send(buf, flags).unwrap();
    }
    for _ in 0..3 {
        pair.wait_b().received();
    }
    pair.wait_a().sent();
    assert_eq!(pair.a.qp.send.in_flight(), 0);
    assert!(pair.a.qp.send.reclaim().is_some());
    assert!(pair.a.qp.send.reclaim().is_some());
    assert!(pair.a.qp.send.reclaim().is_none());
    assert!(pair.a.poll().is_none());
}

fn a_write_needs_no_help(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let all = pair.b.shared.all();
    let buf = pair.a.buf(&[5; 5000]);
    let to = pair.b.shared.export().from(1001);
    pair.a.qp.send.write(buf, to, Flags::SIGNALED).unwrap();
    pair.wait_a().sent();
    let mut got = vec![0; 5002];
    all.read(1000, &mut got);
    assert_eq!((got[0], got[5001]), (0, 0));
    assert!(got[1..5001].iter().all(|&byte| byte == 5));
    assert!(pair.b.poll().is_none());
}

fn a_write_with_immediate_takes_a_request(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(1);
    pair.b.qp.recv.post(room).unwrap();
    let buf = pair.a.buf(&[6; 300]);
    let to = pair.b.shared.export();
    pair.a
        .qp
        .send
        .write_imm(buf, to, 77, Flags::SIGNALED)
        .unwrap();
    let (success, _) = pair.wait_b().received();
    assert_eq!(
        (success.imm, success.by_write, success.byte_len),
        (Some(77), true, 300)
    );
    let mut got = [0; 300];
    pair.b.shared.all().read(0, &mut got);
    assert_eq!(got, [6; 300]);
    pair.wait_a().sent();
}

fn a_read_fetches(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    pair.b.shared.all().write(500, b"to be read");
    let room = pair.a.room(10);
    let from = pair.b.shared.export().from(500);
    pair.a.qp.send.read(room, from, Flags::SIGNALED).unwrap();
    let (success, buf) = pair.wait_a().sent();
    assert_eq!(success.byte_len, 10);
    assert_eq!(bytes(&buf.unwrap()), b"to be read");
}

fn atomics_return_the_old_value(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let all = pair.b.shared.all();
    let word = all.word(64).unwrap();
    word.store(40, std::sync::atomic::Ordering::SeqCst);
    let at = pair.b.shared.export().from(64);
    let old = |pair: &mut Pair<Rc>| {
        let (_, buf) = pair.wait_a().sent();
        u64::from_ne_bytes(bytes(&buf.unwrap()).try_into().unwrap())
    };
    let room = pair.a.room(8);
    pair.a
        .qp
        .send
        .fetch_add(room, at, 2, Flags::SIGNALED)
        .unwrap();
    assert_eq!(old(&mut pair), 40);
    for (expected, new, before, after) in [(42, 7, 42, 7), (42, 9, 7, 7)] {
        let room = pair.a.room(8);
        pair.a
            .qp
            .send
            .compare_swap(room, at, expected, new, Flags::SIGNALED)
            .unwrap();
        assert_eq!(old(&mut pair), before);
        assert_eq!(word.load(std::sync::atomic::Ordering::SeqCst), after);
    }
}

/// Writes 8 bytes there and gives the status; whatever it is, nothing else may change.
fn try_write(lab: &Lab, change: impl Fn(RemoteRegion) -> RemoteRegion, size: usize) -> Status {
    let mut pair = lab.pair::<Rc>();
    let buf = pair.a.buf(&vec![0xaa; size]);
    let to = change(pair.b.shared.export());
    pair.a.qp.send.write(buf, to, Flags::SIGNALED).unwrap();
    let got = pair.wait_a();
    let mut all = vec![0; pair.b.shared.len()];
    pair.b.shared.all().read(0, &mut all);
    match got {
        Got::Sent(Ok(_), _) => Status::SUCCESS,
        other => {
            assert!(all.iter().all(|&byte| byte == 0), "it wrote all the same");
            other.failed()
        }
    }
}

fn a_wrong_key_is_refused_and_writes_nothing(lab: &Lab) {
    for wrong in [1, 0x100, 0x8000_0000] {
        let status = try_write(
            lab,
            |to| RemoteRegion {
                rkey: to.rkey ^ wrong,
                ..to
            },
            8,
        );
        assert_eq!(status, Status::REM_ACCESS_ERR);
    }
}

fn bounds_are_kept_to_the_byte(lab: &Lab) {
    assert_eq!(try_write(lab, |to| to.from(to.len - 8), 8), Status::SUCCESS);
    assert_eq!(
        try_write(lab, |to| to.from(to.len - 7), 8),
        Status::REM_ACCESS_ERR
    );
    assert_eq!(
        try_write(lab, |to| to.from(1_u64.wrapping_neg()), 8),
        Status::REM_ACCESS_ERR
    );
    assert_eq!(
        try_write(lab, |to| to.from(u64::MAX / 2), 8),
        Status::REM_ACCESS_ERR
    );
}

fn rights_of_the_region_are_kept(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let memory = lab.context.alloc(4096).unwrap();
    let readable = pair.b.pd.register_remote(memory, Access::READ).unwrap();
    let room = pair.a.room(8);
    pair.a
        .qp
        .send
        .read(room, readable.export(), Flags::SIGNALED)
        .unwrap();
    pair.wait_a().sent();
    let buf = pair.a.buf(&[1; 8]);
    pair.a
        .qp
        .send
        .write(buf, readable.export(), Flags::SIGNALED)
        .unwrap();
    assert_eq!(pair.wait_a().failed(), Status::REM_ACCESS_ERR);
}

fn rights_of_the_queue_pair_are_kept(lab: &Lab) {
    let how = ConnectAttr {
        access: Access::WRITE,
        ..lab.how()
    };
    let mut pair = lab.pair_with::<Rc>(&how, |builder| builder);
    let to = pair.b.shared.export();
    let buf = pair.a.buf(&[1; 8]);
    pair.a.qp.send.write(buf, to, Flags::SIGNALED).unwrap();
    pair.wait_a().sent();
    let room = pair.a.room(8);
    pair.a.qp.send.read(room, to, Flags::SIGNALED).unwrap();
    let status = pair.wait_a().failed();
    assert!(
        [Status::REM_ACCESS_ERR, Status::REM_INV_REQ_ERR].contains(&status),
        "{status}"
    );
}

fn another_domain_is_refused(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let other = lab.context.alloc_pd().unwrap();
    let memory = lab.context.alloc(4096).unwrap();
    let region = other.register_remote(memory, Access::ALL).unwrap();
    let buf = pair.a.buf(&[1; 8]);
    pair.a
        .qp
        .send
        .write(buf, region.export(), Flags::SIGNALED)
        .unwrap();
    assert_eq!(pair.wait_a().failed(), Status::REM_ACCESS_ERR);
    assert_eq!(
        region
            .all()
            .word(0)
            .unwrap()
            .load(std::sync::atomic::Ordering::SeqCst),
        0
    );
}

fn a_local_key_of_another_domain_is_refused(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(8);
    pair.b.qp.recv.post(room).unwrap();
    let other = lab.context.alloc_pd().unwrap();
    let memory = lab.context.alloc(4096).unwrap();
    let (slice, _) = other.register(memory).unwrap().into_slice().split_at(8);
    pair.a.qp.send.send(slice.into(), Flags::SIGNALED).unwrap();
    let expected = if lab.has(Feature::LocalStatus) {
        Status::LOC_PROT_ERR
    } else {
        Status::LOC_QP_OP_ERR
    };
    assert_eq!(pair.wait_a().failed(), expected);
    assert!(pair.b.poll().is_none());
}

fn a_message_too_long_fails_on_both_sides(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(10);
    pair.b.qp.recv.post(room).unwrap();
    let buf = pair.a.buf(&[1; 11]);
    pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
    let expected = if lab.has(Feature::LocalStatus) {
        (Status::LOC_LEN_ERR, Status::REM_INV_REQ_ERR)
    } else {
        (Status::LOC_QP_OP_ERR, Status::REM_OP_ERR)
    };
    assert_eq!(pair.wait_b().failed(), expected.0);
    assert_eq!(pair.wait_a().failed(), expected.1);
    assert_eq!(pair.a.qp.handle().state().unwrap(), IBV_QPS_ERR);
    assert_eq!(pair.b.qp.handle().state().unwrap(), IBV_QPS_ERR);
}

fn a_message_waits_for_a_request(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let buf = pair.a.buf(b"patience");
    pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
    let end = Instant::now() + Duration::from_millis(50);
    while Instant::now() < end {
        assert!(pair.a.poll().is_none() && pair.b.poll().is_none());
    }
    let room = pair.b.room(8);
    pair.b.qp.recv.post(room).unwrap();
    assert_eq!(bytes(&pair.wait_b().received().1), b"patience");
    pair.wait_a().sent();
}

fn errors_flush_what_is_behind(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.a.room(8);
    pair.a.qp.recv.post(room).unwrap();
    let wrong = RemoteRegion {
        rkey: 0xdead_be00,
        ..pair.b.shared.export()
    };
    let buf = pair.a.buf(&[1; 8]);
    pair.a.qp.send.write(buf, wrong, Flags::SILENT).unwrap();
    let buf = pair.a.buf(&[2; 8]);
    // Whether it is still taken or flushed, it completes.
    pair.a.qp.send.send(buf, Flags::SILENT).unwrap();
    let mut statuses = [0; 3].map(|_| pair.wait_a().failed().0);
    statuses.sort_unstable();
    let flush = Status::WR_FLUSH_ERR.0;
    assert_eq!(statuses, [flush, flush, Status::REM_ACCESS_ERR.0]);
    assert!(pair.a.poll().is_none());
}

fn moving_to_err_flushes_both_ends(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    for _ in 0..3 {
        let room = pair.a.room(8);
        pair.a.qp.recv.post(room).unwrap();
    }
    let buf = pair.a.buf(&[1; 8]);
    pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
    pair.a.qp.handle().fail().unwrap();
    for _ in 0..4 {
        assert_eq!(pair.wait_a().failed(), Status::WR_FLUSH_ERR);
    }
    if !lab.has(Feature::FlushAfterError) {
        return;
    }
    // What is posted afterwards is flushed too.
    let room = pair.a.room(8);
    pair.a.qp.recv.post(room).unwrap();
    assert_eq!(pair.wait_a().failed(), Status::WR_FLUSH_ERR);
}

fn order_is_kept(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let mut rooms: Vec<Piece> = (0..8).map(|_| pair.b.room(16)).collect();
    let mut bufs: Vec<Slice> = (0..8).map(|_| pair.a.bufs.pop().unwrap()).collect();
    let (mut sent, mut received) = (0_u32, 0_u32);
    while received < 5000 {
        while let Some(room) = rooms.pop() {
            pair.b.qp.recv.post(room).unwrap();
        }
        if sent < 5000
            && let Some(mut buf) = bufs.pop()
        {
            buf[..4].copy_from_slice(&sent.to_ne_bytes());
            let (head, tail) = buf.split_at(4 + sent % 13);
            drop(tail);
            pair.a.qp.send.send(head.into(), Flags::SIGNALED).unwrap();
            sent += 1;
        }
        while let Some(got) = pair.b.poll() {
            let (success, buf) = got.received();
            assert_eq!(success.byte_len, 4 + received % 13);
            assert_eq!(bytes(&buf)[..4], received.to_ne_bytes());
            received += 1;
            rooms.push(buf);
        }
        while let Some(got) = pair.a.poll() {
            got.sent();
            if bufs.len() < 4 && pair.a.bufs.is_empty() {
                let memory = lab.context.alloc(1 << 20).unwrap();
                pair.a.bufs = pair.a.pd.register(memory).unwrap().into_slices(64);
            }
            bufs.extend(pair.a.bufs.pop());
        }
    }
}

fn a_full_queue_refuses(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    for _ in 0..16 {
        pair.a.qp.send.send_inline(b"x", Flags::SIGNALED).unwrap();
    }
    assert_eq!(
        pair.a
            .qp
            .send
            .send_inline(b"x", Flags::SIGNALED)
            .unwrap_err()
            .0,
        libc::ENOMEM
    );
    let piece = Piece::from(pair.a.shared.slice(0, 1).unwrap());
    let refused = pair.a.qp.send.send(piece, Flags::SIGNALED).unwrap_err();
    assert_eq!(len(&refused.buf), 1);
}

fn a_deregistered_key_is_dead(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let memory = lab.context.alloc(4096).unwrap();
    let region = pair.b.pd.register_remote(memory, Access::ALL).unwrap();
    let export = region.export();
    let buf = pair.a.buf(&[1; 8]);
    pair.a.qp.send.write(buf, export, Flags::SIGNALED).unwrap();
    pair.wait_a().sent();
    drop(region);
    let buf = pair.a.buf(&[1; 8]);
    pair.a.qp.send.write(buf, export, Flags::SIGNALED).unwrap();
    assert_eq!(pair.wait_a().failed(), Status::REM_ACCESS_ERR);
}

fn states_are_walked_in_order(lab: &Lab) {
    let pd = lab.context.alloc_pd().unwrap();
    let cq = lab.context.create_cq(16).unwrap();
    let mut qp: Qp<Rc> = pd.qp(&cq).build().unwrap();
    let how = lab.how();
    let own = qp.endpoint(1, lab.address());
    assert!(qp.connect(&own, &own, &how).is_err());
    let memory = lab.context.alloc(4096).unwrap();
    let mut slices = pd.register(memory).unwrap().into_slices(8);
    let refused = qp.recv.post(slices.pop().unwrap()).unwrap_err();
    assert_eq!(refused.errno.0, libc::EINVAL);
    qp.init(&how).unwrap();
    assert_eq!(qp.handle().state().unwrap(), IBV_QPS_INIT);
    qp.recv.post(refused.buf).unwrap();
    let refused = qp.send.send(slices.pop().unwrap(), Flags::SIGNALED);
    assert_eq!(refused.unwrap_err().errno.0, libc::EINVAL);
    qp.connect(&own, &own, &how).unwrap();
    assert_eq!(qp.handle().state().unwrap(), IBV_QPS_RTS);
}

fn reset_makes_a_queue_pair_new(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    exchange(&mut pair, b"before");
    let room = pair.a.room(8);
    pair.a.qp.recv.post(room).unwrap();
    let back = pair.a.qp.reset().unwrap();
    assert_eq!(back.len(), 1);
    pair.b.qp.reset().unwrap();
    lab.join(&pair.a.qp, &pair.b.qp, &lab.how());
    exchange(&mut pair, b"after");
}

fn unreliable_connections_send_and_write(lab: &Lab) {
    let mut pair = lab.pair::<Uc>();
    let room = pair.b.room(8);
    pair.b.qp.recv.post(room).unwrap();
    let buf = pair.a.buf(b"uc");
    pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
    assert_eq!(&bytes(&pair.wait_b().received().1)[..2], b"uc");
    pair.wait_a().sent();
    let buf = pair.a.buf(&[3; 8]);
    let to = pair.b.shared.export();
    pair.a.qp.send.write(buf, to, Flags::SIGNALED).unwrap();
    pair.wait_a().sent();
    let all = pair.b.shared.all();
    wait(|| {
        (all.byte(7)
            .unwrap()
            .load(std::sync::atomic::Ordering::Acquire)
            == 3)
            .then_some(())
    });
}
