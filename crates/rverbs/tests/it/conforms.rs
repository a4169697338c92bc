//! Each provider conforms; the kernel's rxe does in a guest.

use std::time::Duration;

use rdma_lab::qemu::Guest;
use rverbs::provider::Kind;

use crate::conformance::run;

#[test]
fn shm_conforms() {
    assert!(run(Kind::Shm), "every Linux has shared memory");
}

#[test]
fn verbs_conforms() {
    run(Kind::Verbs);
}

#[test]
fn roce_conforms() {
    assert!(run(Kind::Roce), "every Linux has a loopback interface");
}

/// This program again, on a machine with a device.
#[test]
fn verbs_conforms_on_rxe() {
    let test = "verbs_conforms_on_rxe";
    if rdma_lab::skip::lacks_qemu(test) {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = program.file_name().unwrap().to_str().unwrap().to_owned();
    let mut guest = Guest::builder().rxe(true).program(program).boot().unwrap();
    let script = format!("cd /tmp; {name} conforms::verbs_conforms --exact --nocapture");
    let output = guest.run(&script, Duration::from_secs(200)).unwrap();
    let said = format!("{}{}", output.stdout_text(), output.stderr_text());
    let held = said.lines().find(|line| line.contains("cases hold"));
    eprintln!(
        "Linux {}, up after {:.1} s, {:.1} s in the guest: {}",
        guest.kernel(),
        guest.booted_after().as_secs_f64(),
        output.wall.as_secs_f64(),
        held.unwrap_or("nothing was tried")
    );
    assert!(output.code == 0 && held.is_some(), "{said}");
}
