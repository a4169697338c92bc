//! Whether two sets of values differ, by their ranks.

use super::{Distribution, Quantile, normal};

/// The rank-sum test of Wilcoxon, Mann and Whitney: whether values of one set tend to be greater
/// than those of another.
///
/// It asks nothing of the shape of a distribution: that of a latency has a tail in which a mean
/// and its deviation are lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// How often chance alone gives such ranks, or ones further out, on either side.
    pub p: f64,
    /// How likely a value of the second set is greater than one of the first (ties count half).
    pub greater: f64,
}

/// Above this the normal approximation is as good as counting.
const COUNTED: usize = 25;

impl RankTest {
    /// Of two sets of independent values; nothing where one is empty.
    ///
    /// Exact for sets of up to 25 values without ties, else by the normal approximation with a
    /// correction for ties and for continuity.
    #[must_use]
    pub fn of(first: &[f64], second: &[f64]) -> Option<Self> {
        let mut all: Vec<(f64, bool)> = first.iter().map(|value| (*value, false)).collect();
        all.extend(second.iter().map(|value| (*value, true)));
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let groups: Vec<(u64, u64)> = all
            .chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq())
            .map(|tied| {
                let seconds = count(tied.iter().filter(|(_, second)| *second).count());
                (count(tied.len()) - seconds, seconds)
            })
            .collect();
        let mut test = Self::of_groups(&groups)?;
        let small = first.len().max(second.len()) <= COUNTED;
        if small && groups.iter().all(|(a, b)| a + b == 1) {
            let u = test.greater * first.len() as f64 * second.len() as f64;
            test.p = exact(first.len(), second.len(), u);
        }
        Some(test)
    }

    /// Of the samples of two runs, which are taken to be independent: nothing where one has none,
    /// or where their buckets are others.
    #[must_use]
    pub fn of_distributions(first: &Distribution, second: &Distribution) -> Option<Self> {
        if first.grid() != second.grid() {
            return None;
        }
        let mut groups = Vec::new();
        let (mut left, mut right) = (first.steps().peekable(), second.steps().peekable());
        loop {
            let next = match (left.peek(), right.peek()) {
                (None, None) => break,
                (a, b) => a.into_iter().chain(b).map(|step| step.low).min()?,
            };
            let a = left
                .next_if(|step| step.low == next)
                .map_or(0, |step| step.count);
            let b = right
                .next_if(|step| step.low == next)
                .map_or(0, |step| step.count);
            groups.push((a, b));
        }
        Self::of_groups(&groups)
    }

    /// Whether more than chance of one run's samples lie above the quantile of both together: the
    /// same question for a tail, which ranks as a whole say little about.
    #[must_use]
    pub fn of_tails(
        first: &Distribution,
        second: &Distribution,
        quantile: Quantile,
    ) -> Option<Self> {
        let mut both = first.clone();
        both.merge(second).ok()?;
        let border = both.quantile(quantile)?;
        let above = |of: &Distribution| -> (u64, u64) {
            let above = of
                .steps()
                .filter(|step| step.low > border)
                .map(|step| step.count)
                .sum();
            (of.count() - above, above)
        };
        let ((low_a, high_a), (low_b, high_b)) = (above(first), above(second));
        Self::of_groups(&[(low_a, low_b), (high_a, high_b)])
    }

    /// Of how many of each set have the same value, by ascending value.
    fn of_groups(groups: &[(u64, u64)]) -> Option<Self> {
        let (mut n, mut m) = (0.0, 0.0);
        let (mut u, mut ties) = (0.0, 0.0);
        for &(a, b) in groups {
            let (a, b) = (a as f64, b as f64);
            u += b * (n + a / 2.0);
            ties += (a + b).powi(3) - (a + b);
            (n, m) = (n + a, m + b);
        }
        if n == 0.0 || m == 0.0 {
            return None;
        }
        let all = n + m;
        let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        let off = ((u - n * m / 2.0).abs() - 0.5).max(0.0);
        let p = match variance > 0.0 {
            true => 2.0 * normal::cdf(-off / variance.sqrt()),
            false => 1.0,
        };
        Some(Self {
            p: p.min(1.0),
            greater: u / (n * m),
        })
    }
}

/// The least p-value that ranks of `n` and `m` values can give: where even it tells nothing, there
/// is no use in asking them.
#[must_use]
pub fn least_p(n: usize, m: usize) -> f64 {
    // Two of all the ways to choose n of n + m.
    (1..=n)
        .fold(2.0, |p, i| p * i as f64 / (m + i) as f64)
        .min(1.0)
}

/// How often chance alone gives means so different (Welch 1947): for sets of two to a few values
/// that are near to normal. Nothing below two.
#[must_use]
pub fn welch(first: &[f64], second: &[f64]) -> Option<f64> {
    let of = |values: &[f64]| {
        let n = f64::from(u32::try_from(values.len()).ok().filter(|n| *n >= 2)?);
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some((n, mean, squares / (n - 1.0) / n))
    };
    let ((n, a, error_a), (m, b, error_b)) = (of(first)?, of(second)?);
    let error = error_a + error_b;
    if error == 0.0 {
        return Some(if a == b { 1.0 } else { 0.0 });
    }
    let freedom = error.powi(2) / (error_a.powi(2) / (n - 1.0) + error_b.powi(2) / (m - 1.0));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least one, at most n + m; cut, which errs to the safe side"
    )]
    let freedom = (freedom.floor() as u32).max(1);
    Some(normal::student_tails((a - b) / error.sqrt(), freedom))
}

fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// How many of the ways to deal ranks to `n` and `m` values give each U, as parts of all.
fn deals(n: usize, m: usize) -> Vec<f64> {
    // ways[k][u]: of the values dealt so far, k went to the second set, and U is u.
    let most = n * m;
    let mut ways = vec![vec![0.0; most + 1]; m + 1];
    ways[0][0] = 1.0;
    for dealt in 0..n + m {
        // The value dealt now is greater than those of the first set before it.
        for k in (0..m.min(dealt + 1)).rev() {
            let firsts = dealt - k;
            if firsts > n {
                continue;
            }
            for u in 0..=most - firsts.min(most) {
                let from = ways[k][u];
                ways[k + 1][u + firsts] += from;
            }
        }
    }
    let last = ways.swap_remove(m);
    let all: f64 = last.iter().sum();
    last.into_iter().map(|ways| ways / all).collect()
}

fn exact(n: usize, m: usize, u: f64) -> f64 {
    let middle = (n * m) as f64 / 2.0;
    let off = (u - middle).abs();
    let further = deals(n, m)
        .iter()
        .enumerate()
        .filter(|(u, _)| (*u as f64 - middle).abs() >= off)
        .map(|(_, part)| part)
        .sum::<f64>();
    further.min(1.0)
}

/// The quotient of two sets' values, second by first, and between which quotients it lies with at
/// least `confidence`: the Hodges-Lehmann estimate and the interval that belongs to [`RankTest`].
///
/// Nothing where the sets are too small for the confidence, or a value is not positive.
#[must_use]
pub fn quotient(first: &[f64], second: &[f64], confidence: f64) -> Option<(f64, f64, f64)> {
    let (n, m) = (first.len(), second.len());
    if first.iter().chain(second).any(|value| *value <= 0.0) || n == 0 || m == 0 {
        return None;
    }
    let mut all: Vec<f64> = second
        .iter()
        .flat_map(|b| first.iter().map(move |a| b / a))
        .collect();
    all.sort_by(f64::total_cmp);
    let tail = (1.0 - confidence) / 2.0;
    // How many quotients may be cut off at each end.
    let cut = if n.max(m) <= COUNTED {
        let mut sum = 0.0;
        deals(n, m)
            .iter()
            .take_while(|part| {
                sum += **part;
                sum <= tail
            })
            .count()
    } else {
        let (n, m) = (n as f64, m as f64);
        let reach = normal::quantile(1.0 - tail) * (n * m * (n + m + 1.0) / 12.0).sqrt();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to n·m"
        )]
        {
            (n * m / 2.0 - reach).floor().max(0.0) as usize
        }
    };
    let low = *all.get(cut.checked_sub(1)?)?;
    let high = *all.get(all.len().checked_sub(cut)?)?;
    Some((super::median(&all)?, low, high))
}

#[cfg(test)]
mod tests {
    use super::{RankTest, deals, least_p, quotient, welch};

    #[test]
    fn deals_as_the_tables_say() {
        // 4 and 4: C(8,4) = 70 deals; U = 0 is one of them, U <= 3 are seven.
        let parts = deals(4, 4);
        assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!((parts[0] * 70.0 - 1.0).abs() < 1e-9);
        assert!((parts[..4].iter().sum::<f64>() * 70.0 - 7.0).abs() < 1e-9);
        // The usual table: 5 and 5, two sides at 5%: 2 is critical.
        let parts = deals(5, 5);
        assert!(2.0 * parts[..=2].iter().sum::<f64>() <= 0.05);
        assert!(2.0 * parts[..=3].iter().sum::<f64>() > 0.05);
        // 3 and 2: 1 1 2 2 2 1 1.
        let parts: Vec<f64> = deals(3, 2)
            .iter()
            .map(|part| (part * 10.0).round())
            .collect();
        assert_eq!(parts, [1.0, 1.0, 2.0, 2.0, 2.0, 1.0, 1.0]);
    }

    #[test]
    fn four_against_four() {
        let test = RankTest::of(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).expect("values");
        assert_eq!(test.greater, 1.0);
        assert!((test.p - 2.0 / 70.0).abs() < 1e-9, "{test:?}");
        let test = RankTest::of(&[1.0; 9], &[1.0; 7]).expect("values");
        assert_eq!((test.greater, test.p), (0.5, 1.0));
        assert_eq!(RankTest::of(&[], &[1.0]), None);
    }

    #[test]
    fn histograms_as_values() {
        // Exact below 2048, so that the buckets lose nothing.
        let first: Vec<u64> = (0..300).map(|i| 1000 + i * 7 % 41).collect();
        let second: Vec<u64> = (0..200).map(|i| 1003 + i * 5 % 43).collect();
        let values = |of: &[u64]| -> Vec<f64> { of.iter().map(|v| *v as f64).collect() };
        let by_values = RankTest::of(&values(&first), &values(&second)).expect("values");
        let by_buckets =
            RankTest::of_distributions(&first.into_iter().collect(), &second.into_iter().collect())
                .expect("samples");
        assert!((by_values.p - by_buckets.p).abs() < 1e-9);
        assert_eq!(by_values.greater, by_buckets.greater);
    }

    #[test]
    fn few_values() {
        assert!((least_p(4, 4) - 2.0 / 70.0).abs() < 1e-12);
        // 1, 2, 3 and 4, 6, 8: t = -4 / sqrt(1/3 + 4/3), freedom 2.94, cut to 2.
        let t = 4.0 / (5.0_f64 / 3.0).sqrt();
        let two = 1.0 - t / (2.0 + t * t).sqrt();
        let p = welch(&[1.0, 2.0, 3.0], &[4.0, 6.0, 8.0]).expect("values");
        assert!((p - two).abs() < 1e-6, "{p} for {two}");
        assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), Some(0.0));
        assert_eq!(welch(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn quotients() {
        let first = [10.0, 11.0, 12.0, 13.0, 14.0];
        let second: Vec<f64> = first.iter().map(|value| value * 1.5).collect();
        let (estimate, low, high) = quotient(&first, &second, 0.95).expect("enough");
        assert!(
            low < 1.5 && 1.5 < high && (estimate - 1.5).abs() < 0.01,
            "{low} {estimate} {high}"
        );
        assert!(low > 1.0);
        assert_eq!(quotient(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0], 0.95), None);
        assert_eq!(quotient(&[0.0; 5], &[1.0; 5], 0.95), None);
    }
}
