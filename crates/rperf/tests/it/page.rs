//! Reports: whatever results hold, a page is a page.

use core::num::NonZeroU64;

use rperf::report::{Named, csv, html, markdown};
use rperf::result::{Concern, Measurement, Results, Run, Warning};
use rperf::stats::{Distribution, Throughput, Timeline};

use crate::sample;

/// A page of these alone, after some checks that hold for every page.
fn page(results: &Results) -> String {
    let name = "a <b>&\"c\"";
    let files = [Named { name, results }];
    let text = html("<title>", &files);
    well_formed(&text);
    for wrong in [
        "NaN", "inf", "<b>", "<script", "http:", "https:", "src=", "url(",
    ] {
        let at = text.find(wrong).map(|at| {
            text[at.saturating_sub(200)..]
                .chars()
                .take(300)
                .collect::<String>()
        });
        assert_eq!(at, None, "{wrong}");
    }
    assert!(!markdown(name, &files).contains("NaN") && !csv(&files).contains("NaN"));
    text
}

/// Every element that is opened is closed, in order.
fn well_formed(text: &str) {
    let mut open = Vec::new();
    for tag in text.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag
            .split([' ', '/'])
            .find(|part| !part.is_empty())
            .expect("a name");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') && !matches!(name, "!doctype" | "meta") {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_page_has_its_charts() {
    let text = page(&sample::sweep(1.0));
    for title in [
        "Latency by percentile",
        "Latency distribution",
        "Latency by size",
        "Bandwidth by size",
        "Bandwidth over time: write bw RC 1 MiB",
        "link: 100 Gb/s",
    ] {
        assert!(text.contains(title), "{title}");
    }
    assert_eq!(text.matches("<svg").count(), 4 + 6);
    // A figure of software says so in its line.
    for row in text
        .lines()
        .filter(|line| line.starts_with("<tr><th scope=\"row\">send lat"))
    {
        assert!(row.contains("software"), "{row}");
    }
}

#[test]
fn what_comes_from_outside_stays_text() {
    let evil = "\"><script>alert('1')</script>&amp;\u{1b}[31m\n|`x`| =1";
    let mut results = sample::sweep(1.0);
    results.started = evil.into();
    results.rperf = evil.into();
    results.warnings = vec![Warning {
        concern: Concern::Load,
        text: evil.into(),
    }];
    for side in [Some(&mut results.local), results.remote.as_mut()] {
        let side = side.expect("both");
        side.host.name = Some(evil.into());
        side.host.cpu = Some(evil.into());
        side.device.name = Some(evil.into());
        side.device.firmware = Some(evil.into());
    }
    let text = page(&results);
    assert!(text.contains("&lt;script&gt;") && !text.contains('\u{1b}'));

    let files = [Named {
        name: "=cmd,\"x\"",
        results: &results,
    }];
    let text = markdown("t", &files);
    assert!(!text.contains("<script") && !text.contains('\u{1b}'));
    let table = text.lines().filter(|line| line.starts_with("| send lat"));
    for row in table {
        assert_eq!(row.replace("\\|", "").matches('|').count(), 15, "{row}");
    }
    let text = csv(&files);
    assert_eq!(text.lines().count(), 1 + 4 * 8);
    assert!(
        text.lines()
            .skip(1)
            .all(|line| line.starts_with("\"'=cmd,\"\"x\"\"\","))
    );
}

#[test]
fn results_at_their_limits_are_drawn() {
    let mut line = Timeline::new(NonZeroU64::MIN);
    line.record(u64::MAX, u64::MAX, u64::MAX, Some(u64::MAX));
    let of = |times: &[u64]| -> Distribution { times.iter().copied().collect() };
    let runs = [
        Run::of(Throughput::default()),
        Run::of(Throughput {
            messages: u64::MAX,
            bytes: u64::MAX,
            elapsed: 1,
        }),
        Run {
            latency: Some(Distribution::default()),
            ..Run::of(Throughput::default())
        },
        Run {
            latency: Some(of(&[0])),
            ..Run::of(Throughput::default())
        },
        Run {
            latency: Some(of(&[0, u64::MAX])),
            ..Run::of(Throughput::default())
        },
        Run {
            timeline: Some(line),
            ..Run::of(Throughput::default())
        },
    ];
    for spec in [
        sample::latency(0),
        sample::bandwidth(0),
        sample::bandwidth(u32::MAX),
    ] {
        page(&sample::results(vec![Measurement::of(
            spec.clone(),
            Vec::new(),
        )]));
        for run in &runs {
            let one = Measurement::of(spec.clone(), vec![run.clone()]);
            page(&sample::results(vec![one.clone(), one]));
        }
        page(&sample::results(vec![Measurement::of(spec, runs.to_vec())]));
    }
    page(&sample::results(Vec::new()));
}
