//! rping: a message there and back by every means of a reliable connection.
//!
//! A round, as librdmacm's rping does it: the client tells where its text is, the server READs it; the
//! client tells where it may go, the server WRITEs it back; after each the server says that it is done. So
//! a round is four messages, a READ and a WRITE.

use std::io::Read as _;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::Error;
use crate::cm::{Cm, Connection, Listener};
use crate::cq::Cq;
use crate::device::Context;
use crate::exchange::{Hello, exchange};
use crate::gid::{Gid, GidKind};
use crate::mr::{Access, RemoteMr, RemoteRegion, Shared};
use crate::qp::{Address, ConnectAttr, Flags, PostError, Qp, Rc};
use crate::wc::Wc;

/// The port of rping.
pub const PORT: u16 = 7174;
/// Bytes of the largest text.
pub const MAX_SIZE: u32 = 65_536;
/// Bytes of the smallest text: room for its number and something behind it.
pub const MIN_SIZE: u32 = 32;

const ADVERT: u32 = 16;
const SEND: usize = 16;
const START: usize = 4096;
const SINK: usize = START + MAX_SIZE as usize;

/// What ties two ends beside the queue pair: when it ends, so does the other side.
#[derive(Debug)]
enum Tie {
    Cm(Connection),
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Tie {
    fn is_over(&self) -> Result<bool, Error> {
        let mut byte = [0];
        let read = match self {
            Self::Cm(connection) => return connection.is_over(),
            Self::Tcp(stream) => (&*stream).read(&mut byte),
            Self::Unix(stream) => (&*stream).read(&mut byte),
        };
        match read {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
            _ => Ok(true),
        }
    }
}

/// One end of a connection, with what a ping needs.
#[derive(Debug)]
pub struct Link {
    qp: Qp<Rc, Shared>,
    cq: Cq,
    mr: RemoteMr,
    tie: Option<Tie>,
    received: u32,
    sent: u32,
    timeout: Duration,
}

/// What became of a request that was not taken.
fn refused<B>(verb: &'static str) -> impl Fn(PostError<B>) -> Error {
    move |error| Error::Verb {
        verb,
        errno: error.errno,
    }
}

/// How the client pings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pings {
    /// How many rounds.
    pub count: u64,
    /// Bytes of the text.
    pub size: u32,
    /// Whether to compare what comes back.
    pub validate: bool,
}

/// What a round was like.
#[derive(Debug)]
pub struct Round<'a> {
    /// Its number, from 0.
    pub number: u64,
    /// The text, without its end.
    pub text: &'a [u8],
    /// How long it took.
    pub took: Duration,
}

impl Link {
    fn new(context: &Context, timeout: Duration) -> Result<(Self, ConnectAttr), Error> {
        let pd = context.alloc_pd()?;
        let cq = context.create_cq(64)?;
        let buffer = context.alloc(SINK + MAX_SIZE as usize)?;
        let mr = pd.register_remote(buffer, Access::READ.and(Access::WRITE))?;
        let qp: Qp<Rc, Shared> = pd.qp(&cq).depth(16, 2).build()?;
        let gids = context.gids(1)?;
        let gid = gids.iter().find(|entry| entry.kind == GidKind::RoceV2);
        let how = ConnectAttr {
            mtu: context.query_port(1)?.active_mtu,
            sgid_index: gid.map_or(0, |gid| u8::try_from(gid.index).unwrap_or(0)),
            ..ConnectAttr::default()
        };
        qp.init(&how)?;
        let mut link = Self {
            qp,
            cq,
            mr,
            tie: None,
            received: 0,
            sent: 0,
            timeout,
        };
        link.post_recv()?;
        Ok((link, how))
    }

    /// Calls an rping server by the communication manager.
    ///
    /// # Errors
    ///
    /// As [`Cm::connect`].
    pub fn dial(cm: &Cm, to: std::net::SocketAddr, timeout: Duration) -> Result<Self, Error> {
        let (mut link, how) = Self::new(cm.context(), timeout)?;
        link.tie = Some(Tie::Cm(cm.connect(&link.qp, to, &how, timeout)?));
        Ok(link)
    }

    /// Waits for an rping client.
    ///
    /// # Errors
    ///
    /// As [`Cm::accept`].
    pub fn take(
        cm: &Cm,
        listener: &Listener,
        wait: Option<Duration>,
        timeout: Duration,
    ) -> Result<Option<(Self, std::net::IpAddr)>, Error> {
        let Some(call) = listener.next(wait)? else {
            return Ok(None);
        };
        let from = call.from();
        let (mut link, how) = Self::new(cm.context(), timeout)?;
        link.tie = Some(Tie::Cm(cm.accept(call, &link.qp, &how, timeout)?));
        Ok(Some((link, from)))
    }

    /// Connects with a peer of this crate by a socket.
    ///
    /// # Errors
    ///
    /// What the socket or the provider said.
    pub fn by_tcp(
        context: &Context,
        mut stream: TcpStream,
        timeout: Duration,
    ) -> Result<Self, Error> {
        stream
            .set_read_timeout(Some(timeout))
            .map_err(Error::io("setting a timeout"))?;
        let mut link = Self::meet(context, &mut stream, timeout)?;
        stream
            .set_nonblocking(true)
            .map_err(Error::io("changing a socket"))?;
        link.tie = Some(Tie::Tcp(stream));
        Ok(link)
    }

    /// Connects with another thread.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn by_unix(
        context: &Context,
        mut stream: UnixStream,
        timeout: Duration,
    ) -> Result<Self, Error> {
        let mut link = Self::meet(context, &mut stream, timeout)?;
        stream
            .set_nonblocking(true)
            .map_err(Error::io("changing a socket"))?;
        link.tie = Some(Tie::Unix(stream));
        Ok(link)
    }

    fn meet(
        context: &Context,
        stream: &mut (impl std::io::Read + std::io::Write),
        timeout: Duration,
    ) -> Result<Self, Error> {
        let (link, how) = Self::new(context, timeout)?;
        let gids = context.gids(1)?;
        let gid = gids
            .iter()
            .find(|gid| gid.index == u32::from(how.sgid_index));
        let ethernet = context.query_port(1)?.link_layer
            == u8::try_from(rverbs_sys::IBV_LINK_LAYER_ETHERNET).unwrap_or(2);
        let own = link.qp.endpoint(
            link.qp.qpn().wrapping_mul(0x9e37_79b9) >> 8,
            Address {
                lid: context.query_port(1)?.lid,
                gid: gid
                    .map(|entry| entry.gid)
                    .filter(|gid: &Gid| ethernet || !gid.is_link_local()),
            },
        );
        let hello = Hello {
            endpoint: own,
            region: None,
        };
        let peer = exchange(stream, &hello).map_err(Error::io("exchanging addresses"))?;
        link.qp.connect(&own, &peer.endpoint, &how)?;
        crate::exchange::barrier(stream).map_err(Error::io("waiting for the other side"))?;
        Ok(link)
    }

    fn part(&self, at: usize, len: u32) -> Result<Shared, Error> {
        self.mr.slice(at, len).ok_or_else(|| Error::Damaged {
            what: "a length in a message is larger than any text".to_owned(),
        })
    }

    fn post_recv(&mut self) -> Result<(), Error> {
        let room = self.part(0, ADVERT)?;
        self.qp.recv.post(room).map_err(refused("ibv_post_recv"))
    }

    fn send(&mut self, region: RemoteRegion) -> Result<(), Error> {
        let message = self.part(SEND, ADVERT)?;
        let [a, b, c, d, e, f, g, h] = region.addr.to_be_bytes();
        let [i, j, k, l] = region.rkey.to_be_bytes();
        let [m, n, o, p] = u32::try_from(region.len).unwrap_or(0).to_be_bytes();
        message.write(0, &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p]);
        self.qp
            .send
            .send(message, Flags::SIGNALED)
            .map_err(refused("ibv_post_send"))
    }

    /// The next message, and where the peer's memory is that it tells of. `None` where the peer has ended
    /// the connection.
    fn message(&mut self) -> Result<Option<RemoteRegion>, Error> {
        if !self.until(|link| link.received > 0)? {
            return Ok(None);
        }
        self.received -= 1;
        let mut bytes = [0; ADVERT as usize];
        self.part(0, ADVERT)?.read(0, &mut bytes);
        let word = u128::from_be_bytes(bytes);
        self.post_recv()?;
        let field = |shift: u32| u32::try_from(word >> shift & 0xffff_ffff).unwrap_or(0);
        Ok(Some(RemoteRegion {
            addr: u64::from(field(96)) << 32 | u64::from(field(64)),
            rkey: field(32),
            len: field(0).into(),
        }))
    }

    /// Polls until something is so; false where the connection has ended before.
    fn until(&mut self, done: impl Fn(&Self) -> bool) -> Result<bool, Error> {
        let mut end = Instant::now() + self.timeout;
        let mut look = Instant::now() + Duration::from_millis(2);
        let mut over = false;
        loop {
            let mut wcs = [Wc::default(); 8];
            let mut found = false;
            for wc in self.cq.poll(&mut wcs)? {
                found = true;
                if let Some(result) = self.qp.send.complete(wc) {
                    match result {
                        Ok(_) => self.sent += 1,
                        // What the end of the connection flushed is no failure.
                        Err(_) if over => return Ok(false),
                        Err(error) if self.ends()? => {
                            let _ = error;
                            return Ok(false);
                        }
                        Err(error) => {
                            return Err(Error::Completion {
                                doing: "a request",
                                error,
                            });
                        }
                    }
                    while self.qp.send.reclaim().is_some() {}
                } else if let Some((result, _)) = self.qp.recv.complete(wc) {
                    match result {
                        Ok(_) => self.received += 1,
                        Err(_) if over || self.ends()? => return Ok(false),
                        Err(error) => {
                            return Err(Error::Completion {
                                doing: "receiving",
                                error,
                            });
                        }
                    }
                }
            }
            if done(self) {
                return Ok(true);
            }
            if found {
                end = Instant::now() + self.timeout;
                continue;
            }
            if over {
                return Ok(false);
            }
            let now = Instant::now();
            if now >= look {
                over = self.ends()?;
                look = now + Duration::from_millis(20);
                if now >= end {
                    return Err(Error::Silent {
                        seconds: self.timeout.as_secs(),
                    });
                }
            }
            std::thread::yield_now();
        }
    }

    fn ends(&self) -> Result<bool, Error> {
        self.tie.as_ref().map_or(Ok(false), Tie::is_over)
    }

    fn request(
        &mut self,
        post: impl FnOnce(&mut Self) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        // What was sent before completes first.
        let before = self.qp.send.in_flight();
        let already = u64::from(self.sent);
        post(self)?;
        self.until(|link| u64::from(link.sent) > already + before)
    }

    /// Pings; `seen` is told of each round.
    ///
    /// # Errors
    ///
    /// Why a round failed: [`Error::Damaged`] for a text that came back as another.
    pub fn ping(&mut self, how: &Pings, mut seen: impl FnMut(&Round<'_>)) -> Result<u64, Error> {
        let size = how.size.clamp(MIN_SIZE, MAX_SIZE);
        let (start, sink) = (self.part(START, size)?, self.part(SINK, size)?);
        let mut back = vec![0; size as usize];
        for number in 0..how.count {
            let text = text(number, size as usize);
            start.write(0, &text);
            sink.write(0, &vec![0; size as usize]);
            let begin = Instant::now();
            for region in [start.export(), sink.export()] {
                self.send(region)?;
                if self.message()?.is_none() {
                    return Err(Error::Damaged {
                        what: "the server ended the connection".to_owned(),
                    });
                }
            }
            let took = begin.elapsed();
            if how.validate {
                sink.read(0, &mut back);
                if let Some(at) = back.iter().zip(&text).position(|(a, b)| a != b) {
                    return Err(Error::Damaged {
                        what: format!("ping {number} came back with another byte at {at}"),
                    });
                }
            }
            let text = text.split_last().map_or(&[][..], |(_, text)| text);
            seen(&Round { number, text, took });
        }
        Ok(how.count)
    }

    /// Answers pings until the client ends the connection, or so many.
    ///
    /// # Errors
    ///
    /// Why a round failed.
    pub fn serve(
        &mut self,
        count: Option<u64>,
        mut seen: impl FnMut(&Round<'_>),
    ) -> Result<u64, Error> {
        let mut number = 0;
        while count.is_none_or(|count| number < count) {
            let begin = Instant::now();
            let Some(source) = self.message()? else { break };
            let size = u32::try_from(source.len).unwrap_or(u32::MAX);
            let text = self.part(START, size)?;
            let into = text.clone();
            let read = self.request(|link| {
                link.qp
                    .send
                    .read(into, source, Flags::SIGNALED)
                    .map_err(refused("ibv_post_send"))
            })?;
            let nothing = RemoteRegion {
                addr: 0,
                len: 0,
                rkey: 0,
            };
            if !read {
                break;
            }
            self.send(nothing)?;
            let Some(sink) = self.message()? else { break };
            let mut bytes = vec![0; size as usize];
            text.read(0, &mut bytes);
            // As rping: up to the end of the text, which is a zero.
            let len = bytes
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(bytes.len());
            let back = self.part(START, small(len + 1).min(size))?;
            let wrote = self.request(|link| {
                link.qp
                    .send
                    .write(back, sink, Flags::SIGNALED)
                    .map_err(refused("ibv_post_send"))
            })?;
            if !wrote {
                break;
            }
            self.send(nothing)?;
            let text = bytes.get(..len).unwrap_or_default();
            seen(&Round {
                number,
                text,
                took: begin.elapsed(),
            });
            number += 1;
        }
        Ok(number)
    }

    /// Ends the connection, and waits until the peer knows.
    ///
    /// # Errors
    ///
    /// What waiting said.
    pub fn end(mut self) -> Result<(), Error> {
        match self.tie.take() {
            Some(Tie::Cm(connection)) => connection.disconnect(self.timeout),
            _ => Ok(()),
        }
    }
}

fn small(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// The text of a round, as rping writes it: its number, then letters from one on that moves with it.
fn text(number: u64, size: usize) -> Vec<u8> {
    let mut text = format!("rdma-ping-{number}: ").into_bytes();
    let mut letter = b'A' + u8::try_from(number % 58).unwrap_or(0);
    text.truncate(size.saturating_sub(1));
    while text.len() + 1 < size {
        text.push(letter);
        letter = if letter == b'z' { b'A' } else { letter + 1 };
    }
    text.push(0);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_rping() {
        let first = text(0, 64);
        assert_eq!(first.len(), 64);
        assert!(first.starts_with(b"rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abc"));
        assert!(text(1, 64).starts_with(b"rdma-ping-1: BCDE"));
        assert_eq!(text(u64::MAX, 32).len(), 32);
    }
}
