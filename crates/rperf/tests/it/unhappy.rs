//! What a user sees when the other side is not what it should be, and that nothing hangs.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use rdma_lab::Output;
use rdma_lab::preload::listens;
use rdma_lab::process::{Running, run};

use crate::peer::port;

/// Far longer than anything here takes, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn rperf(args: &[&str], port: u16) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
    command.args(args);
    command.args(["--provider", "shm", "-p", &port.to_string()]);
    command
}

fn serve(args: &[&str], port: u16) -> Running {
    let mut server = Running::start(&rperf(args, port)).unwrap();
    server
        .wait_until("its port", LIMIT, |_| Ok(listens(port)))
        .unwrap();
    server
}

/// The exit code, and what is said without what is before it.
fn said(output: &Output) -> (i32, String) {
    let text = output.stderr_text();
    let from = text.find("error: ").unwrap_or(0);
    (output.code, text[from..].to_owned())
}

/// What a server says to a client that says `bytes` and then closes its end, or just waits.
fn answer(bytes: &[u8], close: bool, more: &[&str]) -> (i32, String) {
    let port = port();
    let server = serve(&[&["send", "lat"], more].concat(), port);
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.write_all(bytes).unwrap();
    if close {
        client.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let output = server.end(LIMIT);
    drop(client);
    said(&output)
}

#[test]
fn nobody_listens() {
    let output = run(&rperf(&["send", "lat", "127.0.0.1"], port()), LIMIT).unwrap();
    let (code, text) = said(&output);
    assert_eq!(code, 6, "{text}");
    assert!(text.contains("Connection refused"), "{text}");
    assert!(text.contains("hint: start the server first"), "{text}");
}

#[test]
fn who_calls_is_another_program() {
    let (code, text) = answer(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", false, &[]);
    assert_eq!(code, 7, "{text}");
    assert!(
        text.contains("the peer is no perftest: it begins with \"GET / HTTP/1.1\\r\\n\""),
        "{text}"
    );
}

#[test]
fn who_calls_is_too_old() {
    let (code, text) = answer(b"5.60\0\0\0\0\0\0\0\0\0\0\0\0", false, &[]);
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("the peer is perftest 5.60"), "{text}");
}

#[test]
fn who_calls_hangs_up() {
    let (code, text) = answer(b"6.06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10", true, &[]);
    assert_eq!(code, 6, "{text}");
    assert!(
        text.contains("the peer closed the connection while exchanging page sizes"),
        "{text}"
    );
}

#[test]
fn who_calls_says_nothing() {
    let begin = Instant::now();
    let (code, text) = answer(b"", false, &["--timeout", "1"]);
    assert_eq!(code, 6, "{text}");
    assert!(text.contains("exchanging versions failed"), "{text}");
    assert!(begin.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_key_is_no_key() {
    let greeting: Vec<u8> = [
        &b"6.06\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        &4096_u32.to_be_bytes(),
        &64_u32.to_be_bytes(),
        b"5\0",
        &[b'z'; 108],
    ]
    .concat();
    let (code, text) = answer(&greeting, false, &[]);
    assert_eq!(code, 7, "{text}");
    assert!(
        text.contains("the peer's lid at byte 0 is not a number in hexadecimal"),
        "{text}"
    );
}

#[test]
fn the_sides_want_different_things() {
    let port = port();
    let server = serve(&["write", "bw"], port);
    let client = run(&rperf(&["send", "lat", "127.0.0.1"], port), LIMIT).unwrap();
    let (code, text) = said(&client);
    assert_eq!(code, 7, "{text}");
    assert!(
        text.contains("the test is send lat, RC here and write bw, RC at the peer"),
        "{text}"
    );
    let (code, text) = said(&server.end(LIMIT));
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("write bw, RC here"), "{text}");
}

#[test]
fn the_other_side_dies_in_the_middle() {
    for (test, victim_is_client) in [
        (["send", "lat"], true),
        (["send", "bw"], true),
        (["write", "lat"], false),
        (["write", "bw"], false),
        (["read", "bw"], true),
    ] {
        let port = port();
        let mut server = serve(&[test[0], test[1], "-D", "50", "-f", "1"], port);
        let args = [test[0], test[1], "127.0.0.1", "-D", "50", "-f", "1"];
        let mut client = Running::start(&rperf(&args, port)).unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let begin = Instant::now();
        let survivor = if victim_is_client {
            client.kill();
            server
        } else {
            server.kill();
            client
        };
        let (code, text) = said(&survivor.end(LIMIT));
        assert_eq!(code, 6, "{test:?}: {text}");
        assert!(
            ["the peer left", "failed", "closed the connection"]
                .iter()
                .any(|it| text.contains(it)),
            "{test:?}: {text}"
        );
        assert!(
            begin.elapsed() < Duration::from_secs(40),
            "{test:?} took {:?}",
            begin.elapsed()
        );
    }
}

/// A peer of a later version sees ours and leaves out what ours does not know.
#[test]
fn a_later_version_is_spoken_with() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = Running::start(&rperf(&["send", "bw", "127.0.0.1"], port)).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut swap = |own: &[u8]| {
        let mut theirs = vec![0; own.len()];
        stream.read_exact(&mut theirs).unwrap();
        stream.write_all(own).unwrap();
        theirs
    };
    let version = swap(b"6.29\0\0\0\0\0\0\0\0\0\0\0\0");
    assert!(version.starts_with(b"6.06\0"));
    assert_eq!(swap(&8192_u32.to_be_bytes()), 4096_u32.to_be_bytes());
    assert_eq!(swap(&64_u32.to_be_bytes()), 64_u32.to_be_bytes());
    assert_eq!(swap(b"5\0"), b"5\0");
    // Its first key comes at once, as perftest's does.
    let mut key = [0; 59];
    stream.read_exact(&mut key).unwrap();
    assert_eq!(key[4], b':');
    drop(stream);
    let (code, text) = said(&client.end(LIMIT));
    assert_eq!(code, 6, "{text}");
    assert!(
        text.contains("closed the connection while exchanging addresses"),
        "{text}"
    );
}
