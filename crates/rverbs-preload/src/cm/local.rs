//! Connections between processes of one user on one host, for the provider `shm`.
//!
//! An address that is bound is a socket in Linux's abstract namespace, named after user, port space,
//! address and port; the namespace belongs to the network namespace, as ports do. A connection is a
//! conversation on such a socket for as long as it lives, so the end of a process is noticed at once:
//! its sockets close, and the other side gets `RDMA_CM_EVENT_DISCONNECTED`.
//!
//! One thread of the process hears all sockets.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use nix::errno::Errno as NixErrno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, UnixAddr, accept4, bind, connect,
    getsockopt, listen, recv, send, socket, sockopt,
};
use rverbs::provider::Errno;

use super::address::any_like;
use super::id::{Heard, Id};
use super::message::{self, Message};
use super::wire::{Listening, Reservation, Talk};

fn errno(error: NixErrno) -> Errno {
    Errno(error as i32)
}

fn uid() -> u32 {
    nix::unistd::Uid::effective().as_raw()
}

/// The name of an address.
fn name(space: u32, address: SocketAddr) -> Result<UnixAddr, Errno> {
    let (ip, port) = (address.ip(), address.port());
    let name = format!("rverbs-cm/{}/{space:x}/{ip}/{port}", uid());
    UnixAddr::new_abstract(name.as_bytes()).map_err(errno)
}

fn new_socket() -> Result<OwnedFd, Errno> {
    socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        None,
    )
    .map_err(errno)
}

/// A port that is taken: others find the name bound.
#[derive(Debug)]
struct Port {
    fd: Arc<OwnedFd>,
    address: SocketAddr,
}

/// Takes a port; 0 means any that is free.
pub(crate) fn reserve(space: u32, address: SocketAddr) -> Result<Arc<dyn Reservation>, Errno> {
    let fd = new_socket()?;
    let take = |address| match bind(fd.as_raw_fd(), &name(space, address)?) {
        Ok(()) => Ok(true),
        Err(NixErrno::EADDRINUSE) => Ok(false),
        Err(error) => Err(errno(error)),
    };
    let mut address = address;
    if address.port() != 0 {
        if !take(address)? {
            return Err(Errno(libc::EADDRINUSE));
        }
    } else {
        let first = ephemeral();
        let ports = u32::from(LAST_PORT - FIRST_PORT) + 1;
        let mut found = false;
        for step in 0..ports {
            let offset = (first.wrapping_add(step)) % ports;
            address.set_port(FIRST_PORT + u16::try_from(offset).unwrap_or(0));
            if take(address)? {
                found = true;
                break;
            }
        }
        if !found {
            return Err(Errno(libc::EADDRNOTAVAIL));
        }
    }
    Ok(Arc::new(Port {
        fd: Arc::new(fd),
        address,
    }))
}

/// Linux's default range of ports for who does not care.
const FIRST_PORT: u16 = 32768;
const LAST_PORT: u16 = 60999;

/// Where to start looking: different for each process and each time.
fn ephemeral() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let salt = std::process::id().wrapping_mul(0x9e37_79b9);
    salt.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Reservation for Port {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn listen(&self, id: &Arc<Id>, backlog: i32) -> Result<Box<dyn Listening>, Errno> {
        let backlog = if backlog <= 0 { 128 } else { backlog.min(4096) };
        let backlog = Backlog::new(backlog).map_err(errno)?;
        listen(&self.fd, backlog).map_err(errno)?;
        HUB.add(Source::Listener(Arc::clone(&self.fd), Arc::clone(id)))?;
        Ok(Box::new(Listener(Arc::clone(&self.fd))))
    }
}

#[derive(Debug)]
struct Listener(Arc<OwnedFd>);

impl Listening for Listener {}

impl Drop for Listener {
    fn drop(&mut self) {
        // Whoever is in the queue is refused as soon as the socket is gone.
        HUB.remove(|source| matches!(source, Source::Listener(fd, _) if Arc::ptr_eq(fd, &self.0)));
        // The port is free when this returns: programs listen at it again at once.
        HUB.settle();
    }
}

/// One conversation.
struct Line {
    fd: OwnedFd,
    closed: AtomicBool,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("fd", &self.fd.as_raw_fd())
            .field("closed", &self.closed)
            .finish()
    }
}

impl Line {
    fn new(fd: OwnedFd) -> Arc<Self> {
        Arc::new(Self {
            fd,
            closed: AtomicBool::new(false),
        })
    }

    /// What was said; `None` at the end.
    fn hear(&self) -> Result<Option<Message>, Errno> {
        let mut bytes = [0; message::MAX];
        let flags = MsgFlags::MSG_DONTWAIT;
        match recv(self.fd.as_raw_fd(), &mut bytes, flags) {
            Ok(0) => Ok(None),
            // What is no message ends the conversation too: that is none of ours.
            Ok(len) => Ok(bytes.get(..len).and_then(Message::decode)),
            Err(NixErrno::EAGAIN | NixErrno::EINTR) => Err(Errno(libc::EAGAIN)),
            Err(_) => Ok(None),
        }
    }
}

impl Talk for Line {
    fn send(&self, message: &Message) -> Result<(), Errno> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        send(self.fd.as_raw_fd(), &message.encode(), flags).map_err(errno)?;
        Ok(())
    }

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        HUB.remove(
            |source| matches!(source, Source::Line(line, _) if core::ptr::eq(&**line, self)),
        );
    }
}

/// Calls again for a while, since nobody answered, and then tells the identifier.
pub(crate) fn dial_later(id: &Arc<Id>, to: SocketAddr, message: Message) -> Result<(), Errno> {
    HUB.call_later(Call {
        id: Arc::clone(id),
        to,
        message,
        since: Instant::now(),
    })
}

/// Calls whoever listens at an address.
pub(crate) fn dial(
    id: &Arc<Id>,
    to: SocketAddr,
    message: &Message,
) -> Result<Arc<dyn Talk>, Errno> {
    let fd = new_socket()?;
    let mut addresses = vec![to, SocketAddr::new(any_like(to.ip()), to.port())];
    if to.is_ipv4() {
        addresses.push(SocketAddr::new(
            IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            to.port(),
        ));
    }
    let mut result = Err(Errno(libc::ECONNREFUSED));
    for address in addresses {
        result = connect(fd.as_raw_fd(), &name(message.space, address)?).map_err(errno);
        if result.is_ok() {
            break;
        }
    }
    result?;
    let line = Line::new(fd);
    line.send(message)?;
    HUB.add(Source::Line(Arc::clone(&line), Arc::clone(id)))?;
    Ok(line)
}

/// What the thread hears.
#[derive(Clone)]
enum Source {
    Listener(Arc<OwnedFd>, Arc<Id>),
    /// Somebody called the identifier that listens, and did not say anything yet.
    Caller(Arc<Line>, Arc<Id>),
    Line(Arc<Line>, Arc<Id>),
}

impl Source {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Listener(fd, _) => fd.as_fd(),
            Self::Caller(line, _) | Self::Line(line, _) => line.fd.as_fd(),
        }
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Listener(a, _), Self::Listener(b, _)) => Arc::ptr_eq(a, b),
            (Self::Caller(a, _), Self::Caller(b, _)) | (Self::Line(a, _), Self::Line(b, _)) => {
                Arc::ptr_eq(a, b)
            }
            _ => false,
        }
    }
}

/// A call that nobody answered yet.
struct Call {
    id: Arc<Id>,
    to: SocketAddr,
    message: Message,
    since: Instant,
}

/// How long somebody may take to begin to listen.
///
/// An adapter refuses at once, but its two sides don't share a few processors as ours do: perftest's
/// client (`-R`) relies on its server's being there in time, and qperf's tells its port before it
/// listens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// How often it is tried meanwhile.
const AGAIN: u16 = 20;

struct Hub {
    wake: Option<EventFd>,
    sources: Mutex<Vec<Source>>,
    calls: Mutex<Vec<Call>>,
    /// The thread, once it runs.
    started: Mutex<Option<ThreadId>>,
    /// How often it has begun to wait.
    turns: Mutex<u64>,
    turned: Condvar,
}

static HUB: LazyLock<Hub> = LazyLock::new(|| Hub {
    wake: EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK).ok(),
    sources: Mutex::default(),
    calls: Mutex::default(),
    started: Mutex::default(),
    turns: Mutex::default(),
    turned: Condvar::new(),
});

impl Hub {
    fn sources(&self) -> MutexGuard<'_, Vec<Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn calls(&self) -> MutexGuard<'_, Vec<Call>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // It fails only when it is full, and then the thread wakes anyway.
            let _ = wake.write(1);
        }
    }

    fn add(&'static self, source: Source) -> Result<(), Errno> {
        self.start()?;
        self.sources().push(source);
        self.wake();
        Ok(())
    }

    fn call_later(&'static self, call: Call) -> Result<(), Errno> {
        self.start()?;
        self.calls().push(call);
        self.wake();
        Ok(())
    }

    fn start(&'static self) -> Result<(), Errno> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if started.is_none() {
            let wake = self.wake.as_ref().ok_or(Errno(libc::EMFILE))?;
            let thread = std::thread::Builder::new()
                .name("rverbs-cm".to_owned())
                .spawn(move || self.run(wake))?;
            *started = Some(thread.thread().id());
        }
        Ok(())
    }

    /// Waits until the thread holds nothing any more that was removed.
    fn settle(&self) {
        let thread = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none_or(|thread| thread == std::thread::current().id()) {
            return;
        }
        let turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *turns;
        self.wake();
        drop(
            self.turned
                .wait_while(turns, |turns| *turns == now)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }

    /// Tries the calls that nobody answered, and gives up those that are too old.
    fn call_again(&'static self) {
        // Not in the head of the loop, which would keep the lock.
        let calls = core::mem::take(&mut *self.calls());
        for call in calls {
            match dial(&call.id, call.to, &call.message) {
                _ if !call.id.calls() => {}
                Ok(talk) => call.id.answered(talk),
                Err(_) if call.since.elapsed() < PATIENCE => self.calls().push(call),
                Err(_) => call.id.refused(),
            }
        }
    }

    fn remove(&self, gone: impl Fn(&Source) -> bool) {
        let mut sources = self.sources();
        let (removed, kept) = core::mem::take(&mut *sources)
            .into_iter()
            .partition::<Vec<_>, _>(gone);
        *sources = kept;
        drop(sources);
        // Dropping an identifier may hang up, which comes back here: not under the lock.
        drop(removed);
        self.wake();
    }

    fn run(&'static self, wake: &EventFd) {
        loop {
            *self.turns.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.turned.notify_all();
            self.call_again();
            let timeout = if self.calls().is_empty() {
                PollTimeout::NONE
            } else {
                PollTimeout::from(AGAIN)
            };
            let sources = self.sources().clone();
            let mut fds = vec![PollFd::new(wake.as_fd(), PollFlags::POLLIN)];
            fds.extend(
                sources
                    .iter()
                    .map(|s| PollFd::new(s.fd(), PollFlags::POLLIN)),
            );
            // An interrupted wait finds nothing ready, and the next one does.
            if poll(&mut fds, timeout).is_err() {
                continue;
            }
            let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
            drop(fds);
            if ready.first().copied().unwrap_or(false) {
                let _ = wake.read();
            }
            for (source, ready) in sources.iter().zip(ready.iter().skip(1)) {
                if *ready {
                    self.serve(source);
                }
            }
        }
    }

    fn serve(&self, source: &Source) {
        match source {
            Source::Listener(fd, id) => {
                let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
                let Ok(fd) = accept4(fd, flags) else {
                    return;
                };
                // Abstract names have no permissions: anybody may call, and only our user is heard.
                let peer = getsockopt(&fd, sockopt::PeerCredentials);
                if peer.is_ok_and(|peer| peer.uid() == uid()) {
                    self.sources()
                        .push(Source::Caller(Line::new(fd), Arc::clone(id)));
                }
            }
            Source::Caller(line, listener) => match line.hear() {
                Err(_) => {}
                Ok(heard) => {
                    self.remove(|other| other.is(source));
                    let Some(message) = heard else { return };
                    let talk: Arc<dyn Talk> = Arc::<Line>::clone(line);
                    if let Some(id) = listener.called(talk, message) {
                        self.sources().push(Source::Line(Arc::clone(line), id));
                    }
                }
            },
            Source::Line(line, id) => match line.hear() {
                Err(_) => {}
                Ok(_) if line.closed.load(Ordering::SeqCst) => {
                    self.remove(|other| other.is(source));
                }
                Ok(Some(message)) => id.hear(Heard::Message(message)),
                Ok(None) => {
                    self.remove(|other| other.is(source));
                    id.hear(Heard::End);
                }
            },
        }
    }
}
