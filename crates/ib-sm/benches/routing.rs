//! How long routing takes, and judging it.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use ib_sim::topo::Spec;
use ib_sm::routing::quality::{Scope, verify};
use ib_sm::routing::{Fabric, Options, engine};

fn fabric(spec: &str) -> Fabric {
    let spec: Spec = spec.parse().expect("a known shape");
    Fabric::of_sim(&spec.build().expect("a topology")).expect("a fabric")
}

fn route(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("route");
    group.sample_size(10);
    for (spec, name) in [
        ("fat-tree:1728", "auto"),
        ("fat-tree:11664", "auto"),
        ("torus:6x6x6,hosts=3", "auto"),
        ("dragonfly:p=4", "auto"),
        ("fat-tree:1728", "general"),
        ("dragonfly:p=2", "general"),
    ] {
        let fabric = fabric(spec);
        let engine = engine(name).expect("an engine");
        group.bench_function(BenchmarkId::new(name, spec), |bencher| {
            bencher.iter(|| engine.route(&fabric, &Options::default()).expect("tables"));
        });
    }
    group.finish();
}

fn judge(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("verify");
    group.sample_size(10);
    for spec in ["fat-tree:1728", "torus:6x6x6,hosts=3"] {
        let fabric = fabric(spec);
        let engine = engine("auto").expect("an engine");
        let tables = engine.route(&fabric, &Options::default()).expect("tables");
        group.bench_function(BenchmarkId::from_parameter(spec), |bencher| {
            bencher.iter(|| verify(&fabric, &tables, Scope::default()));
        });
    }
    group.finish();
}

criterion_group!(benches, route, judge);
criterion_main!(benches);
