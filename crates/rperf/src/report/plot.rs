//! The charts of results.

use super::Named;
use super::chart::{Axis, COLOURS, Chart, Series};
use super::quantity::{Rate, Size, Time, mark};
use super::scale::Scale;
use crate::result::Measurement;
use crate::spec::Spec;
use crate::stats::{Distribution, Quantile};

/// Points of a line beyond which one sees no more.
const POINTS: usize = 400;

/// A measurement with what to call it.
struct Shown<'a> {
    name: String,
    measurement: &'a Measurement,
}

/// What tells a measurement from the others of a page.
pub(super) fn name(
    files: &[Named<'_>],
    file: &Named<'_>,
    measurement: &Measurement,
    size: bool,
) -> String {
    let spec = &measurement.spec;
    let mut name = String::new();
    if files.len() > 1 {
        name = format!("{}: ", file.name);
    }
    name += &format!(
        "{} {} {}",
        spec.verb.name(),
        spec.metric.name(),
        spec.transport.name()
    );
    if size {
        name += &format!(" {}", Size(spec.size));
    }
    if spec.qps.get() > 1 {
        name += &format!(", {} QPs", spec.qps);
    }
    if spec.bidirectional {
        name += ", both ways";
    }
    name
}

fn shown<'a>(files: &'a [Named<'a>], wanted: impl Fn(&Measurement) -> bool) -> Vec<Shown<'a>> {
    let all = files.iter().flat_map(|file| {
        file.results
            .measurements
            .iter()
            .map(move |measurement| Shown {
                name: name(files, file, measurement, true),
                measurement,
            })
    });
    all.filter(|one| wanted(one.measurement)).collect()
}

/// As many as there are colours, evenly from all, and what to say of the others.
fn some<T>(all: Vec<T>) -> (Vec<T>, String) {
    let count = all.len();
    if count <= COLOURS {
        return (all, String::new());
    }
    let kept: Vec<usize> = (0..COLOURS)
        .map(|i| i * (count - 1) / (COLOURS - 1))
        .collect();
    let some = all
        .into_iter()
        .enumerate()
        .filter(|(index, _)| kept.contains(index));
    let note = format!(" {COLOURS} of {count} measurements are drawn; the tables have all.");
    (some.map(|(_, one)| one).collect(), note)
}

/// Every chart, in the order of the page.
pub(super) fn charts(files: &[Named<'_>]) -> Vec<Chart> {
    let mut charts = Vec::new();
    let timed = shown(files, |one| one.latency.is_some());
    let (timed, note) = some(timed);
    let held: Vec<(String, Distribution)> = timed
        .iter()
        .filter_map(|one| Some((one.name.clone(), one.measurement.distribution()?)))
        .collect();
    if !held.is_empty() {
        charts.push(percentiles(&held, &note));
        charts.push(shares(&held, &note));
    }
    charts.extend(by_size(files, true));
    charts.extend(by_size(files, false));
    let (lines, note) = some(shown(files, |one| {
        one.runs.iter().any(|run| {
            run.timeline
                .as_ref()
                .is_some_and(|line| line.slices().len() > 2)
        })
    }));
    charts.extend(lines.iter().filter_map(|one| timeline(one, &note)));
    charts
}

fn time(value: f64) -> String {
    mark(&Time(value).to_string())
}

/// Bits per second: in bytes the marks would not be round.
fn rate(bits: f64) -> String {
    mark(&Rate(bits / 8.0).to_string())
}

/// Latency over quantile.
fn percentiles(held: &[(String, Distribution)], note: &str) -> Chart {
    let most = held.iter().map(|(_, held)| held.count()).max().unwrap_or(1) as f64;
    // Places are "one in so many is longer".
    let x = Scale::log(1.0, most.max(100.0));
    let words = [
        (1.0, "0%"),
        (2.0, "50%"),
        (10.0, "90%"),
        (100.0, "99%"),
        (1e3, "99.9%"),
        (1e4, "99.99%"),
        (1e5, "99.999%"),
        (1e6, "99.9999%"),
        (1e7, "10⁻⁷"),
        (1e8, "10⁻⁸"),
        (1e9, "10⁻⁹"),
    ];
    let marks = words
        .into_iter()
        .filter(|(place, _)| *place <= most.max(100.0));
    let (low, high) = ends(held);
    Chart {
        title: "Latency by percentile".into(),
        caption: format!(
            "So many of the messages took at most so long. To the right of 99% are the longest 1%, to the right of 99.9% the longest 0.1%; the line ends at the longest.{note}"
        ),
        x: Axis {
            label: "percentile".into(),
            scale: x,
            marks: marks
                .map(|(place, word)| (place, word.to_owned()))
                .collect(),
        },
        y: Axis::new("latency", Scale::log(low * 0.9, high * 1.1), time),
        series: held
            .iter()
            .map(|(name, held)| Series {
                name: name.clone(),
                points: curve(held),
                ..Series::default()
            })
            .collect(),
        lines: Vec::new(),
    }
}

/// The least and the greatest.
fn ends(held: &[(String, Distribution)]) -> (f64, f64) {
    let low = held
        .iter()
        .filter_map(|(_, held)| held.min())
        .min()
        .unwrap_or(1);
    let high = held
        .iter()
        .filter_map(|(_, held)| held.max())
        .max()
        .unwrap_or(1);
    (low.max(1) as f64, high.max(1) as f64)
}

/// Quantiles evenly over a logarithmic axis of what is beyond them.
fn curve(held: &Distribution) -> Vec<(f64, f64)> {
    let count = held.count() as f64;
    let places = Scale::log(1.0, count.max(2.0)).cuts(240);
    let mut points: Vec<(f64, f64)> = places
        .into_iter()
        .filter_map(|place| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "from 0 to the count"
            )]
            let rank = (count - count / place).ceil() as u64;
            Some((place, held.at_rank(rank.max(1))? as f64))
        })
        .collect();
    points.push((count, held.max().unwrap_or(0) as f64));
    points
}

/// How many took how long.
fn shares(held: &[(String, Distribution)], note: &str) -> Chart {
    let low = ends(held).0;
    // The tail has its own chart: here it would press the rest together.
    let tail = held
        .iter()
        .filter_map(|(_, held)| held.quantile(Quantile::millionths(995_000)));
    let high = tail.max().unwrap_or(1) as f64 * 1.05;
    let scale = Scale::log(low * 0.98, high.max(low * 1.1));
    let cuts = scale.cuts(96);
    let series: Vec<Series> = held
        .iter()
        .map(|(name, held)| Series {
            name: name.clone(),
            points: bars(held, &cuts),
            filled: true,
            ..Series::default()
        })
        .collect();
    let top = series
        .iter()
        .flat_map(|one| &one.points)
        .map(|point| point.1)
        .fold(0.0, f64::max);
    Chart {
        title: "Latency distribution".into(),
        caption: format!(
            "How many of the messages took how long. The longest 0.5% are not drawn: see the percentiles.{note}"
        ),
        x: Axis::new("latency", scale, time),
        y: Axis::new("part of the messages", Scale::from_zero(top), |part| {
            format!("{}%", (part * 1e4).round() / 100.0)
        }),
        series,
        lines: Vec::new(),
    }
}

/// Between each two cuts, the part of the samples there, as an outline of bars. Samples of a
/// bucket are taken to be evenly in it.
fn bars(held: &Distribution, cuts: &[f64]) -> Vec<(f64, f64)> {
    let count = held.count().max(1) as f64;
    let mut parts = vec![0.0; cuts.len()];
    for step in held.steps() {
        let (low, high) = (step.low as f64, step.high as f64 + 1.0);
        let first = cuts.partition_point(|cut| *cut <= low).saturating_sub(1);
        for (part, cut) in parts.iter_mut().zip(cuts.windows(2)).skip(first) {
            let [from, to] = [cut.first(), cut.last()].map(|end| end.copied().unwrap_or(0.0));
            if from >= high {
                break;
            }
            let within = (to.min(high) - from.max(low)).max(0.0) / (high - low);
            *part += within * step.count as f64 / count;
        }
    }
    let mut bars: Vec<_> = cuts.windows(2).zip(parts).collect();
    // Lines at zero on both sides would only hide each other.
    let last = bars
        .iter()
        .rposition(|(_, part)| *part > 0.0)
        .map_or(0, |last| last + 2);
    bars.truncate(last);
    let first = bars.iter().position(|(_, part)| *part > 0.0).unwrap_or(0);
    bars.into_iter()
        .skip(first.saturating_sub(1))
        .flat_map(|(cut, part)| cut.iter().map(move |end| (*end, part)))
        .collect()
}

/// Latency or bandwidth over the size of messages.
fn by_size(files: &[Named<'_>], latency: bool) -> Option<Chart> {
    let mut groups: Vec<(String, Spec, Vec<&Measurement>)> = Vec::new();
    for file in files {
        for one in &file.results.measurements {
            if one.is_latency() != latency {
                continue;
            }
            let name = name(files, file, one, false);
            // The same but for the size: depth is in no name, and may differ.
            let rest = Spec {
                size: 0,
                ..one.spec.clone()
            };
            match groups
                .iter_mut()
                .find(|(known, spec, _)| *known == name && *spec == rest)
            {
                Some((_, _, group)) => group.push(one),
                None => groups.push((name, rest, vec![one])),
            }
        }
    }
    groups.retain(|(_, _, group)| group.len() > 1);
    for (_, _, group) in &mut groups {
        group.sort_by_key(|one| one.spec.size);
    }
    let (groups, note) = some(groups);
    let series: Vec<Series> = groups
        .into_iter()
        .map(|(name, _, group)| of_sizes(name, &group, latency))
        .collect();
    let mut sizes: Vec<u32> = series
        .iter()
        .flat_map(|one| &one.points)
        .filter_map(|point| Some(format!("{}", point.0).parse::<u32>().ok()?.max(1)))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let (first, last) = (f64::from(*sizes.first()?), f64::from(*sizes.last()?));
    let step = sizes.len().div_ceil(9);
    let marks = sizes
        .iter()
        .step_by(step)
        .map(|size| (f64::from(*size), Size(*size).to_string()));
    let x = Axis {
        label: "size of a message".into(),
        scale: Scale::log(first * 0.8, last * 1.25),
        marks: marks.collect(),
    };
    let values = series.iter().flat_map(|one| {
        let band = one.band.iter().flat_map(|(_, low, high)| [*low, *high]);
        one.points.iter().map(|point| point.1).chain(band)
    });
    let (low, high) = values.fold((f64::MAX, 0.0_f64), |(low, high), value| {
        (low.min(value), high.max(value))
    });
    if latency {
        return Some(Chart {
            title: "Latency by size".into(),
            caption: format!(
                "The median of each size; the band reaches from the least to the 99%.{note}"
            ),
            x,
            y: Axis::new("latency", Scale::log(low * 0.9, high * 1.1), time),
            series,
            lines: Vec::new(),
        });
    }
    let links = files
        .iter()
        .filter_map(|file| file.results.local.device.link_megabits);
    let link = links.max().map(|megabits| megabits as f64 * 1e6);
    Some(Chart {
        title: "Bandwidth by size".into(),
        caption: format!(
            "The median of the runs; the band reaches from the slowest to the fastest run.{note}"
        ),
        x,
        y: Axis::new(
            "bandwidth",
            Scale::from_zero(high.max(link.unwrap_or(0.0))),
            rate,
        ),
        series,
        lines: link
            .map(|bits| (bits, format!("link: {}", rate(bits))))
            .into_iter()
            .collect(),
    })
}

fn of_sizes(name: String, group: &[&Measurement], latency: bool) -> Series {
    let mut series = Series {
        name,
        dots: true,
        ..Series::default()
    };
    for one in group {
        let size = f64::from(one.spec.size.max(1));
        if let Some(summary) = one.latency.filter(|_| latency) {
            series.points.push((size, summary.p50 as f64));
            let high = summary.p99.unwrap_or(summary.max);
            series.band.push((size, summary.min as f64, high as f64));
        } else if let Some(bandwidth) = one.bandwidth {
            series.points.push((size, 8.0 * bandwidth.bytes_per_second));
            let rates: Vec<f64> = one.rates().into_iter().map(|rate| 8.0 * rate).collect();
            let low = rates.iter().copied().fold(f64::MAX, f64::min);
            series
                .band
                .push((size, low, rates.into_iter().fold(0.0, f64::max)));
        }
    }
    series
}

/// What happened when, of each run.
fn timeline(shown: &Shown<'_>, note: &str) -> Option<Chart> {
    let latency = shown.measurement.is_latency();
    let lines = shown
        .measurement
        .runs
        .iter()
        .filter_map(|run| run.timeline.as_ref());
    let mut series = Vec::new();
    let mut end = 0.0_f64;
    for (index, line) in lines.enumerate().take(COLOURS) {
        let interval = line.interval() as f64;
        // The last interval is cut short.
        let whole = line.slices().len().saturating_sub(1);
        let mut one = Series {
            name: format!("run {}", index + 1),
            ..Series::default()
        };
        let each = whole.div_ceil(POINTS).max(1);
        for (at, slice) in (0_u32..)
            .zip(line.slices().iter().take(whole))
            .step_by(each)
        {
            let middle = (f64::from(at) + 0.5) * interval;
            if latency {
                let Some(times) = slice.latency else { continue };
                one.points.push((middle, times.mean()));
                one.band.push((middle, times.min as f64, times.max as f64));
            } else {
                one.points
                    .push((middle, slice.bytes as f64 * 8e9 / interval));
            }
        }
        end = end.max(f64::from(u32::try_from(whole).unwrap_or(u32::MAX)) * interval);
        series.push(one);
    }
    let first = series.first()?;
    if first.points.is_empty() {
        return None;
    }
    // The bands of several runs would hide each other.
    if series.len() > 1 {
        series.iter_mut().for_each(|one| one.band.clear());
    }
    let values = || {
        series.iter().flat_map(|one| {
            let band = one.band.iter().flat_map(|(_, low, high)| [*low, *high]);
            one.points.iter().map(|point| point.1).chain(band)
        })
    };
    let (low, high) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    let (what, caption, y) = if latency {
        let scale = match high > 8.0 * low {
            true => Scale::log(low * 0.9, high * 1.1),
            false => Scale::from_zero(high),
        };
        let caption = match series.len() {
            1 => "The mean of each interval; the band reaches from its least to its greatest.",
            _ => "The mean of each interval, a line for each run.",
        };
        (
            "Latency over time",
            caption,
            Axis::new("latency", scale, time),
        )
    } else {
        let y = Axis::new("bandwidth", Scale::from_zero(high), rate);
        (
            "Bandwidth over time",
            "Of each interval, a line for each run.",
            y,
        )
    };
    Some(Chart {
        title: format!("{what}: {}", shown.name),
        caption: format!("{caption}{note}"),
        x: Axis::new("since the start", Scale::linear(0.0, end), time),
        y,
        series,
        lines: Vec::new(),
    })
}
