//! What a test measured, for people.

use std::fmt::{self, Write as _};

use rdma_cli::{DIM, Table, Text, WARN, paint, printable};

use crate::result::{Measurement, Results};
use crate::stats::Summary;

/// Nanoseconds as microseconds.
fn micros(nanoseconds: f64) -> String {
    format!("{:.3}", nanoseconds / 1000.0)
}

fn latency(one: &Measurement, seen: &Summary, by: &str) -> Vec<String> {
    let quantile =
        |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |it| micros(it as f64));
    vec![
        one.spec.size.to_string(),
        seen.count.to_string(),
        micros(seen.min as f64),
        micros(seen.p50 as f64),
        quantile(seen.p90),
        quantile(seen.p99),
        quantile(seen.p99_9),
        quantile(seen.p99_99),
        micros(seen.max as f64),
        micros(seen.mean),
        seen.deviation.map_or_else(|| "-".to_owned(), micros),
        by.to_owned(),
    ]
}

pub(in crate::cli) fn measure(results: &Results, out: &mut Text<'_>) -> fmt::Result {
    let Some(first) = results.measurements.first() else {
        return writeln!(out, "the other side measures; its figures are there");
    };
    let device = &results.local.device;
    let by = device.provider.as_deref().unwrap_or("verbs");
    let mtu = device.mtu.unwrap_or(0);
    let test = (
        first.spec.verb.name(),
        first.spec.metric.name(),
        first.spec.transport.name(),
    );
    writeln!(
        out,
        "{} {}, {}, by {}, MTU {mtu}",
        test.0,
        test.1,
        test.2,
        printable(&device.label())
    )?;
    if first.is_latency() {
        let mut table = Table::new([
            "BYTES",
            "COUNT",
            "MIN µs",
            "MEDIAN",
            "90 %",
            "99 %",
            "99.9 %",
            "99.99 %",
            "MAX",
            "MEAN",
            "DEVIATION",
            "BY",
        ]);
        for column in 0..11 {
            table = table.right(column);
        }
        for one in &results.measurements {
            if let Some(seen) = &one.latency {
                table.row(latency(one, seen, by));
            }
        }
        out.table(&table)?;
        for one in &results.measurements {
            if let Some(interval) = &one.median_interval {
                writeln!(
                    out,
                    "{}",
                    paint(
                        DIM,
                        format_args!(
                            "{} B: the median is between {} and {} µs, with a confidence of {} %",
                            one.spec.size,
                            micros(interval.low),
                            micros(interval.high),
                            interval.confidence * 100.0
                        )
                    )
                )?;
            }
        }
    } else {
        let mut table = Table::new(["BYTES", "COUNT", "GB/s", "Gb/s", "MiB/s", "Mmsg/s", "BY"]);
        for column in 0..6 {
            table = table.right(column);
        }
        for one in &results.measurements {
            if let Some(seen) = &one.bandwidth {
                let rate = seen.bytes_per_second;
                let count: u64 = one.runs.iter().map(|run| run.throughput.messages).sum();
                table.row([
                    one.spec.size.to_string(),
                    count.to_string(),
                    format!("{:.3}", rate / 1e9),
                    format!("{:.3}", seen.gigabits()),
                    format!("{:.2}", rate / 1_048_576.0),
                    format!("{:.4}", seen.messages_per_second / 1e6),
                    by.to_owned(),
                ]);
            }
        }
        out.table(&table)?;
    }
    for warning in &results.warnings {
        writeln!(
            out,
            "{}",
            paint(WARN, format_args!("note: {}", printable(&warning.text)))
        )?;
    }
    Ok(())
}
