//! Two engines, a bad network between them, and a clock that only we move.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rverbs::provider::roce::proto::packet::icrc::Flow;
use rverbs::provider::roce::proto::{
    Access, Burst, Destination, Engine, EngineConfig, Meta, Peer, Psn, QpConfig, Receive, Send,
    Time, Transport,
};

use super::regions::Regions;

/// A generator that gives the same numbers for the same seed (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// True `per_mille` times in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next().to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

/// What the network does to packets, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Faults {
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    pub corrupt: u64,
    pub congest: u64,
}

/// One side.
pub(crate) struct Node {
    pub engine: Engine,
    pub mem: Regions,
    pub addr: SocketAddr,
    burst: Burst,
}

/// Two sides and what lies between them.
pub(crate) struct Pair {
    pub now: Time,
    pub nodes: [Node; 2],
    pub faults: Faults,
    pub random: Random,
    /// By time of arrival and number: to whom, and what.
    wire: BTreeMap<(Time, u64), (usize, Meta, Vec<u8>)>,
    number: u64,
    /// Bytes of packets that were given to the network.
    pub carried: u64,
    /// Every packet, before faults.
    pub log: Option<Vec<(usize, Vec<u8>)>>,
}

/// Nanoseconds from one side to the other.
const LATENCY: u64 = 5_000;

impl Pair {
    pub(crate) fn new(seed: u64, v6: bool, config: EngineConfig) -> Self {
        let addr = |last: u16| -> SocketAddr {
            if v6 {
                SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, last], 4791))
            } else {
                SocketAddr::from(([10, 0, 0, last as u8], 4791))
            }
        };
        let node = |last: u16| Node {
            engine: Engine::new(EngineConfig {
                seed: seed + u64::from(last),
                ..config
            }),
            mem: Regions::default(),
            addr: addr(last),
            burst: Burst::new(64),
        };
        Self {
            now: Time(1_000),
            nodes: [node(1), node(2)],
            faults: Faults::default(),
            random: Random(seed),
            wire: BTreeMap::new(),
            number: 0,
            carried: 0,
            log: None,
        }
    }

    /// Packets leave, time goes on to the next thing that happens, and it happens. False if
    /// nothing ever will.
    pub(crate) fn step(&mut self) -> bool {
        for from in 0..2 {
            self.transmit(from);
        }
        let arrival = self.wire.keys().next().map(|(time, _)| *time);
        let timeouts = self
            .nodes
            .iter()
            .filter_map(|node| node.engine.poll_timeout());
        let Some(next) = timeouts.chain(arrival).min() else {
            return false;
        };
        self.now = self.now.max(next);
        while let Some(entry) = self.wire.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, meta, bytes) = entry.remove();
            let node = &mut self.nodes[to];
            node.engine
                .handle_packet(self.now, &mut node.mem, &meta, &bytes);
        }
        for node in &mut self.nodes {
            node.engine.handle_timeout(self.now, &mut node.mem);
        }
        true
    }

    fn transmit(&mut self, from: usize) {
        loop {
            let node = &mut self.nodes[from];
            if !node
                .engine
                .poll_transmit(self.now, &mut node.mem, &mut node.burst)
            {
                return;
            }
            let destination = *node.burst.destination().unwrap();
            let to = self
                .nodes
                .iter()
                .position(|node| node.addr == destination.flow.dst)
                .unwrap();
            let packets: Vec<Vec<u8>> = self.nodes[from]
                .burst
                .packets()
                .map(<[u8]>::to_vec)
                .collect();
            let burst = &self.nodes[from].burst;
            assert_eq!(packets.len(), usize::from(burst.count()));
            assert!(
                packets
                    .iter()
                    .rev()
                    .skip(1)
                    .all(|packet| packet.len() == burst.segment())
            );
            for packet in packets {
                if let Some(log) = &mut self.log {
                    log.push((from, packet.clone()));
                }
                self.carry(to, &destination, packet);
            }
        }
    }

    /// Puts a packet into the network, from whom it says it is.
    pub(crate) fn carry(&mut self, to: usize, destination: &Destination, mut packet: Vec<u8>) {
        self.carried += packet.len() as u64;
        let meta = |tos| Meta {
            flow: destination.flow,
            tos,
        };
        if self.random.chance(self.faults.loss) {
            return;
        }
        let mut copies = 1;
        if self.random.chance(self.faults.duplicate) {
            copies = 2;
        }
        let tos = if self.random.chance(self.faults.congest) {
            3
        } else {
            2
        };
        if self.random.chance(self.faults.corrupt) {
            let before = udp_sum(&packet);
            for _ in 0..=self.random.below(3) {
                let bit = self.random.below(packet.len() as u64 * 8) as usize;
                packet[bit / 8] ^= 1 << (bit % 8);
            }
            if self.random.chance(100) {
                let len = self.random.below(packet.len() as u64) as usize;
                packet.truncate(len);
            }
            // What the UDP checksum finds never reaches a socket.
            if udp_sum(&packet) != before {
                // But let half of it through: some senders send no checksum.
                if self.random.chance(500) || destination.flow.src.is_ipv4() {
                    return;
                }
            }
        }
        for _ in 0..copies {
            let mut delay = LATENCY;
            if self.random.chance(self.faults.reorder) {
                delay += self.random.below(40_000);
            }
            self.number += 1;
            let at = self.now.after(delay);
            self.wire
                .insert((at, self.number), (to, meta(tos), packet.clone()));
        }
    }

    /// What a side sends now, taken out of the network.
    pub(crate) fn answers(&mut self, from: usize) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        let node = &mut self.nodes[from];
        while node
            .engine
            .poll_transmit(self.now, &mut node.mem, &mut node.burst)
        {
            packets.extend(node.burst.packets().map(<[u8]>::to_vec));
        }
        packets
    }

    /// The way from one side to the other.
    pub(crate) fn destination(&self, from: usize) -> Destination {
        Destination {
            flow: Flow {
                src: self.nodes[from].addr,
                dst: self.nodes[1 - from].addr,
            },
            tos: 2,
        }
    }

    /// A pair of queue pairs, connected.
    pub(crate) fn connect(&mut self, setup: &Setup) -> [u32; 2] {
        let qpns = [0, 1].map(|side| {
            let node = &mut self.nodes[side];
            let qpn = node.engine.create_qp(&setup.config).unwrap();
            node.engine.init(qpn, setup.access, 0xffff, 0x1111).unwrap();
            qpn
        });
        for side in [0, 1] {
            let peer = Peer {
                destination: self.destination(side),
                qpn: qpns[1 - side],
            };
            let engine = &mut self.nodes[side].engine;
            let receive = Receive {
                peer: Some(peer),
                mtu: setup.mtu,
                psn: Psn::new(setup.psn[1 - side]),
                max_dest_rd_atomic: setup.reads,
                min_rnr_timer: 1,
            };
            engine.ready_to_receive(qpns[side], &receive).unwrap();
            let send = Send {
                psn: Psn::new(setup.psn[side]),
                timeout: setup.timeout,
                retry_count: 7,
                rnr_retry: setup.rnr_retry,
                max_rd_atomic: setup.reads,
            };
            engine.ready_to_send(qpns[side], &send).unwrap();
        }
        qpns
    }
}

/// How [`Pair::connect`] connects.
pub(crate) struct Setup {
    pub config: QpConfig,
    pub access: Access,
    pub mtu: u32,
    pub psn: [u32; 2],
    pub reads: u8,
    pub timeout: u8,
    pub rnr_retry: u8,
}

impl Setup {
    pub(crate) fn new(transport: Transport) -> Self {
        Self {
            config: QpConfig {
                transport,
                pd: 1,
                send_cq: 1,
                recv_cq: 2,
                srq: None,
                outside_receives: false,
                send_depth: 32,
                recv_depth: 32,
                max_sge: 4,
                max_inline: 128,
                signal_all: false,
            },
            access: Access::ALL,
            mtu: 1024,
            psn: [100, 0xff_fff0],
            reads: 4,
            timeout: 8,
            rnr_retry: 7,
        }
    }
}

fn udp_sum(bytes: &[u8]) -> (usize, u32) {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([
            pair[0],
            pair.get(1).copied().unwrap_or(0),
        ]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (bytes.len(), sum)
}
