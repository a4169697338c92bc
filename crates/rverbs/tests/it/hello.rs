//! The example of the book, as two processes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

fn example(args: &[&str]) -> Child {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/hello");
    assert!(
        path.exists(),
        "build it: cargo build -p rverbs --example hello"
    );
    Command::new(path)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn say_hello(device: &str, kind: &str) {
    let mut listener = example(&[device, "listen", "0"]);
    let mut out = BufReader::new(listener.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let port = line.trim().rsplit(' ').next().unwrap();
    let caller = example(&[device, "connect", &format!("127.0.0.1:{port}")]);
    let caller = caller.wait_with_output().unwrap();
    let mut heard = String::new();
    out.read_to_string(&mut heard).unwrap();
    assert!(listener.wait().unwrap().success());
    assert!(caller.status.success());
    let said = String::from_utf8(caller.stdout).unwrap();
    for (text, message, written) in [
        (&heard, "from the caller", "rellac eht morf"),
        (&said, "from the listener", "renetsil eht morf"),
    ] {
        for part in [message, written, kind] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn over_shared_memory() {
    say_hello("shm0", "soft-shm");
}

#[test]
fn over_udp() {
    say_hello("roce_lo", "soft-roce");
}
