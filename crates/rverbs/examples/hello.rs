//! Two processes, on one host or two: a message, and a write into the other's memory.
//!
//! ```sh
//! hello shm0 listen 7000        # or another device of `rverbs devices`; port 0 takes a free one
//! hello shm0 connect localhost:7000
//! ```
#![expect(clippy::print_stdout, reason = "an example talks")]

use std::error::Error;
use std::net::{TcpListener, TcpStream};

use rverbs::cq::Cq;
use rverbs::exchange::{Hello, barrier, exchange};
use rverbs::gid::{self, GidKind, PeerGid};
use rverbs::mr::{Access, RemoteMr, Slice};
use rverbs::qp::{Address, ConnectAttr, Flags, Qp, Rc};
use rverbs::wc::Wc;
use rverbs::{Context, Device};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [device, verb, place] = &args[..] else {
        return Err("usage: hello DEVICE listen PORT | hello DEVICE connect HOST:PORT".into());
    };
    let context = Device::by_name(device)?.open()?;
    let listens = verb == "listen";
    let stream = if listens {
        let listener = TcpListener::bind(("0.0.0.0", place.parse()?))?;
        println!("listening on port {}", listener.local_addr()?.port());
        listener.accept()?.0
    } else {
        TcpStream::connect(place)?
    };
    talk(&context, stream, listens)
}

/// How a peer reaches this port, and which entry of the GID table that is.
fn here(context: &Context) -> Result<(Address, u32), Box<dyn Error>> {
    let table = context.gids(1)?;
    let lid = context.query_port(1)?.lid;
    let choice = gid::choose(&table, &PeerGid::default());
    Ok(
        match choice.filter(|choice| choice.entry.kind != GidKind::Ib) {
            Some(choice) => {
                let gid = Some(choice.entry.gid);
                (Address { lid: 0, gid }, choice.entry.index)
            }
            None => (Address { lid, gid: None }, 0),
        },
    )
}

fn talk(context: &Context, mut stream: TcpStream, listens: bool) -> Result<(), Box<dyn Error>> {
    // ANCHOR: connect
    let pd = context.alloc_pd()?;
    let cq = context.create_cq(16)?;
    let mut qp: Qp<Rc> = pd.qp(&cq).build()?;
    // Memory that the peer may write, and memory that is ours alone.
    let shared = pd.register_remote(context.alloc(4096)?, Access::WRITE)?;
    let mut slices = pd.register(context.alloc(8192)?)?.into_slices(4096);
    let (mut note, room) = (slices.remove(0), slices.remove(0));

    let (address, gid_index) = here(context)?;
    let own = Hello {
        endpoint: qp.endpoint(std::process::id(), address),
        region: Some(shared.export()),
    };
    let theirs = exchange(&mut stream, &own)?;
    let how = ConnectAttr {
        sgid_index: u8::try_from(gid_index)?,
        ..ConnectAttr::default()
    };
    qp.init(&how)?;
    // A receive first: a message that finds none has to be sent again.
    qp.recv.post(room)?;
    qp.connect(&own.endpoint, &theirs.endpoint, &how)?;
    barrier(&mut stream)?;
    // ANCHOR_END: connect

    // ANCHOR: work
    let text = if listens {
        "from the listener"
    } else {
        "from the caller"
    };
    note[..text.len()].copy_from_slice(text.as_bytes());
    let (note, _) = note.split_at(u32::try_from(text.len())?);
    qp.send.send(note, Flags::SIGNALED)?;
    let (mut note, message) = both_done(&mut qp, &cq)?;
    println!("message: {}", String::from_utf8_lossy(&message));

    note.reverse();
    let target = theirs.region.ok_or("the peer exports no memory")?;
    qp.send.write(note, target, Flags::SIGNALED)?;
    sent(&mut qp, &cq)?;
    // The peer's memory holds it now; only the socket tells it so.
    barrier(&mut stream)?;
    // ANCHOR_END: work
    println!("written here: {}", written(&shared, message.len()));
    println!("device: {} ({})", context.name(), context.kind());
    Ok(())
}

/// Waits for the end of what was sent and for a message, of `len` bytes.
fn both_done(qp: &mut Qp<Rc>, cq: &Cq) -> Result<(Slice, Vec<u8>), Box<dyn Error>> {
    let mut wcs = [Wc::default(); 2];
    let (mut note, mut message) = (None, None);
    while note.is_none() || message.is_none() {
        for wc in cq.poll(&mut wcs)? {
            if let Some(result) = qp.send.complete(wc) {
                result?;
                note = qp.send.reclaim();
            } else if let Some((result, buf)) = qp.recv.complete(wc) {
                let len = result?.byte_len as usize;
                message = Some(buf[..len].to_vec());
            }
        }
    }
    note.zip(message).ok_or_else(|| "nothing came back".into())
}

/// Waits for the end of what was sent.
fn sent(qp: &mut Qp<Rc>, cq: &Cq) -> Result<(), Box<dyn Error>> {
    let mut wcs = [Wc::default(); 1];
    loop {
        if let [wc] = cq.poll(&mut wcs)?
            && let Some(result) = qp.send.complete(wc)
        {
            result?;
            return Ok(());
        }
    }
}

/// What the peer wrote.
fn written(shared: &RemoteMr, len: usize) -> String {
    let mut bytes = vec![0; len];
    shared.all().read(0, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
