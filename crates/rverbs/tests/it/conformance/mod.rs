//! The same cases for every provider.

mod case;
pub(crate) mod lab;
mod meet;
mod object;
mod repeat;

use std::panic::{AssertUnwindSafe, catch_unwind};

use rverbs::provider::Kind;

use lab::Lab;

/// Runs all cases on the first device of a provider; false where there is none.
pub(crate) fn run(kind: Kind) -> bool {
    let Some(lab) = Lab::open(kind) else {
        return false;
    };
    let name = lab.context.name().to_owned();
    let failed: Vec<&str> = case::CASES
        .iter()
        .filter(|(case_name, case)| {
            eprintln!("{kind} {name}: {case_name}");
            // All are tried, so that a device's report is whole.
            catch_unwind(AssertUnwindSafe(|| case(&lab))).is_err()
        })
        .map(|(name, _)| *name)
        .collect();
    let cases = case::CASES.len();
    let held = cases - failed.len();
    eprintln!("{kind} {name}: {held} of {cases} cases hold");
    assert!(failed.is_empty(), "{kind} {name}: {failed:?}");
    true
}
