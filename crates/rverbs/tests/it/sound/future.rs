//! Futures that are dropped.

use core::future::Future as _;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

use rverbs::cq::Channel;
use rverbs::qp::{Flags, Qp, Rc};
use rverbs::stream::{Completions, Readiness};
use rverbs::wc::Wc;

use crate::conformance::lab::Lab;

use super::{on_each, still_works};

/// No reactor at all: looks whether the descriptor is readable now.
struct Look(Channel);

impl Readiness for Look {
    fn poll_readable(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut fd = libc::pollfd {
            fd: self.0.as_fd().as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        match unsafe { libc::poll(&raw mut fd, 1, 0) } {
            0 => Poll::Pending,
            1 => Poll::Ready(Ok(())),
            _ => Poll::Ready(Err(io::Error::last_os_error())),
        }
    }
}

struct Ends {
    completions: Completions<Look>,
    a: Qp<Rc, rverbs::mr::Slice>,
    b: Qp<Rc, rverbs::mr::Slice>,
    bufs: Vec<rverbs::mr::Slice>,
}

fn ends(lab: &Lab) -> Ends {
    let completions = Completions::with(&lab.context, 64, |channel| Ok(Look(channel))).unwrap();
    let pd = lab.context.alloc_pd().unwrap();
    let a: Qp<Rc, rverbs::mr::Slice> = pd.qp(completions.cq()).build().unwrap();
    let b: Qp<Rc, rverbs::mr::Slice> = pd.qp(completions.cq()).build().unwrap();
    lab.join(&a, &b, &lab.how());
    let bufs = pd
        .register(lab.context.alloc(1 << 16).unwrap())
        .unwrap()
        .into_slices(4096);
    Ends {
        completions,
        a,
        b,
        bufs,
    }
}

/// Polls once.
fn once(completions: &mut Completions<Look>, wcs: &mut [Wc]) -> Option<usize> {
    let next = pin!(completions.next(wcs));
    match next.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(found) => Some(found.unwrap().len()),
        Poll::Pending => None,
    }
}

#[test]
fn a_dropped_future_frees_nothing_that_is_in_flight() {
    on_each(|lab| {
        let mut ends = ends(lab);
        let mut wcs = [Wc::default(); 8];
        let room = ends.bufs.pop().unwrap();
        ends.b.recv.post(room).unwrap();
        // Futures that begin to wait for the message, and are dropped.
        for _ in 0..3 {
            assert_eq!(once(&mut ends.completions, &mut wcs), None);
        }
        assert_eq!(ends.b.recv.in_flight(), 1);
        let mut text = ends.bufs.pop().unwrap();
        text.fill(9);
        ends.a.send.send(text, Flags::SIGNALED).unwrap();
        let (mut sent, mut received) = (None, None);
        let end = Instant::now() + Duration::from_secs(20);
        while sent.is_none() || received.is_none() {
            assert!(Instant::now() < end, "{}: the events got lost", lab.kind);
            let count = once(&mut ends.completions, &mut wcs).unwrap_or(0);
            for wc in &wcs[..count] {
                if let Some(result) = ends.a.send.complete(wc) {
                    result.unwrap();
                    sent = ends.a.send.reclaim();
                } else if let Some((result, buf)) = ends.b.recv.complete(wc) {
                    result.unwrap();
                    received = Some(buf);
                }
            }
        }
        assert!(received.unwrap().iter().all(|byte| *byte == 9));
    });
}

#[test]
fn a_future_and_its_queues_are_dropped_while_a_peer_sends() {
    on_each(|lab| {
        let Ends {
            mut completions,
            mut a,
            mut b,
            mut bufs,
        } = ends(lab);
        let mut wcs = [Wc::default(); 8];
        for _ in 0..8 {
            b.recv.post(bufs.pop().unwrap()).unwrap();
        }
        assert_eq!(once(&mut completions, &mut wcs), None);
        drop(completions);
        let (send, recv, handle) = b.split();
        drop(send);
        drop(recv);
        // The messages still find the buffers, which live until the queue pair is gone.
        for _ in 0..7 {
            a.send.send(bufs.pop().unwrap(), Flags::SIGNALED).unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
        drop(handle);
        drop(a);
        still_works(lab);
    });
}

#[cfg(feature = "async")]
#[test]
fn a_reactor_wakes_who_awaits_a_message() {
    on_each(|lab| {
        let mut completions = Completions::new(&lab.context, 64).unwrap();
        let mut pair = lab.pair_with::<Rc>(&lab.how(), |builder| builder.recv_cq(completions.cq()));
        let (room, text) = (pair.b.room(64), pair.a.buf(b"awaited"));
        pair.b.qp.recv.post(room).unwrap();
        let sender = std::thread::spawn({
            let mut send = pair.a.qp.send;
            move || {
                // The other side waits by then, or will: it must notice either way.
                std::thread::sleep(Duration::from_millis(30));
                send.send(text, Flags::SIGNALED).unwrap();
                send
            }
        });
        let mut wcs = [Wc::default(); 4];
        let wcs = async_io::block_on(completions.next(&mut wcs)).unwrap();
        let (result, buf) = pair.b.qp.recv.complete(&wcs[0]).unwrap();
        assert_eq!(result.unwrap().byte_len, 7, "{}", lab.kind);
        assert_eq!(&crate::conformance::lab::bytes(&buf)[..7], b"awaited");
        drop(sender.join().unwrap());
    });
}
