//! The library says nothing, unless it is asked to.

use std::process::Command;
use std::time::Duration;

use rdma_lab::preload::Provider;

use crate::lab;

#[test]
fn a_program_that_has_nothing_to_do_with_rdma_does_not_notice_it() {
    let lab = lab(Provider::Shm);
    let plain = Command::new("/bin/ls").arg("/").output().unwrap();
    let under = rdma_lab::process::run(
        lab.command("/bin/ls".as_ref()).arg("/"),
        Duration::from_secs(30),
    )
    .unwrap();
    assert_eq!(under.code, 0);
    assert_eq!(under.stdout, plain.stdout);
    assert_eq!(under.stderr_text(), "");
}

#[test]
fn it_talks_when_it_is_asked_to() {
    let test = "it_talks_when_it_is_asked_to";
    if rdma_lab::skip::lacks(test, &["ibv_devinfo"]) {
        return;
    }
    let lab = lab(Provider::Shm);
    let devinfo = rdma_lab::peer::need("ibv_devinfo").unwrap();
    let run = |level: Option<&str>| {
        let mut command = lab.command(&devinfo);
        if let Some(level) = level {
            command.env("RVERBS_LOG", level);
        }
        rdma_lab::process::run(&command, Duration::from_secs(30))
            .unwrap()
            .stderr_text()
    };
    assert_eq!(run(None), "");
    let said = run(Some("info"));
    assert!(
        said.contains("opened") && said.contains("soft-shm"),
        "{said}"
    );
}
