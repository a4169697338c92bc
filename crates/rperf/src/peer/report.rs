//! What each side of a bandwidth test found out: perftest's `bw_report_data`.

/// The figures of one side, as they are exchanged: five numbers of eight bytes, each in a message of its
/// own.
#[doc(alias = "bw_report_data")]
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct BandwidthReport {
    /// Bytes of a message.
    pub size: u64,
    /// How many messages.
    pub iterations: u64,
    /// The most, in MiB/s or in Gb/s, as the side prints it; 0 where it was not looked for.
    pub peak: f64,
    /// On average, in the same unit.
    pub average: f64,
    /// Millions of messages a second.
    pub rate: f64,
}

impl BandwidthReport {
    /// In network byte order.
    #[must_use]
    pub fn to_bytes(self) -> [[u8; 8]; 5] {
        [
            self.size.to_be_bytes(),
            self.iterations.to_be_bytes(),
            self.peak.to_be_bytes(),
            self.average.to_be_bytes(),
            self.rate.to_be_bytes(),
        ]
    }

    /// From network byte order. What the server of a one-way test says is whatever its memory held.
    #[must_use]
    pub fn from_bytes(bytes: [[u8; 8]; 5]) -> Self {
        let [size, iterations, peak, average, rate] = bytes;
        Self {
            size: u64::from_be_bytes(size),
            iterations: u64::from_be_bytes(iterations),
            peak: f64::from_be_bytes(peak),
            average: f64::from_be_bytes(average),
            rate: f64::from_be_bytes(rate),
        }
    }
}
