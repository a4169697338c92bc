//! Time as the protocol sees it.

use core::fmt;

/// A moment, in nanoseconds since an origin that the driver chooses.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The moment `ns` nanoseconds later; the end of time if that does not fit.
    #[must_use]
    pub const fn after(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }

    /// Nanoseconds since `earlier`, 0 if that is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}us", self.0 / 1000, self.0 % 1000)
    }
}

/// The transport timer of a queue pair, 4.096 µs · 2^code, in nanoseconds (IBTA 9.7.6.1.3).
///
/// 0 means that there is no timer.
#[must_use]
pub(super) const fn ack_timeout(code: u8) -> Option<u64> {
    match code & 0x1f {
        0 => None,
        code => Some(4096 << code),
    }
}

/// What a responder asks for in an RNR NAK, in nanoseconds (IBTA table 45).
#[must_use]
pub(super) fn rnr_delay(code: u8) -> u64 {
    /// In units of 10 µs, by code.
    const TENS: [u32; 32] = [
        65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
        1536, 2048, 3072, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768, 49_152,
    ];
    let tens = TENS.get(usize::from(code & 0x1f)).copied().unwrap_or(1);
    u64::from(tens) * 10_000
}
