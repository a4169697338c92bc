//! Times of known shape, the same on every machine.

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    /// From 0 to below 1.
    pub(crate) fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        (z >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// A shape whose quantiles are known.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    /// Every time the same.
    Fixed(f64),
    /// Evenly between two.
    Even(f64, f64),
    /// Most near the first, a part near the second, each within 1%.
    Bimodal { low: f64, high: f64, part: f64 },
    /// At least so much, with a heavy tail of that exponent.
    Pareto { least: f64, exponent: f64 },
    /// A least time, and an exponential rest of that mean.
    Exponential { least: f64, mean: f64 },
}

impl Shape {
    /// The time in ns that `part` of all are at most.
    pub(crate) fn quantile(self, part: f64) -> f64 {
        match self {
            Self::Fixed(time) => time,
            Self::Even(low, high) => low + (high - low) * part,
            Self::Bimodal {
                low,
                high,
                part: rare,
            } => {
                let within = |middle: f64, part: f64| middle * (0.99 + 0.02 * part);
                if part < 1.0 - rare {
                    within(low, part / (1.0 - rare))
                } else {
                    within(high, (part - (1.0 - rare)) / rare)
                }
            }
            Self::Pareto { least, exponent } => least / (1.0 - part).powf(1.0 / exponent),
            Self::Exponential { least, mean } => least - mean * (1.0 - part).ln(),
        }
    }

    /// So many times of it, in ns.
    pub(crate) fn times(self, seed: u64, count: usize) -> Vec<u64> {
        let mut chance = Chance(seed);
        (0..count)
            .map(|_| self.quantile(chance.part()).round() as u64)
            .collect()
    }
}
