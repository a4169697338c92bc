//! Random work over a bad network, every byte compared with a model.
#![expect(clippy::print_stderr, reason = "figures, and what a seed did")]
#![expect(
    clippy::needless_range_loop,
    reason = "a side is an index into several arrays"
)]

use std::collections::VecDeque;

use rverbs::provider::roce::proto::{
    Access, CompletionOp, EngineConfig, RecvRequest, SendFlags, SendOp, SendRequest, Sge, Status,
    Time, Transport,
};

use super::link::{Faults, Pair, Random, Setup};
use super::regions::Region;

/// Keys of the regions of each side.
const SOURCE: u32 = 0x11;
const WRITTEN: u32 = 0x22;
const FETCHED: u32 = 0x33;
const RECEIVED: u32 = 0x44;
const CELLS: u32 = 0x55;
const RESULTS: u32 = 0x66;
const BASE: u64 = 0x7f00_0000_0000;
const MAX: u64 = 40_000;
const OPS: usize = 60;

/// What one side has asked for and may expect.
#[derive(Default)]
struct Side {
    posted: usize,
    ended: usize,
    unsignaled: usize,
    write_at: u64,
    fetch_at: u64,
    results: u64,
    /// What the other side's written region must hold.
    written: Vec<u8>,
    fetched: Vec<u8>,
    /// Messages on their way to the other side: bytes and immediate data.
    messages: VecDeque<(Option<Vec<u8>>, Option<u32>)>,
    /// The other side's cell, and each value it had.
    cell: u64,
    originals: Vec<u64>,
    /// Of signaled requests, in order.
    expected: VecDeque<u64>,
    receives: VecDeque<u64>,
    next_receive: u64,
    bytes: u64,
}

#[derive(Default, Debug)]
struct Totals {
    seeds: u64,
    ops: u64,
    bytes: u64,
    carried: u64,
    retransmitted: u64,
    bad_icrc: u64,
    virtual_time: u64,
    corruptions: u64,
    hangs: u64,
    failures: u64,
}

fn region(addr: u64, bytes: Vec<u8>, access: u8) -> Region {
    Region {
        pd: 1,
        addr,
        access: Access(access),
        bytes,
    }
}

fn run(seed: u64, transport: Transport, totals: &mut Totals) {
    let mut random = Random(seed ^ 0x5eed);
    let v6 = random.chance(500);
    let mut pair = Pair::new(seed, v6, EngineConfig::default());
    pair.faults = Faults {
        loss: random.below(40),
        duplicate: random.below(30),
        reorder: random.below(50),
        corrupt: random.below(20),
        congest: random.below(20),
    };
    if seed.is_multiple_of(5) {
        pair.faults = Faults::default();
    }
    let mut source = vec![0; 1 << 16];
    for node in &mut pair.nodes {
        random.fill(&mut source);
        let regions = &mut node.mem.0;
        regions.insert(SOURCE, region(BASE, source.clone(), Access::REMOTE_READ.0));
        let arena = OPS * MAX as usize;
        regions.insert(WRITTEN, region(BASE + 7, vec![0xcc; arena], 1 | 2));
        regions.insert(FETCHED, region(BASE + 3, vec![0xcc; arena], 1));
        regions.insert(RECEIVED, region(BASE + 1, vec![0xcc; 32 * MAX as usize], 1));
        regions.insert(CELLS, region(BASE, vec![0; 64], 1 | 8));
        regions.insert(RESULTS, region(BASE, vec![0xcc; OPS * 8], 1));
    }
    let mut setup = Setup::new(transport);
    setup.mtu = 256 << random.below(5);
    setup.reads = 1 + random.below(8) as u8;
    setup.psn = [
        random.below(1 << 24) as u32,
        (1 << 24) - 1 - random.below(40) as u32,
    ];
    setup.config.send_depth = 1 + random.below(20) as usize;
    let qpns = pair.connect(&setup);
    let depth = setup.config.send_depth;
    let mut sides = [Side::default(), Side::default()];
    for side in &mut sides {
        side.written = vec![0xcc; OPS * MAX as usize];
        side.fetched = side.written.clone();
    }
    let mut steps = 0u32;
    loop {
        steps += 1;
        for me in 0..2 {
            let (left, right) = sides.split_at_mut(1);
            let (side, other) = if me == 0 {
                (&mut left[0], &mut right[0])
            } else {
                (&mut right[0], &mut left[0])
            };
            // Receives come late now and then, so that the peer is refused.
            while side.receives.len() < 8 && random.chance(700) {
                let slot = side.next_receive % 32;
                let sges = [Sge {
                    addr: BASE + 1 + slot * MAX,
                    len: MAX as u32,
                    lkey: RECEIVED,
                }];
                pair.nodes[me]
                    .engine
                    .post_recv(
                        qpns[me],
                        &RecvRequest {
                            wr_id: side.next_receive,
                            sges: &sges,
                        },
                    )
                    .unwrap();
                side.receives.push_back(side.next_receive);
                side.next_receive += 1;
            }
            while side.posted < OPS && side.posted - side.ended < depth && random.chance(800) {
                post(&mut pair, &mut random, me, qpns[me], side, depth);
            }
            while let Some(end) = pair.nodes[me].engine.poll_completion() {
                if end.status != Status::Success {
                    eprintln!("seed {seed}: {end:?} {:?}", pair.faults);
                    totals.failures += 1;
                    return;
                }
                if end.cq == 1 {
                    // Unsignaled ones before it have ended too.
                    assert_eq!(side.expected.pop_front(), Some(end.wr_id), "seed {seed}");
                    side.ended = end.wr_id as usize + 1;
                    continue;
                }
                assert_eq!(side.receives.pop_front(), Some(end.wr_id), "seed {seed}");
                let Some((message, imm)) = other.messages.pop_front() else {
                    eprintln!("seed {seed}: a message that nobody sent");
                    totals.corruptions += 1;
                    return;
                };
                let slot = (end.wr_id % 32) * MAX;
                let same = match &message {
                    Some(message) => {
                        let got = &pair.nodes[me].mem.bytes(RECEIVED)[slot as usize..]
                            [..end.len as usize];
                        end.op == CompletionOp::Receive && got == message
                    }
                    None => end.op == CompletionOp::ReceiveWriteImm,
                };
                if !same || end.imm != imm {
                    eprintln!("seed {seed}: receive {} differs", end.wr_id);
                    totals.corruptions += 1;
                }
            }
        }
        let done = sides
            .iter()
            .all(|side| side.posted == OPS && side.ended == OPS && side.messages.is_empty());
        if done {
            break;
        }
        let moved = pair.step();
        if !moved {
            // Time for those that wait for a decision of ours.
            pair.now = pair.now.after(1000);
        }
        if steps > 400_000 || pair.now > Time(600_000_000_000) {
            eprintln!("seed {seed}: hangs at {:?} {:?}", pair.now, pair.faults);
            totals.hangs += 1;
            return;
        }
    }
    for me in 0..2 {
        let mine = &pair.nodes[me].mem;
        let peer = &pair.nodes[1 - me].mem;
        let side = &sides[me];
        let results: Vec<u8> = side
            .originals
            .iter()
            .flat_map(|old| old.to_ne_bytes())
            .collect();
        let checks = [
            ("written", peer.bytes(WRITTEN) == side.written),
            ("fetched", mine.bytes(FETCHED) == side.fetched),
            ("cell", peer.bytes(CELLS)[8..16] == side.cell.to_ne_bytes()),
            ("results", mine.bytes(RESULTS)[..results.len()] == results),
            (
                "around results",
                mine.bytes(RESULTS)[results.len()..]
                    .iter()
                    .all(|byte| *byte == 0xcc),
            ),
            (
                "around cell",
                peer.bytes(CELLS)[16..].iter().all(|byte| *byte == 0),
            ),
        ];
        for (what, same) in checks {
            if !same {
                eprintln!("seed {seed}: {what} differs");
                totals.corruptions += 1;
            }
        }
        totals.bytes += side.bytes;
        totals.ops += OPS as u64;
    }
    totals.carried += pair.carried;
    totals.virtual_time += pair.now.0;
    for node in &pair.nodes {
        let counters = node.engine.counters();
        totals.retransmitted += counters.retransmitted;
        totals.bad_icrc += counters.bad_icrc;
    }
    totals.seeds += 1;
}

fn post(pair: &mut Pair, random: &mut Random, me: usize, qpn: u32, side: &mut Side, depth: usize) {
    let index = side.posted;
    let len = match random.below(5) {
        0 => 0,
        1 => random.below(64),
        2 => random.below(1500),
        _ => random.below(MAX),
    };
    let from = random.below((1 << 16) - MAX);
    let mine = &pair.nodes[me].mem;
    let data = mine.bytes(SOURCE)[from as usize..][..len as usize].to_vec();
    let imm = random.next() as u32;
    // In up to three pieces.
    let cut = random.below(len + 1);
    let sges = [
        Sge {
            addr: BASE + from,
            len: cut as u32,
            lkey: SOURCE,
        },
        Sge {
            addr: BASE + from + cut,
            len: (len - cut) as u32,
            lkey: SOURCE,
        },
    ];
    let local_write = [
        Sge {
            addr: BASE + 3 + side.fetch_at,
            len: cut as u32,
            lkey: FETCHED,
        },
        Sge {
            addr: BASE + 3 + side.fetch_at + cut,
            len: (len - cut) as u32,
            lkey: FETCHED,
        },
    ];
    let result = [Sge {
        addr: BASE + side.results * 8,
        len: 8,
        lkey: RESULTS,
    }];
    let remote = BASE + 7 + side.write_at;
    let mut inline = None;
    let (op, sges): (SendOp, &[Sge]) = match random.below(8) {
        0 => {
            side.messages.push_back((Some(data.clone()), None));
            (SendOp::Send, &sges)
        }
        1 => {
            side.messages.push_back((Some(data.clone()), Some(imm)));
            (SendOp::SendImm(imm), &sges)
        }
        op @ (2..=4) => {
            let at = side.write_at as usize;
            side.written[at..at + data.len()].copy_from_slice(&data);
            side.write_at += len + 1;
            if op == 4 {
                side.messages.push_back((None, Some(imm)));
                (
                    SendOp::WriteImm {
                        addr: remote,
                        rkey: WRITTEN,
                        imm,
                    },
                    &sges,
                )
            } else {
                (
                    SendOp::Write {
                        addr: remote,
                        rkey: WRITTEN,
                    },
                    &sges,
                )
            }
        }
        5 => {
            let theirs = &pair.nodes[1 - me].mem.bytes(SOURCE)[from as usize..][..len as usize];
            let at = side.fetch_at as usize;
            side.fetched[at..at + theirs.len()].copy_from_slice(theirs);
            side.fetch_at += len + 1;
            (
                SendOp::Read {
                    addr: BASE + from,
                    rkey: SOURCE,
                },
                &local_write,
            )
        }
        6 => {
            side.originals.push(side.cell);
            let add = random.next();
            side.cell = side.cell.wrapping_add(add);
            side.results += 1;
            (
                SendOp::FetchAdd {
                    addr: BASE + 8,
                    rkey: CELLS,
                    add,
                },
                &result,
            )
        }
        _ => {
            side.originals.push(side.cell);
            let (compare, swap) = (
                if random.chance(500) {
                    side.cell
                } else {
                    random.next()
                },
                random.next(),
            );
            if compare == side.cell {
                side.cell = swap;
            }
            side.results += 1;
            (
                SendOp::CompareSwap {
                    addr: BASE + 8,
                    rkey: CELLS,
                    compare,
                    swap,
                },
                &result,
            )
        }
    };
    if len <= 128
        && !matches!(
            op,
            SendOp::Read { .. } | SendOp::FetchAdd { .. } | SendOp::CompareSwap { .. }
        )
        && random.chance(500)
    {
        inline = Some(&data[..]);
    }
    let signaled = index + 1 == OPS
        || side.unsignaled + 1 >= 4
        || random.chance(600)
        || side.posted - side.ended + 1 >= depth.min(4);
    let flags = SendFlags {
        signaled,
        solicited: false,
        fence: random.chance(200),
    };
    let request = SendRequest {
        wr_id: index as u64,
        op,
        flags,
        sges,
        inline,
        to: None,
    };
    pair.nodes[me].engine.post_send(qpn, &request).unwrap();
    if signaled {
        side.expected.push_back(index as u64);
        side.unsignaled = 0;
    } else {
        side.unsignaled += 1;
    }
    side.posted += 1;
    side.bytes += if result.len() == sges.len() && sges[0].lkey == RESULTS {
        8
    } else {
        len
    };
}

#[test]
fn random_work_over_a_bad_network() {
    let seeds = std::env::var("RVERBS_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(60);
    let first = std::env::var("RVERBS_FIRST_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0);
    let mut totals = Totals::default();
    for seed in first..first + seeds {
        run(seed, Transport::Rc, &mut totals);
    }
    eprintln!(
        "campaign: seeds={} ops={} bytes={} carried={} retransmitted={} bad_icrc={} virtual={}ms corruptions={} hangs={} failures={}",
        totals.seeds,
        totals.ops,
        totals.bytes,
        totals.carried,
        totals.retransmitted,
        totals.bad_icrc,
        totals.virtual_time / 1_000_000,
        totals.corruptions,
        totals.hangs,
        totals.failures,
    );
    assert_eq!(
        (
            totals.corruptions,
            totals.hangs,
            totals.failures,
            totals.seeds
        ),
        (0, 0, 0, seeds)
    );
}
