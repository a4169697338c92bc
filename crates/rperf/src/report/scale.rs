//! From values to places on an axis, and back to round numbers.

/// How values lie on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    log: bool,
}

impl Scale {
    /// Evenly, from 0 to at least `high`.
    pub(super) fn from_zero(high: f64) -> Self {
        Self::linear(0.0, high * 1.05)
    }

    /// Evenly.
    pub(super) fn linear(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            log: false,
        }
    }

    /// Each factor as long as another. A low end of nothing is a millionth of the high one.
    pub(super) fn log(low: f64, high: f64) -> Self {
        let low = if low > 0.0 {
            low
        } else {
            (high * 1e-6).max(1e-6)
        };
        let high = if high > low { high } else { low * 10.0 };
        Self {
            low,
            high,
            log: true,
        }
    }

    /// Where a value is, from 0 to 1; what is outside is at the end.
    pub(super) fn place(self, value: f64) -> f64 {
        let place = if self.log {
            (value.max(f64::MIN_POSITIVE) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// Cuts it into so many equal parts: their borders.
    pub(super) fn cuts(self, parts: u32) -> Vec<f64> {
        let at = |part: f64| match self.log {
            true => self.low * (self.high / self.low).powf(part),
            false => self.low + (self.high - self.low) * part,
        };
        (0..=parts)
            .map(|i| at(f64::from(i) / f64::from(parts)))
            .collect()
    }

    /// Round values for marks, about five.
    pub(super) fn marks(self) -> Vec<f64> {
        // A short logarithmic axis is marked evenly: it is nearly even.
        if self.log && self.high / self.low > 6.0 {
            let decades = (self.high / self.low).log10();
            let within: &[f64] = match decades {
                few if few < 2.5 => &[1.0, 2.0, 5.0],
                few if few < 4.0 => &[1.0, 3.0],
                _ => &[1.0],
            };
            let first = self.low.log10().floor();
            let powers = (0..=32).map(|i| 10.0_f64.powf(first + f64::from(i)));
            return powers
                .take_while(|power| *power <= self.high)
                .flat_map(|power| within.iter().map(move |times| times * power))
                .filter(|mark| (self.low * 0.999..=self.high * 1.001).contains(mark))
                .collect();
        }
        let rough = (self.high - self.low) / 5.0;
        let power = 10.0_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .into_iter()
            .map(|times| times * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(rough);
        let first = (self.low / step).ceil();
        (0..=12)
            .map(|i| (first + f64::from(i)) * step)
            .filter(|mark| *mark <= self.high * 1.000_001)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn marks_are_round() {
        assert_eq!(Scale::linear(0.0, 9.4).marks(), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(
            Scale::log(900.0, 50_000.0).marks(),
            [1e3, 2e3, 5e3, 1e4, 2e4, 5e4]
        );
        assert!(Scale::log(1.0, 1.0).marks().len() > 2);
        assert!(Scale::linear(3.0, 3.0).marks().len() > 2);
    }

    #[test]
    fn places() {
        let scale = Scale::log(1.0, 100.0);
        assert!((scale.place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.0, 1.0));
        let cuts = scale.cuts(2);
        assert!((cuts[1] - 10.0).abs() < 1e-9);
    }
}
