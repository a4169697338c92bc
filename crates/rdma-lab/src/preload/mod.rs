//! Debian's verbs programs, unmodified, on a software device: `librverbs_preload.so` under them, or the
//! kernel's rxe in a guest beside it.
//!
//! ```no_run
//! use rdma_lab::preload::{self, Preload, Provider};
//!
//! # fn main() -> anyhow::Result<()> {
//! let lab = Preload::new(preload::library()?, Provider::Shm);
//! for case in preload::cases() {
//!     println!("{}", lab.run(case));
//! }
//! # Ok(())
//! # }
//! ```

mod case;
mod guest;
mod list;
mod outcome;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::process::Running;
use crate::{Output, peer};

pub use case::{Case, Device, Expect};
pub use guest::Rxe;
pub use list::cases;
pub(crate) use outcome::figure;
pub use outcome::{Row, Verdict, beside, table};

/// Which software device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Shared memory.
    Shm,
    /// RoCEv2 over UDP on the loopback interface.
    Roce,
}

impl Provider {
    /// How `RVERBS_PROVIDER` calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shm => "shm",
            Self::Roce => "roce",
        }
    }

    /// The device that programs use: for RoCE the loopback interface's.
    #[must_use]
    pub const fn device(self) -> Device {
        match self {
            Self::Shm => Device::Shm,
            Self::Roce => Device::Roce,
        }
    }
}

/// File name of the library.
pub const LIBRARY: &str = "librverbs_preload.so";

/// The library: where `RVERBS_PRELOAD` says, or where cargo built it, beside the running program.
///
/// # Errors
/// When it is not there.
pub fn library() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("RVERBS_PRELOAD") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "RVERBS_PRELOAD: no file {}", path.display());
        return Ok(path);
    }
    let program = std::env::current_exe().context("finding this program")?;
    program
        .ancestors()
        .skip(1)
        .take(3)
        .flat_map(|folder| [folder.join(LIBRARY), folder.join("deps").join(LIBRARY)])
        .find(|path| path.is_file())
        .with_context(|| format!("{LIBRARY} is not built: cargo build -p rverbs-preload"))
}

/// Programs under the library.
#[derive(Debug)]
pub struct Preload {
    library: PathBuf,
    provider: Provider,
    /// The first UDP port of `roce`, which other labs don't use.
    udp: u16,
    /// How long a program may run.
    limit: Duration,
}

/// A range of ports for each lab of this process, and different ones for different processes.
fn port(step: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 10_000 + u16::try_from(std::process::id() % 44).unwrap_or(0) * 512;
    start.wrapping_add(NEXT.fetch_add(step, Ordering::Relaxed) % 512)
}

/// The first UDP port of each lab. A device may take any of the 128 from there on, so that no two
/// labs of this process meet, and labs of other processes hardly ever.
fn udp_port() -> u16 {
    /// How many ranges there are from the first one on.
    const RANGES: u32 = 150;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let range = (std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed)) % RANGES;
    40_000 + u16::try_from(range * 128).unwrap_or(0)
}

impl Preload {
    /// Programs under that library, on that provider.
    #[must_use]
    pub fn new(library: PathBuf, provider: Provider) -> Self {
        Self {
            library,
            provider,
            udp: udp_port(),
            limit: Duration::from_secs(60),
        }
    }

    /// How long a program may run from now on.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// The provider.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The first UDP port of `roce`, for a peer that is not under the library.
    #[must_use]
    pub fn udp(&self) -> u16 {
        self.udp
    }

    /// A command under the library.
    #[must_use]
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env("LD_PRELOAD", &self.library)
            .env("RVERBS_PROVIDER", self.provider.name())
            .env("RVERBS_ROCE_PORT", self.udp.to_string());
        command
    }

    /// Starts a program under the library.
    ///
    /// # Errors
    /// When it is not on this machine.
    pub fn start(&self, program: &str, args: &[&str]) -> Result<Running> {
        let mut command = self.command(&peer::need(program)?);
        command.args(args);
        Running::start(&command)
    }

    /// Starts a program and waits until it listens at a port.
    ///
    /// # Errors
    /// When it is not on this machine, or does not listen in time.
    pub fn serve(&self, program: &str, args: &[&str], port: u16) -> Result<Running> {
        let mut server = self.start(program, args)?;
        server.wait_until("its port", self.limit, |_| Ok(listens(port)))?;
        Ok(server)
    }

    /// Runs a case, with ports that no other case uses, and judges what was printed.
    #[must_use]
    pub fn run(&self, case: &'static Case) -> Row {
        let begin = Instant::now();
        let device = self.provider.device();
        let verdict = match self.pair(case) {
            Ok((client, server)) => case.judge(device, &client, server.as_ref()),
            Err(error) => Verdict::Fails(format!("{error:#}")),
        };
        Row {
            case,
            device,
            verdict,
            wall: begin.elapsed(),
        }
    }

    fn pair(&self, case: &Case) -> Result<(Output, Option<Output>)> {
        // Programs with a port of their own run one after the other.
        static FIXED: Mutex<()> = Mutex::new(());
        let fixed = case
            .port
            .map(|port| (port, FIXED.lock().unwrap_or_else(PoisonError::into_inner)));
        let port = fixed.as_ref().map_or_else(|| port(1), |(port, _)| *port);
        let device = self.provider.device();
        let lines = case.lines(device, port);
        let server = match &lines.server {
            Some((program, args)) => {
                let args: Vec<_> = args.iter().map(String::as_str).collect();
                let mut server = self.start(program, &args)?;
                let deadline = Instant::now() + self.limit;
                while !listens(port) {
                    if server.has_ended()? {
                        // It was refused, and a client would find nobody.
                        return Ok((server.end(Duration::ZERO), None));
                    }
                    ensure!(Instant::now() < deadline, "{program} does not listen");
                    std::thread::sleep(Duration::from_millis(5));
                }
                Some(server)
            }
            None => None,
        };
        let args: Vec<_> = lines.client.1.iter().map(String::as_str).collect();
        let mut client = self.start(lines.client.0, &args)?;
        if case.expected(device).0 == Expect::Stays {
            // It has begun to wait when it has printed nothing on stderr for a while.
            std::thread::sleep(STAYS);
            client.terminate();
        }
        let client = client.finish(self.limit, || Ok(()));
        let Some(server) = server else {
            return Ok((client?, None));
        };
        match client {
            Ok(client) if client.code == 0 && !case.server_stays => {
                Ok((client, Some(server.finish(self.limit, || Ok(()))?)))
            }
            // A server whose client failed may have a reason of its own to tell, or wait for ever.
            Ok(client) => {
                let patience = if client.code == 0 {
                    Duration::ZERO
                } else {
                    STAYS
                };
                let server = server.end(patience);
                Ok((client, (!case.server_stays).then_some(server)))
            }
            Err(error) => {
                let said = server.end(Duration::ZERO);
                Err(error.context(format!("its server said {:?}", said.stderr_text())))
            }
        }
    }
}

/// Runs cases on a provider, several at a time, and gives their rows in the order of the cases. `show`
/// sees each as soon as it is there.
///
/// Programs sleep more than they work, so more than there are processors may run at a time.
#[must_use]
pub fn run_all(
    library: &Path,
    provider: Provider,
    limit: Duration,
    jobs: usize,
    cases: &[&'static Case],
    show: impl Fn(&Row) + Sync,
) -> Vec<Row> {
    let next = AtomicUsize::new(0);
    let rows = Mutex::new(Vec::with_capacity(cases.len()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                // Each with UDP ports of its own: its programs don't see those of others.
                let lab = Preload::new(library.to_owned(), provider).limit(limit);
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(index) else { return };
                    let row = lab.run(case);
                    show(&row);
                    let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
                    rows.push((index, row));
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(index, _)| *index);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// How long a program that is to go on is left alone, and a server whose client failed.
const STAYS: Duration = Duration::from_secs(1);

/// Whether somebody listens at a TCP port, or has bound a port of our connection manager.
pub fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let tcp = ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|file| {
        let table = std::fs::read_to_string(file).unwrap_or_default();
        table.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let ours = words
                .next()
                .and_then(|local| local.rsplit_once(':'))
                .is_some_and(|(_, hex)| u16::from_str_radix(hex, 16) == Ok(port));
            ours && words.nth(1) == Some(LISTEN)
        })
    });
    let suffix = format!("/{port}");
    tcp || std::fs::read_to_string("/proc/net/unix")
        .unwrap_or_default()
        .lines()
        .any(|line| line.contains("@rverbs-cm/") && line.ends_with(&suffix))
}
