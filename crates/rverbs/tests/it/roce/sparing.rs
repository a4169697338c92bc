//! What a message costs besides itself: answers, and events.

use rverbs::provider::roce::proto::{
    EngineConfig, Event, Peer, Psn, Receive, RecvRequest, SendFlags, SendOp, SendRequest, Sge,
    Transport,
};

use super::link::{Pair, Setup};
use super::regions::Region;

const KEY: u32 = 0x33;
const BASE: u64 = 0x7f00_0000_0000;
const MTU: usize = 4096;
const PACKETS: usize = 512;

/// Side 0 sends one message of [`PACKETS`] packets to side 1, which only receives. Returns how many
/// packets asked for an acknowledgement, and the events of side 1.
fn one_long_message() -> (usize, Vec<Event>) {
    let mut pair = Pair::new(1, false, EngineConfig::default());
    let mut setup = Setup::new(Transport::Rc);
    setup.mtu = 4096;
    let [from, to] = pair.connect(&setup);
    let peer = Peer {
        destination: pair.destination(1),
        qpn: from,
    };
    for node in &mut pair.nodes {
        let region = Region {
            pd: 1,
            addr: BASE,
            access: setup.access,
            bytes: vec![0; PACKETS * MTU],
        };
        node.mem.0.insert(KEY, region);
    }
    let engine = &mut pair.nodes[1].engine;
    engine.reset(to).unwrap();
    engine.init(to, setup.access, 0xffff, 0).unwrap();
    let receive = Receive {
        peer: Some(peer),
        mtu: setup.mtu,
        psn: Psn::new(setup.psn[0]),
        max_dest_rd_atomic: 0,
        min_rnr_timer: 1,
    };
    engine.ready_to_receive(to, &receive).unwrap();
    let sges = [Sge {
        addr: BASE,
        len: u32::try_from(PACKETS * MTU).unwrap(),
        lkey: KEY,
    }];
    let request = RecvRequest {
        wr_id: 0,
        sges: &sges,
    };
    engine.post_recv(to, &request).unwrap();
    let request = SendRequest {
        wr_id: 0,
        op: SendOp::Send,
        sges: &sges,
        inline: None,
        flags: SendFlags {
            signaled: true,
            ..SendFlags::default()
        },
        to: None,
    };
    pair.nodes[0].engine.post_send(from, &request).unwrap();
    pair.log = Some(Vec::new());
    while pair.step() {}
    assert!(pair.nodes[0].engine.poll_completion().is_some());
    assert!(pair.nodes[1].engine.poll_completion().is_some());
    let log = pair.log.unwrap();
    let sent: Vec<_> = log.iter().filter(|(from, _)| *from == 0).collect();
    assert_eq!(sent.len(), PACKETS, "nothing was sent again");
    // The bit of the base header by which a packet asks for an acknowledgement.
    let asks = sent.iter().filter(|(_, packet)| packet[8] & 0x80 != 0);
    let asks = asks.count();
    let engine = &mut pair.nodes[1].engine;
    (asks, core::iter::from_fn(|| engine.poll_event()).collect())
}

#[test]
fn an_acknowledgement_is_asked_for_by_a_quarter_of_the_window() {
    let (asks, _) = one_long_message();
    // The window is 64 packets.
    assert!((8..=PACKETS / 16 + 1).contains(&asks), "{asks}");
}

#[test]
fn a_connection_is_established_once() {
    let (_, events) = one_long_message();
    assert!(
        matches!(events.as_slice(), [Event::Established { .. }]),
        "{events:?}"
    );
}
