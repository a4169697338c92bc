//! The ICRC, against sums that Scapy made.

use std::net::SocketAddr;

use rverbs::provider::roce::proto::packet::Packet;
use rverbs::provider::roce::proto::packet::icrc::{Checker, Flow, compute};

struct Golden {
    name: String,
    flow: Flow,
    id: u16,
    bytes: Vec<u8>,
}

fn golden() -> Vec<Golden> {
    include_str!("../../data/roce/icrc.txt")
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [name, src, dst, sport, dport, id, hex] = words[..] else {
                panic!("{line}")
            };
            let flow = Flow {
                src: SocketAddr::new(src.parse().unwrap(), sport.parse().unwrap()),
                dst: SocketAddr::new(dst.parse().unwrap(), dport.parse().unwrap()),
            };
            let bytes = (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
            Golden {
                name: name.to_owned(),
                flow,
                id: id.parse().unwrap(),
                bytes: bytes.collect(),
            }
        })
        .collect()
}

#[test]
fn the_sum_is_scapys() {
    let all = golden();
    assert_eq!(all.len(), 16);
    for golden in all {
        let (body, sum) = golden.bytes.split_last_chunk::<4>().unwrap();
        assert_eq!(
            compute(&golden.flow, golden.id, body).to_le_bytes(),
            *sum,
            "{}",
            golden.name
        );
        Packet::parse(&golden.bytes).unwrap();
    }
}

#[test]
fn the_identification_is_found() {
    let checker = Checker::new();
    for golden in golden() {
        assert_eq!(
            checker.check(&golden.flow, &golden.bytes),
            Some(golden.id),
            "{}",
            golden.name
        );
    }
}

#[test]
fn every_identification_passes_and_a_changed_packet_does_not() {
    let checker = Checker::new();
    let golden = golden()
        .into_iter()
        .find(|golden| golden.name == "write_only")
        .unwrap();
    let mut bytes = golden.bytes.clone();
    for id in 0..=u16::MAX {
        let at = bytes.len() - 4;
        let sum = compute(&golden.flow, id, &bytes[..at]).to_le_bytes();
        bytes[at..].copy_from_slice(&sum);
        assert_eq!(checker.check(&golden.flow, &bytes), Some(id));
    }
    // One bit more or less, in every place but the byte that the sum leaves out.
    let mut passed = 0;
    for bit in 0..golden.bytes.len() * 8 {
        if bit / 8 == 4 {
            continue;
        }
        let mut bytes = golden.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        passed += u32::from(checker.check(&golden.flow, &bytes).is_some());
    }
    assert_eq!(passed, 0);
}

#[test]
fn a_random_sum_passes_once_in_65536() {
    let checker = Checker::new();
    let golden = golden()
        .into_iter()
        .find(|golden| golden.name == "middle")
        .unwrap();
    let mut bytes = golden.bytes;
    let (mut passed, mut state) = (0u32, 1u64);
    let tries = 200_000u32;
    for _ in 0..tries {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&((state >> 32) as u32).to_le_bytes());
        passed += u32::from(checker.check(&golden.flow, &bytes).is_some());
    }
    // 3 expected.
    assert!(passed <= 12, "{passed} of {tries}");
}
