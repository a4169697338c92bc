//! One operation after the other, from the client to the server, with every byte checked: what is lost on an unreliable transport is counted.

use std::error::Error;
use std::time::{Duration, Instant};

use rverbs_sys::{
    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_SEND_SIGNALED, IBV_WC_SUCCESS,
    IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, ibv_send_wr_rdma, ibv_wc,
    ibv_wr_opcode,
};

use super::Options;
use super::side::Side;
use super::verify::{Link, Talk, atomic, pattern, poll};

const LEN: usize = 512 << 10;
/// Where things are in the buffer: the source is at its start.
const WRITTEN: usize = 128 << 10;
const RECEIVED: usize = 256 << 10;
const FETCHED: usize = 384 << 10;
const ROOM: usize = 128 << 10;
const CELL: usize = LEN - 64;
const RESULT: usize = LEN - 128;
const GRH: usize = 40;
/// What a byte is that nobody wrote.
const BLANK: u8 = 0xee;
/// How long something may be on its way before it counts as lost.
const LATE: Duration = Duration::from_millis(700);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What is tried, and its name in the table.
const OPS: [(&str, ibv_wr_opcode); 7] = [
    ("send", IBV_WR_SEND),
    ("send-imm", IBV_WR_SEND_WITH_IMM),
    ("write", IBV_WR_RDMA_WRITE),
    ("write-imm", IBV_WR_RDMA_WRITE_WITH_IMM),
    ("read", IBV_WR_RDMA_READ),
    ("fetch-add", IBV_WR_ATOMIC_FETCH_AND_ADD),
    ("cmp-swap", IBV_WR_ATOMIC_CMP_AND_SWP),
];

/// What came of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Arrived,
    Lost,
}

pub(crate) fn run(kind: &str, options: &Options) -> Result<()> {
    let (kind, known) = match kind {
        "rc" => (IBV_QPT_RC, OPS.len()),
        "uc" => (IBV_QPT_UC, 4),
        "ud" => (IBV_QPT_UD, 2),
        _ => return Err("rc, uc or ud".into()),
    };
    let mtu = 128_usize << options.mtu;
    let mut link = Link::open(options, kind, LEN)?;
    let (side, role) = (&mut link.side, link.role);
    for at in 0..WRITTEN {
        side.bytes_mut()[at] = pattern(role, at);
    }
    if role == 0 {
        return serve(side, &mut link.talk);
    }
    let sizes = match kind {
        IBV_QPT_UD => vec![0, 1, 13, 1000, mtu],
        _ => vec![0, 1, 13, mtu, mtu + 3, 40_003],
    };
    for (name, opcode) in OPS.into_iter().take(known) {
        let (mut arrived, mut total, mut bytes) = (0, 0, 0);
        for round in 0..options.iters {
            let atomic = matches!(
                opcode,
                IBV_WR_ATOMIC_FETCH_AND_ADD | IBV_WR_ATOMIC_CMP_AND_SWP
            );
            let sizes = if atomic { &[8][..] } else { &sizes };
            for (index, len) in sizes.iter().copied().enumerate() {
                let from = 7 * index + round as usize % 100;
                let remote = (link.addr, link.rkey);
                let fate = if atomic {
                    one_atomic(side, opcode, remote, round)
                } else {
                    one(side, &mut link.talk, opcode, remote, (from, len))
                }
                .map_err(|error| {
                    format!(
                        "{name}, {len} bytes, round {round}, after {arrived} of {total}: {error}"
                    )
                })?;
                total += 1;
                if fate == Fate::Arrived {
                    arrived += 1;
                    bytes += len;
                }
            }
        }
        println!("op {name}: {arrived} of {total} arrived, {bytes} bytes");
    }
    link.talk.say("bye")?;
    // The last acknowledgement goes out while the queue pair is there.
    link.talk.hear()?;
    Ok(())
}

/// A message, or a read, at the client.
fn one(
    side: &mut Side,
    talk: &mut Talk,
    opcode: ibv_wr_opcode,
    (addr, rkey): (u64, u32),
    (from, len): (usize, usize),
) -> Result<Fate> {
    talk.say(&format!("{opcode} {from} {len}"))?;
    if talk.hear()? != "go" {
        return Err("the server is not ready".into());
    }
    let reads = opcode == IBV_WR_RDMA_READ;
    if reads {
        side.bytes_mut()[FETCHED..RESULT].fill(BLANK);
    }
    let (local, remote) = if reads {
        (FETCHED, from)
    } else {
        (from, WRITTEN)
    };
    let code = side.post_send(1, opcode, (local, len), IBV_SEND_SIGNALED, |wr| {
        wr.imm.imm_data = (len as u32 ^ 0x5a5a_0000).to_be();
        if matches!(
            opcode,
            IBV_WR_RDMA_WRITE | IBV_WR_RDMA_WRITE_WITH_IMM | IBV_WR_RDMA_READ
        ) {
            wr.wr.rdma = ibv_send_wr_rdma {
                remote_addr: addr + remote as u64,
                rkey,
            };
        }
    });
    if code != 0 {
        return Err(format!("posting: errno {code}").into());
    }
    poll(side)?;
    if reads {
        if (0..len).any(|at| side.bytes()[FETCHED + at] != pattern(0, from + at)) {
            return Err("it brought other bytes".into());
        }
        if side.bytes()[FETCHED + len..RESULT]
            .iter()
            .any(|byte| *byte != BLANK)
        {
            return Err("it wrote beyond its end".into());
        }
    }
    talk.say("sent")?;
    match talk.hear()?.as_str() {
        "right" => Ok(Fate::Arrived),
        "lost" if side.kind != IBV_QPT_RC => Ok(Fate::Lost),
        other => Err(format!("the server says: {other}").into()),
    }
}

/// An atomic at the client: the cell at the server counts up with `round`, first by additions, then, from its end on, by comparisons.
fn one_atomic(
    side: &Side,
    opcode: ibv_wr_opcode,
    (addr, rkey): (u64, u32),
    round: u32,
) -> Result<Fate> {
    let adds = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    let cell = (addr + CELL as u64, rkey);
    let post = |compare_add, swap| atomic(side, opcode, cell, RESULT, (compare_add, swap));
    const STEP: u64 = 0x1_0000_0001;
    let now = u64::from(round);
    let got = if adds {
        let old = now.wrapping_mul(STEP);
        // Back to zero at the end of a round, so that each round can begin anew.
        let got = post(STEP, 0)?;
        (got == old).then_some(()).ok_or(got)
    } else {
        let first = post(u64::MAX, 1)?;
        let old = post(first, first ^ STEP)?;
        let after = post(0, 0)?;
        (old == first && after == first ^ STEP)
            .then_some(())
            .ok_or(after)
    };
    got.map_err(|got| format!("the cell held {got:#x}"))?;
    Ok(Fate::Arrived)
}

/// The server: one line says what comes, the next that it was sent, and the answer what arrived.
fn serve(side: &mut Side, talk: &mut Talk) -> Result<()> {
    let grh = if side.kind == IBV_QPT_UD { GRH } else { 0 };
    // A receive that a lost message did not use waits for the next one.
    let mut posted = false;
    loop {
        let line = talk.hear()?;
        if line == "bye" {
            talk.say("bye")?;
            std::thread::sleep(Duration::from_millis(200));
            return Ok(());
        }
        let words: Vec<&str> = line.split(' ').collect();
        let [opcode, from, len] = words[..] else {
            return Err(line.into());
        };
        let opcode: ibv_wr_opcode = opcode.parse()?;
        let (from, len): (usize, usize) = (from.parse()?, len.parse()?);
        side.bytes_mut()[WRITTEN..FETCHED].fill(BLANK);
        let consumes = matches!(
            opcode,
            IBV_WR_SEND | IBV_WR_SEND_WITH_IMM | IBV_WR_RDMA_WRITE_WITH_IMM
        );
        if consumes && !posted {
            if side.post_recv(9, RECEIVED, ROOM) != 0 {
                return Err("posting a receive".into());
            }
            posted = true;
        }
        talk.say("go")?;
        talk.hear()?;
        if !consumes {
            let answer = match opcode {
                IBV_WR_RDMA_READ => "right".to_owned(),
                _ => written(side, from, len),
            };
            talk.say(&answer)?;
            continue;
        }
        let Some(wc) = soon(side)? else {
            talk.say("lost")?;
            continue;
        };
        posted = false;
        let immediate = opcode != IBV_WR_SEND;
        // SAFETY: both fields of the union are numbers.
        let imm = u32::from_be(unsafe { wc.imm.imm_data });
        let at = if opcode == IBV_WR_RDMA_WRITE_WITH_IMM {
            WRITTEN
        } else {
            RECEIVED + grh
        };
        let counted = wc.byte_len as usize
            - if opcode == IBV_WR_RDMA_WRITE_WITH_IMM {
                0
            } else {
                grh
            };
        let answer = if wc.status != IBV_WC_SUCCESS {
            format!("status {} at the receiver", wc.status)
        } else if counted != len {
            format!("{counted} bytes at the receiver")
        } else if immediate && imm != len as u32 ^ 0x5a5a_0000 {
            format!("immediate {imm:#x} at the receiver")
        } else if (0..len).any(|byte| side.bytes()[at + byte] != pattern(1, from + byte)) {
            "other bytes than were sent".to_owned()
        } else if side.bytes()[at + len..at - at % ROOM + ROOM]
            .iter()
            .any(|byte| *byte != BLANK)
        {
            "bytes beyond its end".to_owned()
        } else {
            "right".to_owned()
        };
        talk.say(&answer)?;
    }
}

/// The next completion, unless it does not come.
fn soon(side: &Side) -> Result<Option<ibv_wc>> {
    if side.kind == IBV_QPT_RC {
        return poll(side).map(Some);
    }
    let end = Instant::now() + LATE;
    loop {
        if let Some(wc) = side.poll() {
            return Ok(Some(wc));
        }
        if Instant::now() > end {
            return Ok(None);
        }
        std::thread::yield_now();
    }
}

/// Whether a write without immediate, which nobody is told of, is there: all of it, or at least nothing wrong.
fn written(side: &Side, from: usize, len: usize) -> String {
    let end = Instant::now() + LATE;
    loop {
        let bytes = &side.bytes()[WRITTEN..RECEIVED];
        if bytes[len..].iter().any(|byte| *byte != BLANK) {
            return "bytes beyond its end".to_owned();
        }
        let expected = |at: usize| pattern(1, from + at);
        if (0..len).all(|at| bytes[at] == expected(at)) {
            return "right".to_owned();
        }
        if let Some(at) = (0..len).find(|at| bytes[*at] != expected(*at) && bytes[*at] != BLANK) {
            return format!("another byte than was sent at {at}");
        }
        if Instant::now() > end {
            return "lost".to_owned();
        }
        std::thread::yield_now();
    }
}
