//! Every operation in both directions between two devices of any kind, with every byte checked.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rverbs_sys::{
    IBV_QPT_RC, IBV_SEND_FENCE, IBV_SEND_SIGNALED, IBV_WC_SUCCESS, IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, ibv_send_wr_atomic, ibv_send_wr_rdma, ibv_wc, ibv_wr_opcode,
};

use super::Options;
use super::side::{Remote, Side};

const LEN: usize = 1 << 20;
const WRITTEN: usize = 256 << 10;
const RECEIVED: usize = 512 << 10;
const FETCHED: usize = 768 << 10;
const CELL: usize = LEN - 64;
const RESULT: usize = LEN - 128;
const SIZES: [usize; 6] = [0, 1, 13, 1024, 4099, 150_003];

type Result<T> = std::result::Result<T, Box<dyn Error>>;

pub(crate) fn pattern(role: usize, at: usize) -> u8 {
    (at.wrapping_mul(31) ^ (at >> 8) ^ (role * 0x55)) as u8
}

pub(crate) struct Talk {
    out: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Talk {
    pub(crate) fn say(&mut self, line: &str) -> Result<()> {
        Ok(self.out.write_all(format!("{line}\n").as_bytes())?)
    }

    pub(crate) fn hear(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            return Err("the peer has gone".into());
        }
        Ok(line.trim().to_owned())
    }
}

pub(crate) fn poll(side: &Side) -> Result<ibv_wc> {
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        if let Some(wc) = side.poll() {
            if wc.status != IBV_WC_SUCCESS {
                return Err(format!("request {} ended with status {}", wc.wr_id, wc.status).into());
            }
            return Ok(wc);
        }
        // The peer may share this processor.
        std::thread::yield_now();
    }
    Err("no completion for 60 s".into())
}

/// What was in the cell of the peer at `addr` before it was changed; it is put at `result`.
pub(crate) fn atomic(
    side: &Side,
    opcode: ibv_wr_opcode,
    (remote_addr, rkey): (u64, u32),
    result: usize,
    (compare_add, swap): (u64, u64),
) -> Result<u64> {
    let code = side.post_send(6, opcode, (result, 8), IBV_SEND_SIGNALED, |wr| {
        wr.wr.atomic = ibv_send_wr_atomic {
            remote_addr,
            compare_add,
            swap,
            rkey,
        };
    });
    if code != 0 {
        return Err(format!("posting an atomic: errno {code}").into());
    }
    poll(side)?;
    Ok(side.buf[result / 8])
}

/// A connected queue pair, and the TCP connection beside it. `role` is 1 at the client.
pub(crate) struct Link {
    pub(crate) side: Side,
    pub(crate) talk: Talk,
    pub(crate) role: usize,
    /// Where the peer's buffer is, and its key.
    pub(crate) addr: u64,
    pub(crate) rkey: u32,
}

impl Link {
    pub(crate) fn open(options: &Options, kind: u32, len: usize) -> Result<Self> {
        let role = usize::from(options.host.is_some());
        let stream = match &options.host {
            Some(host) => TcpStream::connect((host.as_str(), options.port))?,
            None => TcpListener::bind(("0.0.0.0", options.port))?.accept()?.0,
        };
        stream.set_nodelay(true)?;
        let mut talk = Talk {
            lines: BufReader::new(stream.try_clone()?),
            out: stream,
        };
        // Packet sequence numbers wrap soon.
        let psn = 0xff_fff0 + role as u32;
        let mut side = Side::new(options.open()?, kind, len, 64, psn)?;
        side.gid_index = options.gid_index;
        let local = side.local();
        let gid: String = local.gid.iter().map(|byte| format!("{byte:02x}")).collect();
        talk.say(&format!(
            "{} {} {gid} {} {}",
            local.qpn,
            local.psn,
            side.addr(),
            side.rkey()
        ))?;
        let line = talk.hear()?;
        let words: Vec<&str> = line.split(' ').collect();
        let [qpn, psn, hex, addr, rkey] = words[..] else {
            return Err(line.into());
        };
        let mut gid = [0; 16];
        for (index, byte) in gid.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * index..2 * index + 2).ok_or("short GID")?, 16)?;
        }
        side.connect(
            Remote {
                qpn: qpn.parse()?,
                psn: psn.parse()?,
                gid,
            },
            options.mtu,
        )?;
        Ok(Self {
            side,
            talk,
            role,
            addr: addr.parse()?,
            rkey: rkey.parse()?,
        })
    }
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let Link {
        mut side,
        mut talk,
        role,
        addr,
        rkey,
    } = Link::open(options, IBV_QPT_RC, LEN)?;
    for at in 0..WRITTEN {
        side.bytes_mut()[at] = pattern(role, at);
    }
    talk.say("ready")?;
    talk.hear()?;
    for round in 0..options.iters {
        for turn in 0..2 {
            if turn == role {
                active(&mut side, &mut talk, role, addr, rkey, round)?;
            } else {
                passive(&mut side, &mut talk, role)?;
            }
        }
    }
    talk.say("bye")?;
    talk.hear()?;
    println!(
        "verify: {} rounds of SEND, SEND with immediate, WRITE, WRITE with immediate, READ, FETCH_ADD, CMP_SWAP in both directions, {} bytes each way: all right (device {}, provider={})",
        options.iters,
        u64::from(options.iters) * SIZES.iter().sum::<usize>() as u64 * 4,
        side.context.name(),
        side.context.kind()
    );
    Ok(())
}

fn active(
    side: &mut Side,
    talk: &mut Talk,
    role: usize,
    addr: u64,
    rkey: u32,
    round: u32,
) -> Result<()> {
    for (index, len) in SIZES.into_iter().enumerate() {
        let from = 7 * index + round as usize % 100;
        talk.say(&format!("{from} {len}"))?;
        talk.hear()?;
        let rdma = |at: usize| ibv_send_wr_rdma {
            remote_addr: addr + at as u64,
            rkey,
        };
        let flags = IBV_SEND_SIGNALED;
        let posted = [
            side.post_send(1, IBV_WR_SEND, (from, len), 0, |_| ()),
            side.post_send(2, IBV_WR_SEND_WITH_IMM, (from, len), flags, |wr| {
                wr.imm.imm_data = 0x1234_u32.to_be();
            }),
            side.post_send(3, IBV_WR_RDMA_WRITE, (from, len), flags, |wr| {
                wr.wr.rdma = rdma(WRITTEN);
            }),
            side.post_send(4, IBV_WR_RDMA_READ, (FETCHED, len), flags, |wr| {
                wr.wr.rdma = rdma(from);
            }),
            side.post_send(
                5,
                IBV_WR_RDMA_WRITE_WITH_IMM,
                (from, len),
                flags | IBV_SEND_FENCE,
                |wr| {
                    wr.wr.rdma = rdma(WRITTEN);
                    wr.imm.imm_data = 0x5678_u32.to_be();
                },
            ),
        ];
        if posted != [0; 5] {
            return Err(format!("posting: {posted:?}").into());
        }
        for wr_id in 2..=5 {
            let wc = poll(side)?;
            if wc.wr_id != wr_id {
                return Err(format!("request {} ended where {wr_id} should", wc.wr_id).into());
            }
        }
        if (0..len).any(|at| side.bytes()[FETCHED + at] != pattern(1 - role, from + at)) {
            return Err(format!("READ of {len} bytes brought others").into());
        }
        let answer = talk.hear()?;
        if answer != "right" {
            return Err(format!("the peer says: {answer}").into());
        }
    }
    // The cell at the peer goes 0, 5, 5, 9, 0.
    let steps = [
        (IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, 0),
        (IBV_WR_ATOMIC_CMP_AND_SWP, 4, 1, 5),
        (IBV_WR_ATOMIC_CMP_AND_SWP, 5, 9, 5),
        (IBV_WR_ATOMIC_FETCH_AND_ADD, 9_u64.wrapping_neg(), 0, 9),
    ];
    for (opcode, compare_add, swap, old) in steps {
        let cell = (addr + CELL as u64, rkey);
        let got = atomic(side, opcode, cell, RESULT, (compare_add, swap))?;
        if got != old {
            return Err(format!("an atomic returned {got} instead of {old}").into());
        }
    }
    talk.say("over")
}

fn passive(side: &mut Side, talk: &mut Talk, role: usize) -> Result<()> {
    loop {
        let line = talk.hear()?;
        let Some((from, len)) = line.split_once(' ') else {
            return Ok(());
        };
        let (from, len): (usize, usize) = (from.parse()?, len.parse()?);
        side.bytes_mut()[WRITTEN..FETCHED].fill(0xee);
        for (wr_id, at) in [(1, RECEIVED), (2, RECEIVED + 200_000), (3, LEN)] {
            let room = if wr_id == 3 { 0 } else { len };
            if side.post_recv(wr_id, at.min(LEN - room), room) != 0 {
                return Err("posting a receive".into());
            }
        }
        talk.say("go")?;
        for wr_id in 1..=3 {
            let wc = poll(side)?;
            // SAFETY: both fields of the union are numbers.
            let imm = u32::from_be(unsafe { wc.imm.imm_data });
            let right = match wr_id {
                1 => true,
                2 => imm == 0x1234,
                _ => imm == 0x5678,
            };
            if wc.wr_id != wr_id || wc.byte_len as usize != len || !right {
                return Err(format!(
                    "receive {}: {} bytes, immediate {imm:#x}",
                    wc.wr_id, wc.byte_len
                )
                .into());
            }
        }
        let same = [WRITTEN, RECEIVED, RECEIVED + 200_000].map(|at| {
            (0..len).all(|byte| side.bytes()[at + byte] == pattern(1 - role, from + byte))
        });
        let around = side.bytes()[WRITTEN + len..RECEIVED]
            .iter()
            .all(|byte| *byte == 0xee);
        talk.say(if same == [true; 3] && around {
            "right"
        } else {
            "other bytes than were sent"
        })?;
    }
}
