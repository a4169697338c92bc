//! Debian's programs on both devices.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use rdma_lab::preload::{self, Case, Provider, Row, Verdict, cases};
use rdma_lab::{peer, skip};

/// At a time; most of them sleep most of the time, and CI's machines have two processors.
const JOBS: usize = 4;

/// How long a program may run, while others do and a machine does other things.
const LIMIT: Duration = Duration::from_secs(120);

/// Programs with a socket or a file of their own are not found twice, so both devices take turns.
static TURN: Mutex<()> = Mutex::new(());

fn all_do_what_they_should(test: &str, provider: Provider) {
    let _turn = TURN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let needed: BTreeSet<&str> = cases().flat_map(Case::programs).collect();
    let missing: Vec<&str> = needed
        .into_iter()
        .filter(|program| peer(program).is_none())
        .collect();
    if !missing.is_empty() {
        let why: Vec<String> = missing.iter().map(|name| peer::not_found(name)).collect();
        skip::peer_missing(test, &why.join("; "));
    }
    let here: Vec<&'static Case> = cases()
        .filter(|case| !case.is_slow())
        .filter(|case| case.programs().all(|program| !missing.contains(&program)))
        .collect();
    let library = preload::library().unwrap();
    let rows = preload::run_all(&library, provider, LIMIT, JOBS, &here, |_| {});
    eprint!("{}", preload::table(&rows));
    let failed: Vec<&Row> = rows
        .iter()
        .filter(|row| matches!(row.verdict, Verdict::Fails(_)))
        .collect();
    let failed: Vec<String> = failed.iter().map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn debians_programs_run_on_shm() {
    all_do_what_they_should("debians_programs_run_on_shm", Provider::Shm);
}

#[test]
fn debians_programs_run_on_roce() {
    all_do_what_they_should("debians_programs_run_on_roce", Provider::Roce);
}
