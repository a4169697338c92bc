//! The tables of a report, whatever it is written in.

use super::Named;
use super::plot::name;
use super::quantity::{PerSecond, Rate, Time};
use crate::result::Measurement;
use crate::stats::Interval;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Whether all but the first column are figures.
    pub(super) figures: bool,
}

fn header<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn around(interval: Option<Interval>, word: impl Fn(f64) -> String) -> String {
    interval.map_or_else(
        || "–".into(),
        |of| format!("{} to {}", word(of.low), word(of.high)),
    )
}

/// The figures of latency and of bandwidth; none that would be empty.
pub(super) fn figures(files: &[Named<'_>]) -> Vec<Table> {
    let mut latency = Table {
        title: "Latency",
        header: header([
            "measurement",
            "device",
            "samples",
            "min",
            "median",
            "95% interval",
            "90%",
            "99%",
            "99.9%",
            "99.99%",
            "max",
            "mean",
            "deviation",
            "far outside",
        ]),
        rows: Vec::new(),
        figures: true,
    };
    let mut bandwidth = Table {
        title: "Bandwidth",
        header: header([
            "measurement",
            "device",
            "runs",
            "bandwidth",
            "95% interval of the mean",
            "slowest interval",
            "fastest interval",
            "messages",
        ]),
        rows: Vec::new(),
        figures: true,
    };
    for file in files {
        // A figure of software says so in its line.
        let device = &file.results.local.device;
        let mut device_name = device.name.clone().unwrap_or_else(|| "unknown".into());
        if device.software {
            device_name += ", software";
        }
        let device = device_name;
        for one in &file.results.measurements {
            let name = name(files, file, one, true);
            latency.rows.extend(latency_row(name.clone(), &device, one));
            if !one.is_latency() {
                bandwidth.rows.extend(bandwidth_row(name, &device, one));
            }
        }
    }
    let mut tables = vec![latency, bandwidth];
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn latency_row(name: String, device: &str, one: &Measurement) -> Option<Vec<String>> {
    let summary = one.latency?;
    let time = |value: f64| Time(value).to_string();
    let some = |value: Option<u64>| value.map_or_else(|| "–".into(), |value| time(value as f64));
    Some(vec![
        name,
        device.to_owned(),
        summary.count.to_string(),
        time(summary.min as f64),
        time(summary.p50 as f64),
        around(one.median_interval, time),
        some(summary.p90),
        some(summary.p99),
        some(summary.p99_9),
        some(summary.p99_99),
        time(summary.max as f64),
        time(summary.mean),
        summary.deviation.map_or_else(|| "–".into(), time),
        one.outliers.map_or_else(
            || "–".into(),
            |out| out.low.saturating_add(out.high).to_string(),
        ),
    ])
}

fn bandwidth_row(name: String, device: &str, one: &Measurement) -> Option<Vec<String>> {
    let bandwidth = one.bandwidth?;
    let rate = |value: f64| Rate(value).to_string();
    let (slow, fast) = bandwidth.slices.unzip();
    let some = |value: Option<f64>| value.map_or_else(|| "–".into(), rate);
    Some(vec![
        name,
        device.to_owned(),
        one.runs.len().to_string(),
        rate(bandwidth.bytes_per_second),
        around(bandwidth.mean_interval, rate),
        some(slow),
        some(fast),
        PerSecond(bandwidth.messages_per_second).to_string(),
    ])
}

/// The hosts and devices: what is known of any of them.
pub(super) fn environment(files: &[Named<'_>]) -> Table {
    let mut names = header(["of"]);
    let mut columns = Vec::new();
    for file in files {
        let sides = [
            ("local", Some(&file.results.local)),
            ("remote", file.results.remote.as_ref()),
        ];
        for (which, side) in sides {
            let Some(side) = side else { continue };
            names.push(match files {
                [_] => which.to_owned(),
                _ => format!("{}, {which}", file.name),
            });
            let mut facts = side.facts();
            facts.insert(0, ("started", file.results.started.clone()));
            facts.insert(1, ("rperf", file.results.rperf.clone()));
            columns.push(facts);
        }
    }
    let count = columns.first().map_or(0, Vec::len);
    let rows = (0..count).filter_map(|row| {
        let cells: Vec<&(&str, String)> = columns
            .iter()
            .filter_map(|column| column.get(row))
            .collect();
        let known = cells.iter().any(|cell| cell.1 != "unknown");
        let what = cells.first()?.0.to_owned();
        known.then(|| {
            [what]
                .into_iter()
                .chain(cells.into_iter().map(|cell| cell.1.clone()))
                .collect()
        })
    });
    Table {
        title: "Hosts and devices",
        header: names,
        rows: rows.collect(),
        figures: false,
    }
}

/// The warnings, each once, with the file where there are several.
pub(super) fn warnings(files: &[Named<'_>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for file in files {
        for warning in &file.results.warnings {
            let text = match files {
                [_] => warning.text.clone(),
                _ => format!("{}: {}", file.name, warning.text),
            };
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}
