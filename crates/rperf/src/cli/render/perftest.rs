//! perftest's tables, with its definitions (`perftest_parameters.c`).

use std::fmt::Write as _;

use crate::run::{Figures, Outcome, Plan};
use crate::spec::Metric;

const LINE: &str =
    "---------------------------------------------------------------------------------------\n";
const LATENCY: &str = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    \
    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n";
const LATENCY_BY_TIME: &str = " #bytes        #iterations       t_avg[usec]    tps average\n";
const BANDWIDTH: &str =
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n";

/// The table of a test.
pub(in crate::cli) fn table(plan: &Plan, outcome: &Outcome) -> String {
    let mut text = LINE.to_owned();
    let by_time = plan.times();
    let latency = plan.metric == Metric::Latency;
    text.push_str(match (latency, by_time) {
        (true, Some(_)) => LATENCY_BY_TIME,
        (true, None) => LATENCY,
        _ => BANDWIDTH,
    });
    for Figures { size, run, peak } in &outcome.figures {
        let through = run.throughput;
        match (&run.perftest, &run.latency, by_time) {
            (Some(seen), ..) => {
                // The last request has no next one that it could be timed by.
                let count = through.messages + 1;
                let deviation = seen.t_stdev.unwrap_or(0.0);
                let _ = writeln!(
                    text,
                    " {size:<7} {count}          {:<7.2}        {:<7.2}      {:<7.2}  \t       {:<7.2}     \t{deviation:<7.2}\t\t{:<7.2} \t\t{:<7.2}",
                    seen.t_min,
                    seen.t_max,
                    seen.t_typical,
                    seen.t_avg,
                    seen.percentile_99,
                    seen.percentile_99_9,
                );
            }
            (None, Some(seen), Some((length, _))) => {
                let average = seen.mean().unwrap_or(0.0) / 1000.0;
                let rate = seen.count() as f64 / length.as_secs_f64();
                let count = seen.count();
                let _ = writeln!(
                    text,
                    " {size:<7}       {count:<7}        {average:<7.2}        {rate:<7.2}"
                );
            }
            _ => {
                let peak = peak.unwrap_or(0.0) / 1_048_576.0;
                let (count, average) = (through.messages, through.mebibytes());
                let rate = through.message_rate() / 1e6;
                let _ = writeln!(
                    text,
                    " {size:<7}    {count:<10}       {peak:<7.2}            {average:<7.2}\t\t   {rate:<7.6}"
                );
            }
        }
    }
    text.push_str(LINE);
    text
}
