//! The cases about datagrams, shared queues, events, batches and scopes.

use std::os::fd::AsFd as _;
use std::time::Duration;

use rverbs::event::About;
use rverbs::mr::{Piece, RemoteRegion, Slice};
use rverbs::qp::{Flags, Qp, Rc, Ud};
use rverbs::wc::{Status, Wc};
use rverbs_sys::*;

use super::lab::{Feature, Lab, Pair, bytes, wait};

struct Datagrams {
    cq: rverbs::cq::Cq,
    qp: Qp<Ud>,
    bufs: Vec<Slice>,
    ah: rverbs::ah::Ah,
}

fn datagrams(lab: &Lab, qkey: u32) -> Datagrams {
    let pd = lab.context.alloc_pd().unwrap();
    let cq = lab.context.create_cq(64).unwrap();
    let qp: Qp<Ud> = pd.qp(&cq).build().unwrap();
    qp.activate(1, qkey).unwrap();
    let memory = lab.context.alloc(64 << 10).unwrap();
    let bufs = pd.register(memory).unwrap().into_slices(4136);
    let ah = pd
        .create_ah(&lab.address(), 1, lab.how().sgid_index)
        .unwrap();
    Datagrams { cq, qp, bufs, ah }
}

pub(super) fn datagrams_arrive_with_their_header(lab: &Lab) {
    let (mut a, mut b) = (datagrams(lab, 0x1111_1111), datagrams(lab, 0x1111_1111));
    for size in [1_u32, 100, 1024] {
        b.qp.recv.post(b.bufs.pop().unwrap()).unwrap();
        let (mut buf, _) = a.bufs.pop().unwrap().split_at(size);
        buf.fill(9);
        let to = b.qp.qpn();
        a.qp.send
            .send_to(buf, &a.ah, to, 0x1111_1111, Flags::SIGNALED)
            .unwrap();
        let mut wcs = [Wc::default(); 1];
        let (result, buf) = wait(|| match b.cq.poll(&mut wcs).unwrap() {
            [wc] => b.qp.recv.complete(wc),
            _ => None,
        });
        let success = result.unwrap();
        assert_eq!((success.byte_len, success.src_qp), (size + 40, a.qp.qpn()));
        assert!(buf[40..40 + size as usize].iter().all(|&byte| byte == 9));
        wait(|| match a.cq.poll(&mut wcs).unwrap() {
            [wc] => a.qp.send.complete(wc),
            _ => None,
        })
        .unwrap();
    }
}

pub(super) fn a_datagram_with_another_key_is_lost(lab: &Lab) {
    let (mut a, mut b) = (datagrams(lab, 1), datagrams(lab, 2));
    b.qp.recv.post(b.bufs.pop().unwrap()).unwrap();
    let to = b.qp.qpn();
    let mut wcs = [Wc::default(); 1];
    for key in [1, 2] {
        let (mut buf, _) = a.bufs.pop().unwrap().split_at(1);
        buf[0] = u8::try_from(key).unwrap();
        a.qp.send
            .send_to(buf, &a.ah, to, key, Flags::SIGNALED)
            .unwrap();
        wait(|| match a.cq.poll(&mut wcs).unwrap() {
            [wc] => a.qp.send.complete(wc),
            _ => None,
        })
        .unwrap();
    }
    let (result, buf) = wait(|| match b.cq.poll(&mut wcs).unwrap() {
        [wc] => b.qp.recv.complete(wc),
        _ => None,
    });
    result.unwrap();
    assert_eq!(buf[40], 2);
}

pub(super) fn a_shared_queue_serves_several(lab: &Lab) {
    let pd = lab.context.alloc_pd().unwrap();
    let cq = lab.context.create_cq(64).unwrap();
    let (srq, mut end) = pd.create_srq::<Slice>(16, 1).unwrap();
    let how = lab.how();
    let memory = lab.context.alloc(4096).unwrap();
    for slice in pd
        .register(memory)
        .unwrap()
        .into_slices(64)
        .into_iter()
        .take(6)
    {
        end.post(slice).unwrap();
    }
    let mut clients = Vec::new();
    let mut servers = Vec::new();
    for at in 0..3 {
        let server: Qp<Rc> = pd.qp(&cq).srq(&srq).build().unwrap();
        let own = lab.context.create_cq(16).unwrap();
        let mut client: Qp<Rc> = pd.qp(&own).inline(8).build().unwrap();
        lab.join(&client, &server, &how);
        client.send.send_inline(&[at; 4], Flags::SIGNALED).unwrap();
        client.send.send_inline(&[at; 4], Flags::SIGNALED).unwrap();
        clients.push(client);
        servers.push(server);
    }
    let mut wcs = [Wc::default(); 1];
    let mut counts = [0; 3];
    for _ in 0..6 {
        let (qpn, (result, buf)) = wait(|| match cq.poll(&mut wcs).unwrap() {
            [wc] => Some((wc.qp_num(), end.complete(wc).unwrap())),
            _ => None,
        });
        result.unwrap();
        let from = usize::from(buf[0]);
        assert_eq!(qpn, servers[from].qpn());
        counts[from] += 1;
    }
    assert_eq!(counts, [2; 3]);
}

pub(super) fn a_shared_queue_warns(lab: &Lab) {
    let pd = lab.context.alloc_pd().unwrap();
    let cq = lab.context.create_cq(64).unwrap();
    let (srq, mut end) = pd.create_srq::<Slice>(16, 1).unwrap();
    let memory = lab.context.alloc(4096).unwrap();
    for slice in pd
        .register(memory)
        .unwrap()
        .into_slices(64)
        .into_iter()
        .take(2)
    {
        end.post(slice).unwrap();
    }
    srq.set_limit(2).unwrap();
    let mut a: Qp<Rc> = pd.qp(&cq).inline(8).build().unwrap();
    let b: Qp<Rc> = pd.qp(&cq).srq(&srq).build().unwrap();
    lab.join(&a, &b, &lab.how());
    a.send.send_inline(b"x", Flags::SIGNALED).unwrap();
    let mut wcs = [Wc::default(); 1];
    let taken = wait(|| match cq.poll(&mut wcs).unwrap() {
        [wc] => end.complete(wc),
        _ => None,
    });
    taken.0.unwrap();
    let event = lab.context.wait_event().unwrap();
    assert_eq!(
        (event.kind, event.about),
        (IBV_EVENT_SRQ_LIMIT_REACHED, About::Srq)
    );
}

fn readable(fd: &impl std::os::fd::AsFd, timeout: Duration) -> bool {
    use std::os::fd::AsRawFd as _;
    let mut poll = libc::pollfd {
        fd: fd.as_fd().as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let timeout = i32::try_from(timeout.as_millis()).unwrap();
    unsafe { libc::poll(&raw mut poll, 1, timeout) == 1 }
}

/// A queue pair whose completions make events, and one that sends to it.
fn watched(
    lab: &Lab,
) -> (
    Qp<Rc>,
    Qp<Rc>,
    rverbs::cq::Cq,
    rverbs::cq::Channel,
    Vec<Slice>,
) {
    let pd = lab.context.alloc_pd().unwrap();
    let channel = lab.context.create_channel().unwrap();
    let cq = lab.context.create_cq_with(64, &channel).unwrap();
    let own = lab.context.create_cq(64).unwrap();
    let a: Qp<Rc> = pd.qp(&own).inline(8).build().unwrap();
    let b: Qp<Rc> = pd.qp(&cq).build().unwrap();
    lab.join(&a, &b, &lab.how());
    let memory = lab.context.alloc(4096).unwrap();
    let slices = pd.register(memory).unwrap().into_slices(64);
    (a, b, cq, channel, slices)
}

pub(super) fn events_come_when_asked_for(lab: &Lab) {
    let (mut a, mut b, cq, channel, mut slices) = watched(lab);
    let mut wcs = [Wc::default(); 4];
    for round in 0..3 {
        b.recv.post(slices.pop().unwrap()).unwrap();
        cq.notify(false).unwrap();
        assert!(cq.poll(&mut wcs).unwrap().is_empty());
        assert!(
            !readable(&channel.as_fd(), Duration::from_millis(5)),
            "{round}"
        );
        a.send.send_inline(b"x", Flags::SIGNALED).unwrap();
        assert!(
            readable(&channel.as_fd(), Duration::from_secs(5)),
            "{round}"
        );
        assert!(channel.wait(&cq).unwrap());
        wait(|| match cq.poll(&mut wcs).unwrap() {
            [wc] => b.recv.complete(wc),
            _ => None,
        })
        .0
        .unwrap();
    }
    // Not asked for, none comes.
    b.recv.post(slices.pop().unwrap()).unwrap();
    a.send.send_inline(b"x", Flags::SIGNALED).unwrap();
    assert!(!readable(&channel.as_fd(), Duration::from_millis(30)));
}

pub(super) fn solicited_events_come_for_those_only(lab: &Lab) {
    let (mut a, mut b, cq, channel, mut slices) = watched(lab);
    for _ in 0..2 {
        b.recv.post(slices.pop().unwrap()).unwrap();
    }
    cq.notify(true).unwrap();
    a.send.send_inline(b"x", Flags::SIGNALED).unwrap();
    assert!(!readable(&channel.as_fd(), Duration::from_millis(30)));
    a.send
        .send_inline(b"y", Flags::SIGNALED.and(Flags::SOLICITED))
        .unwrap();
    assert!(readable(&channel.as_fd(), Duration::from_secs(5)));
    assert!(channel.wait(&cq).unwrap());
}

pub(super) fn a_failed_access_makes_an_event(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let buf = pair.a.buf(&[1; 8]);
    let wrong = RemoteRegion {
        rkey: 0,
        ..pair.b.shared.export()
    };
    pair.a.qp.send.write(buf, wrong, Flags::SIGNALED).unwrap();
    assert_eq!(pair.wait_a().failed(), Status::REM_ACCESS_ERR);
    if !lab.has(Feature::AccessEvent) {
        return;
    }
    let qpn = pair.b.qp.qpn();
    wait(|| {
        pair.b.poll();
        if !readable(&lab.context, Duration::from_millis(10)) {
            return None;
        }
        let event = lab.context.wait_event().unwrap();
        (event.kind == IBV_EVENT_QP_ACCESS_ERR && event.about == About::Qp(qpn)).then_some(())
    });
}

pub(super) fn objects_go_in_any_order(lab: &Lab) {
    for order in 0..6 {
        let mut pair = lab.pair::<Rc>();
        let room = pair.b.room(8);
        pair.b.qp.recv.post(room).unwrap();
        let buf = pair.a.buf(b"x");
        pair.a.qp.send.send(buf, Flags::SIGNALED).unwrap();
        let Pair { a, b } = pair;
        let (send, recv, handle) = a.qp.split();
        match order {
            0 => drop((a.pd, a.cq, send, recv, handle, a.shared, a.bufs)),
            1 => drop((handle, recv, send, a.cq, a.pd, a.bufs, a.shared)),
            2 => drop((a.shared, a.bufs, a.pd, a.cq, handle, recv, send)),
            3 => drop((b, recv, a.cq, a.pd, send, handle)),
            4 => std::mem::forget(send),
            _ => {
                std::mem::forget(b.qp);
                drop((recv, send, handle));
            }
        }
    }
}

pub(super) fn a_batch_is_posted_whole(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    for _ in 0..4 {
        let room = pair.b.room(8);
        pair.b.qp.recv.post(room).unwrap();
    }
    let bufs: Vec<Piece> = (0..4).map(|at| pair.a.buf(&[at; 3])).collect();
    let dropped = pair.a.buf(b"not sent");
    let mut batch = pair.a.qp.send.batch();
    batch.send(dropped, Flags::SIGNALED).unwrap();
    drop(batch);
    let mut batch = pair.a.qp.send.batch();
    for (at, buf) in bufs.into_iter().enumerate() {
        let flags = if at == 3 {
            Flags::SIGNALED
        } else {
            Flags::SILENT
        };
        batch.send(buf, flags).unwrap();
    }
    batch.commit().unwrap();
    for at in 0..4 {
        assert_eq!(bytes(&pair.wait_b().received().1)[..3], [at; 3]);
    }
    pair.wait_a().sent();
}

pub(super) fn a_scope_borrows(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let room = pair.b.room(8);
    pair.b.qp.recv.post(room).unwrap();
    let mut memory = *b"borrowed";
    let second = Duration::from_secs(1);
    let ticket = pair.a.qp.scope(second, |scope| {
        let mr = scope.register(&mut memory).unwrap();
        scope.send(&mr, 0..8).unwrap()
    });
    // The other side polls only now, so the message may be waited for in vain.
    drop(ticket);
    assert_eq!(bytes(&pair.wait_b().received().1), b"borrowed");
    assert_eq!(&memory, b"borrowed");
}

pub(super) fn a_scope_ends_without_a_message(lab: &Lab) {
    let mut pair = lab.pair::<Rc>();
    let mut memory = [0; 64];
    let timeout = Duration::from_millis(20);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pair.a.qp.scope(timeout, |scope| {
            let mr = scope.register(&mut memory).unwrap();
            scope.recv(&mr, 0..64).unwrap();
            std::panic::resume_unwind(Box::new("in the scope"));
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(pair.a.qp.handle().state().unwrap(), IBV_QPS_ERR);
    assert_eq!(memory, [0; 64]);
}
