//! What came of a case, and the table of all.

use std::fmt;
use std::time::Duration;

use super::{Case, Device, Expect};

/// What came of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It works, with this figure or text.
    Works(String),
    /// The device does not do it, and the program was told so.
    Refuses(String),
    /// It does not work, for this reason.
    Fails(String),
}

impl Verdict {
    /// In a word.
    const fn word(&self) -> &'static str {
        match self {
            Self::Works(_) => "works",
            Self::Refuses(_) => "not supported",
            Self::Fails(_) => "FAILS",
        }
    }

    /// The figure or the reason.
    fn text(&self) -> &str {
        match self {
            Self::Works(text) | Self::Refuses(text) | Self::Fails(text) => text,
        }
    }
}

/// A line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was tried.
    pub case: &'static Case,
    /// The device.
    pub device: Device,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub wall: Duration,
}

impl Row {
    /// Whether it is as it should be.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        !matches!(self.verdict, Verdict::Fails(_))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, text) = (self.verdict.word(), self.verdict.text());
        let Case {
            tool,
            transport,
            option,
            ..
        } = self.case;
        let device = self.device.name();
        write!(
            f,
            "{tool:<21} {transport:<4} {option:<26} {device:<9} {word:<13} {text}"
        )
    }
}

/// The table, with how many of its lines are as they should be.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<21} {:<4} {:<26} {:<9} {:<13} {}\n",
        "tool", "", "option", "device", "result", "figure or text (of a software device)"
    );
    for row in rows {
        text.push_str(&format!("{row}\n"));
    }
    text.push_str(&summary(rows));
    text
}

/// How many are as they should be.
fn summary(rows: &[Row]) -> String {
    let works = |row: &&Row| matches!(row.verdict, Verdict::Works(_));
    let works = rows.iter().filter(works).count();
    let fails = rows.iter().filter(|row| !row.is_ok()).count();
    format!(
        "{works} of {} work, {} are refused as they should be, {fails} fail\n",
        rows.len(),
        rows.len() - works - fails,
    )
}

/// One line for each case, with a column for each device.
#[must_use]
pub fn beside(rows: &[Row]) -> String {
    let devices: Vec<Device> = Device::ALL
        .into_iter()
        .filter(|device| rows.iter().any(|row| row.device == *device))
        .collect();
    let mut text = format!("{:<21} {:<4} {:<26}", "tool", "", "option");
    for device in &devices {
        let note = match device {
            Device::Rxe => " (under QEMU's emulation)",
            _ => "",
        };
        text.push_str(&format!(" | {:<30}", format!("{}{note}", device.name())));
    }
    text.push('\n');
    let mut notes: Vec<String> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let same = |other: &&Row| core::ptr::eq(other.case, row.case);
        if rows[..index].iter().any(|other| same(&other)) {
            continue;
        }
        let case = row.case;
        text.push_str(&format!(
            "{:<21} {:<4} {:<26}",
            case.tool, case.transport, case.option
        ));
        for device in &devices {
            let found = rows.iter().filter(same).find(|row| row.device == *device);
            let cell = match found.map(|row| &row.verdict) {
                None => "-".to_owned(),
                Some(Verdict::Works(text)) => shortened(text),
                Some(verdict) => {
                    let note = verdict.text().to_owned();
                    let number = notes.iter().position(|known| *known == note);
                    let number = number.unwrap_or_else(|| {
                        notes.push(note);
                        notes.len() - 1
                    });
                    format!("{} [{}]", verdict.word(), number + 1)
                }
            };
            text.push_str(&format!(" | {cell:<30}"));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    for (index, note) in notes.iter().enumerate() {
        text.push_str(&format!("[{}] {note}\n", index + 1));
    }
    for device in devices {
        let of: Vec<Row> = rows
            .iter()
            .filter(|row| row.device == device)
            .cloned()
            .collect();
        text.push_str(&format!("{}: {}", device.name(), summary(&of)));
    }
    text
}

/// A text for a narrow column.
fn shortened(text: &str) -> String {
    let first = text.chars().take(30).collect::<String>();
    first.trim_end().to_owned()
}

/// The last line of a perftest table: numbers only.
fn last_row(text: &str) -> Option<Vec<f64>> {
    let row = |line: &str| -> Option<Vec<f64>> {
        let numbers: Option<Vec<f64>> = line
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        numbers.filter(|numbers| numbers.len() >= 4)
    };
    text.lines().rev().find_map(row)
}

/// What is worth telling of what a program printed; `None` when it is not what it should be.
pub(crate) fn figure(expect: Expect, text: &str) -> Option<String> {
    match expect {
        // bytes, iterations, least, most, typical, …
        Expect::Latency => {
            let row = last_row(text)?;
            // Duration mode prints bytes, iterations, average, rate.
            let typical = row.get(4).or_else(|| row.get(2))?;
            (*typical > 0.0).then(|| format!("{typical} us typical"))
        }
        // bytes, iterations, peak, average, rate
        Expect::Bandwidth => {
            let row = last_row(text)?;
            let (average, rate) = (row.get(3)?, row.get(4)?);
            // Small messages on a busy machine are 0.00 MiB/s, and still some.
            (*average > 0.0 || *rate > 0.0).then(|| format!("{average} MiB/s average"))
        }
        Expect::Pingpong => {
            let line = text.lines().rev().find(|line| line.contains("usec/iter"))?;
            let (_, time) = line.split_once("= ")?;
            Some(time.replace("usec/iter", "us a round trip"))
        }
        Expect::Qperf => {
            let figures: Vec<_> = text
                .lines()
                .filter_map(|line| line.split_once('='))
                .map(|(name, value)| format!("{} {}", name.trim(), value.trim()))
                .collect();
            // What was received is what counts; nothing is not a success.
            let moved = figures.last().is_some_and(|figure| !figure.contains(" 0 "));
            moved.then(|| figures.join(", "))
        }
        Expect::Text(wanted) => text.lines().find(|line| line.contains(wanted)).map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            words.join(" ").chars().take(60).collect()
        }),
        Expect::Refusal(_) | Expect::Stays => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_from_what_the_programs_print() {
        let latency = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n\
                       2       1000          5.97           29992.58      74.85    531.33  2358.24  13971.78  29992.58\n---\n";
        assert_eq!(
            figure(Expect::Latency, latency).as_deref(),
            Some("74.85 us typical")
        );
        let bandwidth = " 65536      1000             7268.99            384.73 \t\t   0.006156\n";
        assert_eq!(
            figure(Expect::Bandwidth, bandwidth).as_deref(),
            Some("384.73 MiB/s average")
        );
        assert_eq!(figure(Expect::Bandwidth, "nothing"), None);
        let none = " 65536      1000             0.00            0.00 \t\t   0.000000\n";
        assert_eq!(figure(Expect::Bandwidth, none), None);
        let pingpong = "1000 iters in 0.22 seconds = 224.22 usec/iter\n";
        assert_eq!(
            figure(Expect::Pingpong, pingpong).as_deref(),
            Some("224.22 us a round trip")
        );
        let qperf = "rc_bw:\n    bw  =  1.2 GB/sec\n";
        assert_eq!(
            figure(Expect::Qperf, qperf).as_deref(),
            Some("bw 1.2 GB/sec")
        );
        assert_eq!(figure(Expect::Qperf, "rc_bw:\n"), None);
        let none = "rc_bw:\n    bw  =  0 bytes/sec\n";
        assert_eq!(figure(Expect::Qperf, none), None);
    }
}
