//! Peers that want more than they may: wrong keys, lengths, numbers, and plain noise.

use proptest::prelude::*;
use rdma_wire::{Be16, Be24, Be32, Be64};
use rverbs::provider::roce::proto::packet::header::{
    Aeth, AtomicEth, Bth, NakCode, Reth, Syndrome,
};
use rverbs::provider::roce::proto::packet::{Opcode, Packet, icrc};
use rverbs::provider::roce::proto::{
    Access, EngineConfig, Event, Meta, QpState, RecvRequest, SendFlags, SendOp, SendRequest, Sge,
    Transport,
};

use super::link::{Pair, Random, Setup};
use super::regions::Region;

const EXPORTED: u32 = 0x11;
const READ_ONLY: u32 = 0x22;
const PRIVATE: u32 = 0x33;
const OTHER_DOMAIN: u32 = 0x44;
const BASE: u64 = 0x10_0000;
const LEN: usize = 4096;

/// Side 1 is the victim; side 0 is connected to it, and the test speaks in its place.
fn victim(seed: u64, transport: Transport) -> (Pair, [u32; 2]) {
    let mut pair = Pair::new(seed, true, EngineConfig::default());
    let mut random = Random(seed);
    for (key, pd, access) in [
        (EXPORTED, 1, Access::ALL),
        (READ_ONLY, 1, Access::REMOTE_READ),
        (PRIVATE, 1, Access::LOCAL_WRITE),
        (OTHER_DOMAIN, 2, Access::ALL),
    ] {
        let mut bytes = vec![0; LEN];
        random.fill(&mut bytes);
        pair.nodes[1].mem.0.insert(
            key,
            Region {
                pd,
                addr: BASE + 0x10_0000 * u64::from(key),
                access,
                bytes,
            },
        );
    }
    let mut setup = Setup::new(transport);
    setup.psn = [0x1000, 0x2000];
    let qpns = pair.connect(&setup);
    (pair, qpns)
}

fn addr(key: u32) -> u64 {
    BASE + 0x10_0000 * u64::from(key)
}

fn bth(opcode: Opcode, qpn: u32, psn: u32) -> Bth {
    Bth {
        opcode,
        flags: Bth::MIGRATED,
        p_key: Be16::new(0xffff),
        dest_qp: Be24::new(qpn),
        ack: Bth::ACK_REQUEST,
        psn: Be24::new(psn),
        ..Bth::default()
    }
}

/// Hands the victim a packet with a right sum, and returns what it answers.
fn inject(pair: &mut Pair, parts: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut bytes = parts.concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let destination = pair.destination(0);
    bytes.extend_from_slice(&icrc::compute(&destination.flow, 0, &bytes).to_le_bytes());
    let meta = Meta {
        flow: destination.flow,
        tos: 0,
    };
    let node = &mut pair.nodes[1];
    node.engine
        .handle_packet(pair.now, &mut node.mem, &meta, &bytes);
    pair.answers(1)
}

fn nak(answers: &[Vec<u8>]) -> Option<NakCode> {
    let packet = Packet::parse(answers.first()?).unwrap();
    match Syndrome::from_byte(packet.aeth?.syndrome) {
        Syndrome::Nak(code) => Some(code),
        _ => None,
    }
}

#[test]
fn what_is_not_exported_is_refused_and_untouched() {
    let write = |addr: u64, key: u32, len: u32| {
        let reth = Reth {
            va: Be64::new(addr),
            r_key: Be32::new(key),
            len: Be32::new(len),
        };
        (
            Opcode::RC_WRITE_ONLY,
            bytemuck::bytes_of(&reth).to_vec(),
            vec![0xaa; len.min(1024) as usize],
        )
    };
    let read = |addr: u64, key: u32, len: u32| {
        let reth = Reth {
            va: Be64::new(addr),
            r_key: Be32::new(key),
            len: Be32::new(len),
        };
        (
            Opcode::RC_READ_REQUEST,
            bytemuck::bytes_of(&reth).to_vec(),
            vec![],
        )
    };
    let atomic = |addr: u64, key: u32| {
        let (swap_add, compare) = (Be64::new(1), Be64::new(0));
        let eth = AtomicEth {
            va: Be64::new(addr),
            r_key: Be32::new(key),
            swap_add,
            compare,
        };
        (
            Opcode::RC_FETCH_ADD,
            bytemuck::bytes_of(&eth).to_vec(),
            vec![],
        )
    };
    let end = addr(EXPORTED) + LEN as u64;
    let access = NakCode::REMOTE_ACCESS;
    let cases = [
        (
            "write, no such key",
            write(addr(EXPORTED), 0xdead, 64),
            access,
        ),
        ("write, key 0", write(addr(EXPORTED), 0, 64), access),
        (
            "write, before the region",
            write(addr(EXPORTED) - 1, EXPORTED, 64),
            access,
        ),
        ("write, over its end", write(end - 63, EXPORTED, 64), access),
        ("write, wrapping", write(u64::MAX - 3, EXPORTED, 64), access),
        (
            "write, read-only region",
            write(addr(READ_ONLY), READ_ONLY, 64),
            access,
        ),
        (
            "write, private region",
            write(addr(PRIVATE), PRIVATE, 64),
            access,
        ),
        (
            "write, region of another domain",
            write(addr(OTHER_DOMAIN), OTHER_DOMAIN, 64),
            access,
        ),
        (
            "write, announced length beyond",
            write(addr(EXPORTED), EXPORTED, 0x8000_0000),
            access,
        ),
        (
            "write, less than announced",
            {
                let (opcode, head, _) = write(addr(EXPORTED), EXPORTED, 128);
                (opcode, head, vec![0xaa; 64])
            },
            NakCode::INVALID_REQUEST,
        ),
        (
            "write, more than announced",
            {
                let (opcode, head, _) = write(addr(EXPORTED), EXPORTED, 64);
                (opcode, head, vec![0xaa; 128])
            },
            NakCode::INVALID_REQUEST,
        ),
        (
            "read, no such key",
            read(addr(EXPORTED), 0xdead, 64),
            access,
        ),
        ("read, over its end", read(end - 63, EXPORTED, 64), access),
        (
            "read, private region",
            read(addr(PRIVATE), PRIVATE, 64),
            access,
        ),
        (
            "read, region of another domain",
            read(addr(OTHER_DOMAIN), OTHER_DOMAIN, 64),
            access,
        ),
        (
            "read, too long",
            read(addr(EXPORTED), EXPORTED, u32::MAX),
            NakCode::INVALID_REQUEST,
        ),
        (
            "atomic, read-only region",
            atomic(addr(READ_ONLY), READ_ONLY),
            access,
        ),
        ("atomic, over its end", atomic(end, EXPORTED), access),
        (
            "atomic, crooked address",
            atomic(addr(EXPORTED) + 4, EXPORTED),
            NakCode::INVALID_REQUEST,
        ),
        (
            "middle without a first",
            (Opcode::RC_WRITE_MIDDLE, vec![], vec![0xaa; 1024]),
            NakCode::INVALID_REQUEST,
        ),
        (
            "send first, too short for it",
            (Opcode::RC_SEND_FIRST, vec![], vec![0xaa; 512]),
            NakCode::INVALID_REQUEST,
        ),
    ];
    for (what, (opcode, head, payload), expected) in cases {
        let (mut pair, qpns) = victim(1, Transport::Rc);
        let before = pair.nodes[1].mem.clone();
        let bth = bth(opcode, qpns[1], 0x1000);
        let answers = inject(&mut pair, &[bytemuck::bytes_of(&bth), &head, &payload]);
        assert_eq!(nak(&answers), Some(expected), "{what}");
        assert_eq!(answers.len(), 1, "{what}");
        let after = &pair.nodes[1].mem;
        assert!(
            before
                .0
                .iter()
                .all(|(key, region)| region.bytes == after.bytes(*key)),
            "{what}: memory changed"
        );
        assert_eq!(
            pair.nodes[1].engine.state(qpns[1]),
            Ok(QpState::Error),
            "{what}"
        );
        let event = pair.nodes[1].engine.poll_event();
        assert!(
            matches!(event, Some(Event::Failed { by_peer: true, .. })),
            "{what}: {event:?}"
        );
    }
}

#[test]
fn numbers_out_of_sequence_are_named_once_or_ignored() {
    let (mut pair, qpns) = victim(2, Transport::Rc);
    let before = pair.nodes[1].mem.clone();
    let reth = Reth {
        va: Be64::new(addr(EXPORTED)),
        r_key: Be32::new(EXPORTED),
        len: Be32::new(8),
    };
    let send = |pair: &mut Pair, psn: u32| {
        let bth = bth(Opcode::RC_WRITE_ONLY, qpns[1], psn);
        inject(
            pair,
            &[
                bytemuck::bytes_of(&bth),
                bytemuck::bytes_of(&reth),
                &[0xaa; 8],
            ],
        )
    };
    assert_eq!(nak(&send(&mut pair, 0x1003)), Some(NakCode::PSN_SEQUENCE));
    assert!(send(&mut pair, 0x1004).is_empty());
    // A duplicate is acknowledged and not carried out again.
    let answers = send(&mut pair, 0x0fff);
    assert_eq!((answers.len(), nak(&answers)), (1, None));
    assert_eq!(before.bytes(EXPORTED), pair.nodes[1].mem.bytes(EXPORTED));
    assert_eq!(pair.nodes[1].engine.state(qpns[1]), Ok(QpState::Rts));
    assert_eq!(nak(&send(&mut pair, 0x1000)), None);
    assert_ne!(before.bytes(EXPORTED), pair.nodes[1].mem.bytes(EXPORTED));
}

#[test]
fn a_stranger_is_not_listened_to() {
    let (mut pair, qpns) = victim(3, Transport::Rc);
    let reth = Reth {
        va: Be64::new(addr(EXPORTED)),
        r_key: Be32::new(EXPORTED),
        len: Be32::new(8),
    };
    let bth = bth(Opcode::RC_WRITE_ONLY, qpns[1], 0x1000);
    let mut bytes = [
        bytemuck::bytes_of(&bth),
        bytemuck::bytes_of(&reth),
        &[0xaa; 8],
    ]
    .concat();
    let mut flow = pair.destination(0).flow;
    flow.src.set_ip("fd00::666".parse().unwrap());
    bytes.extend_from_slice(&icrc::compute(&flow, 0, &bytes).to_le_bytes());
    let before = pair.nodes[1].mem.clone();
    let node = &mut pair.nodes[1];
    node.engine
        .handle_packet(pair.now, &mut node.mem, &Meta { flow, tos: 0 }, &bytes);
    assert!(pair.answers(1).is_empty());
    assert_eq!(before.bytes(EXPORTED), pair.nodes[1].mem.bytes(EXPORTED));
    assert_eq!(pair.nodes[1].engine.counters().unwanted, 1);
}

#[test]
fn false_answers_fail_the_request_and_write_nothing() {
    // The victim reads 8 bytes; the answer carries 64.
    let (mut pair, qpns) = victim(4, Transport::Rc);
    let sges = [Sge {
        addr: addr(PRIVATE),
        len: 8,
        lkey: PRIVATE,
    }];
    let op = SendOp::Read { addr: 0, rkey: 1 };
    let flags = SendFlags {
        signaled: true,
        ..SendFlags::default()
    };
    let request = SendRequest {
        wr_id: 1,
        op,
        flags,
        sges: &sges,
        inline: None,
        to: None,
    };
    pair.nodes[1].engine.post_send(qpns[1], &request).unwrap();
    assert_eq!(pair.answers(1).len(), 1);
    let before = pair.nodes[1].mem.clone();
    let aeth = Aeth {
        syndrome: 0x1f,
        msn: Be24::new(1),
    };
    let bth = bth(Opcode::RC_READ_RESPONSE_ONLY, qpns[1], 0x2000);
    inject(
        &mut pair,
        &[
            bytemuck::bytes_of(&bth),
            bytemuck::bytes_of(&aeth),
            &[0xaa; 64],
        ],
    );
    assert_eq!(before.bytes(PRIVATE), pair.nodes[1].mem.bytes(PRIVATE));
    assert_eq!(pair.nodes[1].engine.state(qpns[1]), Ok(QpState::Error));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Noise with right sums: nothing panics, and what is not exported stays as it is.
    #[test]
    fn noise_touches_only_what_is_exported(
        seed in any::<u64>(),
        kind in 0..3_usize,
        packets in prop::collection::vec((any::<u8>(), 0..6_u32, 0..12_u32, any::<u8>(), prop::collection::vec(any::<u8>(), 0..80)), 1..60),
    ) {
        let transport = [Transport::Rc, Transport::Uc, Transport::Ud][kind];
        let (mut pair, qpns) = victim(seed, transport);
        let sges = [Sge { addr: addr(PRIVATE), len: 64, lkey: PRIVATE }];
        for wr_id in 0..4 {
            pair.nodes[1].engine.post_recv(qpns[1], &RecvRequest { wr_id, sges: &sges }).unwrap();
        }
        let before = pair.nodes[1].mem.clone();
        let class = [0, 0x20, 0x60][kind];
        for (opcode, key, psn, flags, tail) in packets {
            let bth = Bth { flags: flags & 0xf0, ..bth(Opcode(class | opcode & 0x1f), qpns[1], 0x0ffc + psn) };
            let key = [EXPORTED, READ_ONLY, PRIVATE, OTHER_DOMAIN, 0, 0x1111][key as usize];
            let reth = Reth { va: Be64::new(addr(key.max(1)) + u64::from(flags)), r_key: Be32::new(key), len: Be32::new(tail.len() as u32) };
            let head: &[u8] = if flags & 1 == 0 { bytemuck::bytes_of(&reth) } else { &[0, 0, 0x11, 0x11, 0, 0, 0, 1] };
            inject(&mut pair, &[bytemuck::bytes_of(&bth), head, &tail]);
        }
        let after = &pair.nodes[1].mem;
        for key in [READ_ONLY, OTHER_DOMAIN] {
            prop_assert_eq!(before.bytes(key), after.bytes(key));
        }
        // Receives may have been used, and nothing beyond them.
        prop_assert_eq!(&before.bytes(PRIVATE)[64..], &after.bytes(PRIVATE)[64..]);
    }

    /// Bytes of any kind are a packet or an error.
    #[test]
    fn any_bytes_parse_or_not(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(packet) = Packet::parse(&bytes) {
            prop_assert!(packet.payload.len() + 16 <= bytes.len());
        }
    }
}
