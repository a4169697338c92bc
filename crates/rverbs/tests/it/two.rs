//! Two processes: this test's binary runs itself again as the peer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use rverbs_sys::*;

use crate::raw::End;

/// The other process.
pub(crate) struct Peer {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
}

const MARK: &str = "peer> ";

impl Peer {
    pub(crate) fn start(test: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture", test])
            .env("RVERBS_TEST_PEER", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    pub(crate) fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "the peer ended");
            if let Some((_, text)) = line.split_once(MARK) {
                return text.trim().into();
            }
        }
    }

    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{line}").unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().unwrap();
        if !std::thread::panicking() {
            assert!(status.success() || status.code().is_none());
        }
    }
}

pub(crate) fn is_peer() -> bool {
    std::env::var_os("RVERBS_TEST_PEER").is_some()
}

#[expect(clippy::print_stdout, reason = "the pipe to the other process")]
pub(crate) fn say(line: &str) {
    println!("\n{MARK}{line}");
}

pub(crate) fn hear() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    line.trim().into()
}

pub(crate) fn numbers(line: &str) -> Vec<u64> {
    line.split(' ').map(|part| part.parse().unwrap()).collect()
}

fn everything(mapped: bool, test: &str) {
    let end = End::new(1 << 20, mapped);
    if is_peer() {
        end.write(300_000, b"for reading");
        end.write(400_000, &40_u64.to_ne_bytes());
        say(&end.address());
        let theirs = numbers(&hear());
        end.connect(u32::try_from(theirs[0]).unwrap());
        end.recv(1, 0, 64);
        end.recv(2, 64, 200_000);
        say("ready");
        assert_eq!(end.done(1).byte_len, 5);
        assert_eq!(end.read(0, 5), b"hello");
        assert_eq!(end.done(2).byte_len, 150_000);
        assert!(end.read(64, 150_000).iter().all(|&byte| byte == 7));
        // A write needs no help: its last byte is waited for.
        while end.read(500_000 + 99_999, 1) != [9] {}
        assert!(end.read(500_000, 100_000).iter().all(|&byte| byte == 9));
        say("seen");
        assert_eq!(hear(), "end");
        return;
    }
    let mut peer = Peer::start(test);
    let theirs = numbers(&peer.hear());
    let (qpn, rkey, addr) = (
        u32::try_from(theirs[0]).unwrap(),
        u32::try_from(theirs[1]).unwrap(),
        theirs[2],
    );
    peer.say(&end.address());
    end.connect(qpn);
    assert_eq!(peer.hear(), "ready");
    end.write(0, b"hello");
    assert_eq!(end.post(10, IBV_WR_SEND, 0, 5, |_| ()), 0);
    end.done(10);
    end.write(1000, &vec![7; 150_000]);
    assert_eq!(end.post(11, IBV_WR_SEND, 1000, 150_000, |_| ()), 0);
    end.done(11);
    let remote = |offset: u64| ibv_send_wr_rdma {
        remote_addr: addr + offset,
        rkey,
    };
    end.post(12, IBV_WR_RDMA_READ, 200_000, 11, |wr| {
        wr.wr.rdma = remote(300_000);
    });
    end.done(12);
    assert_eq!(end.read(200_000, 11), b"for reading");
    for (id, opcode, compare, swap, old) in [
        (13, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0, 40_u64),
        (14, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 50, 42),
        (15, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 60, 50),
    ] {
        end.post(id, opcode, 300_000, 8, |wr| {
            wr.wr.atomic = ibv_send_wr_atomic {
                remote_addr: addr + 400_000,
                compare_add: compare,
                swap,
                rkey,
            };
        });
        end.done(id);
        assert_eq!(end.read(300_000, 8), old.to_ne_bytes());
    }
    end.write(0, &vec![9; 100_000]);
    end.post(16, IBV_WR_RDMA_WRITE, 0, 100_000, |wr| {
        wr.wr.rdma = remote(500_000);
    });
    end.done(16);
    assert_eq!(peer.hear(), "seen");
    // A key that is not there: nothing moves, and both sides fail.
    end.post(17, IBV_WR_RDMA_WRITE, 0, 8, |wr| {
        wr.wr.rdma = ibv_send_wr_rdma {
            remote_addr: addr,
            rkey: rkey ^ 0x100,
        };
    });
    let wc = end.wait();
    assert_eq!((wc.wr_id, wc.status), (17, IBV_WC_REM_ACCESS_ERR));
    end.post(18, IBV_WR_SEND, 0, 5, |_| ());
    assert_eq!(end.wait().status, IBV_WC_WR_FLUSH_ERR);
    peer.say("end");
}

#[test]
fn send_write_read_and_atomics_by_mapped_buffers() {
    everything(true, "two::send_write_read_and_atomics_by_mapped_buffers");
}

#[test]
fn send_write_read_and_atomics_by_the_kernel() {
    everything(false, "two::send_write_read_and_atomics_by_the_kernel");
}

#[test]
fn a_peer_that_dies_ends_in_errors() {
    let end = End::new(4096, false);
    if is_peer() {
        say(&end.address());
        end.connect(u32::try_from(numbers(&hear())[0]).unwrap());
        say("ready");
        hear();
        return;
    }
    let mut peer = Peer::start("two::a_peer_that_dies_ends_in_errors");
    let theirs = numbers(&peer.hear());
    peer.say(&end.address());
    end.connect(u32::try_from(theirs[0]).unwrap());
    assert_eq!(peer.hear(), "ready");
    end.recv(1, 0, 8);
    // Nobody has posted a receive request, so this waits.
    end.post(2, IBV_WR_SEND, 0, 8, |_| ());
    assert!(end.poll().is_none());
    peer.kill();
    let mut got = [end.wait(), end.wait()].map(|wc| (wc.wr_id, wc.status));
    got.sort_unstable();
    assert_eq!(got, [(1, IBV_WC_WR_FLUSH_ERR), (2, IBV_WC_RETRY_EXC_ERR)]);
}
