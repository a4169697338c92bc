//! What a request costs on a queue pair connected to itself, and what a packet of RoCEv2 does.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rverbs::Device;
use rverbs::cq::Cq;
use rverbs::mr::{Access, RemoteRegion, Slice};
use rverbs::provider::roce::proto::packet::icrc::{self, Checker, Flow};
use rverbs::provider::roce::proto::packet::{Packet, crc};
use rverbs::qp::{Address, ConnectAttr, Flags, Qp, Rc};
use rverbs::wc::Wc;

/// A queue pair of shared memory that is its own peer, and memory for it.
struct Own {
    qp: Qp<Rc>,
    cq: Cq,
    slice: Slice,
    to: RemoteRegion,
    // Writes go there.
    _target: rverbs::mr::RemoteMr,
}

fn own(size: u32) -> Result<Own, rverbs::Error> {
    let context = Device::shm()?.open()?;
    let pd = context.alloc_pd()?;
    let cq = context.create_cq(64)?;
    let qp: Qp<Rc> = pd.qp(&cq).inline(64).build()?;
    let address = Address {
        lid: context.query_port(1)?.lid,
        gid: None,
    };
    let own = qp.endpoint(1, address);
    let how = ConnectAttr::default();
    qp.init(&how)?;
    qp.connect(&own, &own, &how)?;
    let target = pd.register_remote(context.alloc(1 << 16)?, Access::ALL)?;
    let (slice, _) = pd
        .register(context.alloc(1 << 16)?)?
        .into_slice()
        .split_at(size);
    Ok(Own {
        qp,
        cq,
        slice,
        to: target.export(),
        _target: target,
    })
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("shm");
    for size in [8, 4096, 1 << 16] {
        group.throughput(Throughput::Bytes(size.into()));
        let Own {
            mut qp,
            cq,
            slice,
            to,
            _target,
        } = own(size).expect("shared memory is everywhere");
        let mut slice = Some(slice);
        let mut wc = Wc::default();
        group.bench_function(
            format!("write {size} bytes, and its completion"),
            |bencher| {
                bencher.iter(|| {
                    let buf = slice.take().expect("it came back");
                    qp.send
                        .write(buf, to, Flags::SIGNALED)
                        .expect("there is room");
                    while !cq.poll_one(&mut wc).expect("the queue is there") {}
                    let (result, back) = qp.send.complete_one(&wc).expect("it is ours");
                    result.expect("it succeeds");
                    slice = back;
                });
            },
        );
    }
    group.finish();
}

type Way = fn(u32, &[u8]) -> u32;

fn packets(criterion: &mut Criterion) {
    let flow = Flow {
        src: ([10, 0, 0, 1], 4791).into(),
        dst: ([10, 0, 0, 2], 4791).into(),
    };
    // RC SEND Middle of 4096 bytes.
    let mut packet = vec![0x5a; 12 + 4096];
    packet[..12].copy_from_slice(&[1, 0x40, 0xff, 0xff, 0, 0, 0, 7, 0, 0, 0, 9]);
    let sum = icrc::compute(&flow, 3, &packet);
    packet.extend_from_slice(&sum.to_le_bytes());
    let checker = Checker::new();
    let mut group = criterion.benchmark_group("roce");
    group.throughput(Throughput::Bytes(packet.len() as u64));
    group.bench_function("parse and check a packet", |bencher| {
        bencher.iter(|| {
            let parsed = Packet::parse(black_box(&packet)).expect("it is a packet");
            (parsed.payload.len(), checker.check(&flow, &packet))
        });
    });
    let ways: [(&str, Way); 2] = [
        ("sum by instructions", crc::by_instructions),
        ("sum by tables", crc::by_tables),
    ];
    for (name, way) in ways {
        group.bench_function(name, |bencher| {
            bencher.iter(|| way(0, black_box(&packet)));
        });
    }
    group.finish();
}

criterion_group!(all, requests, packets);
criterion_main!(all);
