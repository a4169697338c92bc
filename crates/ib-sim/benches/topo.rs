//! How fast topologies are generated, written and read, and SMPs answered.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ib_mad::header::AttributeId;
use ib_mad::smp::{DrPath, Smp};
use ib_mad::{MadPort, Packet};
use ib_sim::topo::file::{read, write};
use ib_sim::topo::{Spec, Topology};
use ib_sim::{Config, Fabric, SharedFabric};

fn build(spec: &str) -> Topology {
    match spec.parse::<Spec>().map(|spec| spec.build()) {
        Ok(Ok(topology)) => topology,
        _ => Topology::new(),
    }
}

fn topologies(c: &mut Criterion) {
    let mut group = c.benchmark_group("topo");
    for spec in ["fat-tree:648", "fat-tree:11664", "torus:12x12x12,hosts=3"] {
        group.bench_function(format!("generate {spec}"), |b| {
            b.iter(|| build(black_box(spec)));
        });
        let topology = build(spec);
        group.bench_function(format!("write {spec}"), |b| {
            b.iter(|| write(black_box(&topology)));
        });
        let text = write(&topology);
        group.bench_function(format!("read {spec}"), |b| {
            b.iter(|| read("bench", black_box(text.as_bytes())));
        });
        group.bench_function(format!("fabric of {spec}"), |b| {
            b.iter_batched(
                || topology.clone(),
                |t| Fabric::new(t, Config::default()),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

fn smps(c: &mut Criterion) {
    let mut group = c.benchmark_group("smp");
    group.throughput(Throughput::Elements(64));
    for (name, ports) in [("own node", &[][..]), ("6 hops", &[1, 19, 19, 2, 1, 1])] {
        for (attribute, id) in [
            ("NodeInfo", AttributeId::NODE_INFO),
            ("PortInfo", AttributeId::PORT_INFO),
        ] {
            let Ok(fabric) = Fabric::new(build("fat-tree:11664"), Config::default()) else {
                return;
            };
            let fabric = SharedFabric::new(fabric);
            let Ok(mut port) = fabric.attach("host-0") else {
                return;
            };
            let path = DrPath::from_ports(ports).unwrap_or_default();
            let packet = Packet::directed(&Smp::get(&path, id, 0), Duration::from_millis(1));
            group.bench_function(format!("{attribute}, {name}, 64 in flight"), |b| {
                b.iter(|| {
                    for _ in 0..64 {
                        let _ = port.send(black_box(&packet));
                    }
                    let mut answers = 0;
                    while let Ok(Some(_)) = port.receive(Duration::from_millis(1)) {
                        answers += 1;
                        if answers == 64 {
                            break;
                        }
                    }
                    assert_eq!(answers, 64, "every request is answered");
                });
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = topologies, smps
}
criterion_main!(benches);
