//! Debian's verbs programs, unmodified, on a software device: `librverbs_preload.so` under them.
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
mod outcome;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::process::Running;
use crate::{Output, peer};

pub use case::{Case, Expect, cases};
pub use outcome::{Row, Verdict, table};

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
    pub const fn device(self) -> &'static str {
        match self {
            Self::Shm => "rverbs_shm0",
            Self::Roce => "rverbs_roce_lo",
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
    let start = 10_000 + u16::try_from(std::process::id() % 80).unwrap_or(0) * 256;
    start.wrapping_add(NEXT.fetch_add(step, Ordering::Relaxed) % 256)
}

impl Preload {
    /// Programs under that library, on that provider.
    #[must_use]
    pub fn new(library: PathBuf, provider: Provider) -> Self {
        Self {
            library,
            provider,
            udp: 40_000 + port(8) % 20_000,
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
    pub fn run(&self, case: &Case) -> Row {
        let begin = Instant::now();
        let verdict = match self.pair(case) {
            Ok((client, server)) => case.judge(&client, server.as_ref()),
            Err(error) => Verdict::Fails(format!("{error:#}")),
        };
        Row {
            tool: case.tool,
            transport: case.transport,
            option: case.option,
            provider: self.provider,
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
        let fill = |args: &str| -> Vec<String> {
            args.split_whitespace()
                .map(|arg| match arg {
                    "PORT" => port.to_string(),
                    "DEVICE" => self.provider.device().to_owned(),
                    "HOST" => "127.0.0.1".to_owned(),
                    // InfiniBand needs no GID, and Ethernet cannot do without.
                    "GID" if self.provider == Provider::Roce => "-g0".to_owned(),
                    "GID" => String::new(),
                    arg => arg.to_owned(),
                })
                .filter(|arg| !arg.is_empty())
                .collect()
        };
        let (server, client) = (case.server.map(fill), fill(case.client));
        let server = match &server {
            Some(args) => {
                let args: Vec<_> = args.iter().map(String::as_str).collect();
                Some(self.serve(case.program, &args, port)?)
            }
            None => None,
        };
        let args: Vec<_> = client.iter().map(String::as_str).collect();
        let program = case.client_program.unwrap_or(case.program);
        let client = self.start(program, &args)?.finish(self.limit, || Ok(()));
        let server = match server {
            Some(mut server) if case.server_stays => {
                server.stop(Duration::from_secs(1));
                None
            }
            // A client that failed tells more than the server that waits for it.
            Some(server) if client.is_err() => {
                drop(server);
                None
            }
            Some(server) => Some(server.finish(self.limit, || Ok(()))?),
            None => None,
        };
        Ok((client?, server))
    }
}

/// Whether somebody listens at a TCP port, or has bound a port of our connection manager.
fn listens(port: u16) -> bool {
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
