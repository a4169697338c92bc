//! The installed libraries have what is looked for.

use rverbs_sys::{Cm, Error, Verbs};

/// Functions that came after rdma-core 44.
const NEWER: &[&str] = &[];

fn check(test: &str, missing: Result<Vec<&'static str>, Error>) {
    match missing {
        Ok(missing) => {
            let missing: Vec<_> = missing
                .into_iter()
                .filter(|name| !NEWER.contains(name))
                .collect();
            assert!(missing.is_empty(), "{missing:?}");
        }
        Err(error) => eprintln!("SKIPPED: {test}: {error}"),
    }
}

#[test]
fn libibverbs_has_every_function() {
    let missing = Verbs::load().map(|verbs| verbs.missing());
    check("libibverbs_has_every_function", missing);
}

#[test]
fn librdmacm_has_every_function() {
    let missing = Cm::load().map(|cm| cm.missing());
    check("librdmacm_has_every_function", missing);
}
