//! Versions and dates as firmware carries them.

use std::fmt;

/// A firmware version: major, minor, sub-minor.
///
/// Ordered by its numbers, from the first to the last.
///
/// ```
/// use mlx_fw::FwVersion;
/// assert_eq!(FwVersion::new(16, 35, 4506).to_string(), "16.35.4506");
/// assert_eq!(FwVersion::new(29, 2014, 122).to_string(), "29.2014.0122");
/// assert!(FwVersion::new(1, 9, 0) < FwVersion::new(2, 0, 0));
/// assert_eq!("29.2014.0122".parse(), Ok(FwVersion::new(29, 2014, 122)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FwVersion {
    /// The family of the adapter; 29 is Spectrum-2.
    pub major: u16,
    /// The release.
    pub minor: u16,
    /// The build.
    pub subminor: u16,
}

impl FwVersion {
    /// A version from its numbers.
    #[must_use]
    pub const fn new(major: u16, minor: u16, subminor: u16) -> Self {
        Self {
            major,
            minor,
            subminor,
        }
    }

    /// Whether any number is not zero.
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.major != 0 || self.minor != 0 || self.subminor != 0
    }
}

/// As the vendor's tools print it: the sub-minor with four digits, and the minor too from 100 on.
impl fmt::Display for FwVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            major,
            minor,
            subminor,
        } = self;
        let text = if *minor < 100 {
            format!("{major}.{minor}.{subminor:04}")
        } else {
            format!("{major}.{minor:04}.{subminor:04}")
        };
        f.pad(&text)
    }
}

/// A text that is not a version of three numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a firmware version such as 16.35.4506")]
pub struct NotAVersion;

impl std::str::FromStr for FwVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut numbers = text.split('.').map(str::parse);
        let mut next = || numbers.next().and_then(Result::ok).ok_or(NotAVersion);
        let version = Self::new(next()?, next()?, next()?);
        if numbers.next().is_some() {
            return Err(NotAVersion);
        }
        Ok(version)
    }
}

/// A date whose fields are binary-coded decimal: 0x2025 is the year 2025.
///
/// Kept as it stands, since files carry impossible dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BcdDate {
    /// The year.
    pub year: u16,
    /// The month, from 1.
    pub month: u8,
    /// The day, from 1.
    pub day: u8,
}

impl BcdDate {
    /// Whether any field is not zero.
    #[must_use]
    pub const fn is_set(self) -> bool {
        self.year != 0 || self.month != 0 || self.day != 0
    }

    /// Day, month, year, as the vendor's tools print it.
    #[must_use]
    pub fn flint(self) -> String {
        format!("{:x}.{:x}.{:x}", self.day, self.month, self.year)
    }
}

/// Year, month, day.
impl fmt::Display for BcdDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:04x}-{:02x}-{:02x}", self.year, self.month, self.day);
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_prints_its_digits() {
        let date = BcdDate {
            year: 0x2025,
            month: 0x04,
            day: 0x30,
        };
        assert_eq!(date.to_string(), "2025-04-30");
        assert_eq!(date.flint(), "30.4.2025");
    }

    #[test]
    fn versions_with_other_than_three_numbers_are_refused() {
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.99999", "-1.2.3"] {
            assert_eq!(text.parse::<FwVersion>(), Err(NotAVersion), "{text}");
        }
    }
}
