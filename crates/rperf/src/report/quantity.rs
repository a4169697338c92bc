//! Quantities for people.

use core::fmt::{self, Write as _};

/// Three significant digits, and never fewer than before the point.
fn three(f: &mut fmt::Formatter<'_>, value: f64, unit: &str) -> fmt::Result {
    let mut text = String::new();
    // So that 9.996 is 10.0 and not 10.00.
    let rounded = format!("{value:.2e}").parse().unwrap_or(value);
    let decimals = match f64::abs(rounded) {
        0.0 => 0,
        least if least < 0.01 => 4,
        least if least < 0.1 => 3,
        least if least < 10.0 => 2,
        least if least < 100.0 => 1,
        _ => 0,
    };
    write!(text, "{value:.decimals$}{unit}")?;
    f.pad(&text)
}

/// A time in ns: `850 ns`, `14.2 µs`, `3.10 ms`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.abs();
        let (by, unit) = match nanos {
            _ if nanos < 999.5 => (1.0, " ns"),
            _ if nanos < 999.5e3 => (1e3, " µs"),
            _ if nanos < 999.5e6 => (1e6, " ms"),
            _ => (1e9, " s"),
        };
        three(f, self.0 / by, unit)
    }
}

/// Bytes per second, in bits as links are sold: `97.2 Gb/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate(pub f64);

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 * 8.0;
        let (by, unit) = match bits {
            _ if bits < 999.5e3 => (1e3, " kb/s"),
            _ if bits < 999.5e6 => (1e6, " Mb/s"),
            _ => (1e9, " Gb/s"),
        };
        three(f, bits / by, unit)
    }
}

/// Messages per second: `1.25 M/s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PerSecond(pub f64);

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, unit) = match self.0 {
            rate if rate < 999.5 => (1.0, " /s"),
            rate if rate < 999.5e3 => (1e3, " k/s"),
            _ => (1e6, " M/s"),
        };
        three(f, self.0 / by, unit)
    }
}

/// The size of a message: `2 B`, `64 KiB`, `1500 B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub u32);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (by, unit) = match self.0 {
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 20) => (1 << 20, "MiB"),
            bytes if bytes > 0 && bytes.is_multiple_of(1 << 10) => (1 << 10, "KiB"),
            _ => (1, "B"),
        };
        f.pad(&format!("{} {unit}", self.0 / by))
    }
}

/// A quantity that marks an axis, as short as can be: `20 µs` for `20.0 µs`, `0` for nothing.
#[must_use]
pub(super) fn mark(quantity: &str) -> String {
    let (number, unit) = quantity.split_once(' ').unwrap_or((quantity, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    match number {
        "0" => "0".into(),
        _ => format!("{number} {unit}"),
    }
}

/// A change as a part of one: `+4.6%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change(pub f64);

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:+.1}%", self.0 * 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, PerSecond, Rate, Size, Time, mark};

    #[test]
    fn as_people_write_them() {
        let times = [0.0, 850.0, 999.6, 1530.4, 14_249.0, 99_960.0, 3.1e6, 2e9]
            .map(|ns| Time(ns).to_string());
        assert_eq!(
            times,
            [
                "0 ns", "850 ns", "1.00 µs", "1.53 µs", "14.2 µs", "100 µs", "3.10 ms", "2.00 s"
            ]
        );
        assert_eq!(Rate(12.15e9).to_string(), "97.2 Gb/s");
        assert_eq!(Rate(1000.0).to_string(), "8.00 kb/s");
        assert_eq!(PerSecond(1.25e6).to_string(), "1.25 M/s");
        let sizes = [0, 2, 1500, 1 << 16, 3 << 20].map(|bytes| Size(bytes).to_string());
        assert_eq!(sizes, ["0 B", "2 B", "1500 B", "64 KiB", "3 MiB"]);
        let marks = ["20.0 µs", "2.50 Gb/s", "0 kb/s", "100 ns"].map(mark);
        assert_eq!(marks, ["20 µs", "2.5 Gb/s", "0", "100 ns"]);
        assert_eq!(Change(0.046).to_string(), "+4.6%");
    }
}
