//! CSV, as RFC 4180 has it: a line for each run.

use core::fmt::Write as _;

use super::{Named, visible};
use crate::stats::Summary;

const HEADER: &str = "file,started,device,software,verb,metric,transport,size,qps,tx_depth,bidirectional,run,messages,bytes,elapsed_ns,bytes_per_second,messages_per_second,samples,min_ns,p50_ns,p90_ns,p99_ns,p99_9_ns,p99_99_ns,max_ns,mean_ns,deviation_ns\n";

/// A field, quoted where it must be.
fn field(text: &str) -> String {
    let text = visible(text);
    // What a spreadsheet takes for a formula is quoted with its own mark too.
    let text = match text.starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}"),
        false => text,
    };
    if text.contains(['"', ',']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

/// Every run of every file, all in plain units.
#[must_use]
pub fn csv(files: &[Named<'_>]) -> String {
    let mut out = HEADER.to_owned();
    for file in files {
        let device = &file.results.local.device;
        let head = format!(
            "{},{},{},{}",
            field(file.name),
            field(&file.results.started),
            field(device.name.as_deref().unwrap_or_default()),
            device.software
        );
        for one in &file.results.measurements {
            let spec = &one.spec;
            for (index, run) in one.runs.iter().enumerate() {
                let throughput = run.throughput;
                let _ = write!(
                    out,
                    "{head},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                    spec.verb.name(),
                    spec.metric.name(),
                    spec.transport.name(),
                    spec.size,
                    spec.qps,
                    spec.tx_depth,
                    spec.bidirectional,
                    index + 1,
                    throughput.messages,
                    throughput.bytes,
                    throughput.elapsed,
                    throughput.bytes_per_second(),
                    throughput.message_rate()
                );
                out.push_str(&times(run.latency.as_ref().and_then(Summary::of)));
            }
        }
    }
    out
}

fn times(summary: Option<Summary>) -> String {
    let Some(of) = summary else {
        return ",".repeat(10) + "\n";
    };
    let some = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    format!(
        ",{},{},{},{},{},{},{},{},{},{}\n",
        of.count,
        of.min,
        of.p50,
        some(of.p90),
        some(of.p99),
        some(of.p99_9),
        some(of.p99_99),
        of.max,
        of.mean,
        of.deviation
            .map_or_else(String::new, |value| value.to_string())
    )
}
