//! Running one command of a step: its output to the log, line by line past an observer.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace::{self, shown};

/// How long a step may be silent on the screen before it is said that it still runs.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// A command of a step.
pub struct Invocation {
    program: Program,
    args: Vec<String>,
    envs: Vec<(&'static str, String)>,
    limit: Duration,
}

#[derive(Clone, Copy)]
enum Program {
    Cargo,
    Xtask,
}

impl Invocation {
    /// `cargo ARGS`.
    pub fn cargo(args: &[&str]) -> Self {
        Self::new(Program::Cargo, args)
    }

    /// `cargo xtask ARGS`.
    pub fn xtask(args: &[&str]) -> Self {
        Self::new(Program::Xtask, args)
    }

    fn new(program: Program, args: &[&str]) -> Self {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Self {
            program,
            args,
            envs: Vec::new(),
            limit: Duration::from_secs(20 * 60),
        }
    }

    /// With this variable in the environment.
    pub fn env(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.envs.push((key, value.into()));
        self
    }

    /// Ended after this many minutes (20 unless said).
    pub fn minutes(mut self, minutes: u64) -> Self {
        self.limit = Duration::from_secs(minutes * 60);
        self
    }

    /// As one would type it.
    pub fn shown(&self) -> String {
        shown(&self.command())
    }

    fn command(&self) -> Command {
        let mut command = match self.program {
            Program::Cargo => workspace::cargo(),
            Program::Xtask => workspace::xtask(),
        };
        command
            .args(&self.args)
            .envs(self.envs.iter().map(|(key, value)| (key, value)));
        command
    }
}

/// The log of a step, in a file and in memory.
pub struct Log {
    file: BufWriter<File>,
    lines: Vec<String>,
}

impl Log {
    /// Makes the file anew.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self {
            file: BufWriter::new(file),
            lines: Vec::new(),
        })
    }

    /// How many lines it has.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// At most `count` of the last lines, none from before line `from`.
    pub fn last(&self, from: usize, count: usize) -> Vec<String> {
        let from = from.max(self.lines.len().saturating_sub(count));
        self.lines.get(from..).unwrap_or_default().to_vec()
    }

    /// As [`Log::last`], from the last line on that begins so, if one does.
    pub fn last_from(&self, from: usize, begin: &str, count: usize) -> Vec<String> {
        let lines = self.last(from, count);
        let at = lines
            .iter()
            .rposition(|line| line.starts_with(begin))
            .unwrap_or(0);
        lines.get(at..).unwrap_or_default().to_vec()
    }

    fn push(&mut self, line: String) {
        // A full disk must not hide what the step has to say.
        let _ = writeln!(self.file, "{line}");
        self.lines.push(line);
    }

    /// Runs the command with both its outputs in the log, in the order in which they were written,
    /// and prints what `observe` makes of a line. Returns what went wrong, if something did.
    pub fn run(
        &mut self,
        invocation: &Invocation,
        observe: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Option<String> {
        self.push(format!("$ {}", invocation.shown()));
        let result = self.run_to_end(invocation, observe);
        let _ = self.file.flush();
        match result {
            Ok(error) => error,
            Err(error) => {
                self.push(format!("error: {error:#}"));
                Some(format!("{error:#}"))
            }
        }
    }

    fn run_to_end(
        &mut self,
        invocation: &Invocation,
        observe: &mut dyn FnMut(&str) -> Option<String>,
    ) -> Result<Option<String>> {
        let (reader, writer) = std::io::pipe().context("no pipe")?;
        let mut command = invocation.command();
        command
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_TERM_PROGRESS_WHEN", "never")
            .stdin(Stdio::null())
            .stdout(writer.try_clone().context("no pipe")?)
            .stderr(writer);
        let mut child = command.spawn().context("cannot be started")?;
        // The command holds the write ends; they must go, or the pipe never ends.
        drop(command);

        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let mut reader = BufReader::new(reader);
            let mut line = Vec::new();
            while matches!(reader.read_until(b'\n', &mut line), Ok(n) if n > 0) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                line.clear();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });

        let begin = Instant::now();
        let mut spoken = Instant::now();
        loop {
            match receiver.recv_timeout(Duration::from_millis(200)) {
                Ok(line) => {
                    if let Some(text) = observe(&line) {
                        println!("    {text}");
                        spoken = Instant::now();
                    }
                    self.push(line);
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    // A daemon that the command left behind may hold the pipe; the command's own
                    // end is what counts.
                    if child.try_wait().context("cannot wait")?.is_some() {
                        break;
                    }
                }
            }
            if begin.elapsed() > invocation.limit {
                let doomed = descendants(child.id());
                let _ = child.kill();
                kill(&doomed);
                let _ = child.wait();
                let minutes = invocation.limit.as_secs() / 60;
                return Ok(Some(format!(
                    "not done after {minutes} minutes, so it was ended"
                )));
            }
            if spoken.elapsed() > HEARTBEAT {
                println!("    … {} s", begin.elapsed().as_secs());
                spoken = Instant::now();
            }
        }
        while let Ok(line) = receiver.try_recv() {
            if let Some(text) = observe(&line) {
                println!("    {text}");
            }
            self.push(line);
        }
        let status = child.wait().context("cannot wait")?;
        Ok((!status.success()).then(|| status.to_string()))
    }
}

/// The processes that `root` started, and those that they started.
fn descendants(root: u32) -> Vec<u32> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u32>().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name stands in parentheses and may hold anything; state and parent follow it.
        let parent = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        if let Some(parent) = parent {
            parents.push((pid, parent));
        }
    }
    let mut found = HashSet::from([root]);
    loop {
        let before = found.len();
        for (pid, parent) in &parents {
            if found.contains(parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            break;
        }
    }
    found.remove(&root);
    found.into_iter().collect()
}

fn kill(pids: &[u32]) {
    if !pids.is_empty() {
        let _ = Command::new("kill")
            .arg("-KILL")
            .args(pids.iter().map(u32::to_string))
            .status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_started_process_is_found() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let found = descendants(std::process::id());
        kill(&[child.id()]);
        let status = child.wait().unwrap();
        assert!(found.contains(&child.id()));
        assert!(!status.success());
    }

    #[test]
    fn the_last_lines_stay_within_the_command() {
        let folder = std::env::temp_dir().join(format!("xtask-log-{}", std::process::id()));
        let mut log = Log::create(&folder).unwrap();
        for n in 0..10 {
            log.push(n.to_string());
        }
        assert_eq!(log.last(8, 40), ["8", "9"]);
        assert_eq!(log.last(0, 3), ["7", "8", "9"]);
        assert_eq!(log.last_from(0, "8", 5), ["8", "9"]);
        assert_eq!(log.last_from(0, "x", 2), ["8", "9"]);
        fs::remove_file(folder).unwrap();
    }
}
