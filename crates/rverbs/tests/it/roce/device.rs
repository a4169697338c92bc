//! Two devices on real sockets, through the C structures that programs use.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rverbs::provider::Context;
use rverbs::provider::roce::{Config, open};
use rverbs_sys::{
    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_SEND_INLINE, IBV_SEND_SIGNALED, IBV_WC_REM_ACCESS_ERR,
    IBV_WC_SUCCESS, IBV_WC_WR_FLUSH_ERR, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
    IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM, ibv_wc, ibv_wr_opcode,
};

use super::side::Side;

fn device(base_port: u16) -> Arc<dyn Context> {
    let config = Config {
        base_port,
        ..Config::new("roce_test", IpAddr::V4(Ipv4Addr::LOCALHOST))
    };
    open(&config).unwrap()
}

/// A connected pair, in two devices with a port each.
fn pair(base_port: u16, kind: u32, len: usize) -> (Side, Side) {
    let mut a = Side::new(device(base_port), kind, len, 64, 0x11).unwrap();
    let mut b = Side::new(device(base_port), kind, len, 64, 0xff_fffe).unwrap();
    let (ra, rb) = (a.local(), b.local());
    assert_ne!(ra.qpn >> 17, rb.qpn >> 17, "two processes, two ports");
    a.connect(rb, 5).unwrap();
    b.connect(ra, 5).unwrap();
    (a, b)
}

fn fill(side: &mut Side, seed: u8) {
    for (index, byte) in side.bytes_mut().iter_mut().enumerate() {
        *byte = (index as u8).wrapping_mul(31).wrapping_add(seed);
    }
}

/// A signaled one-sided request.
fn rdma(
    side: &Side,
    wr_id: u64,
    opcode: ibv_wr_opcode,
    part: (usize, usize),
    addr: u64,
    rkey: u32,
) -> i32 {
    side.post_send(wr_id, opcode, part, IBV_SEND_SIGNALED, |wr| {
        wr.wr.rdma = rverbs_sys::ibv_send_wr_rdma {
            remote_addr: addr,
            rkey,
        };
    })
}

/// Polls for a while.
fn poll(side: &Side) -> ibv_wc {
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        if let Some(wc) = side.poll() {
            return wc;
        }
        std::thread::yield_now();
    }
    panic!("no completion");
}

fn done(side: &Side, wr_id: u64) -> ibv_wc {
    let wc = poll(side);
    assert_eq!((wc.status, wc.wr_id), (IBV_WC_SUCCESS, wr_id));
    wc
}

#[test]
fn rc_moves_messages_and_memory() {
    let (mut a, mut b) = pair(20_000, IBV_QPT_RC, 1 << 20);
    fill(&mut a, 1);
    fill(&mut b, 2);
    let big = 300_001;
    assert_eq!(b.post_recv(1, 0, 1 << 19), 0);
    assert_eq!(
        a.post_send(2, IBV_WR_SEND_WITH_IMM, (5, big), IBV_SEND_SIGNALED, |wr| {
            wr.imm.imm_data = 77;
        }),
        0
    );
    let got = done(&b, 1);
    assert_eq!(got.byte_len as usize, big);
    assert_eq!(unsafe { got.imm.imm_data }, 77);
    done(&a, 2);
    assert_eq!(b.bytes()[..big], a.bytes()[5..5 + big]);
    // The peer does nothing for these.
    assert_eq!(
        rdma(
            &a,
            3,
            IBV_WR_RDMA_WRITE,
            (0, big),
            b.addr() + 400_000,
            b.rkey()
        ),
        0
    );
    done(&a, 3);
    assert_eq!(b.bytes()[400_000..400_000 + big], a.bytes()[..big]);
    assert_eq!(
        rdma(
            &a,
            4,
            IBV_WR_RDMA_READ,
            (700_000, 200_000),
            b.addr() + 3,
            b.rkey()
        ),
        0
    );
    done(&a, 4);
    assert_eq!(a.bytes()[700_000..900_000], b.bytes()[3..200_003]);
    b.buf[100_000] = 41;
    for (wr_id, opcode, compare_add, swap, old, new) in [
        (5, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 41, 42),
        (6, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 7, 42, 7),
        (7, IBV_WR_ATOMIC_CMP_AND_SWP, 42, 9, 7, 7),
    ] {
        let posted = a.post_send(wr_id, opcode, (64, 8), IBV_SEND_SIGNALED, |wr| {
            wr.wr.atomic = rverbs_sys::ibv_send_wr_atomic {
                remote_addr: b.addr() + 800_000,
                compare_add,
                swap,
                rkey: b.rkey(),
            };
        });
        assert_eq!(posted, 0);
        done(&a, wr_id);
        assert_eq!((a.buf[8], b.buf[100_000]), (old, new));
    }
    assert_eq!(b.post_recv(8, 0, 0), 0);
    let posted = a.post_send(
        9,
        IBV_WR_RDMA_WRITE_WITH_IMM,
        (0, 16),
        IBV_SEND_INLINE | IBV_SEND_SIGNALED,
        |wr| {
            wr.wr.rdma = rverbs_sys::ibv_send_wr_rdma {
                remote_addr: b.addr(),
                rkey: b.rkey(),
            };
        },
    );
    assert_eq!(posted, 0);
    assert_eq!(done(&b, 8).byte_len, 16);
    done(&a, 9);
}

#[test]
fn a_wrong_key_is_refused_and_everything_is_flushed() {
    let (a, b) = pair(20_010, IBV_QPT_RC, 4096);
    assert_eq!(b.post_recv(1, 0, 64), 0);
    assert_eq!(a.post_recv(2, 0, 64), 0);
    assert_eq!(
        rdma(&a, 3, IBV_WR_RDMA_WRITE, (0, 64), b.addr() + 4064, b.rkey()),
        0
    );
    assert_eq!(
        rdma(&a, 4, IBV_WR_RDMA_WRITE, (0, 64), b.addr(), b.rkey()),
        0
    );
    let wc = poll(&a);
    assert_eq!((wc.wr_id, wc.status), (3, IBV_WC_REM_ACCESS_ERR));
    for _ in 0..2 {
        assert_eq!(poll(&a).status, IBV_WC_WR_FLUSH_ERR);
    }
    let wc = poll(&b);
    assert_eq!((wc.wr_id, wc.status), (1, IBV_WC_WR_FLUSH_ERR));
    assert!(b.bytes().iter().all(|byte| *byte == 0));
    assert_eq!(a.post_recv(5, 0, 64), 0);
    let wc = poll(&a);
    assert_eq!((wc.wr_id, wc.status), (5, IBV_WC_WR_FLUSH_ERR));
}

#[test]
fn uc_and_ud_deliver() {
    for kind in [IBV_QPT_UC, IBV_QPT_UD] {
        let (mut a, b) = pair(20_020, kind, 1 << 16);
        fill(&mut a, 3);
        let grh = if kind == IBV_QPT_UD { 40 } else { 0 };
        let len = if kind == IBV_QPT_UD { 4000 } else { 30_000 };
        assert_eq!(b.post_recv(1, 0, 40_000), 0);
        assert_eq!(
            a.post_send(2, IBV_WR_SEND, (7, len), IBV_SEND_SIGNALED, |_| ()),
            0
        );
        assert_eq!(done(&b, 1).byte_len as usize, len + grh);
        done(&a, 2);
        assert_eq!(b.bytes()[grh..grh + len], a.bytes()[7..7 + len]);
    }
}
