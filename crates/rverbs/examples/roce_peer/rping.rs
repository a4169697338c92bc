//! rping, both ends, over our own connection management.

use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rverbs::provider::Context as _;
use rverbs::provider::roce::proto::cm::wire::{IpHeader, service_id};
use rverbs::provider::roce::proto::cm::{CmEvent, ConnId, Params};
use rverbs::provider::roce::{Roce, gid_to_ip};
use rverbs::provider::soft::Context;
use rverbs_sys::{
    IBV_QPT_RC, IBV_SEND_SIGNALED, IBV_WC_SUCCESS, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE,
    IBV_WR_SEND, ibv_send_wr_rdma, ibv_wr_opcode,
};

use super::Options;
use super::side::{Remote, Side};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TCP: u16 = 0x0106;
const PORT: u16 = 7174;
const SIZE: usize = 64;
const EXPECTED: u32 = 0x4321;
/// Where things are in the buffer.
const RECV: usize = 0;
const SEND: usize = 16;
const START: usize = 4096;
const SINK: usize = 8192;

struct Cm {
    device: Arc<Context<Roce>>,
}

impl Cm {
    fn event(&self) -> Result<CmEvent> {
        let event = self
            .device
            .transport
            .shared()
            .cm_events
            .pop(|_| ())
            .map_err(|errno| errno.to_string())?;
        println!(
            "cm event: {}",
            format!("{event:?}").chars().take(60).collect::<String>()
        );
        Ok(event)
    }

    fn params(&self, side: &Side, mtu: u32) -> Params {
        let local = side.local();
        Params {
            qpn: local.qpn,
            // What the peer is to begin with, while ours is what it asks for.
            psn: EXPECTED,
            responder_resources: 1,
            initiator_depth: 1,
            retry_count: 7,
            rnr_retry: 7,
            mtu: mtu as u8,
            ack_timeout: 14,
            guid: u64::from_be(
                self.device
                    .query_device()
                    .map_or(0, |attr| attr.orig_attr.node_guid),
            ),
            gid: local.gid,
            ..Params::default()
        }
    }
}

fn wait(side: &Side, wr_id: u64) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        if let Some(wc) = side.poll() {
            if wc.status != IBV_WC_SUCCESS {
                return Err(format!("request {} ended with status {}", wc.wr_id, wc.status).into());
            }
            if wc.wr_id == wr_id {
                return Ok(());
            }
        }
        std::thread::yield_now();
    }
    Err(format!("no completion of request {wr_id}").into())
}

fn recv(side: &Side) {
    assert_eq!(side.post_recv(1, RECV, 16), 0, "posting failed");
}

fn send(side: &mut Side, buf: u64, size: u32) -> Result<()> {
    let rkey = side.rkey();
    side.bytes_mut()[SEND..SEND + 8].copy_from_slice(&buf.to_be_bytes());
    side.bytes_mut()[SEND + 8..SEND + 12].copy_from_slice(&rkey.to_be_bytes());
    side.bytes_mut()[SEND + 12..SEND + 16].copy_from_slice(&size.to_be_bytes());
    assert_eq!(
        side.post_send(2, IBV_WR_SEND, (SEND, 16), IBV_SEND_SIGNALED, |_| ()),
        0,
        "posting failed"
    );
    Ok(())
}

fn advert(side: &Side) -> (u64, u32, usize) {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&side.bytes()[RECV..RECV + 16]);
    let word = u128::from_be_bytes(bytes);
    (
        (word >> 64) as u64,
        (word >> 32) as u32,
        word as u32 as usize,
    )
}

fn rdma(side: &Side, opcode: ibv_wr_opcode, len: usize, remote_addr: u64, rkey: u32) -> Result<()> {
    let code = side.post_send(3, opcode, (START, len), IBV_SEND_SIGNALED, |wr| {
        wr.wr.rdma = ibv_send_wr_rdma { remote_addr, rkey };
    });
    assert_eq!(code, 0, "posting failed");
    wait(side, 3)
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let device = options.device()?;
    let cm = Cm {
        device: Arc::clone(&device),
    };
    let mut side = Side::new(device.clone(), IBV_QPT_RC, 1 << 14, 16, 0x77)?;
    let shared = device.transport.shared();
    let conn = match &options.host {
        None => {
            shared.hold().port().cm.listen(service_id(TCP, PORT))?;
            println!("listening on {} port {PORT}", options.addr);
            let (conn, peer) = loop {
                if let CmEvent::Request { conn, peer, .. } = cm.event()? {
                    break (conn, peer);
                }
            };
            side.psn = peer.psn;
            let remote = Remote {
                qpn: peer.qpn,
                psn: EXPECTED,
                gid: peer.gid,
            };
            println!(
                "request from {} QP {:#x}, path MTU {}",
                gid_to_ip(peer.gid),
                peer.qpn,
                peer.mtu
            );
            recv(&side);
            side.connect(
                remote,
                u32::from(peer.mtu).min(device.query_port(1).map_or(3, |port| port.active_mtu)),
            )?;
            let params = cm.params(&side, peer.mtu.into());
            let mut held = shared.hold();
            let now = held.now();
            held.port().cm.accept(now, conn, &params, &[])?;
            held.settle();
            conn
        }
        Some(host) => {
            let ip: IpAddr = host.parse()?;
            let to = device.transport.destination_of(ip, 1, 0)?;
            let mut params = cm.params(&side, options.mtu);
            params.peer_gid = rverbs::provider::roce::ip_to_gid(ip);
            let header = IpHeader::new(options.addr, 40_000, ip);
            let conn = {
                let mut held = shared.hold();
                let now = held.now();
                let header = bytes_of(&header);
                let conn =
                    held.port()
                        .cm
                        .connect(now, to, service_id(TCP, PORT), &params, &header)?;
                held.settle();
                conn
            };
            let CmEvent::Reply { peer, .. } = cm.event()? else {
                return Err("refused".into());
            };
            recv(&side);
            side.psn = peer.psn;
            side.connect(
                Remote {
                    qpn: peer.qpn,
                    psn: EXPECTED,
                    gid: params.peer_gid,
                },
                options.mtu,
            )?;
            let mut held = shared.hold();
            held.port().cm.confirm(conn, &[])?;
            held.settle();
            conn
        }
    };
    while !matches!(cm.event()?, CmEvent::Established { .. }) {}
    if options.host.is_some() {
        client(&mut side, options)?;
        let mut held = shared.hold();
        let now = held.now();
        held.port().cm.disconnect(now, conn)?;
        held.settle();
    } else {
        server(&mut side, &cm, conn, options)?;
    }
    while !matches!(cm.event()?, CmEvent::Disconnected { .. }) {}
    std::thread::sleep(Duration::from_millis(300));
    println!("rping: {} rounds, disconnected", options.iters);
    Ok(())
}

fn bytes_of(header: &IpHeader) -> Vec<u8> {
    let mut bytes = vec![header.version, header.ip_version];
    bytes.extend_from_slice(&header.port.to_bytes());
    bytes.extend_from_slice(&header.src);
    bytes.extend_from_slice(&header.dst);
    bytes
}

fn server(side: &mut Side, _cm: &Cm, _conn: ConnId, options: &Options) -> Result<()> {
    for _ in 0..options.iters {
        wait(side, 1)?;
        let (buf, rkey, size) = advert(side);
        recv(side);
        rdma(side, IBV_WR_RDMA_READ, size, buf, rkey)?;
        let len = side.bytes()[START..START + size]
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(size);
        println!(
            "server ping data: {}",
            String::from_utf8_lossy(&side.bytes()[START..START + len])
        );
        send(side, 0, 0)?;
        wait(side, 1)?;
        let (buf, rkey, _) = advert(side);
        recv(side);
        rdma(side, IBV_WR_RDMA_WRITE, (len + 1).min(size), buf, rkey)?;
        send(side, 0, 0)?;
    }
    Ok(())
}

fn client(side: &mut Side, options: &Options) -> Result<()> {
    for round in 0..options.iters {
        let mut text = format!("rdma-ping-{round}: ").into_bytes();
        let mut letter = 65 + (round % 58) as u8;
        while text.len() < SIZE - 1 {
            text.push(letter);
            letter = if letter == 122 { 65 } else { letter + 1 };
        }
        text.push(0);
        side.bytes_mut()[START..START + SIZE].copy_from_slice(&text);
        side.bytes_mut()[SINK..SINK + SIZE].fill(0);
        send(side, side.addr() + START as u64, SIZE as u32)?;
        wait(side, 1)?;
        recv(side);
        send(side, side.addr() + SINK as u64, SIZE as u32)?;
        wait(side, 1)?;
        recv(side);
        if side.bytes()[SINK..SINK + SIZE] != text[..] {
            return Err("the ping came back as something else".into());
        }
        println!("ping data: {}", String::from_utf8_lossy(&text[..SIZE - 1]));
    }
    Ok(())
}
