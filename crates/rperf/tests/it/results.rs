//! Results files: written, read, and refused.

use rperf::result::{Concern, IdleState, Measurement, ReadError, Results};
use rperf::stats::WarmUp;

use crate::sample;

/// A measurement of latency with these samples, in ns, in one run.
fn latency(samples: impl IntoIterator<Item = u64>) -> Measurement {
    let samples: Vec<u64> = samples.into_iter().collect();
    Measurement::of(sample::latency(2), vec![sample::run(&samples, 2)])
}

fn results() -> Results {
    sample::results(vec![latency((0..1000).map(|i| 1500 + i % 90))])
}

fn file(results: &Results) -> String {
    let envelope = serde_json::json!({"schema": rperf::result::SCHEMA, "data": results});
    serde_json::to_string_pretty(&envelope).expect("JSON")
}

#[test]
fn a_file_gives_back_what_was_measured() {
    let results = results();
    assert_eq!(Results::read(file(&results).as_bytes()).unwrap(), results);
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let good = file(&results());
    let wrong = |from: &str, to: &str| match Results::read(good.replacen(from, to, 1).as_bytes()) {
        Err(ReadError::Field {
            field,
            offset,
            line,
            why,
        }) => (field, offset, line, why),
        other => panic!("{other:?}"),
    };
    let (field, offset, line, why) = wrong("\"size\": 2", "\"size\": -2");
    assert_eq!(field, "data.measurements[0].spec.size");
    // The schema comes last in this file: keys are sorted.
    let before = &good[..good.find("\"size\": 2").unwrap()];
    assert_eq!(line, before.matches('\n').count() + 1);
    assert!(
        offset.abs_diff(before.len()) < 12,
        "{offset} for {}",
        before.len()
    );
    assert!(why.contains("-2"), "{why}");

    let (field, ..) = wrong("\"digits\": 3", "\"digits\": 7");
    assert!(
        field.starts_with("data.measurements[0].runs[0].latency"),
        "{field}"
    );
    let (field, ..) = wrong("\"started\"", "\"startd\"");
    assert_eq!(field, "data");

    for (bytes, says) in [
        (&b"BM\x9c"[..], "the file"),
        (b"{}", "missing field `schema`"),
        (b"", "EOF"),
        (
            br#"{"schema":"rperf/result/2"}"#,
            "the schema is rperf/result/2, not rperf/result/1",
        ),
        (br#"{"schema":"rperf/result/1"}"#, "missing field `data`"),
    ] {
        let error = Results::read(bytes).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(Results::read(format!("{good}x").as_bytes()).is_err());
}

#[test]
fn every_cut_of_a_file_is_refused() {
    let good = file(&results());
    for end in (0..good.len()).step_by(7) {
        Results::read(&good.as_bytes()[..end]).unwrap_err();
    }
}

/// What is warned of, after a change to results that warn of nothing.
fn concerns(change: impl FnOnce(&mut Results)) -> Vec<Concern> {
    let mut results = results();
    change(&mut results);
    let warned = results.warned();
    warned
        .warnings
        .into_iter()
        .map(|warning| warning.concern)
        .collect()
}

#[test]
fn what_may_spoil_a_figure_is_said() {
    assert_eq!(concerns(|_| ()), []);
    assert_eq!(
        concerns(|r| r.local.device.software = true),
        [Concern::Software]
    );
    assert_eq!(
        concerns(|r| r.local.host.governor = Some("powersave".into())),
        [Concern::Governor]
    );
    assert_eq!(
        concerns(|r| r.local.host.governor = Some("performance".into())),
        []
    );
    let state = |exit_microseconds| IdleState {
        name: "C6".into(),
        exit_microseconds,
    };
    assert_eq!(
        concerns(|r| r.local.host.idle_states = vec![state(2), state(133)]),
        [Concern::IdleState]
    );
    assert_eq!(concerns(|r| r.local.host.idle_states = vec![state(2)]), []);
    assert_eq!(
        concerns(|r| {
            r.local.host.numa_node = Some(1);
            r.local.device.numa_node = Some(0);
        }),
        [Concern::NumaNode]
    );
    assert_eq!(
        concerns(|r| {
            r.local.host.load_hundredths = Some(350);
            r.local.host.cpus = Some(2);
        }),
        [Concern::Load]
    );
    assert_eq!(
        concerns(|r| r.measurements[0].runs[0].throughput.elapsed = 5_000_000),
        [Concern::Short]
    );
    assert_eq!(
        concerns(|r| r.measurements[0] = latency([5; 999])),
        [Concern::FewSamples]
    );
    assert_eq!(
        concerns(|r| {
            r.measurements[0].runs[0].warm_up = Some(WarmUp {
                samples: 0,
                settled: false,
            });
        }),
        [Concern::Unsettled]
    );
    assert_eq!(
        concerns(|r| r.measurements[0] = latency((0..1000).chain([1 << 40]))),
        [Concern::Overflow]
    );
    assert_eq!(
        concerns(|r| {
            let run = |time| latency([time; 1000]).runs.remove(0);
            let runs = [1000, 1010, 1005, 1007, 2000].map(run).to_vec();
            r.measurements[0] = Measurement::of(r.measurements[0].spec.clone(), runs);
        }),
        [Concern::OddRun]
    );
}

#[test]
fn a_shared_core_is_said_only_where_it_is_one() {
    let shared = |here: &[u32], there: &[u32], boot: [Option<&str>; 2]| {
        concerns(|r| {
            let remote = r.remote.as_mut().unwrap();
            (r.local.host.cores, remote.host.cores) = (here.to_vec(), there.to_vec());
            (r.local.host.boot, remote.host.boot) =
                (boot[0].map(str::to_owned), boot[1].map(str::to_owned));
        })
    };
    let same = [Some("a"), Some("a")];
    assert_eq!(shared(&[3], &[3], same), [Concern::SharedCore]);
    assert_eq!(shared(&[3], &[4], same), []);
    assert_eq!(shared(&[0, 1], &[0, 1], same), []);
    assert_eq!(shared(&[3], &[3], [Some("a"), Some("b")]), []);
    assert_eq!(shared(&[3], &[3], [None, None]), []);
}
