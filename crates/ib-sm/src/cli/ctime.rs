//! The date as `ctime` prints it, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    ctime(since.map_or(0, |since| since.as_secs()))
}

/// `Tue Dec  1 03:04:05 2026`, from seconds since 1970.
fn ctime(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, so that the leap day ends a year (Howard Hinnant's algorithm).
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 2
    } else {
        shifted_month - 10
    };
    let year = year_of_era + era * 400 + u64::from(month < 2);
    let name = |names: &[&'static str], index: u64| -> &'static str {
        usize::try_from(index)
            .ok()
            .and_then(|index| names.get(index).copied())
            .unwrap_or("?")
    };
    format!(
        "{} {} {day:2} {:02}:{:02}:{:02} {year}",
        name(&DAYS, days % 7),
        name(&MONTHS, month),
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::ctime;

    #[test]
    fn is_what_ctime_prints() {
        assert_eq!(ctime(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(ctime(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(ctime(1_796_093_045), "Tue Dec  1 02:44:05 2026");
        assert_eq!(ctime(4_107_542_399), "Sun Feb 28 23:59:59 2100");
    }
}
