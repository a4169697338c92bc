//! The same request posted and polled, by the safe API and as a C program does it, for a count of
//! instructions: `valgrind --tool=callgrind overhead safe 10000`, with `repeat`, and with `c`, and with other counts.
#![expect(unsafe_code, reason = "one of the two is C's way")]
#![expect(clippy::unwrap_used, reason = "an example may panic")]

use rverbs::mr::Slice;
use rverbs::qp::{Address, ConnectAttr, Flags, Qp, Rc};
use rverbs::wc::Wc;
use rverbs_sys::inline::{ibv_poll_cq, ibv_post_send};
use rverbs_sys::{
    IBV_SEND_SIGNALED, IBV_WR_RDMA_WRITE, ibv_send_wr, ibv_send_wr_rdma, ibv_sge, ibv_wc,
};

fn main() {
    let mut args = std::env::args().skip(1);
    let how_to = args.next().unwrap_or_else(|| "safe".into());
    let rounds: u32 = args.next().map_or(10_000, |n| n.parse().unwrap());
    let context = rverbs::Device::shm().unwrap().open().unwrap();
    let pd = context.alloc_pd().unwrap();
    let cq = context.create_cq(64).unwrap();
    let mut qp: Qp<Rc> = pd.qp(&cq).inline(64).build().unwrap();
    let own = qp.endpoint(1, Address { lid: 1, gid: None });
    let how = ConnectAttr::default();
    qp.init(&how).unwrap();
    qp.connect(&own, &own, &how).unwrap();
    let target = pd
        .register_remote(context.alloc(4096).unwrap(), rverbs::mr::Access::ALL)
        .unwrap();
    let to = target.export();
    let slice = pd
        .register(context.alloc(4096).unwrap())
        .unwrap()
        .into_slices(8)
        .swap_remove(0);
    match how_to.as_str() {
        "safe" => by_the_api(&mut qp, &cq, slice, to, rounds),
        "repeat" => repeated(&mut qp, &cq, slice, to, rounds),
        "message" => messages(&mut qp, &cq, slice, rounds),
        _ => as_c_does(&qp, &cq, &slice, to, rounds),
    }
}

#[inline(never)]
fn by_the_api(
    qp: &mut Qp<Rc>,
    cq: &rverbs::cq::Cq,
    slice: Slice,
    to: rverbs::mr::RemoteRegion,
    rounds: u32,
) {
    let mut slice = Some(slice);
    let mut wcs = [Wc::default(); 1];
    for _ in 0..rounds {
        let buf = slice.take().unwrap();
        qp.send.write(buf, to, Flags::SIGNALED).unwrap();
        loop {
            if let [wc] = cq.poll(&mut wcs).unwrap() {
                qp.send.complete(wc).unwrap().unwrap();
                break;
            }
        }
        slice = qp.send.reclaim();
    }
}

#[inline(never)]
fn repeated(
    qp: &mut Qp<Rc>,
    cq: &rverbs::cq::Cq,
    slice: Slice,
    to: rverbs::mr::RemoteRegion,
    rounds: u32,
) {
    let mut write = qp.send.repeat_write(slice, to).unwrap();
    let mut wc = Wc::default();
    for _ in 0..rounds {
        write.post(Flags::SIGNALED).unwrap();
        while !cq.poll_one(&mut wc).unwrap() {}
        write.complete(&wc).unwrap().unwrap();
    }
}

#[inline(never)]
fn messages(qp: &mut Qp<Rc>, cq: &rverbs::cq::Cq, slice: Slice, rounds: u32) {
    let mut slice = Some(slice);
    let mut wc = Wc::default();
    for _ in 0..rounds {
        qp.recv.post(slice.take().unwrap()).unwrap();
        qp.send.send_inline(&[7; 8], Flags::SIGNALED).unwrap();
        while slice.is_none() || qp.send.in_flight() > 0 {
            if cq.poll_one(&mut wc).unwrap()
                && qp.send.complete(&wc).is_none()
                && let Some((_, buf)) = qp.recv.complete(&wc)
            {
                slice = Some(buf);
            }
        }
    }
}

#[inline(never)]
fn as_c_does(
    qp: &Qp<Rc>,
    cq: &rverbs::cq::Cq,
    slice: &Slice,
    to: rverbs::mr::RemoteRegion,
    rounds: u32,
) {
    use rverbs::mr::Buf as _;
    let mut sge: ibv_sge = slice.entries()[0];
    let mut wr = ibv_send_wr {
        sg_list: &raw mut sge,
        num_sge: 1,
        opcode: IBV_WR_RDMA_WRITE,
        send_flags: IBV_SEND_SIGNALED,
        ..ibv_send_wr::default()
    };
    wr.wr.rdma = ibv_send_wr_rdma {
        remote_addr: to.addr,
        rkey: to.rkey,
    };
    let mut wc = ibv_wc::default();
    let mut bad = std::ptr::null_mut();
    for round in 0..rounds {
        wr.wr_id = round.into();
        let raw = qp.handle().as_raw().as_ptr();
        // SAFETY: the queue pair and its memory live until the end of the program.
        let code = unsafe { ibv_post_send(raw, &raw mut wr, &raw mut bad) };
        assert_eq!(code, 0);
        // SAFETY: the queue lives until the end of the program.
        while unsafe { ibv_poll_cq(cq.as_raw().as_ptr(), 1, &raw mut wc) } == 0 {}
        assert_eq!((wc.status, wc.wr_id), (0, round.into()));
    }
}
