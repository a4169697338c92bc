//! Child processes that can't outlive the test that started them.
//!
//! Four nets, since each has a hole: a process is killed with its group when its value is dropped (also by a panic); the kernel kills it when
//! this process dies (`setpriv --pdeathsig`, since `prctl` would need unsafe code); [`stop_all_and_exit`] kills what is left from a signal handler;
//! and every wait has an end.

mod stream;
mod tree;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::Signal;

use crate::peer;
use stream::Stream;
pub(crate) use tree::is_running;
use tree::{kill_tree, signal};

/// What a command printed and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command line, for messages.
    pub command: String,
    /// Everything it wrote to stdout.
    pub stdout: Vec<u8>,
    /// Everything it wrote to stderr.
    pub stderr: Vec<u8>,
    /// Its exit code; 128 + the signal's number when a signal ended it, as a shell counts.
    pub code: i32,
    /// From start to end.
    pub wall: Duration,
}

impl Output {
    /// stdout as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stderr as text; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Itself when the exit code is 0.
    ///
    /// # Errors
    /// Another exit code; the message holds what the command said.
    pub fn success(self) -> Result<Self> {
        if self.code == 0 {
            return Ok(self);
        }
        bail!(
            "{} ended with exit code {}\n{}",
            self.command,
            self.code,
            tail(&[&self.stdout, &self.stderr])
        );
    }
}

/// The end of what a program said, for a message: at most 40 lines.
pub(crate) fn tail(streams: &[&[u8]]) -> String {
    let text: String = streams
        .iter()
        .map(|stream| String::from_utf8_lossy(stream).into_owned())
        .collect();
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines
        .get(lines.len().saturating_sub(40)..)
        .unwrap_or_default()
        .join("\n")
}

/// A running program in a process group of its own. Dropping it kills the group.
#[derive(Debug)]
pub struct Running {
    name: String,
    child: Child,
    started: Instant,
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
    ended: Option<ExitStatus>,
}

impl Running {
    /// Starts `command`; its output is collected by two threads, so that it never blocks on a full pipe.
    ///
    /// # Errors
    /// When the program, or `setpriv`, can't be started.
    pub fn start(command: &Command) -> Result<Self> {
        let name = command_line(command);
        let mut guarded = guarded(command)?;
        guarded
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let started = Instant::now();
        let mut child = spawn(guarded).with_context(|| format!("starting {name}"))?;
        live().groups.insert(child.id(), ());
        let stdout = Stream::collect(child.stdout.take());
        let stderr = Stream::collect(child.stderr.take());
        let stdin = child.stdin.take();
        Ok(Self {
            name,
            child,
            started,
            stdin,
            stdout,
            stderr,
            ended: None,
        })
    }

    /// The process's id, which is its group's too.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The time since its start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// What it wrote to stdout up to now.
    #[must_use]
    pub fn stdout(&self) -> Vec<u8> {
        self.stdout.bytes()
    }

    /// What it wrote to stderr up to now.
    #[must_use]
    pub fn stderr(&self) -> Vec<u8> {
        self.stderr.bytes()
    }

    /// Writes to its stdin.
    ///
    /// # Errors
    /// When it no longer reads.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let name = &self.name;
        let stdin = self
            .stdin
            .as_mut()
            .with_context(|| format!("{name}: stdin is closed"))?;
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .with_context(|| format!("writing to {name}"))
    }

    /// Closes its stdin.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// The exit code when it has ended.
    ///
    /// # Errors
    /// When the system can't tell.
    pub fn try_wait(&mut self) -> Result<Option<i32>> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .with_context(|| format!("waiting for {}", self.name))?;
        }
        Ok(self.ended.map(exit_code))
    }

    /// Waits until `done` says yes. `done` is asked after each new output and at least every 5 ms.
    ///
    /// # Errors
    /// When the program ends first, or `limit` passes; both with what it said.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut done: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let deadline = Instant::now() + limit;
        loop {
            if done(self)? {
                return Ok(());
            }
            if let Some(code) = self.try_wait()? {
                self.join_streams();
                bail!(
                    "{} ended with exit code {code} before {what}\n{}",
                    self.name,
                    tail(&[&self.stdout(), &self.stderr()])
                );
            }
            if Instant::now() > deadline {
                bail!(
                    "{}: no sign of {what} within {limit:?}\n{}",
                    self.name,
                    tail(&[&self.stdout(), &self.stderr()])
                );
            }
            self.stdout.wait(Duration::from_millis(5));
        }
    }

    /// Waits for its end; kills it when `limit` has passed since its start, or when `alive` reports an error.
    ///
    /// # Errors
    /// A program that does not end within `limit`: it is killed, and the message holds what it said.
    pub fn finish(
        mut self,
        limit: Duration,
        mut alive: impl FnMut() -> Result<()>,
    ) -> Result<Output> {
        self.close_stdin();
        let deadline = self.started + limit;
        let code = loop {
            if let Some(code) = self.try_wait()? {
                break code;
            }
            if let Err(why) = alive() {
                self.kill();
                return Err(why.context(format!(
                    "{} was killed\n{}",
                    self.name,
                    tail(&[&self.stdout(), &self.stderr()])
                )));
            }
            if Instant::now() > deadline {
                self.kill();
                bail!(
                    "{} did not end within {limit:?} and was killed\n{}",
                    self.name,
                    tail(&[&self.stdout(), &self.stderr()])
                );
            }
            // The streams end when the program does, so this wakes at once in the usual case.
            self.stdout.wait(Duration::from_millis(2));
        };
        let wall = self.started.elapsed();
        // A child that it left behind may still hold the pipes.
        self.kill();
        self.join_streams();
        Ok(Output {
            command: self.name.clone(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            code,
            wall,
        })
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.try_wait()?.is_some())
    }

    /// Asks it to end by SIGTERM.
    pub fn terminate(&mut self) {
        if let Ok(None) = self.try_wait() {
            signal(self.child.id(), Signal::SIGTERM);
        }
    }

    /// Waits up to `patience` for its end, ends it otherwise, and gives what it said.
    #[must_use]
    pub fn end(mut self, patience: Duration) -> Output {
        self.close_stdin();
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline && matches!(self.try_wait(), Ok(None)) {
            self.stdout.wait(Duration::from_millis(2));
        }
        self.stop(Duration::from_secs(1));
        let wall = self.started.elapsed();
        self.join_streams();
        Output {
            command: self.name.clone(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            code: self.ended.map_or(-1, exit_code),
            wall,
        }
    }

    /// Asks it to end by SIGTERM and waits up to `limit`; whatever is left of its group is killed then.
    pub fn stop(&mut self, limit: Duration) {
        if let Ok(None) = self.try_wait() {
            signal(self.child.id(), Signal::SIGTERM);
            let deadline = Instant::now() + limit;
            while Instant::now() < deadline && matches!(self.try_wait(), Ok(None)) {
                self.stdout.wait(Duration::from_millis(2));
            }
        }
        self.kill();
    }

    /// Kills the whole group and waits for the program's end.
    pub fn kill(&mut self) {
        if live().groups.remove(&self.child.id()).is_some() {
            signal(self.child.id(), Signal::SIGKILL);
        }
        if self.ended.is_none() {
            self.ended = self.child.wait().ok();
        }
    }

    fn join_streams(&self) {
        let limit = Instant::now() + Duration::from_secs(2);
        for stream in [&self.stdout, &self.stderr] {
            while !stream.ended() && Instant::now() < limit {
                stream.wait(Duration::from_millis(20));
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs `command` to its end, at most for `limit`.
///
/// # Errors
/// When it can't be started, or does not end in time.
pub fn run(command: &Command, limit: Duration) -> Result<Output> {
    Running::start(command)?.finish(limit, || Ok(()))
}

/// Runs `command` on this process's own stdin, stdout and stderr, in its own process group so that a terminal's Ctrl-C reaches it, and returns its exit
/// code (128 + the number of the signal that ended it).
///
/// # Errors
/// When it can't be started.
pub fn run_in_foreground(command: &Command) -> Result<i32> {
    let name = command_line(command);
    let mut child = spawn(guarded(command)?).with_context(|| format!("starting {name}"))?;
    live().foreground.insert(child.id(), ());
    let ended = child.wait();
    live().foreground.remove(&child.id());
    ended
        .map(exit_code)
        .with_context(|| format!("waiting for {name}"))
}

/// A folder that is removed when dropped, and by [`stop_all_and_exit`].
#[derive(Debug)]
pub struct Folder {
    inner: tempfile::TempDir,
}

impl Folder {
    /// Makes a folder in the system's place for temporary files.
    ///
    /// # Errors
    /// When that is not possible.
    pub fn new() -> Result<Self> {
        let inner = tempfile::Builder::new()
            .prefix("rdma-lab-")
            .tempdir()
            .context("making a temporary folder")?;
        live().folders.insert(inner.path().to_path_buf(), ());
        Ok(Self { inner })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.inner.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        live().folders.remove(self.inner.path());
    }
}

/// Kills every program, removes every folder of this process and ends it: for the thread that waits for signals.
pub fn stop_all_and_exit(code: i32) -> ! {
    // Kept until the end, so that no other thread starts or tidies up anything, or exits with another code, meanwhile.
    let mut live = live();
    // A command in the foreground shares our group, which may be the caller's too: only what descends from it is killed.
    for id in std::mem::take(&mut live.foreground).into_keys() {
        kill_tree(id);
    }
    let groups: Vec<u32> = std::mem::take(&mut live.groups).into_keys().collect();
    for &group in &groups {
        signal(group, Signal::SIGKILL);
    }
    // What is dying may still write into its folder.
    let deadline = Instant::now() + Duration::from_secs(2);
    while groups.iter().any(|group| is_running(&group.to_string())) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(2));
    }
    for folder in std::mem::take(&mut live.folders).into_keys() {
        // A folder that is left is harmless, and there is nobody to tell.
        let _ = std::fs::remove_dir_all(&folder);
    }
    #[expect(clippy::exit, reason = "this is what it is for")]
    std::process::exit(code)
}

/// `command` behind `setpriv`, which asks the kernel to kill it when this process dies, and `env`,
/// so that a preload reaches only the program itself.
pub(crate) fn guarded(command: &Command) -> Result<Command> {
    let mut guarded = Command::new(peer::need("setpriv")?);
    guarded.args(["--pdeathsig", "KILL", "--", "env"]);
    // `env` takes its options before the assignments.
    for (key, _) in command.get_envs().filter(|(_, value)| value.is_none()) {
        guarded.arg("-u").arg(key);
    }
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            let mut pair = OsString::from(key);
            pair.push("=");
            pair.push(value);
            guarded.arg(pair);
        }
    }
    guarded.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        guarded.current_dir(folder);
    }
    Ok(guarded)
}

/// Spawns from a thread that lives as long as this process: the kernel's parent-death signal is
/// about the *thread* that started the child, and a test's thread ends before a lab that several
/// tests share.
pub(crate) fn spawn(command: Command) -> std::io::Result<Child> {
    type Request = (Command, mpsc::Sender<std::io::Result<Child>>);
    static SPAWNER: OnceLock<mpsc::Sender<Request>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| {
        let (sender, receiver) = mpsc::channel::<Request>();
        std::thread::spawn(move || {
            for (mut command, answer) in receiver {
                // A requester that went away drops the child's handle; the kernel still kills it at our end.
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let gone = || std::io::Error::other("the thread that starts programs is gone");
    let (answer, child) = mpsc::channel();
    spawner.send((command, answer)).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

/// What [`stop_all_and_exit`] has to stop.
#[derive(Debug, Default)]
struct Live {
    groups: BTreeMap<u32, ()>,
    foreground: BTreeMap<u32, ()>,
    folders: BTreeMap<PathBuf, ()>,
}

fn live() -> MutexGuard<'static, Live> {
    static LIVE: Mutex<Live> = Mutex::new(Live {
        groups: BTreeMap::new(),
        foreground: BTreeMap::new(),
        folders: BTreeMap::new(),
    });
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn exit_code(status: ExitStatus) -> i32 {
    status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// A command line as one would type it, environment included.
pub(crate) fn command_line(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_else(|| command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
