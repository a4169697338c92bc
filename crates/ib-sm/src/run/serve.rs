//! A simulated fabric on the sockets of ibsim, for programs that know those.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ib_mad::Time;
use ib_sim::SharedFabric;
use ib_sim::serve::{CONTROL_LEN, PACKET_LEN, Seat, Server};

/// How long a thread waits before it looks whether to end.
const TICK: Duration = Duration::from_millis(100);

/// ibsim's names: the zero at the end is part of them.
fn name(base: &str, what: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{base}:{what}\0"))
}

struct Shared {
    base: String,
    server: Mutex<Server>,
    control: UnixDatagram,
    data: Vec<UnixDatagram>,
    started: Instant,
    stop: AtomicBool,
}

/// A fabric that is being served. Dropping it ends that.
pub struct Serving {
    shared: Arc<Shared>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl core::fmt::Debug for Serving {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Serving")
            .field("name", &self.shared.base)
            .finish_non_exhaustive()
    }
}

impl Serving {
    /// Serves a fabric under a name, the `IBSIM_SOCKNAME` of its clients, to ten programs at once.
    /// The fabric's clock follows the machine's.
    ///
    /// # Errors
    /// Where the name is taken.
    pub fn start(fabric: SharedFabric, base: &str) -> io::Result<Self> {
        let server = Server::new(fabric, 10);
        let control = UnixDatagram::bind_addr(&name(base, "ctl")?)?;
        control.set_read_timeout(Some(TICK))?;
        let mut data = Vec::new();
        for place in 0..server.places() {
            let socket = UnixDatagram::bind_addr(&name(base, &format!("out{place}"))?)?;
            socket.set_read_timeout(Some(TICK))?;
            // A client that does not read any more is not waited for.
            socket.set_write_timeout(Some(Duration::from_secs(1)))?;
            data.push(socket);
        }
        let places = data.len();
        let shared = Arc::new(Shared {
            base: base.to_owned(),
            server: Mutex::new(server),
            control,
            data,
            started: Instant::now(),
            stop: AtomicBool::new(false),
        });
        let mut threads = Vec::new();
        for work in 0..places + 2 {
            let shared = Arc::clone(&shared);
            threads.push(thread::spawn(move || match work.checked_sub(2) {
                None if work == 0 => shared.controls(),
                None => shared.ticks(),
                Some(place) => shared.packets(place),
            }));
        }
        Ok(Self { shared, threads })
    }

    /// The fabric, to break and to look at.
    #[must_use]
    pub fn fabric(&self) -> SharedFabric {
        self.shared.lock().fabric().clone()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    /// Lets the clock catch up, and sends what came of it.
    fn flush(&self, server: &mut Server) {
        let micros = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        server.advance(Time::from_micros(micros));
        for (place, socket) in (0_u32..).zip(&self.data) {
            while let Some(packet) = server.outgoing(place) {
                // A client that is gone, or does not read, loses what is for it.
                let _ = socket.send(&packet);
            }
        }
    }

    fn controls(&self) {
        let mut buffer = [0; CONTROL_LEN + 1];
        while self.goes_on() {
            let Ok((len, from)) = self.control.recv_from(&mut buffer) else {
                continue;
            };
            let mut server = self.lock();
            let Some((answer, seat)) = server.control(buffer.get(..len).unwrap_or_default()) else {
                continue;
            };
            if let Seat::Taken { client, id } = seat
                && let Some(socket) = usize::try_from(client)
                    .ok()
                    .and_then(|it| self.data.get(it))
                && let Ok(to) = name(&self.base, &format!("in{id}"))
            {
                // Where it fails the client does not read, which is its own loss.
                let _ = socket.connect_addr(&to);
            }
            let _ = self.control.send_to_addr(&answer, &from);
            self.flush(&mut server);
        }
    }

    fn ticks(&self) {
        while self.goes_on() {
            thread::sleep(Duration::from_millis(5));
            let mut server = self.lock();
            if server.next_event().is_some() {
                self.flush(&mut server);
            }
        }
    }

    fn packets(&self, place: usize) {
        let Some(socket) = self.data.get(place) else {
            return;
        };
        let client = u32::try_from(place).unwrap_or(u32::MAX);
        let mut buffer = [0; PACKET_LEN + 1];
        while self.goes_on() {
            match socket.recv(&mut buffer) {
                Ok(len) => {
                    let mut server = self.lock();
                    server.packet(client, buffer.get(..len).unwrap_or_default());
                    self.flush(&mut server);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Nobody is connected; somebody may come.
                Err(_) => thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}
