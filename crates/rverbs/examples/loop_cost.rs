//! What posting and polling costs in one process, without a wait: for a profiler.
#![expect(clippy::print_stdout, reason = "an example talks")]
#![expect(clippy::unwrap_used, reason = "an example may panic")]

use std::time::Instant;

use rverbs::qp::{Address, ConnectAttr, Flags, Qp, Rc};
use rverbs::wc::Wc;

fn main() {
    let rounds: u32 = std::env::args()
        .nth(1)
        .map_or(100_000, |n| n.parse().unwrap());
    let context = rverbs::Device::shm().unwrap().open().unwrap();
    let pd = context.alloc_pd().unwrap();
    let (cq_a, cq_b) = (
        context.create_cq(64).unwrap(),
        context.create_cq(64).unwrap(),
    );
    let mut a: Qp<Rc> = pd.qp(&cq_a).inline(64).build().unwrap();
    let mut b: Qp<Rc> = pd.qp(&cq_b).build().unwrap();
    let here = Address { lid: 1, gid: None };
    let (one, two) = (a.endpoint(1, here), b.endpoint(2, here));
    let how = ConnectAttr::default();
    a.init(&how).unwrap();
    b.init(&how).unwrap();
    a.connect(&one, &two, &how).unwrap();
    b.connect(&two, &one, &how).unwrap();
    let mut bufs = pd
        .register(context.alloc(4096).unwrap())
        .unwrap()
        .into_slices(64);
    for _ in 0..16 {
        b.recv.post(bufs.pop().unwrap()).unwrap();
    }
    let mut wcs = [Wc::default(); 1];
    let start = Instant::now();
    for round in 0..rounds {
        let flags = if round % 32 == 31 {
            Flags::SIGNALED
        } else {
            Flags::SILENT
        };
        a.send.send_inline(&[1; 8], flags).unwrap();
        loop {
            if let [wc] = cq_b.poll(&mut wcs).unwrap() {
                let (result, buf) = b.recv.complete(wc).unwrap();
                result.unwrap();
                b.recv.post(buf).unwrap();
                break;
            }
        }
        if round % 32 == 31 {
            while a.send.in_flight() > 0 {
                for wc in cq_b.poll(&mut wcs).unwrap() {
                    b.recv.complete(wc).unwrap().0.unwrap();
                }
                for wc in cq_a.poll(&mut wcs).unwrap() {
                    a.send.complete(wc).unwrap().unwrap();
                }
            }
            while a.send.reclaim().is_some() {}
        }
    }
    let each = start.elapsed().as_secs_f64() * 1e9 / f64::from(rounds);
    println!("{each:.1} ns for a send, a receive and its reposting");
}
