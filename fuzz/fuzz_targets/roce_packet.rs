//! Any bytes as a RoCEv2 payload, and as a connection management datagram.
//!
//! A packet that parses lies within its bytes, and a sum that we compute is one that we accept, for
//! every IPv4 identification.
#![no_main]

use std::net::SocketAddr;

use rverbs::provider::roce::proto::packet::Packet;
use rverbs::provider::roce::proto::packet::icrc::{self, Checker, Flow};
use rverbs::provider::roce::proto::{Destination, Mad, Time, cm};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(packet) = Packet::parse(data) {
        let (all, part) = (data.as_ptr_range(), packet.payload.as_ptr_range());
        assert!(packet.payload.is_empty() || all.start <= part.start && part.end <= all.end);
        assert!(packet.payload.len() + size_of_val(packet.bth) + icrc::LEN <= data.len());
    }

    let v4 = data.first().is_some_and(|byte| byte & 1 == 0);
    let address = |last: u8| -> SocketAddr {
        if v4 {
            SocketAddr::from(([10, 0, 0, last], 4791))
        } else {
            SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)], 4791))
        }
    };
    let flow = Flow {
        src: address(1),
        dst: address(2),
    };
    if data.len() >= 12
        && data.len() <= icrc::MAX_PACKET - icrc::LEN
        && data.len().is_multiple_of(4)
    {
        let id = u16::from_le_bytes([data[1], data[2]]);
        let mut sealed = data.to_vec();
        sealed.extend_from_slice(&icrc::compute(&flow, id, data).to_le_bytes());
        let found = Checker::new().check(&flow, &sealed);
        assert!(found.is_some());
        assert!(!v4 || found == Some(id));
    }

    let mut connections = cm::Manager::new(1, 1_000_000);
    connections.listen(0x0106_1c06).unwrap();
    let mut bytes = [0; rverbs::provider::roce::proto::MAD_LEN];
    let mut now = Time(1);
    for chunk in data.chunks(bytes.len()).take(8) {
        bytes.fill(0);
        bytes[..chunk.len()].copy_from_slice(chunk);
        let destination = Destination { flow, tos: 0 };
        connections.handle_mad(
            now,
            &Mad {
                destination,
                qpn: 1,
                bytes,
            },
        );
        while connections.poll_transmit().is_some() {}
        while connections.poll_event().is_some() {}
        now = now.after(1_000_000);
        connections.handle_timeout(now);
    }
});
