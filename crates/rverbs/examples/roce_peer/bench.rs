//! Figures on loopback, with bare UDP beside them.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rverbs::provider::roce::proto::packet::icrc::Flow;
use rverbs::provider::roce::udp::{MAX_DATAGRAM, Socket};
use rverbs_sys::{
    IBV_QPT_RC, IBV_SEND_SIGNALED, IBV_WC_SUCCESS, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_SEND, ibv_wr_opcode,
};

use super::Options;
use super::side::Side;

pub(crate) fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    println!("provider=soft-roce addr={} mtu=4096", options.addr);
    let seconds = Duration::from_secs(options.seconds.into());
    for round in 1..=3 {
        let bare = bare_udp(options, seconds)?;
        println!(
            "round {round}: bare UDP with GSO/GRO, 4152-byte segments: {bare:.2} Gb/s received"
        );
        for (name, opcode) in [
            ("SEND", IBV_WR_SEND),
            ("WRITE", IBV_WR_RDMA_WRITE),
            ("READ", IBV_WR_RDMA_READ),
        ] {
            let (rate, again) = bandwidth(options, opcode, seconds)?;
            println!(
                "round {round}: RC {name} 64 KiB: {rate:.2} Gb/s = {:.2} of bare UDP, packets sent again {again}",
                rate / bare
            );
        }
    }
    latency(options)?;
    Ok(())
}

fn sockets(options: &Options) -> Result<(Socket, Socket), Box<dyn Error>> {
    let any = SocketAddr::new(options.addr, 0);
    Ok((Socket::bind(any)?, Socket::bind(any)?))
}

/// What two sockets like ours move with the same system calls.
fn bare_udp(options: &Options, seconds: Duration) -> Result<f64, Box<dyn Error>> {
    let (from, to) = sockets(options)?;
    let flow = Flow {
        src: from.local(),
        dst: to.local(),
    };
    let stop = AtomicBool::new(false);
    let got = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buf = vec![0; MAX_DATAGRAM];
            while !stop.load(Ordering::Relaxed) {
                if let Some(received) = to.receive(&mut buf) {
                    got.fetch_add(received.len as u64, Ordering::Relaxed);
                }
            }
        });
        let payload = vec![0; 15 * 4152];
        let start = Instant::now();
        while start.elapsed() < seconds {
            from.send_raw(flow.dst, 0, &payload, Some(4152));
        }
        let took = start.elapsed();
        stop.store(true, Ordering::Relaxed);
        Ok(got.load(Ordering::Relaxed) as f64 * 8.0 / took.as_secs_f64() / 1e9)
    })
}

const SIZE: usize = 65_536;
const DEPTH: u32 = 64;

fn bandwidth(
    options: &Options,
    opcode: ibv_wr_opcode,
    seconds: Duration,
) -> Result<(f64, u64), Box<dyn Error>> {
    let (device_a, device_b) = (options.device()?, options.device()?);
    let mut a = Side::new(device_a.clone(), IBV_QPT_RC, SIZE, DEPTH, 1)?;
    let mut b = Side::new(device_b.clone(), IBV_QPT_RC, SIZE, DEPTH, 2)?;
    let (ra, rb) = (a.local(), b.local());
    a.connect(rb, 5)?;
    b.connect(ra, 5)?;
    let again = || {
        [&device_a, &device_b]
            .map(|device| {
                device
                    .transport
                    .shared()
                    .hold()
                    .port()
                    .engine
                    .counters()
                    .retransmitted
            })
            .iter()
            .sum()
    };
    let stop = AtomicBool::new(false);
    for _ in 0..DEPTH {
        b.post_recv(0, 0, SIZE);
    }
    let (addr, rkey) = (b.addr(), b.rkey());
    let b = Moved(b);
    std::thread::scope(|scope| {
        let stop = &stop;
        scope.spawn(move || {
            let b = b;
            while !stop.load(Ordering::Relaxed) {
                if let Some(wc) = b.0.poll() {
                    if wc.status != IBV_WC_SUCCESS {
                        break;
                    }
                    b.0.post_recv(0, 0, SIZE);
                }
            }
        });
        let start = Instant::now();
        let (mut posted, mut ended) = (0_u64, 0_u64);
        let mut failed = None;
        while start.elapsed() < seconds && failed.is_none() {
            while posted - ended < u64::from(DEPTH) / 2 {
                let code = a.post_send(posted, opcode, (0, SIZE), IBV_SEND_SIGNALED, |wr| {
                    if opcode != IBV_WR_SEND {
                        wr.wr.rdma = rverbs_sys::ibv_send_wr_rdma {
                            remote_addr: addr,
                            rkey,
                        };
                    }
                });
                assert_eq!(code, 0, "posting failed");
                posted += 1;
            }
            while let Some(wc) = a.poll() {
                if wc.status != IBV_WC_SUCCESS {
                    failed = Some(wc.status);
                }
                ended += 1;
            }
        }
        let took = start.elapsed();
        stop.store(true, Ordering::Relaxed);
        match failed {
            Some(status) => Err(format!("status {status}").into()),
            None => Ok((
                ended as f64 * SIZE as f64 * 8.0 / took.as_secs_f64() / 1e9,
                again(),
            )),
        }
    })
}

/// A side that another thread takes over.
struct Moved(Side);
// SAFETY: verbs may be called from any thread, and only one uses it.
unsafe impl Send for Moved {}

fn latency(options: &Options) -> Result<(), Box<dyn Error>> {
    let mut a = Side::new(options.open()?, IBV_QPT_RC, 4096, DEPTH, 1)?;
    let mut b = Side::new(options.open()?, IBV_QPT_RC, 4096, DEPTH, 2)?;
    let (ra, rb) = (a.local(), b.local());
    a.connect(rb, 5)?;
    b.connect(ra, 5)?;
    let iters = options.iters;
    for side in [&a, &b] {
        for _ in 0..DEPTH {
            side.post_recv(1, 0, 2);
        }
    }
    let b = Moved(b);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let b = b;
            for _ in 0..iters {
                turn(&b.0, false);
            }
            std::thread::sleep(Duration::from_millis(50));
        });
        let mut samples: Vec<u64> = Vec::new();
        for _ in 0..iters {
            let start = Instant::now();
            turn(&a, true);
            samples.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX) / 2);
        }
        samples.sort_unstable();
        println!(
            "RC SEND 2 bytes, one way: min {:.2} us, p50 {:.2} us, p99 {:.2} us",
            samples[0] as f64 / 1e3,
            samples[samples.len() / 2] as f64 / 1e3,
            samples[samples.len() * 99 / 100] as f64 / 1e3
        );
    });
    Ok(())
}

/// One exchange: sends first or answers.
fn turn(side: &Side, first: bool) {
    let send = || {
        assert_eq!(
            side.post_send(2, IBV_WR_SEND, (0, 2), IBV_SEND_SIGNALED, |_| ()),
            0,
            "posting failed"
        );
    };
    if first {
        send();
    }
    loop {
        let Some(wc) = side.poll() else {
            continue;
        };
        assert_eq!(wc.status, IBV_WC_SUCCESS, "a request failed");
        if wc.wr_id == 1 {
            break;
        }
    }
    side.post_recv(1, 0, 2);
    if !first {
        send();
    }
}
