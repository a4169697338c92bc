//! ibsim with any net file, and the programs that run on it unmodified.
//!
//! ibsim (package ibsim-utils) simulates the subnet management and performance agents of a whole fabric. A program reaches it in one of two ways:
//! through the preload `libumad2sim.so`, which stands in for `/dev/infiniband/umad0`, or by ibsim's own datagrams on abstract Unix sockets, whose
//! names start with [`Ibsim::socket_name`].
//!
//! Its limits, so that nobody looks for them in our code: ten clients, no RMPP, only the first 224 bytes of a MAD pass the preload, no timeouts, and
//! a client that is killed keeps its slot (this module frees it).

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::peer;
use crate::process::{self, Folder, Output, Running, tail};

/// A small fabric of this project: two leaf switches under two spines, four hosts (`h1` to `h4`), one of them with two ports.
pub const DEFAULT_NET: &str = include_str!("default.net");

/// How an ibsim is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long reading the net may take. Default 60 s, since a net of 11,664 hosts needs several seconds on a busy machine.
    pub ready_within: Duration,
    /// How long a program that [`Ibsim::run`] starts may take. Default 120 s.
    pub run_within: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ready_within: Duration::from_secs(60),
            run_within: Duration::from_secs(120),
        }
    }
}

/// How an OpenSM is started on an ibsim.
#[derive(Debug, Clone)]
pub struct OpensmOptions {
    /// The node it runs on; `None` is the first node of the net.
    pub attach: Option<String>,
    /// More arguments, such as `["-R", "ftree"]`.
    pub args: Vec<String>,
    /// How long it may take to `SUBNET UP`. Default 120 s.
    pub up_within: Duration,
}

impl Default for OpensmOptions {
    fn default() -> Self {
        Self {
            attach: None,
            args: Vec::new(),
            up_within: Duration::from_secs(120),
        }
    }
}

/// What a net file holds, counted from its text: ibsim's own limits are too small for big nets and must be given on its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Switches.
    pub switches: usize,
    /// Hosts' adapters and routers.
    pub adapters: usize,
    /// Ports of all of them, port 0 of each switch included.
    pub ports: usize,
}

impl Counts {
    /// Counts the nodes that `net` declares. Lines that ibsim would ignore are ignored.
    #[must_use]
    pub fn of(net: &str) -> Self {
        let mut counts = Self::default();
        for line in net.lines() {
            let (rest, switch) = match line.strip_prefix("Switch") {
                Some(rest) => (rest, true),
                None => match ["Hca", "Ca", "Rt"]
                    .iter()
                    .find_map(|kind| line.strip_prefix(kind))
                {
                    Some(rest) => (rest, false),
                    None => continue,
                },
            };
            let digits: String = rest
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(char::is_ascii_digit)
                .collect();
            let ports = digits.parse::<usize>().unwrap_or(0).min(255);
            if switch {
                counts.switches += 1;
                counts.ports += ports + 1;
            } else {
                counts.adapters += 1;
                counts.ports += ports;
            }
        }
        counts
    }

    /// All nodes.
    #[must_use]
    pub const fn nodes(self) -> usize {
        self.switches + self.adapters
    }
}

/// A running ibsim. Dropping it kills it, with everything that was started on it.
#[derive(Debug)]
pub struct Ibsim {
    // Behind a lock so that tests can unplug a cable while a program of theirs runs.
    server: Mutex<Running>,
    socket_name: String,
    preload: PathBuf,
    folder: Folder,
    counts: Counts,
    net: String,
    run_within: Duration,
}

impl Ibsim {
    /// Starts ibsim on the text of a net file and waits until it answers.
    ///
    /// # Errors
    /// A missing package, a net that ibsim refuses (the message holds what it said), or no answer in time.
    pub fn start(net: &str, options: &Options) -> Result<Self> {
        let ibsim = peer::need("ibsim")?;
        let folder = Folder::new()?;
        let file = folder.path().join("net");
        std::fs::write(&file, net).with_context(|| format!("writing {}", file.display()))?;
        Self::launch(&ibsim, &file, net, folder, options).context("ibsim can't serve this net")
    }

    /// Starts ibsim on a net file and waits until it answers.
    ///
    /// # Errors
    /// As [`Ibsim::start`], and a file that can't be read.
    pub fn start_file(file: &Path, options: &Options) -> Result<Self> {
        let ibsim = peer::need("ibsim")?;
        let net = std::fs::read(file)
            .with_context(|| format!("reading the net file {}", file.display()))?;
        let net = String::from_utf8_lossy(&net);
        let absolute =
            std::path::absolute(file).with_context(|| format!("finding {}", file.display()))?;
        Self::launch(&ibsim, &absolute, &net, Folder::new()?, options)
            .with_context(|| format!("ibsim can't serve {}", file.display()))
    }

    fn launch(
        ibsim: &Path,
        file: &Path,
        net: &str,
        folder: Folder,
        options: &Options,
    ) -> Result<Self> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let preload = peer::need("libumad2sim.so")?;
        let counts = Counts::of(net);
        if counts.nodes() == 0 {
            bail!("no node in it: a net file has lines such as: Switch 36 \"leaf1\"");
        }
        let socket_name = format!(
            "rdma-lab-{}-{}",
            std::process::id(),
            SERIAL.fetch_add(1, Ordering::Relaxed)
        );
        let mut command = Command::new(ibsim);
        // ibsim's defaults are the lower bounds, since `include` may bring in nodes that are not in this text.
        command
            .arg("-s")
            .args(["-N", &(counts.nodes() + 16).max(2048).to_string()])
            .args(["-S", &(counts.switches + 16).max(256).to_string()])
            .args(["-P", &(counts.ports + 256).max(13_312).to_string()])
            .args(["-L", "49152"])
            .arg(file)
            .env("IBSIM_SOCKNAME", &socket_name);
        // `include` lines count from the file's own folder.
        if let Some(parent) = file.parent() {
            command.current_dir(parent);
        }
        let mut server = Running::start(&command)?;
        let control = SocketAddr::from_abstract_name(format!("{socket_name}:ctl\0"))
            .context("naming ibsim's socket")?;
        let probe = UnixDatagram::unbound().context("making a socket")?;
        server.wait_until("an answer on its socket", options.ready_within, |_| {
            Ok(probe.connect_addr(&control).is_ok())
        })?;
        // A prompt follows "ready"; from here on each console command is answered by its text and one more prompt.
        server.wait_until("its prompt", options.ready_within, |server| {
            Ok(server.stdout().ends_with(PROMPT))
        })?;
        Ok(Self {
            server: Mutex::new(server),
            socket_name,
            preload,
            folder,
            counts,
            net: net.to_owned(),
            run_within: options.run_within,
        })
    }

    /// The first part of the names of its sockets (`IBSIM_SOCKNAME`): `<name>:ctl` and so on.
    #[must_use]
    pub fn socket_name(&self) -> &str {
        &self.socket_name
    }

    /// The preload that gives programs the simulated port.
    #[must_use]
    pub fn preload(&self) -> &Path {
        &self.preload
    }

    /// A folder that lives as long as this ibsim and is the current folder of what runs on it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What its net holds.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// ibsim's process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.lock().id()
    }

    /// What ibsim itself has written to stderr up to now: faults in the net file among others.
    #[must_use]
    pub fn messages(&self) -> String {
        String::from_utf8_lossy(&self.lock().stderr()).into_owned()
    }

    /// Gives ibsim a console command, such as `unlink "leaf1"[3]`, `link`, `dump`, `attached`, and returns what it answers.
    ///
    /// # Errors
    /// A command of more than one line or more than 120 bytes, an ibsim that has ended, or no answer within 30 s.
    pub fn console(&self, command: &str) -> Result<String> {
        if command.contains('\n') || command.len() > 120 {
            bail!("ibsim's console takes one line of at most 120 bytes: {command:?}");
        }
        let mut server = self.lock();
        let before = server.stdout().len();
        server.write(format!("{command}\n").as_bytes())?;
        let answered = |server: &mut Running| {
            Ok(server
                .stdout()
                .get(before..)
                .is_some_and(|answer| answer.ends_with(PROMPT)))
        };
        server.wait_until(
            "an answer to a console command",
            Duration::from_secs(30),
            answered,
        )?;
        let all = server.stdout();
        let answer = all
            .get(before..)
            .and_then(|answer| answer.strip_suffix(PROMPT))
            .unwrap_or_default();
        Ok(String::from_utf8_lossy(answer).into_owned())
    }

    /// The command that runs `program` on this fabric, at the port of node `attach` (a node's name; `None` is the net's first node).
    ///
    /// `program` is a peer's name or a path, of one of our own binaries for example.
    ///
    /// # Errors
    /// A missing program, by its package, and a node that the net does not have: the preload's own message for that names nothing.
    pub fn command(
        &self,
        program: impl AsRef<Path>,
        args: &[&str],
        attach: Option<&str>,
    ) -> Result<Command> {
        if let Some(node) = attach {
            self.knows(node)?;
        }
        let program = program.as_ref();
        let path = match program.to_str() {
            Some(name) if !name.contains('/') => peer::need(name)?,
            _ => std::path::absolute(program)
                .with_context(|| format!("finding {}", program.display()))?,
        };
        let mut command = Command::new(path);
        // umad2sim writes sys-<pid> into the current folder and leaves it there when it is killed.
        command.args(args).current_dir(self.folder.path());
        for (key, value) in self.environment(attach) {
            command.env(key, value);
        }
        Ok(command)
    }

    /// ibsim takes a node's identifier or its description; both stand in quotes, or the latter after `#`. What `include` brings in is not in our text.
    fn knows(&self, node: &str) -> Result<()> {
        if self.net.contains(node) || self.net.lines().any(|line| line.starts_with("include")) {
            return Ok(());
        }
        let named = self
            .net
            .lines()
            .filter(|line| Counts::of(line).nodes() == 1)
            .filter_map(|line| line.split('"').nth(1));
        let named: Vec<_> = named.take(5).collect();
        bail!("the net has no node {node}; it has {} …", named.join(", "));
    }

    /// The environment in which a program runs on this fabric.
    #[must_use]
    pub fn environment(&self, attach: Option<&str>) -> Vec<(&'static str, String)> {
        let folder = self.folder.path().display().to_string();
        let mut pairs = vec![
            ("IBSIM_SOCKNAME", self.socket_name.clone()),
            ("LD_PRELOAD", self.preload.display().to_string()),
            ("OSM_TMP_DIR", folder.clone()),
            ("OSM_CACHE_DIR", folder),
        ];
        if let Some(node) = attach {
            pairs.push(("SIM_HOST", node.to_owned()));
        }
        pairs
    }

    /// Runs `program` to its end; see [`Ibsim::command`]. A program that takes longer than [`Options::run_within`] is killed.
    ///
    /// # Errors
    /// A missing program, one that hangs, or an ibsim that ended meanwhile; all with what was said. Another exit code than 0 is not an error.
    pub fn run(
        &self,
        program: impl AsRef<Path>,
        args: &[&str],
        attach: Option<&str>,
    ) -> Result<Output> {
        self.run_command(&self.command(program, args, attach)?, self.run_within)
    }

    /// Runs a command made by [`Ibsim::command`], at most for `limit`.
    ///
    /// # Errors
    /// As [`Ibsim::run`].
    pub fn run_command(&self, command: &Command, limit: Duration) -> Result<Output> {
        let output = Running::start(command)?.finish(limit, || self.alive());
        if !output.as_ref().is_ok_and(|output| output.code < 128) {
            self.forget_dead();
        }
        output
    }

    /// Starts OpenSM and waits until it has brought the subnet up. It is stopped when the value is dropped.
    ///
    /// # Errors
    /// A missing package, an OpenSM that ends, or no `SUBNET UP` in time; with the end of its log.
    pub fn opensm(&self, options: &OpensmOptions) -> Result<Opensm<'_>> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        // Each has its own cache, or a second SM would read the first one's files.
        let folder = self
            .folder
            .path()
            .join(format!("opensm-{}", SERIAL.fetch_add(1, Ordering::Relaxed)));
        std::fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let log = folder.join("opensm.log");
        let mut command = self.command("opensm", &[], options.attach.as_deref())?;
        command
            .env("OSM_TMP_DIR", &folder)
            .env("OSM_CACHE_DIR", &folder)
            // -d 2 makes it flush the log after each message: without it SUBNET UP stays in a buffer. -s 0 is one sweep, then only on traps.
            .args(["-d", "2", "-D", "0x03", "-s", "0", "-f"])
            .arg(&log)
            .args(&options.args);
        let started = Instant::now();
        let mut server = Running::start(&command)?;
        let up = server.wait_until("SUBNET UP", options.up_within, |_| {
            self.alive()?;
            Ok(count_up(&log) > 0)
        });
        if let Err(why) = up {
            drop(server);
            self.forget_dead();
            let log = std::fs::read(&log).unwrap_or_default();
            return Err(why.context(format!(
                "opensm did not bring the subnet up; its log ends with\n{}",
                tail(&[&log])
            )));
        }
        Ok(Opensm {
            sim: self,
            server,
            folder,
            log,
            up_after: started.elapsed(),
        })
    }

    /// An error when ibsim has ended. Without this check its clients would wait for ever.
    fn alive(&self) -> Result<()> {
        let mut server = self.lock();
        if let Some(code) = server.try_wait()? {
            bail!(
                "ibsim ended with exit code {code}\n{}",
                tail(&[&server.stderr()])
            );
        }
        Ok(())
    }

    /// Frees the slots of clients that were killed: ibsim has ten, and only a client that ends by itself gives its slot back.
    fn forget_dead(&self) {
        let Ok(attached) = self.console("attached") else {
            return;
        };
        for line in attached.lines() {
            // `Client 3: pid 4711 connected at "h1" port 0x…`
            let mut words = line
                .strip_prefix("Client ")
                .unwrap_or_default()
                .split([':', ' '])
                .filter(|word| !word.is_empty());
            let (Some(slot), Some("pid"), Some(pid)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            if !process::is_running(pid) {
                // Best effort: a slot that stays busy only matters to a lab that kills ten programs.
                let _ = self.console(&format!("x {slot}"));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Running> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const PROMPT: &[u8] = b"sim> ";

/// A running OpenSM that has brought its subnet up. Dropping it stops it.
#[derive(Debug)]
pub struct Opensm<'a> {
    sim: &'a Ibsim,
    server: Running,
    folder: PathBuf,
    log: PathBuf,
    up_after: Duration,
}

impl Opensm<'_> {
    /// From its start to `SUBNET UP`.
    #[must_use]
    pub const fn up_after(&self) -> Duration {
        self.up_after
    }

    /// Where it puts its dump files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Its log up to now.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// How often it has reported `SUBNET UP`: ask before a change of the fabric, then give [`Opensm::wait_up_again`] that number.
    #[must_use]
    pub fn times_up(&self) -> usize {
        count_up(&self.log)
    }

    /// Waits until it has reported `SUBNET UP` more than `before` times.
    ///
    /// # Errors
    /// When it ends, or `limit` passes.
    pub fn wait_up_again(&mut self, before: usize, limit: Duration) -> Result<()> {
        let log = self.log.clone();
        self.server
            .wait_until("another SUBNET UP", limit, |_| Ok(count_up(&log) > before))
    }
}

impl Drop for Opensm<'_> {
    fn drop(&mut self) {
        // By SIGTERM, so that it leaves ibsim and removes its folder. It takes up to a second to notice.
        self.server.stop(Duration::from_secs(3));
        self.sim.forget_dead();
    }
}

fn count_up(log: &Path) -> usize {
    let log = std::fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&log).matches("SUBNET UP").count()
}
