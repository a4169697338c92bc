//! One request at a time, on a queue pair connected to itself: by the safe API and as a C program does it.
//!
//! `overhead HOW ROUNDS [DEVICE]`, where HOW is `write` (buffers moved in and out), `batchwise` (the same
//! with the calls for many at a time), `repeat` (one request again and again), `c` (C's calls for
//! that, the request made once), `fill` (C's calls, the request filled each time), or `message` (a send
//! and its receive).
//! Prints the nanoseconds that a round took; `cargo xtask bench verbs` counts its instructions.
#![expect(clippy::print_stdout, reason = "an example talks")]
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
    let how_to = args.next().unwrap_or_else(|| "write".into());
    let rounds: u32 = args.next().map_or(10_000, |n| n.parse().unwrap());
    let device = args.next();
    let device = device.map_or_else(rverbs::Device::shm, |name| rverbs::Device::by_name(&name));
    let context = device.unwrap().open().unwrap();
    let pd = context.alloc_pd().unwrap();
    let cq = context.create_cq(64).unwrap();
    let mut qp: Qp<Rc> = pd.qp(&cq).inline(64).build().unwrap();
    let table = context.gids(1).unwrap();
    let choice = rverbs::gid::choose(&table, &rverbs::gid::PeerGid::default());
    let choice = choice.filter(|choice| choice.entry.kind != rverbs::gid::GidKind::Ib);
    let address = Address {
        lid: context.query_port(1).unwrap().lid,
        gid: choice.as_ref().map(|choice| choice.entry.gid),
    };
    let own = qp.endpoint(1, address);
    let how = ConnectAttr {
        sgid_index: u8::try_from(choice.map_or(0, |choice| choice.entry.index)).unwrap(),
        ..ConnectAttr::default()
    };
    qp.init(&how).unwrap();
    qp.connect(&own, &own, &how).unwrap();
    let target = pd
        .register_remote(context.alloc(4096).unwrap(), rverbs::mr::Access::ALL)
        .unwrap();
    let to = target.export();
    let mut slices = pd
        .register(context.alloc(4096).unwrap())
        .unwrap()
        .into_slices(8);
    let (slice, to_receive) = (slices.swap_remove(0), slices.swap_remove(0));
    let begin = std::time::Instant::now();
    match how_to.as_str() {
        "write" => by_the_api(&mut qp, &cq, slice, to, rounds),
        "repeat" => repeated(&mut qp, &cq, slice, to, rounds),
        "message" => messages(&mut qp, &cq, slice, to_receive, rounds),
        "batchwise" => batchwise(&mut qp, &cq, slice, to, rounds),
        "c" => as_c_does(&qp, &cq, &slice, to, rounds),
        "fill" => as_c_fills(&qp, &cq, [&slice, &to_receive], to, rounds),
        other => panic!("{other} is no way to do it"),
    }
    let nanoseconds = begin.elapsed().as_secs_f64() * 1e9;
    println!("{:.1}", nanoseconds / f64::from(rounds));
}

#[inline(never)]
fn by_the_api(
    qp: &mut Qp<Rc>,
    cq: &rverbs::cq::Cq,
    slice: Slice,
    to: rverbs::mr::RemoteRegion,
    rounds: u32,
) {
    let mut slice = slice;
    let mut wc = Wc::default();
    for _ in 0..rounds {
        qp.send.write(slice, to, Flags::SIGNALED).unwrap();
        while !cq.poll_one(&mut wc).unwrap() {}
        let (result, back) = qp.send.complete_one(&wc).unwrap();
        result.unwrap();
        slice = back.unwrap();
    }
}

#[inline(never)]
fn batchwise(
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
fn messages(qp: &mut Qp<Rc>, cq: &rverbs::cq::Cq, slice: Slice, mut room: Slice, rounds: u32) {
    let mut send = qp.send.repeat_send(slice).unwrap();
    let mut wc = Wc::default();
    for _ in 0..rounds {
        qp.recv.post(room).unwrap();
        send.post(Flags::SIGNALED).unwrap();
        let mut back = None;
        while back.is_none() || send.in_flight() > 0 {
            if !cq.poll_one(&mut wc).unwrap() {
                continue;
            }
            if let Some(result) = send.complete(&wc) {
                result.unwrap();
            } else {
                let (result, buf) = qp.recv.complete(&wc).unwrap();
                result.unwrap();
                back = Some(buf);
            }
        }
        room = back.unwrap();
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
    let raw = qp.handle().as_raw().as_ptr();
    for round in 0..rounds {
        wr.wr_id = round.into();
        wr.send_flags = IBV_SEND_SIGNALED;
        // SAFETY: the queue pair and its memory live until the end of the program.
        let code = unsafe { ibv_post_send(raw, &raw mut wr, &raw mut bad) };
        assert_eq!(code, 0);
        // SAFETY: the queue lives until the end of the program.
        while unsafe { ibv_poll_cq(cq.as_raw().as_ptr(), 1, &raw mut wc) } == 0 {}
        assert_eq!((wc.status, wc.wr_id), (0, round.into()));
    }
}

#[inline(never)]
fn as_c_fills(
    qp: &Qp<Rc>,
    cq: &rverbs::cq::Cq,
    slices: [&Slice; 2],
    to: rverbs::mr::RemoteRegion,
    rounds: u32,
) {
    use rverbs::mr::Buf as _;
    // A buffer is known by its number, which is the request's too.
    let sges: [ibv_sge; 2] = slices.map(|slice| slice.entries()[0]);
    let mut sge = ibv_sge::default();
    let mut wr = ibv_send_wr::default();
    let mut wc = ibv_wc::default();
    let mut bad = std::ptr::null_mut();
    let raw = qp.handle().as_raw().as_ptr();
    for round in 0..rounds {
        let which = round as usize & 1;
        sge.addr = sges[which].addr;
        sge.length = sges[which].length;
        sge.lkey = sges[which].lkey;
        wr.wr_id = round.into();
        wr.next = std::ptr::null_mut();
        wr.sg_list = &raw mut sge;
        wr.num_sge = 1;
        wr.opcode = IBV_WR_RDMA_WRITE;
        wr.send_flags = IBV_SEND_SIGNALED;
        wr.wr.rdma = ibv_send_wr_rdma {
            remote_addr: to.addr,
            rkey: to.rkey,
        };
        // SAFETY: the queue pair and its memory live until the end of the program.
        let code = unsafe { ibv_post_send(raw, &raw mut wr, &raw mut bad) };
        assert_eq!(code, 0);
        // SAFETY: the queue lives until the end of the program.
        while unsafe { ibv_poll_cq(cq.as_raw().as_ptr(), 1, &raw mut wc) } == 0 {}
        assert_eq!((wc.status, wc.wr_id), (0, round.into()));
    }
}
