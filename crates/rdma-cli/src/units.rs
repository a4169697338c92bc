//! Quantities for people. Machines get plain numbers.

use std::fmt;
use std::time::Duration;

/// A number of bytes: `640 B`, `4.0 KiB`, `31.5 MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let (mut value, mut unit) = (self.0, None);
        let mut rest = 0;
        for name in UNITS {
            if value < 1024 {
                break;
            }
            rest = value % 1024;
            value /= 1024;
            unit = Some(name);
        }
        match unit {
            None => f.pad(&format!("{value} B")),
            Some(unit) => f.pad(&format!("{value}.{} {unit}", rest * 10 / 1024)),
        }
    }
}

/// A time span in the unit that suits it: `850 ns`, `14.2 us`, `3.1 ms`, `2.75 s`, `3m 20s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let text = if nanos < 1_000 {
            format!("{nanos} ns")
        } else if nanos < 1_000_000 {
            format!("{}.{} us", nanos / 1_000, nanos % 1_000 / 100)
        } else if nanos < 1_000_000_000 {
            format!("{}.{} ms", nanos / 1_000_000, nanos % 1_000_000 / 100_000)
        } else if self.0.as_secs() < 60 {
            format!("{}.{:02} s", self.0.as_secs(), self.0.subsec_millis() / 10)
        } else {
            format!("{}m {:02}s", self.0.as_secs() / 60, self.0.as_secs() % 60)
        };
        f.pad(&text)
    }
}

/// A number with its noun: `1 switch`, `36 switches`.
#[must_use]
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
