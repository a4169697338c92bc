//! `cargo xtask demo`: what the toolbox does, on images and fabrics that it builds itself.
//!
//! A demo is a list of steps. A step says what it does, runs a program of the workspace, checks that
//! the answer is the expected one, and says what to try next.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use mlx_fw::archive::mfa2;
use mlx_fw::image::SectionType;
use mlx_fw::image::build::{Builder, filler};

use crate::workspace::{Build, Workspace};

/// Shows the toolbox at work, without hardware, root or any other package.
#[derive(clap::Args)]
pub struct Args {
    /// Use optimised binaries (they take longer to build).
    #[arg(long)]
    release: bool,
    /// Build the tools together with the tests: quick where those are built.
    #[arg(long, conflicts_with = "release")]
    with_tests: bool,
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

/// The steps, in order. They run in one folder, so that a later one can use an earlier one's files.
fn steps() -> Vec<Step> {
    vec![
        Step::new(
            "What is this firmware image? (We built it: the layout is FS4's, the code is filler.)",
            &["mlx-fw", "query", "image.bin", "--full"],
        )
        .holds(PSID)
        .next("the same of an image of yours, or of an adapter's flash that mstflint has read"),
        Step::new(
            "Is it whole? Every part is checked.",
            &["mlx-fw", "verify", "image.bin"],
        ),
        Step::new(
            "And this one, of which one bit of the main code has flipped?",
            &["mlx-fw", "verify", "damaged.bin"],
        )
        .ends_with(1)
        .holds("MAIN_CODE")
        .next("mlx-fw verify --help says which exit code means what, for scripts"),
        Step::new(
            "Which boards is this archive for?",
            &["mlx-fw", "list", "boards.mfa2"],
        )
        .holds(PSID),
        Step::new(
            "Take one board's image out of it.",
            &[
                "mlx-fw",
                "extract",
                "boards.mfa2",
                "--psid",
                PSID,
                "--to",
                "board.bin",
            ],
        ),
        Step::new(
            "What is it, as JSON for a program? (Its schema is in docs/schemas.)",
            &["mlx-fw", "query", "board.bin", "--json"],
        )
        .holds("\"mlx-fw/query/1\"")
        .next("mlx-fw query board.bin --json | jq .data"),
        Step::new(
            "Discover a small fabric, simulated: every node and every cable.",
            &["ib-diag", "topology", "--sim", "fat-tree:k=4,levels=2"],
        )
        .holds("Switches")
        .lines(36)
        .next("--device mlx5_0 instead of --sim, on a machine with an adapter"),
        Step::new(
            "And one of 648 hosts. (The time that this took says nothing of a real fabric.)",
            &["ib-diag", "topology", "--sim", "fat-tree:648"],
        )
        .holds("648")
        .lines(6),
        Step::new(
            "The same program in the words of ibnetdiscover, for scripts that read those.",
            &[
                "ib-diag",
                "topology",
                "--sim",
                "ring:switches=3",
                "--compat",
                "ibnetdiscover",
            ],
        )
        .holds("switchguid=")
        .next(
            "cargo xtask lab ibsim --opensm -- ibnetdiscover: the real one, on a simulated fabric",
        ),
        Step::new(
            "Verbs without an adapter: messages, a READ and a WRITE over shared memory, every byte compared.",
            &["rverbs", "ping", "--loopback", "--device", "shm0", "-C", "1000"],
        )
        .holds("soft-shm: round trip min"),
        Step::new(
            "The same over RoCEv2 in user space. (Neither figure says anything of an adapter.)",
            &[
                "rverbs", "ping", "--loopback", "--device", "roce_lo", "-C", "100", "-S", "4096",
            ],
        )
        .holds("soft-roce: round trip min")
        .next("rverbs ping -s on one host, rverbs ping -c -a ADDRESS (or rping) on another"),
        Step::new(
            "How long a message takes, as perftest measures it, over shared memory.",
            &[
                "rperf", "--json", "send", "lat", "--loopback", "--provider", "shm", "-n", "20000", "-o",
                "latency.json",
            ],
        ),
        Step::new(
            "How much is written in a second, by size.",
            &[
                "rperf", "--json", "write", "bw", "--loopback", "--provider", "shm", "-a", "-n", "500", "-o",
                "bandwidth.json",
            ],
        ),
        Step::new(
            "Both as a page with plots.",
            &["rperf", "report", "latency.json", "bandwidth.json", "-o", "report.html"],
        ),
        Step::new(
            "And as a table. (It says on every line that it is software.)",
            &["rperf", "report", "latency.json", "bandwidth.json", "--format", "md"],
        )
        .holds("software")
        .lines(40)
        .next("rperf send lat on one host, rperf send lat HOST (or ib_send_lat) on another"),
    ]
}

/// The board of the demo's images: a name that no real board has.
const PSID: &str = "RTB0000000001";

/// Builds what the steps read.
fn prepare(folder: &Path) -> Result<()> {
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.join(name), bytes).with_context(|| format!("cannot write {name}"))
    };
    let code = filler(7, 0x8000);
    let builder = Builder::fs4().psid(PSID).no_sections();
    let builder = builder.section(SectionType::MAIN_CODE, code.clone());
    let mut image = builder.clone().flash(1 << 22).build()?;
    write("image.bin", &image)?;
    let at = image
        .windows(64)
        .position(|bytes| Some(bytes) == code.get(..64));
    let byte = at
        .and_then(|at| image.get_mut(at + 32))
        .context("the image lacks its code")?;
    *byte ^= 1;
    write("damaged.bin", &image)?;
    let other = Builder::fs3().psid("RTB0000000002");
    let archive = mfa2::Builder::new()
        .image(PSID, builder.component()?)
        .image("RTB0000000002", other.component()?);
    write("boards.mfa2", &archive.build()?)
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    println!("Building the tools …");
    let build = match args.release {
        true => Build::Release,
        false => Build::dev(args.with_tests),
    };
    let bin = workspace.build_tools(build)?;
    let folder = fresh(&workspace.target.join("demo"))?;
    let begin = Instant::now();
    prepare(&folder)?;
    let steps = steps();
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
