//! What it costs to make a request, to read an answer, and to keep a client's books.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ib_mad::client::{Client, ClientConfig};
use ib_mad::header::{AttributeId, Method};
use ib_mad::smp::{DrPath, PortInfo, Smp};
use ib_mad::{Packet, Time};

fn benches(criterion: &mut Criterion) {
    let bytes = include_bytes!("../tests/data/port_info_switch_1.mad");
    let path: DrPath = "0,1,2,3".parse().expect("a route");
    let mut group = criterion.benchmark_group("smp");
    group.throughput(Throughput::Elements(1));
    group.bench_function("PortInfo: state, width, speed, LID, MTU", |bencher| {
        bencher.iter(|| {
            let info: &PortInfo = Smp::from_bytes(black_box(bytes)).attribute();
            (
                info.state(),
                info.width(),
                info.speed(info, false),
                info.lid,
                info.mtu(),
            )
        });
    });
    group.bench_function("make a Get", |bencher| {
        bencher.iter(|| Smp::get(black_box(&path), AttributeId::PORT_INFO, 7).to_bytes());
    });
    group.bench_function("client: submit, send, answer, event", |bencher| {
        let mut client = Client::new(ClientConfig::default());
        let smp = Smp::get(&path, AttributeId::PORT_INFO, 7);
        let request = Packet::directed(&smp, Duration::from_secs(1));
        bencher.iter(|| {
            client.submit(1_u32, request);
            let mut packet = client
                .poll_transmit(Time::ZERO)
                .expect("the window is open");
            packet.header_mut().method = Method::GET_RESP;
            client.handle_mad(Time::ZERO, &packet);
            client.poll_event()
        });
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
