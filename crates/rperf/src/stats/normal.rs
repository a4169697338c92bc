//! The normal distribution and Student's.

/// How much of the standard normal distribution lies below `z`. Relative error below 1.2e-7.
pub(super) fn cdf(z: f64) -> f64 {
    // The complementary error function by Chebyshev fitting (Numerical Recipes, `erfcc`).
    const FIT: [f64; 10] = [
        0.170_872_77,
        -0.822_152_23,
        1.488_515_87,
        -1.135_203_98,
        0.278_868_07,
        -0.186_288_06,
        0.096_784_18,
        0.374_091_96,
        1.000_023_68,
        -1.265_512_23,
    ];
    let x = z.abs() / core::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = FIT.iter().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (series - x * x).exp();
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// The `z` below which `part` of the standard normal distribution lies.
pub(super) fn quantile(part: f64) -> f64 {
    let (mut low, mut high) = (-40.0_f64, 40.0_f64);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if cdf(middle) < part {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The `t` beyond which, on both sides together, `part` of Student's distribution with `freedom`
/// degrees lies (Hill 1970, algorithm 396).
pub(super) fn student(part: f64, freedom: u32) -> f64 {
    let n = f64::from(freedom);
    match freedom {
        0 => return f64::INFINITY,
        1 => return 1.0 / (part * core::f64::consts::FRAC_PI_2).tan(),
        2 => return (2.0 / (part * (2.0 - part)) - 2.0).sqrt(),
        _ => {}
    }
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * core::f64::consts::FRAC_PI_2).sqrt() * n;
    let mut y = (d * part).powf(2.0 / n);
    if y > 0.05 + a {
        let x = quantile(part * 0.5);
        y = x * x;
        if freedom < 5 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = (a * y * y).exp_m1();
    } else {
        let inner = ((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0;
        y = ((1.0 / inner + 0.5 / (n + 4.0)) * y - 1.0) * (n + 1.0) / (n + 2.0) + 1.0 / y;
    }
    (n * y).sqrt()
}

/// How often chance alone gives a Student's `t` so far out, on either side: what [`student`]
/// inverts.
pub(super) fn student_tails(t: f64, freedom: u32) -> f64 {
    // By halving the exponent of the part, so that small ones keep their digits.
    let (mut low, mut high) = (-300.0_f64, 0.0_f64);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if student(middle.exp(), freedom) > t.abs() {
            low = middle;
        } else {
            high = middle;
        }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use super::{cdf, quantile, student, student_tails};

    #[test]
    fn as_the_tables_say() {
        for (z, part) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746),
            (-1.96, 0.024_997_895),
            (3.0, 0.998_650_102),
        ] {
            assert!((cdf(z) - part).abs() < 1e-6, "{z}");
        }
        assert!((quantile(0.975) - 1.959_964).abs() < 1e-5);
        for (part, freedom, t) in [
            (0.05, 1, 12.706_205),
            (0.05, 2, 4.302_653),
            (0.05, 3, 3.182_446),
            (0.05, 4, 2.776_445),
            (0.05, 9, 2.262_157),
            (0.05, 29, 2.045_230),
            (0.01, 5, 4.032_143),
            (0.001, 10, 4.586_894),
        ] {
            let said = student(part, freedom);
            assert!(
                (said - t).abs() < t * 2e-4,
                "{part} {freedom}: {said} for {t}"
            );
            assert!((student_tails(-t, freedom) - part).abs() < part * 2e-3);
        }
    }
}
