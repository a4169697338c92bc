//! The provider `verbs` conforms over the preloaded library: what a program sees of our devices through
//! libibverbs' functions is what it sees of them without.

use std::time::Duration;

use rdma_lab::preload::Provider;
use rverbs::provider::Kind;

use crate::conformance::run;
use crate::lab;

/// Does nothing unless it runs under the library, as the tests below make it.
#[test]
fn under_the_library() {
    if std::env::var_os("RVERBS_PROVIDER").is_some() {
        assert!(run(Kind::Verbs), "the library has no device");
    }
}

fn verbs_over(provider: Provider) {
    let program = std::env::current_exe().unwrap();
    let mut command = lab(provider).command(&program);
    command.args(["conforms::under_the_library", "--exact", "--nocapture"]);
    let output = rdma_lab::process::run(&command, Duration::from_secs(200)).unwrap();
    let said = format!("{}{}", output.stdout_text(), output.stderr_text());
    let held = said.lines().find(|line| line.contains("cases hold"));
    eprintln!(
        "over soft-{}, {:.1} s: {}",
        provider.name(),
        output.wall.as_secs_f64(),
        held.unwrap_or("nothing was tried")
    );
    assert!(output.code == 0 && held.is_some(), "{said}");
}

#[test]
fn verbs_conforms_over_shm() {
    verbs_over(Provider::Shm);
}

#[test]
fn verbs_conforms_over_roce() {
    verbs_over(Provider::Roce);
}
