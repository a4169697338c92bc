//! How fast the shm provider is, beside what the machine does bare, in one run.
//!
//! Two processes on two cores: a flag in shared memory goes back and forth, then a message by send
//! and one by write; then 64 KiB are copied, and written. Run it with `--release`.
#![expect(clippy::print_stdout, reason = "an example talks")]
#![expect(unsafe_code, reason = "it forks, and measures bare memory")]
#![expect(clippy::unwrap_used, reason = "an example may panic")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "bare memory of its own, before anything else runs"
)]

use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rverbs::exchange::{Hello, barrier, exchange};
use rverbs::mr::{Access, Piece};
use rverbs::qp::{Address, ConnectAttr, Flags, Qp, Rc};
use rverbs::wc::Wc;

/// Rounds of a chunk; the three measurements take turns, since a shared machine changes.
const ROUNDS: usize = 512;
const CHUNKS: usize = 60;
const BLOCK: usize = 64 << 10;

fn nanoseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e9
}

fn median(samples: &mut [f64]) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// The median time of a chunk's rounds, one way.
fn chunk(mut round: impl FnMut(usize)) -> f64 {
    let mut samples: Vec<f64> = (0..ROUNDS)
        .map(|at| {
            let start = Instant::now();
            round(at);
            nanoseconds(start.elapsed()) / 2.0
        })
        .collect();
    median(&mut samples)
}

fn pin(core: usize) {
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

fn flag(words: &[AtomicU32], side: usize, round: usize) {
    let round = u32::try_from(round).unwrap() + 1;
    let (mine, theirs) = (&words[side * 16], &words[(1 - side) * 16]);
    if side == 0 {
        mine.store(round, Ordering::Release);
    }
    while theirs.load(Ordering::Acquire) != round {
        std::hint::spin_loop();
    }
    if side == 1 {
        mine.store(round, Ordering::Release);
    }
}

fn run(words: &[AtomicU32], side: usize, mut stream: UnixStream) {
    pin(side);
    let context = rverbs::Device::shm().unwrap().open().unwrap();
    let pd = context.alloc_pd().unwrap();
    let send_cq = context.create_cq(256).unwrap();
    let recv_cq = context.create_cq(256).unwrap();
    let mut qp: Qp<Rc, Piece> = pd
        .qp(&send_cq)
        .recv_cq(&recv_cq)
        .inline(64)
        .depth(128, 128)
        .build()
        .unwrap();
    let shared = pd
        .register_remote(context.alloc(4 << 20).unwrap(), Access::ALL)
        .unwrap();
    let how = ConnectAttr::default();
    qp.init(&how).unwrap();
    let lid = context.query_port(1).unwrap().lid;
    let own = Hello {
        endpoint: qp.endpoint(0, Address { lid, gid: None }),
        region: Some(shared.export()),
    };
    let theirs = exchange(&mut stream, &own).unwrap();
    qp.connect(&own.endpoint, &theirs.endpoint, &how).unwrap();
    let mut bufs = pd
        .register(context.alloc(64 * 128).unwrap())
        .unwrap()
        .into_slices(8);
    for _ in 0..100 {
        qp.recv.post(bufs.pop().unwrap().into()).unwrap();
    }
    barrier(&mut stream).unwrap();

    let mut wcs = [Wc::default(); 1];
    let mut done = [Wc::default(); 16];
    let mut receive = |qp: &mut Qp<Rc, Piece>| {
        loop {
            if let [wc] = recv_cq.poll(&mut wcs).unwrap() {
                let (result, buf) = qp.recv.complete(wc).unwrap();
                result.unwrap();
                qp.recv.post(buf).unwrap();
                return;
            }
        }
    };
    let flags = |round: usize| {
        if round % 32 == 31 {
            Flags::SIGNALED
        } else {
            Flags::SILENT
        }
    };
    let mut collect = |qp: &mut Qp<Rc, Piece>| {
        while qp.send.in_flight() > 0 {
            for wc in send_cq.poll(&mut done).unwrap() {
                qp.send.complete(wc).unwrap().unwrap();
            }
        }
        while qp.send.reclaim().is_some() {}
    };
    let mine = shared.slice(0, 8).unwrap();
    let remote = theirs.region.unwrap();
    let word = mine.word(0).unwrap();
    let mut bare = Vec::new();
    let mut by_send = Vec::new();
    let mut by_write = Vec::new();
    for at in 0..CHUNKS {
        barrier(&mut stream).unwrap();
        bare.push(chunk(|round| flag(words, side, at * ROUNDS + round)));
        barrier(&mut stream).unwrap();
        by_send.push(chunk(|round| {
            if side == 1 {
                receive(&mut qp);
            }
            qp.send.send_inline(&[7; 8], flags(round)).unwrap();
            if side == 0 {
                receive(&mut qp);
            }
            if round % 32 == 31 {
                collect(&mut qp);
            }
        }));
        barrier(&mut stream).unwrap();
        by_write.push(chunk(|round| {
            let value = (at * ROUNDS + round + 1) as u64;
            let data = value.to_ne_bytes();
            let wait = || {
                while word.load(Ordering::Acquire) != value {
                    std::hint::spin_loop();
                }
            };
            if side == 1 {
                wait();
            }
            qp.send.write_inline(&data, remote, flags(round)).unwrap();
            if side == 0 {
                wait();
            }
            if round % 32 == 31 {
                collect(&mut qp);
            }
        }));
    }
    barrier(&mut stream).unwrap();
    if side == 1 {
        stream.read_exact(&mut [0]).unwrap();
        return;
    }
    // 64 KiB blocks: bare, and by write, from and to pages alike.
    let from = context.alloc(BLOCK).unwrap();
    let mut to = context.alloc(BLOCK).unwrap();
    let mut block = Some(Piece::from(
        shared
            .slice(1 << 20, u32::try_from(BLOCK).unwrap())
            .unwrap(),
    ));
    let mut last = [Wc::default(); 1];
    let mut copies = Vec::new();
    let mut writes = Vec::new();
    for _ in 0..4000 {
        let start = Instant::now();
        to.copy_from_slice(std::hint::black_box(&from));
        std::hint::black_box(&mut to);
        copies.push(BLOCK as f64 / nanoseconds(start.elapsed()));
        let start = Instant::now();
        let buf = block.take().unwrap();
        qp.send
            .write(buf, remote.from(1 << 20), Flags::SIGNALED)
            .unwrap();
        while qp.send.in_flight() > 0 {
            for wc in send_cq.poll(&mut last).unwrap() {
                qp.send.complete(wc).unwrap().unwrap();
            }
        }
        block = qp.send.reclaim();
        writes.push(BLOCK as f64 / nanoseconds(start.elapsed()));
    }
    println!(
        "provider=soft-shm, {CHUNKS} chunks of {ROUNDS} rounds, one way, median and best chunk"
    );
    let best = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    let ratio = |samples: &[f64]| {
        let pairs = samples.iter().zip(&bare);
        median(&mut pairs.map(|(a, b)| a / b).collect::<Vec<_>>())
    };
    let (send, write) = (ratio(&by_send), ratio(&by_write));
    let flat = best(&bare);
    let line = |name: &str, best: f64, median: f64, ratio: f64| {
        println!(
            "{name:24} {median:7.1} ns {best:7.1} ns, {ratio:.2} and {:.2} times the flag",
            best / flat
        );
    };
    line(
        "flag in shared memory",
        flat,
        median(&mut bare.clone()),
        1.0,
    );
    line("send, 8 bytes", best(&by_send), median(&mut by_send), send);
    line(
        "write, 8 bytes",
        best(&by_write),
        median(&mut by_write),
        write,
    );
    let (copy, write) = (median(&mut copies), median(&mut writes));
    println!("memcpy, 64 KiB           {copy:7.1} GB/s");
    println!(
        "write, 64 KiB            {write:7.1} GB/s, {:.2} of memcpy",
        write / copy
    );
    std::io::Write::write_all(&mut stream, &[0]).unwrap();
}

fn main() {
    let words: &[AtomicU32] = unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        std::slice::from_raw_parts(at.cast::<AtomicU32>(), 1024)
    };
    let (ours, theirs) = UnixStream::pair().unwrap();
    // Before any thread is made.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(ours);
        run(words, 1, theirs);
    } else {
        drop(theirs);
        run(words, 0, ours);
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}
