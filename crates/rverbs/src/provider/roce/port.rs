//! The protocol on a socket: what happens when, and who does it.

use core::ffi::c_int;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use rverbs_sys::{
    IBV_EVENT_COMM_EST, IBV_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_LAST_WQE_REACHED,
    IBV_EVENT_SQ_DRAINED, IBV_EVENT_SRQ_LIMIT_REACHED, ibv_wc,
};

use super::super::Errno;
use super::super::soft::channel::Notices;
use super::super::soft::{KeyTable, Qp, Sink};
use super::device::{Roce, wc};
use super::holding::Holding;
use super::proto::cm::{CmEvent, Manager};
use super::proto::{
    Access, AtomicOp, Burst, Engine, EngineConfig, Event, Fault, Memory, Meta, RecvWqe, Sge, Time,
};
use super::udp::{MAX_DATAGRAM, Sent, Socket};

/// Datagrams handled before what they ask for is sent: acknowledgements become one.
const BATCH: usize = 8;

/// A peer is another process, which may have to wait for a processor: ibverbs' default retries are over
/// after half a millisecond.
const PATIENCE_NS: u64 = 500_000_000;
/// After this time without an answer a message of connection management is sent again.
const CM_INTERVAL_NS: u64 = 500_000_000;

/// Numbers that a peer cannot have seen from an earlier process of ours.
fn random_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

/// How long the thread leaves the work to a user who polls, at first and at most, before it looks
/// whether that is still so.
const FIRST_REST_NS: u64 = 50_000;
const LONGEST_REST_NS: u64 = 4_000_000;
/// Datagrams that the user takes while the thread watches, before the thread leaves the work to it.
const TAKEN_ENOUGH: usize = 4;
/// How long the thread gives a user who watches its memory to answer, before it acknowledges.
const ANSWER_NS: u64 = 200_000;

/// What the threads share.
#[derive(Debug)]
pub struct Shared {
    /// Memory keys.
    pub keys: KeyTable,
    port: Mutex<Port>,
    socket: Socket,
    /// What happened to connections.
    pub cm_events: Notices<CmEvent>,
    /// Wakes the thread.
    wake: OwnedFd,
    /// How often the user polled or posted.
    polls: AtomicU32,
    /// The last poll found nothing, so most likely there will be another one.
    eager: AtomicBool,
    /// When the thread will wake by itself.
    planned: AtomicU64,
    /// The thread waits for the socket, and each datagram wakes it.
    watching: AtomicBool,
    /// The user polls, and the thread is to leave the work to it.
    dismissed: AtomicBool,
    /// The thread leaves the work to the user who polls.
    leaving: AtomicBool,
    /// The user will wait for an event.
    awaited: AtomicBool,
    stop: AtomicBool,
    start: Instant,
}

/// What is behind the lock.
pub struct Port {
    /// The protocol.
    pub engine: Engine,
    burst: Burst,
    /// The burst could not be sent yet.
    pending: bool,
    segments: bool,
    holding: Holding,
    /// Datagrams that the user took since the thread watches.
    taken: usize,
    buf: Box<[u8]>,
    /// Connections. Call [`Held::settle`] after using it.
    pub cm: Manager,
    /// The queue pairs, from INIT on.
    pub qps: HashMap<u32, Arc<Qp<Roce>>>,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("engine", &self.engine.counters())
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

impl Port {
    /// When the thread must do something at the latest.
    fn deadline(&self) -> u64 {
        let times = [self.engine.poll_timeout(), self.cm.poll_timeout()];
        times
            .iter()
            .flatten()
            .map(|time| time.0)
            .min()
            .unwrap_or(u64::MAX)
    }
}

/// Memory as the protocol sees it: the table of keys, and the receive queues.
struct Host<'a> {
    keys: &'a KeyTable,
    qps: &'a HashMap<u32, Arc<Qp<Roce>>>,
}

impl Host<'_> {
    fn at(&self, pd: u32, key: u32, access: Access, addr: u64, len: u64) -> Result<*mut u8, Fault> {
        use super::super::soft::Refusal;
        self.keys
            .local(key, addr, len, pd, u32::from(access.0))
            .map_err(|refusal| match refusal {
                Refusal::Key | Refusal::Domain => Fault::Key,
                Refusal::Bounds => Fault::Bounds,
                Refusal::Access => Fault::Rights,
            })
    }
}

// The lock of the port is held through every access, and deregistering takes it after the key has
// become invalid: so what a key gives access to stays registered for as long as it is used.
impl Memory for Host<'_> {
    fn check(&self, pd: u32, key: u32, access: Access, addr: u64, len: u64) -> Result<(), Fault> {
        self.at(pd, key, access, addr, len).map(|_| ())
    }

    #[inline]
    fn read(
        &mut self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let from = self.at(pd, key, access, addr, out.len() as u64)?;
        // SAFETY: the range is registered; who registered it promised that it is mapped, and the
        // buffer is our own.
        unsafe { from.copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
        Ok(())
    }

    #[inline]
    fn write(
        &mut self,
        pd: u32,
        key: u32,
        access: Access,
        addr: u64,
        data: &[u8],
    ) -> Result<(), Fault> {
        let to = self.at(pd, key, access, addr, data.len() as u64)?;
        let Some((last, head)) = data.split_last() else {
            return Ok(());
        };
        // Programs spin on the last byte of a message, so it is written last.
        // SAFETY: the range is registered for writing; who registered it promised that it is mapped.
        unsafe {
            to.copy_from_nonoverlapping(head.as_ptr(), head.len());
            core::sync::atomic::AtomicU8::from_ptr(to.add(head.len()))
                .store(*last, Ordering::Release);
        }
        Ok(())
    }

    fn atomic(&mut self, pd: u32, key: u32, addr: u64, op: AtomicOp) -> Result<u64, Fault> {
        let at = self
            .at(pd, key, Access::REMOTE_ATOMIC, addr, 8)?
            .cast::<u64>();
        if !at.is_aligned() {
            return Err(Fault::Alignment);
        }
        // SAFETY: eight registered bytes, aligned; all other accesses that matter are atomic too.
        let cell = unsafe { AtomicU64::from_ptr(at) };
        Ok(match op {
            AtomicOp::FetchAdd { add } => cell.fetch_add(add, Ordering::AcqRel),
            AtomicOp::CompareSwap { compare, swap } => {
                match cell.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(old) | Err(old) => old,
                }
            }
        })
    }

    fn take_receive(&mut self, qpn: u32, into: &mut RecvWqe) -> bool {
        let Some(qp) = self.qps.get(&qpn) else {
            return false;
        };
        let _taking = qp.srq.as_ref().map(|srq| srq.taking.lock());
        let queue = qp.srq.as_ref().map_or(&qp.rq, |srq| &srq.queue);
        // SAFETY: takers of a shared queue hold its lock, those of a queue pair's own the port's.
        let Some(recv) = (unsafe { queue.front() }) else {
            return false;
        };
        into.wr_id = recv.wr_id;
        into.sges.clear();
        into.sges.extend(recv.sges.iter().map(|sge| Sge {
            addr: sge.addr,
            len: sge.length,
            lkey: sge.lkey,
        }));
        // SAFETY: as above.
        unsafe { queue.pop() };
        if let Some(srq) = &qp.srq {
            let limit = srq.limit.load(Ordering::Acquire);
            if limit > 0
                && queue.len() < limit
                && srq
                    .limit
                    .compare_exchange(limit, 0, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                qp.pd.context.srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
            }
        }
        true
    }

    fn invalidate(&mut self, pd: u32, key: u32) -> Result<(), Fault> {
        let region = self.keys.find(key).ok_or(Fault::Key)?;
        // Keys of regions are not for the peer to take back; memory windows are not there yet.
        let _ = (region, pd);
        Err(Fault::Rights)
    }
}

/// A right to the port, until it is dropped.
pub struct Held<'a> {
    shared: &'a Shared,
    port: MutexGuard<'a, Port>,
}

impl fmt::Debug for Held<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&*self.port).finish()
    }
}

impl Shared {
    /// A port on the first address of these that is free, and the distance of its port from the
    /// first.
    ///
    /// # Errors
    ///
    /// What binding said last.
    pub fn bind(
        addr: IpAddr,
        base: u16,
        ports: u8,
        window: u32,
        keys: KeyTable,
    ) -> io::Result<(Arc<Self>, u8)> {
        let mut last = io::Error::from_raw_os_error(libc::EADDRINUSE);
        for place in 0..ports {
            match Socket::bind(SocketAddr::new(addr, base.wrapping_add(place.into()))) {
                Ok(socket) => {
                    return Ok((
                        Arc::new(Self::new(socket, place, base, window, keys)?),
                        place,
                    ));
                }
                Err(error) if error.raw_os_error() == Some(libc::EADDRINUSE) => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn new(socket: Socket, place: u8, base: u16, window: u32, keys: KeyTable) -> io::Result<Self> {
        // SAFETY: makes a descriptor and touches nothing else.
        let wake = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if wake < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let wake = unsafe { OwnedFd::from_raw_fd(wake) };
        // The system counts more than the bytes that we see, so half of its buffer is enough.
        let room = u32::try_from(socket.receive_buffer() / 4).unwrap_or(u32::MAX);
        let window = if window == 0 {
            room.clamp(64 << 10, 512 << 10)
        } else {
            window
        };
        let engine = Engine::new(EngineConfig {
            qpn_prefix: place,
            window_bytes: window,
            base_port: base,
            seed: random_seed(),
            patience: PATIENCE_NS,
            ..EngineConfig::default()
        });
        Ok(Self {
            keys,
            port: Mutex::new(Port {
                engine,
                burst: Burst::new(64),
                pending: false,
                segments: true,
                holding: Holding::default(),
                taken: 0,
                buf: vec![0; MAX_DATAGRAM].into_boxed_slice(),
                cm: Manager::new(random_seed(), CM_INTERVAL_NS),
                qps: HashMap::new(),
            }),
            socket,
            cm_events: Notices::new().map_err(|Errno(code)| io::Error::from_raw_os_error(code))?,
            wake,
            polls: AtomicU32::new(0),
            eager: AtomicBool::new(false),
            planned: AtomicU64::new(u64::MAX),
            watching: AtomicBool::new(false),
            dismissed: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
            awaited: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            start: Instant::now(),
        })
    }

    /// The address of the socket.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// Takes the lock.
    #[must_use]
    pub fn hold(&self) -> Held<'_> {
        // A panic while it was held would be a bug; what is behind it is still consistent enough
        // to flush and destroy.
        let port = self.port.lock().unwrap_or_else(PoisonError::into_inner);
        Held { shared: self, port }
    }

    /// The user polls; returns how often before.
    pub fn poll(&self, sink: &mut Sink<'_>) -> u32 {
        // Whoever has the lock does what this would have done.
        let port = match self.port.try_lock() {
            Ok(port) => Some(port),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        let room = sink.room();
        if let Some(port) = port {
            let mut held = Held { shared: self, port };
            let taken = held.progress(Some(sink));
            if taken > 0 && self.watching.load(Ordering::Relaxed) {
                held.port.taken += taken;
                if held.port.taken >= TAKEN_ENOUGH {
                    held.port.taken = 0;
                    self.dismissed.store(true, Ordering::SeqCst);
                    self.rouse();
                }
            }
        }
        self.eager.store(sink.room() == room, Ordering::Relaxed);
        self.polls.fetch_add(1, Ordering::Relaxed)
    }

    /// The user will wait for an event: the thread takes over.
    pub fn awaited(&self) {
        self.awaited.store(true, Ordering::SeqCst);
        if self.leaving.load(Ordering::SeqCst) {
            self.rouse();
        }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.rouse();
    }

    fn rouse(&self) {
        let one = 1_u64.to_ne_bytes();
        // SAFETY: writes eight bytes of our own to our own descriptor.
        unsafe { libc::write(self.wake.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Waits until the socket or somebody has something for us. `socket` says whether to look at it.
    fn wait(&self, socket: libc::c_short, ns: Option<u64>) {
        let mut fds = [
            libc::pollfd {
                fd: self.wake.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            },
            libc::pollfd {
                fd: self.socket.fd(),
                events: socket,
                revents: 0,
            },
        ];
        let count = if socket == 0 { 1 } else { 2 };
        let time = ns.map(|ns| libc::timespec {
            tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
        });
        let time = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        // SAFETY: the array has that many entries, and the time is live or null.
        unsafe { libc::ppoll(fds.as_mut_ptr(), count, time, core::ptr::null()) };
        if fds[0].revents != 0 {
            let mut count = [0_u8; 8];
            // SAFETY: reads eight bytes from our own descriptor into a buffer of eight.
            unsafe {
                libc::read(
                    self.wake.as_raw_fd(),
                    count.as_mut_ptr().cast(),
                    count.len(),
                )
            };
        }
    }

    /// Now, on the clock of the protocol.
    fn now(&self) -> Time {
        Time(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The thread: makes progress until [`Shared::stop`].
    pub fn run(&self) {
        let mut look = libc::POLLIN;
        let mut seen = 0;
        let mut longest = LONGEST_REST_NS / 4;
        while !self.stop.load(Ordering::SeqCst) {
            let planned = self.planned.load(Ordering::SeqCst);
            let left = (planned != u64::MAX).then(|| planned.saturating_sub(self.now().0));
            self.watching.store(true, Ordering::SeqCst);
            self.wait(look, left);
            self.watching.store(false, Ordering::SeqCst);
            let polls = self.polls.load(Ordering::SeqCst);
            let polling = polls != seen && self.eager.load(Ordering::Relaxed);
            let left = self.dismissed.swap(false, Ordering::SeqCst) || polling;
            if left {
                self.leave(&mut longest);
            }
            seen = self.polls.load(Ordering::SeqCst);
            let mut held = self.hold();
            let late = held.progress(None) > 0 && left;
            if late {
                longest = (longest / 4).max(FIRST_REST_NS);
            }
            if held.port.holding.is_held() {
                drop(held);
                self.wait(0, Some(ANSWER_NS));
                held = self.hold();
                held.port.holding.in_vain();
                held.progress(None);
            }
            held.port.taken = 0;
            look = libc::POLLIN;
            if held.port.pending {
                look |= libc::POLLOUT;
            }
            self.planned.store(held.port.deadline(), Ordering::SeqCst);
        }
    }

    /// Leaves the work to the user while it polls, and looks whether it does each time `longest` at most.
    ///
    /// The user does all that the thread could do, and faster. The thread then stays away from socket and
    /// lock: its waking up would only move the user's threads between processors.
    fn leave(&self, longest: &mut u64) {
        let mut rest = FIRST_REST_NS;
        loop {
            let seen = self.polls.load(Ordering::SeqCst);
            self.leaving.store(true, Ordering::SeqCst);
            if !self.awaited.load(Ordering::SeqCst) {
                self.wait(0, Some(rest));
            }
            self.leaving.store(false, Ordering::SeqCst);
            let awaited = self.awaited.swap(false, Ordering::SeqCst);
            // Who sends much may be in one call for longer than the rest.
            let busy = matches!(self.port.try_lock(), Err(TryLockError::WouldBlock));
            let quiet = self.polls.load(Ordering::SeqCst) == seen && !busy;
            if awaited || quiet {
                return;
            }
            if rest == *longest {
                *longest = (*longest * 2).min(LONGEST_REST_NS);
            }
            rest = (rest * 2).min(*longest);
        }
    }
}

impl Held<'_> {
    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.shared.now()
    }

    /// What is behind the lock.
    pub fn port(&mut self) -> &mut Port {
        &mut self.port
    }

    /// Receives what is there, and sends and reports what follows from it. Returns how many datagrams there
    /// were.
    pub fn progress(&mut self, mut sink: Option<&mut Sink<'_>>) -> usize {
        let now = self.now();
        let mut taken = 0;
        loop {
            let received = self.receive(now, sink.is_some());
            taken += received;
            let Port { engine, qps, .. } = &mut *self.port;
            engine.handle_timeout(
                now,
                &mut Host {
                    keys: &self.shared.keys,
                    qps,
                },
            );
            self.manage(now);
            let room = sink.as_ref().map(|sink| sink.room());
            self.report(sink.as_deref_mut());
            // The user, who now learns of a message or sees what was written, will most often answer at
            // once; its acknowledgement then travels with the answer. If not, the next poll sends it, or
            // the thread does.
            let told = sink.as_ref().map(|sink| sink.room()) != room;
            let told = told || (sink.is_none() && received > 0);
            // A thread that waits for the socket does not know of it: only one that looks again by itself
            // may be left with it.
            let looks = sink.is_none() || self.shared.leaving.load(Ordering::SeqCst);
            let port = &mut *self.port;
            if !(told && looks && port.engine.owes_only_acks() && port.holding.hold(now)) {
                port.holding.released(now);
                self.transmit(now);
                self.report(sink.as_deref_mut());
            }
            let full = sink.as_ref().is_none_or(|sink| sink.room() == 0);
            if received < BATCH || (full && sink.is_some()) {
                return taken;
            }
        }
    }

    /// Sends and reports what a call of the engine left to be done.
    pub fn settle(&mut self) {
        let now = self.now();
        self.shared.polls.fetch_add(1, Ordering::Relaxed);
        self.shared.eager.store(false, Ordering::Relaxed);
        self.manage(now);
        self.port.holding.carried(now);
        self.transmit(now);
        self.report(None);
        let wake = self.port.deadline();
        if wake < self.shared.planned.load(Ordering::SeqCst) {
            self.shared.planned.store(wake, Ordering::SeqCst);
            // Who polls looks at the time, and the thread looks soon whether that is so.
            if !self.shared.leaving.load(Ordering::SeqCst) {
                self.shared.rouse();
            }
        }
    }

    /// Connections: MADs in, MADs out, events.
    fn manage(&mut self, now: Time) {
        let Port { engine, cm, .. } = &mut *self.port;
        while let Some(mad) = engine.poll_mad() {
            cm.handle_mad(now, &mad);
        }
        if cm.poll_timeout().is_some_and(|time| time <= now) {
            cm.handle_timeout(now);
        }
        while let Some(mad) = cm.poll_transmit() {
            engine.send_mad(&mad);
        }
        while let Some(event) = cm.poll_event() {
            self.shared.cm_events.push(event);
        }
    }

    /// Puts a queue pair into error.
    ///
    /// # Errors
    ///
    /// No such queue pair.
    pub fn fail(&mut self, qpn: u32) -> Result<(), super::proto::QpError> {
        let now = self.now();
        let Port { engine, qps, .. } = &mut *self.port;
        engine.fail(
            now,
            &mut Host {
                keys: &self.shared.keys,
                qps,
            },
            qpn,
        )
    }

    fn receive(&mut self, now: Time, hurry: bool) -> usize {
        let Port {
            engine, buf, qps, ..
        } = &mut *self.port;
        let mut host = Host {
            keys: &self.shared.keys,
            qps,
        };
        for count in 0..BATCH {
            let Some(received) = self.shared.socket.receive(buf) else {
                return count;
            };
            let meta = Meta {
                flow: received.flow,
                tos: received.tos,
            };
            for packet in buf
                .get(..received.len)
                .unwrap_or(&[])
                .chunks(received.segment)
            {
                engine.handle_packet(now, &mut host, &meta, packet);
            }
            if hurry && engine.has_completions() {
                // The user waits for these more than for what else may have come.
                return count + 1;
            }
        }
        BATCH
    }

    fn transmit(&mut self, now: Time) {
        let Port {
            engine,
            burst,
            pending,
            segments,
            qps,
            ..
        } = &mut *self.port;
        let mut host = Host {
            keys: &self.shared.keys,
            qps,
        };
        loop {
            if !*pending && !engine.poll_transmit(now, &mut host, burst) {
                return;
            }
            *pending = false;
            match self.shared.socket.send(burst) {
                Sent::Gone => {}
                Sent::Later => {
                    *pending = true;
                    return;
                }
                Sent::NoSegmentation => {
                    burst.unsegmented();
                    self.shared.socket.send_each(burst);
                    if *segments {
                        *segments = false;
                        *burst = Burst::new(1);
                    }
                }
            }
        }
    }

    /// Hands completions and events to their queues.
    fn report(&mut self, mut sink: Option<&mut Sink<'_>>) {
        let Port { engine, qps, .. } = &mut *self.port;
        while let Some(event) = engine.poll_event() {
            match event {
                Event::Established { qpn } => {
                    if let Some(qp) = qps.get(&qpn) {
                        qp.event(IBV_EVENT_COMM_EST);
                    }
                }
                Event::Drained { qpn } => {
                    if let Some(qp) = qps.get(&qpn) {
                        qp.event(IBV_EVENT_SQ_DRAINED);
                    }
                }
                Event::Failed { qpn, by_peer } => {
                    if let Some(qp) = qps.get(&qpn)
                        && qp.fail()
                    {
                        if by_peer {
                            qp.event(IBV_EVENT_QP_ACCESS_ERR);
                        }
                        if qp.srq.is_some() {
                            qp.event(IBV_EVENT_QP_LAST_WQE_REACHED);
                        }
                    }
                }
            }
        }
        while let Some(completion) = engine.poll_completion() {
            if let Some(qp) = qps.get(&completion.qpn) {
                let wc: ibv_wc = wc(&completion);
                let cq = if completion.cq == 0 {
                    &qp.send_cq
                } else {
                    &qp.recv_cq
                };
                cq.give(wc, completion.solicited, sink.as_deref_mut());
            }
        }
    }
}

/// An address of this host.
#[derive(Debug, Clone)]
pub struct Interface {
    /// Name of the network interface.
    pub name: String,
    /// Its index.
    pub ifindex: u32,
    /// One of its addresses.
    pub addr: IpAddr,
    /// Its MTU in bytes.
    pub mtu: u32,
}

/// The addresses of the interfaces that are up; link-local ones are left out.
#[must_use]
pub fn interfaces() -> Vec<Interface> {
    let mut list = core::ptr::null_mut();
    let mut found = Vec::new();
    // SAFETY: the list is ours until it is freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return found;
    }
    let mut next = list.cast_const();
    // SAFETY: each entry of the list is live until it is freed below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        let up = entry.ifa_flags & u32::try_from(libc::IFF_UP).unwrap_or(0) != 0;
        // SAFETY: an address is null or live, and as long as its family says.
        let addr = unsafe { address(entry.ifa_addr) };
        let (true, Some(addr)) = (up, addr) else {
            continue;
        };
        if matches!(addr, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            continue;
        }
        // SAFETY: a name is a C string.
        let name = unsafe { core::ffi::CStr::from_ptr(entry.ifa_name) };
        // SAFETY: as above.
        let ifindex = unsafe { libc::if_nametoindex(entry.ifa_name) };
        let name = name.to_string_lossy().into_owned();
        let mtu = std::fs::read_to_string(format!("/sys/class/net/{name}/mtu"));
        let mtu = mtu
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(1500);
        found.push(Interface {
            name,
            ifindex,
            addr,
            mtu,
        });
    }
    // SAFETY: the list came from `getifaddrs` and is not used again.
    unsafe { libc::freeifaddrs(list) };
    found
}

/// # Safety
///
/// The address is null or live, and as long as its family says.
unsafe fn address(raw: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as the caller promises.
    unsafe {
        match c_int::from(raw.as_ref()?.sa_family) {
            libc::AF_INET => {
                let raw = raw.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::V4(Ipv4Addr::from(
                    raw.sin_addr.s_addr.to_ne_bytes(),
                )))
            }
            libc::AF_INET6 => {
                let raw = raw.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::V6(Ipv6Addr::from(raw.sin6_addr.s6_addr)))
            }
            _ => None,
        }
    }
}
