//! One side is killed: the other one ends, with an error or a disconnection, and does not hang.

use std::time::{Duration, Instant};

use rdma_lab::preload::Provider;
use rdma_lab::skip;

use crate::lab;

/// How long the other side may take to notice; RoCE has to run out of retries.
const NOTICE: Duration = Duration::from_secs(20);

fn a_client_ends_with_its_server(
    test: &str,
    provider: Provider,
    (server, client): (&[&str], &[&str]),
    port: u16,
    running: &str,
) -> Option<i32> {
    let ([program, server @ ..], [_, client @ ..]) = (server, client) else {
        return None;
    };
    if skip::lacks(test, &[program]) {
        return None;
    }
    let lab = lab(provider);
    let mut server = lab.serve(program, server, port).unwrap();
    let mut client = lab.start(program, client).unwrap();
    client
        .wait_until(running, Duration::from_secs(30), |client| {
            Ok(String::from_utf8_lossy(&client.stdout()).contains(running))
        })
        .unwrap();
    server.kill();
    let begin = Instant::now();
    let mut code = None;
    while begin.elapsed() < NOTICE && code.is_none() {
        code = client.try_wait().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    eprintln!(
        "{test}: {program} ended with {code:?} {:.2} s after its peer was killed (soft-{})",
        begin.elapsed().as_secs_f64(),
        provider.name()
    );
    assert!(code.is_some(), "{program} hangs after its peer was killed");
    code
}

#[test]
fn work_in_flight_completes_with_an_error() {
    // Over shared memory; what perftest prints first comes when all of it is connected.
    let args = ["ib_write_lat", "-D", "60", "-p", "7190", "-F"];
    let client = [&args[..], &["127.0.0.1"]].concat();
    let code = a_client_ends_with_its_server(
        "work_in_flight_completes_with_an_error",
        Provider::Shm,
        (&args, &client),
        7190,
        "",
    );
    assert_ne!(code, Some(0));
}

#[test]
fn a_connection_ends_with_its_peer() {
    let code = a_client_ends_with_its_server(
        "a_connection_ends_with_its_peer",
        Provider::Shm,
        (
            &["rping", "-s", "-a", "127.0.0.1", "-p", "7191"],
            &["rping", "-c", "-a", "127.0.0.1", "-p", "7191", "-v"],
        ),
        7191,
        "ping data: rdma-ping-1",
    );
    // rping takes a disconnection for a normal end.
    assert!(matches!(code, None | Some(0)));
}

#[test]
fn nobody_listens_and_the_client_is_told() {
    let test = "nobody_listens_and_the_client_is_told";
    if skip::lacks(test, &["rping"]) {
        return;
    }
    for provider in [Provider::Shm, Provider::Roce] {
        let lab = lab(provider);
        let client = lab
            .start("rping", &["-c", "-a", "127.0.0.1", "-p", "7192"])
            .unwrap();
        let output = client.finish(NOTICE, || Ok(())).unwrap();
        assert_ne!(output.code, 0);
        let said = output.stderr_text();
        // RoCE: no process has the standard port, so nobody answers at all.
        let told = [
            "RDMA_CM_EVENT_REJECTED, error 8",
            "RDMA_CM_EVENT_UNREACHABLE",
        ];
        assert!(told.iter().any(|told| said.contains(told)), "{said}");
    }
}
