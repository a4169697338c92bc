//! Histograms against sorted vectors.

use proptest::prelude::*;
use rperf::stats::{Distribution, Grid, Histogram, Quantile};

/// Times as they occur: of any order of magnitude, many of them alike.
fn times() -> impl Strategy<Value = Vec<u64>> {
    let any = (0_u32..36).prop_flat_map(|bits| 0..(2_u64 << bits));
    prop::collection::vec(prop_oneof![any, 1000_u64..1100], 1..400)
}

proptest! {
    // Each case makes histograms of 216 KiB and more.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn as_sorted_vectors_say(values in times(), parts in 0_u32..=1_000_000) {
        let held: Distribution = values.iter().copied().collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();

        prop_assert_eq!(held.count(), u64::try_from(sorted.len()).unwrap());
        prop_assert_eq!(held.min(), sorted.first().copied());
        prop_assert_eq!(held.max(), sorted.last().copied());

        let quantile = Quantile::millionths(parts);
        let rank = usize::try_from(quantile.rank(held.count())).unwrap();
        let truth = sorted[rank - 1] as f64;
        let said = held.quantile(quantile).unwrap() as f64;
        // Half a ns is what a middle between whole numbers may be off.
        prop_assert!((said - truth).abs() <= truth * held.grid().error_bound() + 0.5, "{said} for {truth}");

        // Exact: against the two-pass formula about a shifted origin, in floating point.
        let n = sorted.len() as f64;
        let mean = sorted.iter().map(|v| *v as f64).sum::<f64>() / n;
        prop_assert!((held.mean().unwrap() - mean).abs() <= mean * 1e-12);
        let squares: f64 = sorted.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
        match held.deviation() {
            None => prop_assert_eq!(sorted.len(), 1),
            Some(said) => {
                let truth = (squares / (n - 1.0)).sqrt();
                prop_assert!((said - truth).abs() <= truth * 1e-9 + 1e-6, "{said} for {truth}");
            }
        }
    }

    #[test]
    fn added_is_as_recorded_together(a in times(), b in times()) {
        let together: Distribution = a.iter().chain(&b).copied().collect();
        let mut added: Distribution = a.into_iter().collect();
        added.merge(&b.into_iter().collect()).unwrap();
        prop_assert_eq!(added, together);
    }

    #[test]
    fn a_file_gives_back_what_it_was_given(values in times(), digits in 1_u8..=4, highest in 1_u64..(1 << 40)) {
        let mut histogram = Histogram::new(Grid::new(digits, highest).unwrap());
        histogram.extend(values);
        let held = histogram.distribution();
        let text = serde_json::to_string(&held).unwrap();
        prop_assert_eq!(serde_json::from_str::<Distribution>(&text).unwrap(), held);
    }
}

#[test]
fn what_is_too_long_is_counted() {
    let mut histogram = Histogram::new(Grid::new(2, 1000).unwrap());
    histogram.extend([1, 2, 3, 5000, 70_000]);
    let held = histogram.distribution();
    assert_eq!(
        (held.count(), held.overflow(), held.max()),
        (5, 2, Some(70_000))
    );
    assert_eq!(held.quantile(Quantile::P50), Some(3));
    // The fourth of five is above the highest: said too high rather than too low.
    assert_eq!(held.at_rank(4), Some(70_000));
    histogram.clear();
    assert_eq!(histogram.distribution().min(), None);
    assert_eq!(histogram.distribution().quantile(Quantile::P50), None);
}

#[test]
fn a_deviation_far_from_zero_keeps_its_digits() {
    // In floating point the squares of these lose the deviation altogether.
    let base = 60_000_000_000_u64;
    let held: Distribution = [base, base + 1, base + 2].into_iter().collect();
    assert_eq!(held.deviation(), Some(1.0));
}

#[test]
fn other_buckets_are_refused() {
    let mut fine: Distribution = [1].into_iter().collect();
    let coarse = Histogram::new(Grid::new(1, 10).unwrap()).distribution();
    assert!(fine.merge(&coarse).is_err());

    let file = r#"{"digits": 3, "highest": 68719476735, "count": 18446744073709551615, "overflow": 0,
        "min": 1, "max": 1, "sum": "18446744073709551615", "squares": "0", "buckets": [[1, 18446744073709551615]]}"#;
    let most: Distribution = serde_json::from_str(file).unwrap();
    let before = fine.clone();
    assert!(fine.merge(&most).is_err());
    assert_eq!(fine, before);
    assert_eq!(most.quantile(Quantile::P99), Some(1));
    assert!(most.deviation().is_some());
}

#[test]
fn a_distribution_that_contradicts_itself_is_refused() {
    let good =
        serde_json::to_value([1_u64, 2, 3000].into_iter().collect::<Distribution>()).unwrap();
    for (field, value, says) in [
        ("digits", serde_json::json!(9), "one to four digits"),
        (
            "count",
            4.into(),
            "the buckets hold 3 values, but count is 4",
        ),
        ("min", 0.into(), "do not belong"),
        ("max", 1.into(), "do not belong"),
        ("overflow", 2.into(), "do not belong"),
        ("sum", "1".into(), "do not belong"),
        ("sum", "-1".into(), "sum is not a whole number"),
        (
            "buckets",
            serde_json::json!([[2, 1], [1, 2]]),
            "the bucket at 1",
        ),
        (
            "buckets",
            serde_json::json!([[2, u64::MAX], [3, 2]]),
            "the bucket at 3",
        ),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        let error = serde_json::from_value::<Distribution>(bad).unwrap_err();
        assert!(error.to_string().contains(says), "{field}: {error}");
    }
}
