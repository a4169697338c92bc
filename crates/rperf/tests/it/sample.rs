//! Results of measurements that never were.

use core::num::{NonZeroU32, NonZeroU64};

use rperf::result::{Device, Host, IdleState, Measurement, Results, Run, Side};
use rperf::spec::{Amount, Metric, Spec, Transport, Verb};
use rperf::stats::{Throughput, Timeline};

use crate::shape::{Chance, Shape};

fn positive(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).expect("positive")
}

/// `send lat, RC`.
pub(crate) fn latency(size: u32) -> Spec {
    Spec {
        verb: Verb::Send,
        metric: Metric::Latency,
        transport: Transport::Rc,
        size,
        amount: Amount::Iterations(positive(1000)),
        qps: NonZeroU32::MIN,
        tx_depth: NonZeroU32::MIN,
        bidirectional: false,
    }
}

/// `write bw, RC`.
pub(crate) fn bandwidth(size: u32) -> Spec {
    Spec {
        verb: Verb::Write,
        metric: Metric::Bandwidth,
        tx_depth: NonZeroU32::new(128).expect("positive"),
        ..latency(size)
    }
}

/// A run with these times in ns, one after the other, at least 100 ms long.
pub(crate) fn run(times: &[u64], size: u32) -> Run {
    let messages = u64::try_from(times.len()).expect("a length");
    let bytes = messages * u64::from(size);
    let elapsed = times.iter().sum::<u64>().max(100_000_000);
    let mut run = Run::of(Throughput {
        messages,
        bytes,
        elapsed,
    });
    let mut line = Timeline::new(positive(elapsed / 40));
    for (i, time) in (0..).zip(times) {
        line.record(i * elapsed / messages, 1, u64::from(size), Some(*time));
    }
    run.latency = Some(times.iter().copied().collect());
    run.timeline = Some(line);
    run
}

/// A run of one second at about `rate` bytes per second, with a dip.
pub(crate) fn stream(seed: u64, rate: f64, size: u32) -> Run {
    let mut chance = Chance(seed);
    let mut line = Timeline::new(positive(25_000_000));
    let (mut messages, mut bytes) = (0, 0);
    for slice in 0..40 {
        let dip = if (17..20).contains(&slice) { 0.6 } else { 1.0 };
        let some = rate / 40.0 * dip * (0.98 + 0.04 * chance.part()) / f64::from(size);
        let (some, now) = (some as u64, some as u64 * u64::from(size));
        line.record(slice * 25_000_000, some, now, None);
        (messages, bytes) = (messages + some, bytes + now);
    }
    let mut run = Run::of(Throughput {
        messages,
        bytes,
        elapsed: 1_000_000_000,
    });
    run.timeline = Some(line);
    run
}

/// A host and a device with everything known.
pub(crate) fn side(name: &str, core: u32) -> Side {
    Side {
        host: Host {
            name: Some(name.into()),
            boot: Some("0a1b".into()),
            kernel: Some("6.1.0".into()),
            cpu: Some("Example 9000".into()),
            cpus: Some(8),
            cores: vec![core],
            numa_node: Some(0),
            governor: Some("performance".into()),
            idle_states: vec![IdleState {
                name: "C1".into(),
                exit_microseconds: 2,
            }],
            load_hundredths: Some(12),
        },
        device: Device {
            name: Some("roce0".into()),
            provider: Some("soft-roce".into()),
            software: true,
            port: Some(1),
            link_layer: Some("Ethernet".into()),
            mtu: Some(1024),
            link_megabits: Some(100_000),
            gid_index: Some(1),
            ..Device::default()
        },
    }
}

/// Results of these, on hosts of which nothing is known.
pub(crate) fn results(measurements: Vec<Measurement>) -> Results {
    Results {
        rperf: "0.1.0".into(),
        started: "2026-12-01T12:00:00Z".into(),
        local: Side::default(),
        remote: Some(Side::default()),
        measurements,
        warnings: Vec::new(),
    }
}

/// A whole sweep, `by` times as slow as another; names hold what HTML must escape.
pub(crate) fn sweep(by: f64) -> Results {
    let mut measurements = Vec::new();
    for (seed, size) in (0..).zip([2, 1024, 65536]) {
        let least = by * (1400.0 + f64::from(size) / 12.0);
        let shape = Shape::Pareto {
            least,
            exponent: 9.0,
        };
        let runs = (0..4).map(|i| run(&shape.times(100 * seed + i, 1200), size));
        measurements.push(Measurement::of(latency(size), runs.collect()));
    }
    for (seed, size) in (0..).zip([64, 1024, 16384, 65536, 1 << 20]) {
        let rate = 11e9 / by / (1.0 + 9000.0 / f64::from(size));
        let runs = (0..4).map(|i| stream(100 * seed + i, rate * (1.0 + 0.002 * i as f64), size));
        measurements.push(Measurement::of(bandwidth(size), runs.collect()));
    }
    let mut results = results(measurements);
    results.local = side("left <&\"'> host", 2);
    results.remote = Some(side("right", 3));
    results.warned()
}

/// The files that the recorded commands read, as [`sweep`] makes them.
#[test]
fn the_files_are_as_kept() {
    for (name, by) in [("before.json", 1.0), ("after.json", 1.06)] {
        let envelope = serde_json::json!({"schema": rperf::result::SCHEMA, "data": sweep(by)});
        crate::kept(name, &(envelope.to_string() + "\n"));
    }
}
