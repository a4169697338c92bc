//! A hostile peer of a RoCEv2 port: what it may not reach stays unread and untouched, and the port
//! comes to rest.
//!
//! The first byte is the transport. Then follow steps: a control byte, a length byte, and as many
//! bytes of packet from its opcode on. The target fills in what a peer on the wire knows anyway: the
//! queue pair's number, packet numbers near the expected ones, and a right ICRC.
#![no_main]

#[path = "../../crates/rverbs/tests/it/roce/regions.rs"]
mod regions;

use std::net::SocketAddr;

use rverbs::provider::roce::proto::packet::icrc::{self, Flow};
use rverbs::provider::roce::proto::{
    Access, Burst, Destination, Engine, EngineConfig, Meta, Peer, Psn, QpConfig, Receive,
    RecvRequest, Send, SendFlags, SendOp, SendRequest, Sge, Time, Transport,
};

use regions::{Region, Regions};

const LEN: usize = 1024;
const BASE: u64 = 0x1000;
/// The only region that a peer may read and write.
const EXPORTED: u32 = 0x11;
const READ_ONLY: u32 = 0x22;
const WRITE_ONLY: u32 = 0x33;
/// Of the same protection domain, without remote rights.
const PRIVATE: u32 = 0x44;
/// Where receives and answers to own requests go.
const LANDING: u32 = 0x55;
/// With all rights, in another protection domain.
const FOREIGN: u32 = 0x66;
const KEYS: [u32; 6] = [EXPORTED, READ_ONLY, WRITE_ONLY, PRIVATE, LANDING, FOREIGN];

/// What must never be on the wire. Long enough not to be there by chance.
const SECRET: [u8; 8] = [0xd1, 0x5e, 0xc4, 0x37, 0xb2, 0x69, 0xf8, 0x8d];
const FIRST_PSN: [u32; 2] = [0xff_fffa, 0x00_2000];

fn regions() -> Regions {
    let region = |key| {
        let (pd, access) = match key {
            EXPORTED => (1, Access::ALL),
            READ_ONLY => (1, Access::REMOTE_READ),
            WRITE_ONLY => (1, Access::LOCAL_WRITE.union(Access::REMOTE_WRITE)),
            FOREIGN => (2, Access::ALL),
            _ => (1, Access::LOCAL_WRITE),
        };
        let bytes = match key {
            EXPORTED | READ_ONLY | LANDING => vec![key as u8; LEN],
            _ => SECRET.repeat(LEN / SECRET.len()),
        };
        let addr = base(key);
        (
            key,
            Region {
                pd,
                addr,
                access,
                bytes,
            },
        )
    };
    Regions(KEYS.map(region).into())
}

fn base(key: u32) -> u64 {
    BASE * u64::from(key)
}

struct Victim {
    engine: Engine,
    mem: Regions,
    burst: Burst,
    now: Time,
    flow: Flow,
}

impl Victim {
    /// What it sends now, which must not tell a secret.
    fn transmit(&mut self) {
        let mut bursts = 0;
        while self
            .engine
            .poll_transmit(self.now, &mut self.mem, &mut self.burst)
        {
            bursts += 1;
            assert!(bursts < 10_000, "it sends without end");
            for packet in self.burst.packets() {
                let told = packet.windows(SECRET.len()).any(|window| window == SECRET);
                assert!(!told, "a secret left: {packet:02x?}");
            }
        }
        while self.engine.poll_completion().is_some() {}
        while self.engine.poll_event().is_some() {}
        while self.engine.poll_mad().is_some() {}
    }

    fn timeout(&mut self) -> bool {
        let Some(at) = self.engine.poll_timeout() else {
            return false;
        };
        self.now = self.now.max(at);
        self.engine.handle_timeout(self.now, &mut self.mem);
        self.transmit();
        true
    }

    fn post_receive(&mut self, qpn: u32) {
        let sges = [Sge {
            addr: base(LANDING),
            len: 512,
            lkey: LANDING,
        }];
        let _ = self.engine.post_recv(
            qpn,
            &RecvRequest {
                wr_id: 1,
                sges: &sges,
            },
        );
    }

    fn post_request(&mut self, qpn: u32, choice: u8) {
        let (addr, rkey) = (0x1234, 0x99);
        let op = match choice & 3 {
            0 => SendOp::Send,
            1 => SendOp::Write { addr, rkey },
            2 => SendOp::Read { addr, rkey },
            _ => SendOp::FetchAdd {
                addr: 0x1238,
                rkey,
                add: 1,
            },
        };
        let len = if choice & 3 == 3 { 8 } else { 300 };
        let sges = [Sge {
            addr: base(LANDING) + 512,
            len,
            lkey: LANDING,
        }];
        let flags = SendFlags {
            signaled: true,
            ..SendFlags::default()
        };
        let request = SendRequest {
            wr_id: 2,
            op,
            flags,
            sges: &sges,
            inline: None,
            to: None,
        };
        let _ = self.engine.post_send(qpn, &request);
        self.transmit();
    }
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&kind, mut rest)) = data.split_first() else {
        return;
    };
    let transport = [Transport::Rc, Transport::Uc, Transport::Ud][usize::from(kind % 3)];
    let address = |last: u16| SocketAddr::from(([0xfd00, 0, 0, 0, 0, 0, 0, last], 4791));
    let mut victim = Victim {
        engine: Engine::new(EngineConfig::default()),
        mem: regions(),
        burst: Burst::new(8),
        now: Time(1_000),
        flow: Flow {
            src: address(1),
            dst: address(2),
        },
    };
    let config = QpConfig {
        transport,
        pd: 1,
        send_cq: 1,
        recv_cq: 2,
        srq: None,
        outside_receives: false,
        send_depth: 4,
        recv_depth: 4,
        max_sge: 2,
        max_inline: 64,
        signal_all: false,
    };
    let qpn = victim.engine.create_qp(&config).unwrap();
    victim
        .engine
        .init(qpn, Access::ALL, 0xffff, 0x1111)
        .unwrap();
    let back = Destination {
        flow: Flow {
            src: address(2),
            dst: address(1),
        },
        tos: 0,
    };
    let receive = Receive {
        peer: Some(Peer {
            destination: back,
            qpn: 0x777,
        }),
        mtu: 256,
        psn: Psn::new(FIRST_PSN[0]),
        max_dest_rd_atomic: 2,
        min_rnr_timer: 1,
    };
    victim.engine.ready_to_receive(qpn, &receive).unwrap();
    let send = Send {
        psn: Psn::new(FIRST_PSN[1]),
        timeout: 8,
        retry_count: 3,
        rnr_retry: 3,
        max_rd_atomic: 2,
    };
    victim.engine.ready_to_send(qpn, &send).unwrap();

    let mut sent = [0_u32; 2];
    for _ in 0..64 {
        let [control, len, tail @ ..] = rest else {
            break;
        };
        let (body, left) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = left;
        match control >> 6 {
            1 => victim.post_receive(qpn),
            2 => victim.post_request(qpn, *control),
            3 if control & 1 == 0 => {
                victim.timeout();
            }
            _ => {}
        }
        let mut packet = body.to_vec();
        packet.resize(packet.len().next_multiple_of(4), 0);
        if packet.len() >= 12 {
            if control & 1 != 0 {
                packet[2..4].copy_from_slice(&0xffff_u16.to_be_bytes());
                packet[5..8].copy_from_slice(&qpn.to_be_bytes()[1..]);
            }
            if control & 2 != 0 {
                let answer = usize::from(control & 4 != 0);
                let near = sent[answer].wrapping_add(u32::from(packet[11]) & 3);
                let psn = FIRST_PSN[answer].wrapping_add(near);
                packet[9..12].copy_from_slice(&psn.to_be_bytes()[1..]);
                sent[answer] += u32::from(control & 8 == 0);
            }
        }
        packet.extend_from_slice(&icrc::compute(&victim.flow, 0, &packet).to_le_bytes());
        let meta = Meta {
            flow: victim.flow,
            tos: control & 3,
        };
        let Victim {
            engine, mem, now, ..
        } = &mut victim;
        engine.handle_packet(*now, mem, &meta, &packet);
        victim.transmit();
        victim.now = victim.now.after(1_000);
    }
    let mut timeouts = 0;
    while victim.timeout() {
        timeouts += 1;
        assert!(timeouts < 1_000, "it never comes to rest");
    }

    for key in [READ_ONLY, PRIVATE, FOREIGN] {
        let (now, fresh) = (victim.mem.bytes(key), regions().bytes(key).to_vec());
        assert_eq!(now, fresh, "region {key:#x} was changed");
    }
});
