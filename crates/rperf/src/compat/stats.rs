//! perftest's own definitions of its figures, with what is odd about them.
//!
//! From `print_report_lat` and `print_report_bw` of `src/perftest_parameters.c`, the same in 6.06
//! and 6.29. The exact figures are in [`crate::stats`].

use serde::{Deserialize, Serialize};

/// `LAT_MEASURE_TAIL`: the two longest samples are in no figure but `t_max`, which is the second
/// longest, and high percentiles of few samples.
const TAIL: usize = 2;

/// What `ib_*_lat` prints, in µs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Latency {
    /// The least.
    pub t_min: f64,
    /// The **second** longest.
    pub t_max: f64,
    /// The median of all but the two longest.
    pub t_typical: f64,
    /// The mean of all but the two longest.
    pub t_avg: f64,
    /// The deviation, of distances from the mean that were cut to whole µs before they were
    /// squared: 0 where no sample is a whole µs off, and not there (perftest prints `-nan` on
    /// x86) where squares of 46 ms and more, which do not fit an `int`, make the sum negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_stdev: Option<f64>,
    /// The sample at index ⌈0.99 n⌉ from 0, where n is two less than there are.
    pub percentile_99: f64,
    /// The sample at index ⌈0.999 n⌉: below 1002 samples the same as `t_max`.
    #[serde(rename = "percentile_99.9")]
    pub percentile_99_9: f64,
}

impl Latency {
    /// Of the times between posts (`tposted[i + 1] - tposted[i]`), which it sorts.
    ///
    /// `per_microsecond`: ticks of the clock, 1000 where the times are ns. `halves`: whether a time
    /// is of there and back (send and write) and its half is the latency.
    ///
    /// Nothing below three samples: perftest runs at least five iterations, which are four.
    #[must_use]
    #[doc(alias = "print_report_lat")]
    pub fn of(times: &mut [u64], per_microsecond: f64, halves: bool) -> Option<Self> {
        times.sort_unstable();
        let quotient = per_microsecond * if halves { 2.0 } else { 1.0 };
        let n = times.len().checked_sub(TAIL).filter(|n| *n > 0)?;
        let kept = times.get(..n)?;
        let count = n as f64;
        let mean = kept.iter().map(|time| *time as f64 / quotient).sum::<f64>() / count;
        let squares: f64 = kept
            .iter()
            .map(|time| {
                let off = f64::from(int(mean - *time as f64 / quotient));
                f64::from(int(off * off))
            })
            .sum();
        // The middle of an even number is halved in whole ticks.
        let median = match n % 2 {
            0 => (times.get(n / 2)? + times.get(n / 2 - 1)?) / 2,
            _ => *times.get(n / 2)?,
        };
        let at = |index: usize| times.get(index).map(|time| *time as f64 / quotient);
        let percentile = |part: f64| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 0 to n"
            )]
            at((count * part).ceil() as usize)
        };
        Some(Self {
            t_min: at(0)?,
            t_max: at(n)?,
            t_typical: median as f64 / quotient,
            t_avg: mean,
            t_stdev: (squares >= 0.0).then(|| (squares / count).sqrt()),
            percentile_99: percentile(0.99)?,
            percentile_99_9: percentile(0.999)?,
        })
    }
}

/// How x86 makes an `int` of a `double`: towards zero, and the least where it does not fit.
fn int(value: f64) -> i32 {
    let cut = value.trunc();
    if cut < f64::from(i32::MIN) || cut > f64::from(i32::MAX) || cut.is_nan() {
        return i32::MIN;
    }
    #[expect(clippy::cast_possible_truncation, reason = "just seen to fit")]
    {
        cut as i32
    }
}

/// What `ib_*_bw` prints. Bandwidth is in MiB/s, which it calls MB/sec.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bandwidth {
    /// The best over all spans from a post to a completion; 0 with `--noPeak`.
    pub bw_peak: f64,
    /// From the first post to the last completion.
    pub bw_average: f64,
    /// 10⁶ messages a second.
    pub msg_rate: f64,
}

/// When what was posted and completed, in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Times<'a> {
    /// `tposted`: when each message was posted.
    pub posted: &'a [u64],
    /// `tcompleted`: when each message's completion was seen, where it has one; only those at
    /// each `moderation` and the last are read.
    pub completed: &'a [u64],
    /// Ticks of the clock in a second.
    pub per_second: f64,
}

impl Bandwidth {
    /// Of one direction. `moderation` is `--cq-mod`, `list` is `--post_list`, both at least 1.
    ///
    /// `peak` costs the square of the number of messages, as in perftest, which therefore leaves
    /// it out above 20 000. Nothing where there are no times, or not as many of each.
    #[must_use]
    #[doc(alias = "print_report_bw")]
    pub fn of(
        times: Times<'_>,
        size: u64,
        moderation: usize,
        list: usize,
        peak: bool,
    ) -> Option<Self> {
        const MEBIBYTE: u64 = 0x10_0000;
        let Times {
            posted,
            completed,
            per_second,
        } = times;
        let n = posted.len();
        if n != completed.len() {
            return None;
        }
        let (first, last) = (*posted.first()?, *completed.last()?);
        let span = last.wrapping_sub(first) as f64;
        let mut best = completed.first()?.wrapping_sub(first);
        if peak {
            for (i, from) in posted.iter().enumerate().step_by(list.max(1)) {
                let moderation = moderation.max(1);
                let ends = ((i + 1).next_multiple_of(moderation) - 1..n).step_by(moderation);
                for j in ends.chain([n - 1]) {
                    let messages = u64::try_from(j - i + 1).unwrap_or(u64::MAX);
                    // In whole ticks, and of what wraps where a completion was never written.
                    best = best.min(completed.get(j)?.wrapping_sub(*from) / messages);
                }
            }
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "as perftest does: whole ticks a second"
        )]
        let ticks = per_second as u64;
        let up = size.wrapping_mul(ticks) as f64;
        let down = best.wrapping_mul(MEBIBYTE) as f64;
        let messages = n as f64;
        Some(Self {
            bw_peak: if peak { up / down } else { 0.0 },
            bw_average: size as f64 * messages * per_second / (span * MEBIBYTE as f64),
            msg_rate: messages * per_second / (span * 1e6),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Bandwidth, Latency, Times};

    #[test]
    fn the_two_longest_are_left_out() {
        // Worked by hand: eight samples, six kept.
        let mut times = [2000, 4000, 6000, 8000, 10_000, 12_000, 50_000, 900_000];
        let said = Latency::of(&mut times, 1000.0, true).expect("enough");
        assert_eq!(said.t_min, 1.0);
        assert_eq!(said.t_max, 25.0);
        assert_eq!(said.t_typical, 3.5);
        assert_eq!(said.t_avg, 3.5);
        // Distances 2.5, 1.5 and 0.5 become 2, 1 and 0: (4 + 1 + 0 + 0 + 1 + 4) / 6.
        assert_eq!(said.t_stdev, Some((10.0_f64 / 6.0).sqrt()));
        assert_eq!(said.percentile_99, 25.0);
        assert_eq!(said.percentile_99_9, 25.0);
        assert_eq!(Latency::of(&mut [1, 2], 1.0, false), None);
    }

    #[test]
    fn a_deviation_below_a_microsecond_is_nothing() {
        let mut times: Vec<u64> = (0..1000).map(|i| 1000 + i % 900).collect();
        let said = Latency::of(&mut times, 1000.0, false).expect("enough");
        assert_eq!(said.t_stdev, Some(0.0));
    }

    #[test]
    fn a_square_that_does_not_fit_is_no_number() {
        let mut times = vec![1000; 100];
        times.extend([100_000_000_000; 3]);
        let said = Latency::of(&mut times, 1000.0, false).expect("enough");
        assert_eq!(said.t_stdev, None);
    }

    #[test]
    fn the_thousandth_is_the_maximum() {
        let mut times: Vec<u64> = (1..=999).map(|i| i * 1000).collect();
        let said = Latency::of(&mut times, 1000.0, false).expect("enough");
        assert_eq!((said.t_max, said.percentile_99_9), (998.0, 998.0));
        // ceil(0.99 · 997) from 0.
        assert_eq!(said.percentile_99, 989.0);
    }

    #[test]
    fn bandwidth_by_hand() {
        // Four messages of 1 MiB, a completion for each two; the second pair is quicker.
        let times = Times {
            posted: &[0, 10, 100, 110],
            completed: &[0, 100, 0, 140],
            per_second: 1000.0,
        };
        let said = Bandwidth::of(times, 1 << 20, 2, 1, true).expect("times");
        assert_eq!(said.bw_average, 4.0 * 1000.0 / 140.0);
        assert_eq!(said.msg_rate, 4.0 * 1000.0 / 140e6);
        // Of all spans the shortest a message: 3 to 3, 30 ticks; 2 to 3, 20 ticks each.
        // But perftest begins with `tcompleted[0] - tposted[0]`, which nothing wrote here.
        assert_eq!(said.bw_peak, f64::INFINITY);
        let times = Times {
            completed: &[100, 100, 140, 140],
            ..times
        };
        let said = Bandwidth::of(times, 1 << 20, 2, 1, true).expect("times");
        assert_eq!(said.bw_peak, 1000.0 / 20.0);
        assert_eq!(
            Bandwidth::of(times, 1, 2, 1, false).map(|b| b.bw_peak),
            Some(0.0)
        );
    }
}
