//! A ping-pong between two processes, written with the crate ibverbs: it knows nothing of rverbs.
//!
//! ```text
//! ibverbs_pingpong server ADDRESS:PORT DEVICE GID-INDEX|-
//! ibverbs_pingpong client ADDRESS:PORT DEVICE GID-INDEX|-
//! ```

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use ibverbs::{CompletionQueue, MemoryRegion, QueuePair, QueuePairEndpoint, ibv_wc};

const ROUNDS: u64 = 200;
/// Words of a message; the first has the round's number, the rest are made of it.
const WORDS: usize = 512;
const SEND: u64 = 1;
const RECEIVE: u64 = 2;

fn word(round: u64, index: usize) -> u64 {
    round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ index as u64
}

/// The first half of the memory is sent, the second is received into.
struct Side<'a> {
    cq: &'a CompletionQueue<'a>,
    qp: QueuePair<'a>,
    memory: MemoryRegion<u64>,
    sent: u64,
    received: u64,
}

impl Side<'_> {
    fn listen(&mut self) -> Result<(), Box<dyn Error>> {
        // SAFETY: the memory lives until the queue pair is gone, and is not looked at before its completion.
        unsafe { self.qp.post_receive(&mut self.memory, WORDS.., RECEIVE)? };
        Ok(())
    }

    fn say(&mut self, round: u64) -> Result<(), Box<dyn Error>> {
        for index in 0..WORDS {
            self.memory[index] = word(round, index);
        }
        // SAFETY: as above; the next round begins after this one's completion.
        unsafe { self.qp.post_send(&mut self.memory, ..WORDS, SEND)? };
        Ok(())
    }

    /// Waits until so much is done, and checks what came last.
    fn wait(&mut self, sent: u64, received: u64) -> Result<(), Box<dyn Error>> {
        while self.sent < sent || self.received < received {
            let mut room = [ibv_wc::default(); 4];
            for wc in self.cq.poll(&mut room)? {
                if let Some((status, vendor)) = wc.error() {
                    let (sent, received) = (self.sent, self.received);
                    return Err(format!("request {}: status {status}, vendor {vendor}, after {sent} sent and {received} received", wc.wr_id()).into());
                }
                match wc.wr_id() {
                    SEND => self.sent += 1,
                    RECEIVE if wc.len() == WORDS * 8 => self.received += 1,
                    _ => return Err(format!("not expected: {wc:?}").into()),
                }
            }
        }
        let round = self.received;
        match (0..WORDS).find(|&i| round > 0 && self.memory[WORDS + i] != word(round, i)) {
            Some(index) => Err(format!("word {index} of round {round} is wrong").into()),
            None => Ok(()),
        }
    }
}

fn exchange(
    stream: &mut BufReader<TcpStream>,
    own: &QueuePairEndpoint,
) -> Result<QueuePairEndpoint, Box<dyn Error>> {
    let mut line = serde_json::to_string(own)?;
    line.push('\n');
    stream.get_mut().write_all(line.as_bytes())?;
    let mut line = String::new();
    stream.read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, role, address, device, gid] = arguments.as_slice() else {
        return Err("ibverbs_pingpong server|client ADDRESS:PORT DEVICE GID-INDEX|-".into());
    };
    let devices = ibverbs::devices()?;
    let found = devices
        .iter()
        .find(|found| {
            found
                .name()
                .is_some_and(|name| name.to_bytes() == device.as_bytes())
        })
        .ok_or_else(|| format!("no device {device} among {}", devices.len()))?;
    let context = found.open()?;
    let cq = context.create_cq(16, 0)?;
    let pd = context.alloc_pd()?;
    let mut builder = pd.create_qp(&cq, &cq, ibverbs::ibv_qp_type::IBV_QPT_RC);
    builder
        .set_max_send_wr(4)
        .set_max_recv_wr(4)
        .allow_remote_rw();
    if gid != "-" {
        builder.set_gid_index(gid.parse()?);
    }
    let prepared = builder.build()?;
    let memory = pd.allocate::<u64>(2 * WORDS)?;
    let stream = if role == "server" {
        TcpListener::bind(address)?.accept()?.0
    } else {
        TcpStream::connect(address)?
    };
    // One reader for all that comes: it reads ahead.
    let mut stream = BufReader::new(stream);
    let peer = exchange(&mut stream, &prepared.endpoint())?;
    let mut side = Side {
        cq: &cq,
        qp: prepared.handshake(peer)?,
        memory,
        sent: 0,
        received: 0,
    };
    side.listen()?;
    let begin = std::time::Instant::now();
    if role == "server" {
        // The client sends when this side is ready.
        stream.get_mut().write_all(b"\n")?;
    } else {
        stream.read_line(&mut String::new())?;
        side.say(1)?;
    }
    for round in 1..=ROUNDS {
        side.wait(0, round)?;
        if role == "server" {
            side.wait(round - 1, round)?;
            side.listen()?;
            side.say(round)?;
        } else if round < ROUNDS {
            side.wait(round, round)?;
            side.listen()?;
            side.say(round + 1)?;
        }
    }
    side.wait(ROUNDS, ROUNDS)?;
    let each = begin.elapsed().as_secs_f64() * 1e6 / ROUNDS as f64;
    println!(
        "{role} on {device}: {ROUNDS} round trips of {} bytes, {each:.2} us each",
        WORDS * 8
    );
    Ok(())
}
