//! What it costs to record one time.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rperf::stats::Histogram;
use std::hint::black_box;

fn record(c: &mut Criterion) {
    // About 1.5 µs, with a tail: what a measurement of latency gives.
    let times: Vec<u64> = (0_u64..4096)
        .map(|i| 1500 + i.wrapping_mul(2_654_435_761) % 200 + if i % 97 == 0 { 9000 } else { 0 })
        .collect();
    let mut histogram = Histogram::default();
    let mut group = c.benchmark_group("histogram");
    group.throughput(Throughput::Elements(4096));
    group.bench_function("record", |b| {
        b.iter(|| {
            for time in &times {
                histogram.record(black_box(*time));
            }
        });
    });
    group.bench_function("distribution", |b| b.iter(|| histogram.distribution()));
    group.finish();
}

criterion_group!(benches, record);
criterion_main!(benches);
