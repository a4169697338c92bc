//! Unreliable connections and datagrams over a bad network: what arrives is what was sent, whole;
//! what was not sent touches nothing; and where nothing is lost, nothing is missing.
#![expect(clippy::print_stderr, reason = "figures, and what a seed did")]

use rverbs::provider::roce::proto::{
    Access, AddressHandle, CompletionOp, Datagram, EngineConfig, GRH_LEN, RecvRequest, SendFlags,
    SendOp, SendRequest, Sge, Status, Time, Transport,
};

use super::link::{Faults, Pair, Random, Setup};
use super::regions::Region;

const SOURCE: u32 = 0x11;
const WRITTEN: u32 = 0x22;
const RECEIVED: u32 = 0x33;
const BASE: u64 = 0x7f00_0000_0000;
/// Bytes of the longest message, and between the places that they go to.
const MAX: usize = 12_000;
const STRIDE: usize = MAX + 64;
const OPS: usize = 80;
const RECEIVES: usize = 16;
/// What memory holds that nothing came to.
const BLANK: u8 = 0xcc;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Send,
    SendImm,
    Write,
    WriteImm,
}

/// A message, and what has to arrive of it.
struct Message {
    kind: Kind,
    data: Vec<u8>,
    imm: u32,
    arrived: u32,
}

#[derive(Default)]
struct Side {
    posted: usize,
    ended: usize,
    sent: Vec<Message>,
    receives: std::collections::VecDeque<u64>,
    next_receive: u64,
}

#[derive(Default, Debug)]
struct Totals {
    seeds: u64,
    messages: u64,
    arrived: u64,
    bytes: u64,
    bad_icrc: u64,
    corruptions: u64,
    hangs: u64,
    missing: u64,
}

struct Run {
    seed: u64,
    transport: Transport,
    pair: Pair,
    random: Random,
    qpns: [u32; 2],
    mtu: usize,
    sides: [Side; 2],
}

impl Run {
    fn new(seed: u64, transport: Transport) -> Self {
        let mut random = Random(seed ^ 0x0dd5_eed5);
        let mut pair = Pair::new(seed, random.chance(500), EngineConfig::default());
        if !seed.is_multiple_of(5) {
            pair.faults = Faults {
                loss: random.below(60),
                duplicate: random.below(30),
                reorder: random.below(60),
                corrupt: random.below(30),
                congest: random.below(20),
            };
        }
        for node in &mut pair.nodes {
            let mut insert = |key, bytes, access| {
                let region = Region {
                    pd: 1,
                    addr: BASE,
                    access: Access(access),
                    bytes,
                };
                node.mem.0.insert(key, region);
            };
            insert(SOURCE, vec![0; OPS * STRIDE], 0);
            insert(WRITTEN, vec![BLANK; OPS * STRIDE], 1 | 2);
            insert(RECEIVED, vec![BLANK; RECEIVES * STRIDE], 1);
        }
        let mut setup = Setup::new(transport);
        setup.mtu = 256 << random.below(5);
        setup.psn = [
            random.below(1 << 24) as u32,
            (1 << 24) - 1 - random.below(40) as u32,
        ];
        let qpns = pair.connect(&setup);
        Self {
            seed,
            transport,
            pair,
            random,
            qpns,
            mtu: setup.mtu as usize,
            sides: Default::default(),
        }
    }

    fn post_receives(&mut self, me: usize) {
        let side = &mut self.sides[me];
        while side.receives.len() < RECEIVES {
            let wr_id = side.next_receive;
            let start = (wr_id as usize % RECEIVES) * STRIDE;
            let region = self.pair.nodes[me].mem.0.get_mut(&RECEIVED).unwrap();
            region.bytes[start..start + STRIDE].fill(BLANK);
            let sges = [Sge {
                addr: BASE + start as u64,
                len: (MAX + GRH_LEN) as u32,
                lkey: RECEIVED,
            }];
            let request = RecvRequest { wr_id, sges: &sges };
            let engine = &mut self.pair.nodes[me].engine;
            engine.post_recv(self.qpns[me], &request).unwrap();
            side.receives.push_back(wr_id);
            side.next_receive += 1;
        }
    }

    fn post(&mut self, me: usize) {
        let index = self.sides[me].posted;
        let kind = match self.random.below(4) {
            0 => Kind::Send,
            2 if self.transport == Transport::Uc => Kind::Write,
            3 if self.transport == Transport::Uc => Kind::WriteImm,
            _ => Kind::SendImm,
        };
        let longest = match self.transport {
            Transport::Ud => self.mtu,
            _ if self.random.chance(300) => MAX,
            _ => 2000,
        };
        let mut data = vec![0; 8 + self.random.below(longest as u64 - 7) as usize];
        self.random.fill(&mut data);
        data[..8].copy_from_slice(&(index as u64).to_le_bytes());
        let start = index * STRIDE;
        let node = &mut self.pair.nodes[me];
        let source = node.mem.0.get_mut(&SOURCE).unwrap();
        source.bytes[start..start + data.len()].copy_from_slice(&data);
        let (addr, rkey, imm) = (BASE + start as u64, WRITTEN, index as u32);
        let to = (self.transport == Transport::Ud).then(|| Datagram {
            ah: AddressHandle {
                destination: self.pair.destination(me),
            },
            qpn: self.qpns[1 - me],
            q_key: 0x1111,
        });
        let sges = [Sge {
            addr,
            len: data.len() as u32,
            lkey: SOURCE,
        }];
        let request = SendRequest {
            wr_id: index as u64,
            op: match kind {
                Kind::Send => SendOp::Send,
                Kind::SendImm => SendOp::SendImm(imm),
                Kind::Write => SendOp::Write { addr, rkey },
                Kind::WriteImm => SendOp::WriteImm { addr, rkey, imm },
            },
            flags: SendFlags {
                signaled: true,
                ..SendFlags::default()
            },
            sges: &sges,
            inline: (data.len() <= 128 && self.random.chance(500)).then_some(&data[..]),
            to,
        };
        let engine = &mut self.pair.nodes[me].engine;
        engine.post_send(self.qpns[me], &request).unwrap();
        let side = &mut self.sides[me];
        side.posted += 1;
        side.sent.push(Message {
            kind,
            data,
            imm,
            arrived: 0,
        });
    }

    /// Takes completions; says what is wrong.
    fn reap(&mut self, me: usize) -> Result<(), String> {
        while let Some(end) = self.pair.nodes[me].engine.poll_completion() {
            if end.status != Status::Success {
                return Err(format!("{end:?}"));
            }
            if end.cq == 1 {
                assert_eq!(end.wr_id as usize, self.sides[me].ended);
                self.sides[me].ended += 1;
                continue;
            }
            assert_eq!(self.sides[me].receives.pop_front(), Some(end.wr_id));
            let start = (end.wr_id as usize % RECEIVES) * STRIDE;
            let place = &self.pair.nodes[me].mem.bytes(RECEIVED)[start..start + STRIDE];
            let (message, got) = if end.op == CompletionOp::ReceiveWriteImm {
                let index = end.imm.ok_or("a write without its number")? as usize;
                let message = self.sides[1 - me].sent.get_mut(index);
                let at = index * STRIDE;
                let written = self.pair.nodes[me].mem.bytes(WRITTEN);
                (message, written.get(at..at + end.len as usize))
            } else {
                let head = if self.transport == Transport::Ud {
                    GRH_LEN
                } else {
                    0
                };
                let (got, rest) = place.split_at(end.len as usize);
                // A connection may have begun a longer message here, and lost the rest of it.
                let spoilt = if self.transport == Transport::Uc {
                    &place[MAX + GRH_LEN..]
                } else {
                    rest
                };
                if spoilt.iter().any(|byte| *byte != BLANK) {
                    return Err(format!("receive {} was written beyond its end", end.wr_id));
                }
                let got = got.get(head..).ok_or("shorter than its addresses")?;
                let index = got.first_chunk().map(|index| u64::from_le_bytes(*index));
                let index = index.ok_or("shorter than its number")? as usize;
                (self.sides[1 - me].sent.get_mut(index), Some(got))
            };
            let message = message.ok_or("a message that nobody sent")?;
            let imm = (message.kind != Kind::Send).then_some(message.imm);
            if message.kind == Kind::Write || got != Some(&message.data[..]) || end.imm != imm {
                return Err(format!("receive {} differs from what was sent", end.wr_id));
            }
            message.arrived += 1;
        }
        Ok(())
    }

    /// Looks at what was written: each place holds bytes of its message or none.
    fn check_written(&mut self, me: usize) -> Result<(), String> {
        let written = self.pair.nodes[me].mem.bytes(WRITTEN);
        for (message, place) in self.sides[1 - me]
            .sent
            .iter_mut()
            .zip(written.chunks(STRIDE))
        {
            let wanted: &[u8] = match message.kind {
                Kind::Write | Kind::WriteImm => &message.data,
                _ => &[],
            };
            let (inside, outside) = place.split_at(wanted.len());
            let same = |(is, should): (&u8, &u8)| is == should || *is == BLANK;
            if outside.iter().any(|byte| *byte != BLANK) || !inside.iter().zip(wanted).all(same) {
                return Err(format!("the place of message {} is spoilt", message.imm));
            }
            if message.kind == Kind::Write {
                message.arrived += u32::from(inside == wanted);
            }
        }
        Ok(())
    }

    fn go(&mut self, totals: &mut Totals) -> Result<(), String> {
        let mut steps = 0_u32;
        loop {
            steps += 1;
            if steps > 100_000 || self.pair.now > Time(600_000_000_000) {
                totals.hangs += 1;
                return Ok(());
            }
            for me in 0..2 {
                self.post_receives(me);
                let side = &self.sides[me];
                // Not more than the receives of the peer, so that what is lost is the network's doing.
                if side.posted < OPS
                    && side.posted - side.ended < RECEIVES / 2
                    && self.random.chance(700)
                {
                    self.post(me);
                }
            }
            let moved = self.pair.step();
            for me in 0..2 {
                self.reap(me)?;
            }
            let done = |side: &Side| side.posted == OPS && side.ended == OPS;
            if !moved {
                if self.sides.iter().all(done) {
                    break;
                }
                self.pair.now = self.pair.now.after(1000);
            }
        }
        for me in 0..2 {
            self.check_written(me)?;
        }
        let perfect = self.pair.faults.loss == 0 && self.seed.is_multiple_of(5);
        for message in self.sides.iter().flat_map(|side| &side.sent) {
            totals.messages += 1;
            totals.arrived += u64::from(message.arrived > 0);
            totals.bytes += message.data.len() as u64;
            totals.missing += u64::from(perfect && message.arrived != 1);
        }
        for node in &self.pair.nodes {
            totals.bad_icrc += node.engine.counters().bad_icrc;
        }
        Ok(())
    }
}

fn campaign(transport: Transport) {
    let seeds = std::env::var("RVERBS_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(40);
    let mut totals = Totals::default();
    for seed in 0..seeds {
        if let Err(what) = Run::new(seed, transport).go(&mut totals) {
            eprintln!("{transport:?} seed {seed}: {what}");
            totals.corruptions += 1;
        }
        totals.seeds += 1;
    }
    eprintln!("campaign {transport:?}: {totals:?}");
    assert_eq!(
        (totals.corruptions, totals.hangs, totals.missing),
        (0, 0, 0)
    );
    // A network this bad still carries most of it.
    assert!(totals.arrived * 4 > totals.messages * 3);
}

#[test]
fn unreliable_connections_over_a_bad_network() {
    campaign(Transport::Uc);
}

#[test]
fn datagrams_over_a_bad_network() {
    campaign(Transport::Ud);
}
