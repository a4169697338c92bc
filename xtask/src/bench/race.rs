//! Us and a peer on the same input, in turns.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, shown};

/// A race: a name, what it compares, and what runs its heats.
pub struct Race {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is compared with what, and on what.
    pub what: &'static str,
    /// Prepares the input and runs the heats.
    pub heats: fn(&Workspace, u32) -> Result<Vec<Heat>>,
}

/// One input's figures.
pub struct Heat {
    /// The input.
    pub input: String,
    /// Our best time.
    pub ours: Duration,
    /// The peer's best time.
    pub peer: Duration,
    /// The largest ratio of ours to the peer's that we want to see.
    pub goal: f64,
}

impl Race {
    /// Runs every heat and prints the table.
    pub fn run(&self, workspace: &Workspace, rounds: u32) -> Result<()> {
        println!("{}: {}", self.name, self.what);
        let heats = (self.heats)(workspace, rounds)?;
        println!(
            "{:<32} {:>10} {:>10} {:>7}  goal",
            "input", "ours", "peer", "ratio"
        );
        for heat in &heats {
            println!("{}", heat.line());
        }
        println!("best of {rounds}, in turns, on this machine");
        Ok(())
    }
}

impl Heat {
    /// Runs both in turns, so that whatever else the machine does falls on both.
    pub fn run(
        input: impl Into<String>,
        goal: f64,
        rounds: u32,
        ours: &mut dyn FnMut() -> Result<Command>,
        peer: &mut dyn FnMut() -> Result<Command>,
    ) -> Result<Self> {
        let (mut best_ours, mut best_peer) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds.max(1) {
            best_ours = best_ours.min(timed(ours()?)?);
            best_peer = best_peer.min(timed(peer()?)?);
        }
        Ok(Self {
            input: input.into(),
            ours: best_ours,
            peer: best_peer,
            goal,
        })
    }

    /// Ours in units of the peer's.
    fn ratio(&self) -> f64 {
        self.ours.as_secs_f64() / self.peer.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    fn line(&self) -> String {
        let met = if self.ratio() <= self.goal {
            "met"
        } else {
            "MISSED"
        };
        format!(
            "{:<32} {:>10} {:>10} {:>7.2}  at most {:.2}: {met}",
            self.input,
            milliseconds(self.ours),
            milliseconds(self.peer),
            self.ratio(),
            self.goal
        )
    }
}

/// How long a command takes from start to end; one that fails has no time.
fn timed(mut command: Command) -> Result<Duration> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begin = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", shown(&command)))?;
    let took = begin.elapsed();
    if !status.success() {
        bail!("{} failed ({status}), so it has no time", shown(&command));
    }
    Ok(took)
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heat_says_its_ratio_and_whether_the_goal_is_met() {
        let mut heat = Heat {
            input: "fat tree of 648".into(),
            ours: Duration::from_millis(20),
            peer: Duration::from_millis(80),
            goal: 0.5,
        };
        assert!(
            heat.line().ends_with("0.25  at most 0.50: met"),
            "{}",
            heat.line()
        );
        heat.ours = Duration::from_millis(60);
        assert!(
            heat.line().ends_with("0.75  at most 0.50: MISSED"),
            "{}",
            heat.line()
        );
    }

    #[test]
    fn a_command_that_fails_has_no_time() {
        assert!(timed(Command::new("true")).is_ok());
        assert!(timed(Command::new("false")).is_err());
    }
}
