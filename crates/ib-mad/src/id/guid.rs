//! Global unique identifiers (EUI-64).

use core::fmt;
use core::str::FromStr;

use bytemuck::{Pod, Zeroable};
use rdma_wire::{Be64, assert_layout};

/// The 64 bits that name a node, a port or a system for good.
///
/// Prints as `0x` and 16 digits; reads that, digits alone, and the form with colons that sysfs and
/// `ibv_devinfo` use.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Guid(Be64);
assert_layout!(Guid, 8);

impl Guid {
    /// No GUID: what a device reports before it has been given one.
    pub const ZERO: Self = Self::new(0);

    /// From the number.
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(Be64::new(value))
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Whether it is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.get() == 0
    }
}

impl From<u64> for Guid {
    fn from(value: u64) -> Self {
        Self::new(value)
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:016x}", self.get())
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no GUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no GUID: 1 to 16 hexadecimal digits are wanted")]
pub struct ParseGuidError {
    /// What was given.
    pub text: String,
}

impl FromStr for Guid {
    type Err = ParseGuidError;

    fn from_str(text: &str) -> Result<Self, ParseGuidError> {
        let error = || ParseGuidError {
            text: text.chars().take(64).collect(),
        };
        let trimmed = text.trim();
        let digits = trimmed
            .strip_prefix("0x")
            .or_else(|| trimmed.strip_prefix("0X"))
            .unwrap_or(trimmed);
        let digits: String = digits.chars().filter(|&c| c != ':').collect();
        let plain = digits.chars().all(|c| c.is_ascii_hexdigit());
        if !plain || digits.is_empty() || digits.len() > 16 {
            return Err(error());
        }
        u64::from_str_radix(&digits, 16)
            .map(Self::new)
            .map_err(|_| error())
    }
}
