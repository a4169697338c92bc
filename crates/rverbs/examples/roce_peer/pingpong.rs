//! The other end of `ibv_rc_pingpong`, `ibv_uc_pingpong` and `ibv_ud_pingpong`.

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use rverbs_sys::{
    IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_SEND_SIGNALED, IBV_WC_SUCCESS, IBV_WR_SEND,
};

use super::Options;
use super::side::{Remote, Side};

const MESSAGE: usize = "0000:000000:000000:00000000000000000000000000000000".len() + 1;
const RX_DEPTH: u32 = 500;
const RECV: u64 = 1;
const SEND: u64 = 2;

fn encode(local: Remote) -> [u8; MESSAGE] {
    let gid: String = local.gid.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("{:04x}:{:06x}:{:06x}:{gid}", 0, local.qpn, local.psn);
    let mut message = [0; MESSAGE];
    message[..text.len()].copy_from_slice(text.as_bytes());
    message
}

fn decode(message: &[u8; MESSAGE]) -> Result<Remote, Box<dyn Error>> {
    let text = std::str::from_utf8(message)?.trim_end_matches('\0');
    let fields: Vec<&str> = text.split(':').collect();
    let [_, qpn, psn, hex] = fields[..] else {
        return Err(format!("not a pingpong message: {text}").into());
    };
    let mut gid = [0; 16];
    for (index, byte) in gid.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * index..2 * index + 2).ok_or("short GID")?, 16)?;
    }
    Ok(Remote {
        qpn: u32::from_str_radix(qpn, 16)?,
        psn: u32::from_str_radix(psn, 16)?,
        gid,
    })
}

pub(crate) fn run(kind: &str, options: &Options) -> Result<(), Box<dyn Error>> {
    let kind = match kind {
        "rc" => IBV_QPT_RC,
        "uc" => IBV_QPT_UC,
        "ud" => IBV_QPT_UD,
        _ => return Err("rc, uc or ud".into()),
    };
    let grh = if kind == IBV_QPT_UD { 40 } else { 0 };
    let psn = std::process::id().wrapping_mul(0x9e37) & 0x00ff_ffff;
    let mut side = Side::new(options.open()?, kind, grh + options.size, RX_DEPTH, psn)?;
    for byte in &mut side.bytes_mut()[grh..] {
        *byte = 0x7b;
    }
    let mut posted = 0;
    for _ in 0..RX_DEPTH {
        posted += u32::from(side.post_recv(RECV, 0, grh + options.size) == 0);
    }
    let remote;
    let stream = if let Some(host) = &options.host {
        let mut stream = TcpStream::connect((host.as_str(), options.port))?;
        stream.write_all(&encode(side.local()))?;
        let mut message = [0; MESSAGE];
        stream.read_exact(&mut message)?;
        remote = decode(&message)?;
        side.connect(remote, options.mtu)?;
        stream.write_all(b"done\0")?;
        stream
    } else {
        let (mut stream, _) = TcpListener::bind(("0.0.0.0", options.port))?.accept()?;
        let mut message = [0; MESSAGE];
        stream.read_exact(&mut message)?;
        remote = decode(&message)?;
        side.connect(remote, options.mtu)?;
        stream.write_all(&encode(side.local()))?;
        let mut done = [0; 5];
        stream.read_exact(&mut done)?;
        stream
    };
    println!(
        "remote QPN {:#08x}, PSN {:#08x}, GID {}",
        remote.qpn,
        remote.psn,
        rverbs::provider::roce::gid_to_ip(remote.gid)
    );
    let start = Instant::now();
    let send = |side: &Side| {
        side.post_send(
            SEND,
            IBV_WR_SEND,
            (grh, options.size),
            IBV_SEND_SIGNALED,
            |_| (),
        )
    };
    let (mut sends, mut receives) = (0, 0);
    let mut pending = RECV;
    if options.host.is_some() {
        assert_eq!(send(&side), 0, "posting failed");
        pending |= SEND;
    }
    let mut last = Instant::now();
    while sends < options.iters || receives < options.iters {
        let Some(wc) = side.poll() else {
            if last.elapsed().as_secs() > 20 {
                return Err(
                    format!("nothing for 20 s after {sends} sends, {receives} receives").into(),
                );
            }
            continue;
        };
        last = Instant::now();
        if wc.status != IBV_WC_SUCCESS {
            return Err(format!("status {} for request {}", wc.status, wc.wr_id).into());
        }
        if wc.wr_id == SEND {
            sends += 1;
        } else {
            receives += 1;
            posted -= 1;
            if posted <= 1 {
                while posted < RX_DEPTH && side.post_recv(RECV, 0, grh + options.size) == 0 {
                    posted += 1;
                }
            }
        }
        pending &= !wc.wr_id;
        if pending == 0 && sends < options.iters {
            assert_eq!(send(&side), 0, "posting failed");
            pending = RECV | SEND;
        }
    }
    let took = start.elapsed();
    if !side.bytes()[grh..].iter().all(|byte| *byte == 0x7b) {
        eprintln!("note: the peer's bytes are not those of ours");
    }
    println!(
        "{receives} messages of {} bytes each way in {:.3} s = {:.2} us/iter",
        options.size,
        took.as_secs_f64(),
        took.as_secs_f64() * 1e6 / f64::from(options.iters)
    );
    // The last acknowledgement goes out when the queue pair does.
    std::thread::sleep(std::time::Duration::from_millis(200));
    drop(stream);
    Ok(())
}
