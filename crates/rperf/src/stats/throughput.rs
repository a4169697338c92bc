//! How much in a time.

use serde::{Deserialize, Serialize};

/// Messages and bytes in a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Throughput {
    /// How many messages were completed.
    pub messages: u64,
    /// How many bytes they carried.
    pub bytes: u64,
    /// In how many ns.
    pub elapsed: u64,
}

impl Throughput {
    /// In the time, per second; 0 where no time has passed.
    fn rate(self, of: u64) -> f64 {
        if self.elapsed == 0 {
            return 0.0;
        }
        of as f64 * 1e9 / self.elapsed as f64
    }

    /// Bytes per second.
    #[must_use]
    pub fn bytes_per_second(self) -> f64 {
        self.rate(self.bytes)
    }

    /// 10⁹ bits per second, as links are sold.
    #[must_use]
    pub fn gigabits(self) -> f64 {
        self.bytes_per_second() * 8.0 / 1e9
    }

    /// 2²⁰ bytes per second, which perftest calls MB/sec (MiB/sec in later versions).
    #[must_use]
    pub fn mebibytes(self) -> f64 {
        self.bytes_per_second() / 1_048_576.0
    }

    /// Messages per second.
    #[must_use]
    pub fn message_rate(self) -> f64 {
        self.rate(self.messages)
    }
}
