//! `cargo xtask demo`: what the toolbox does, on images and fabrics that it builds itself.
//!
//! A demo is a list of steps. A step says what it does, runs a program of the workspace, checks that
//! the answer is the expected one, and says what to try next.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Shows the toolbox at work, without hardware, root or any other package.
#[derive(clap::Args)]
pub struct Args {
    /// Use optimised binaries (they take longer to build).
    #[arg(long)]
    release: bool,
}

/// One step of a demo.
pub struct Step {
    /// What it does, in a sentence.
    does: &'static str,
    /// The command line, with a tool of the workspace first.
    words: Vec<String>,
    /// The exit code that it must end with.
    code: i32,
    /// Phrases that its answer must hold.
    holds: Vec<&'static str>,
    /// The most lines of the answer to show.
    lines: usize,
    /// What to try next.
    next: &'static str,
}

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "for the steps that each tool adds")
)]
impl Step {
    /// A step that runs `words` and must succeed.
    pub fn new(does: &'static str, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            does,
            words,
            code: 0,
            holds: Vec::new(),
            lines: 24,
            next: "",
        }
    }

    /// Its answer must hold this.
    pub fn holds(mut self, phrase: &'static str) -> Self {
        self.holds.push(phrase);
        self
    }

    /// It must end with this code.
    pub fn ends_with(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// Shows at most so many lines of the answer.
    pub fn lines(mut self, lines: usize) -> Self {
        self.lines = lines;
        self
    }

    /// What to try next.
    pub fn next(mut self, next: &'static str) -> Self {
        self.next = next;
        self
    }

    /// Runs it in `folder`, with the tools of `bin`.
    fn run(&self, number: usize, bin: &Path, folder: &Path) -> Result<()> {
        println!("\n{number}. {}\n\n   $ {}", self.does, self.words.join(" "));
        let (tool, args) = self
            .words
            .split_first()
            .context("a step without a command")?;
        let output = Command::new(bin.join(tool))
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("cannot run {tool}"))?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let told = String::from_utf8_lossy(&output.stderr);
        let count = answer.lines().count();
        for line in answer.lines().take(self.lines) {
            println!("   {line}");
        }
        if count > self.lines {
            println!("   … and {} more lines", count - self.lines);
        }
        for line in told.lines() {
            println!("   {line}");
        }
        self.judge(output.status.code(), &format!("{answer}{told}"))?;
        if !self.next.is_empty() {
            println!("\n   Next: {}", self.next);
        }
        Ok(())
    }

    /// Whether the answer is the expected one.
    fn judge(&self, code: Option<i32>, answer: &str) -> Result<()> {
        if code != Some(self.code) {
            let ended = code.map_or_else(|| "a signal".to_owned(), |code| format!("code {code}"));
            bail!(
                "`{}` ended with {ended}, not {}",
                self.words.join(" "),
                self.code
            );
        }
        if let Some(phrase) = self.holds.iter().find(|phrase| !answer.contains(**phrase)) {
            bail!("`{}` did not say \"{phrase}\"", self.words.join(" "));
        }
        Ok(())
    }
}

/// The steps, in order. They run in one empty folder, so that a later one can use an earlier one's
/// files.
fn steps() -> Vec<Step> {
    Vec::new()
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    println!("Building the tools …");
    let bin = workspace.build_tools(args.release)?;
    let folder = fresh(&workspace.target.join("demo"))?;
    let begin = Instant::now();
    let steps = steps();
    if steps.is_empty() {
        bail!("there is nothing to show yet");
    }
    for (number, step) in (1..).zip(&steps) {
        step.run(number, &bin, &folder)?;
    }
    println!(
        "\n{} steps in {:.1} s. Their files are in {}; the tools in {}.",
        steps.len(),
        begin.elapsed().as_secs_f64(),
        folder.display(),
        bin.display()
    );
    Ok(())
}

fn fresh(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_fails_on_another_code_or_answer() {
        let step = Step::new("", &["mlx-fw", "query"])
            .holds("PSID")
            .lines(3)
            .next("more");
        assert!(step.judge(Some(0), "PSID: X").is_ok());
        let refusal = Step::new("", &["mlx-fw"]).ends_with(7);
        assert!(refusal.judge(Some(7), "").is_ok() && refusal.judge(Some(0), "").is_err());
        let error = step.judge(Some(3), "PSID: X").unwrap_err().to_string();
        assert_eq!(error, "`mlx-fw query` ended with code 3, not 0");
        assert!(
            step.judge(Some(0), "nothing")
                .unwrap_err()
                .to_string()
                .contains("PSID")
        );
        assert!(
            step.judge(None, "PSID")
                .unwrap_err()
                .to_string()
                .contains("signal")
        );
    }
}
