//! How long a walk takes without a wire: the simulator is ours and costs most of it.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ib_sim::topo::Spec;
use ib_sim::{Config as SimConfig, Fabric, SharedFabric};
use ib_sm::core::discovery::Config;
use ib_sm::run::driver;

fn walk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("discovery on ib-sim");
    group.sample_size(10);
    for hosts in [108, 648] {
        let spec: Spec = format!("fat-tree:{hosts}").parse().expect("a known tree");
        let topology = spec.build().expect("a tree");
        let fabric = Fabric::new(topology, SimConfig::default()).expect("a fabric");
        let fabric = SharedFabric::new(fabric);
        group.bench_function(BenchmarkId::new("fat tree", hosts), |bencher| {
            bencher.iter(|| {
                let mut port = fabric.attach_first().expect("a port");
                driver::discover(&mut port, Config::default(), |_| {}).expect("a walk")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, walk);
criterion_main!(benches);
