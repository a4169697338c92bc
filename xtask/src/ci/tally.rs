//! What the tests did, read from what `cargo test` prints.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Counts over all test binaries.
#[derive(Default)]
pub struct Tally {
    passed: usize,
    failed: Vec<String>,
    /// Reason, and the tests that gave it.
    skipped: BTreeMap<String, BTreeSet<String>>,
    binaries: usize,
    /// Tests that passed by saying `SKIPPED`: the runner counts them as passed.
    skipped_in_words: usize,
    ignored: usize,
    output: Vec<String>,
}

impl Tally {
    /// Something that reads the output of one `cargo test`.
    pub fn binary_observer(&mut self) -> Observer<'_> {
        Observer {
            tally: self,
            package: String::new(),
            binary: String::new(),
            open: false,
            failed: 0,
            section: None,
            in_failures: false,
            skipped: BTreeSet::new(),
        }
    }

    /// Whether a test has failed.
    pub fn has_failures(&self) -> bool {
        !self.failed.is_empty()
    }

    fn skipped_count(&self) -> usize {
        self.skipped_in_words + self.ignored
    }

    fn passed_count(&self) -> usize {
        self.passed.saturating_sub(self.skipped_in_words)
    }

    /// How many ran, what failed with its output, and what was skipped and why.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        if self.binaries == 0 {
            return text;
        }
        let ran = self.passed_count() + self.failed.len();
        let _ = writeln!(
            text,
            "\ntests: {ran} ran in {} binaries: {} passed, {} failed, {} skipped",
            self.binaries,
            self.passed_count(),
            self.failed.len(),
            self.skipped_count()
        );
        for name in &self.failed {
            let _ = writeln!(text, "  failed: {name}");
        }
        for (reason, tests) in &self.skipped {
            let names: Vec<&str> = tests.iter().map(String::as_str).collect();
            let _ = writeln!(text, "  skipped: {} ({})", names.join(", "), reason);
        }
        if !self.output.is_empty() {
            let _ = writeln!(text, "\nwhat the failed tests printed:");
            for line in &self.output {
                let _ = writeln!(text, "{line}");
            }
        }
        text
    }

    /// The last line of the run.
    pub fn closing_line(&self) -> String {
        format!(
            "{} passed, {} failed, {} skipped",
            self.passed_count(),
            self.failed.len(),
            self.skipped_count()
        )
    }
}

/// Reads one `cargo test`.
pub struct Observer<'a> {
    tally: &'a mut Tally,
    /// The crate whose unit tests ran last: its integration tests follow it.
    package: String,
    /// The crate and source of the binary that runs now.
    binary: String,
    /// It has begun and not yet told its result.
    open: bool,
    /// How many of its tests are known to have failed.
    failed: usize,
    /// The test whose output is being shown.
    section: Option<String>,
    in_failures: bool,
    /// The tests of this binary that said `SKIPPED`.
    skipped: BTreeSet<String>,
}

impl Observer<'_> {
    /// Takes a line; returns what to show of it.
    pub fn line(&mut self, line: &str) -> Option<String> {
        let text = line.trim();
        if let Some(begun) = begun(text) {
            let died = self.died();
            if begun.names_package {
                self.package = begun.stem.to_owned();
            }
            self.binary = format!("{} {}", self.package, begun.source);
            self.open = true;
            self.failed = 0;
            self.in_failures = false;
            self.section = None;
            self.skipped.clear();
            self.tally.binaries += 1;
            return died;
        }
        if let Some(result) = text.strip_prefix("test result: ") {
            return self.result(result);
        }
        // First, since it may come in the middle of any other line: it is written past the runner.
        if let Some((_, told)) = text.split_once("SKIPPED: ") {
            return self.skip(told);
        }
        if let Some(test) = text.strip_prefix("test ")
            && let Some((name, verdict)) = test.split_once(" ... ")
        {
            return self.verdict(name, verdict);
        }
        if let Some(name) = text
            .strip_prefix("---- ")
            .and_then(|t| t.strip_suffix(" ----"))
        {
            let name = name.strip_suffix(" stdout").unwrap_or(name);
            self.section = Some(name.to_owned());
            if self.in_failures {
                self.tally
                    .output
                    .push(format!("---- {} {name} ----", self.binary));
            }
            return None;
        }
        match text {
            "failures:" => {
                // It comes twice: the sections, then the names.
                self.in_failures = true;
                self.section = None;
                return None;
            }
            "successes:" => {
                self.in_failures = false;
                self.section = None;
                return None;
            }
            _ => {}
        }
        if self.in_failures && self.section.is_some() {
            self.tally.output.push(format!("  {line}"));
        }
        None
    }

    /// The command has ended.
    pub fn finish(mut self, failed: bool) {
        if failed && let Some(text) = self.died() {
            println!("    {text}");
        }
    }

    fn verdict(&mut self, name: &str, verdict: &str) -> Option<String> {
        let full = format!("{} {name}", self.binary);
        if verdict.starts_with("FAILED") {
            self.failed += 1;
            self.tally.failed.push(full.clone());
            return Some(format!("FAILED: {full}"));
        }
        if let Some(reason) = verdict.strip_prefix("ignored") {
            let reason = reason.trim_start_matches([',', ' ']);
            let reason = if reason.is_empty() {
                "ignored, no reason given"
            } else {
                reason
            };
            self.tally.ignored += 1;
            self.tally
                .skipped
                .entry(reason.to_owned())
                .or_default()
                .insert(full.clone());
            return Some(format!("SKIPPED: {full}: {reason}"));
        }
        None
    }

    /// A test said `SKIPPED: <test>: <why>`; it may say so several times, for several reasons.
    fn skip(&mut self, told: &str) -> Option<String> {
        let (test, reason) = told.split_once(": ").unwrap_or((told, "no reason given"));
        let name = self.section.clone().unwrap_or_else(|| test.to_owned());
        if self.skipped.insert(name) {
            self.tally.skipped_in_words += 1;
        }
        let full = format!("{} {test}", self.binary);
        let new = self
            .tally
            .skipped
            .entry(reason.to_owned())
            .or_default()
            .insert(full.clone());
        new.then(|| format!("SKIPPED: {full}: {reason}"))
    }

    fn result(&mut self, result: &str) -> Option<String> {
        let count = |word: &str| {
            let part = result
                .split([';', '.'])
                .find(|part| part.trim().ends_with(word));
            part.and_then(|part| part.trim().split(' ').next()?.parse::<usize>().ok())
                .unwrap_or(0)
        };
        let (passed, failed) = (count("passed"), count("failed"));
        self.tally.passed += passed;
        self.open = false;
        self.in_failures = false;
        self.section = None;
        // What a test prints past the runner can break the line with its verdict.
        for _ in self.failed..failed {
            self.tally
                .failed
                .push(format!("{} (its name was lost in the output)", self.binary));
        }
        if passed + failed == 0 {
            return None;
        }
        let verdict = if failed > 0 {
            format!(", {failed} FAILED")
        } else {
            String::new()
        };
        Some(format!("{:<28} {passed} passed{verdict}", self.binary))
    }

    /// A binary that begins no result has crashed: that counts as a failed test.
    fn died(&mut self) -> Option<String> {
        if !self.open {
            return None;
        }
        self.open = false;
        let name = format!("{} (ended without a result)", self.binary);
        self.tally.failed.push(name.clone());
        Some(format!("FAILED: {name}"))
    }
}

/// A test binary that Cargo says it now runs.
struct Begun<'a> {
    stem: &'a str,
    source: &'a str,
    /// Whether the file is called like the crate, as those of unit tests are, but for a crate's
    /// further binaries.
    names_package: bool,
}

/// `Running unittests src/lib.rs (target/debug/deps/rdma_wire-0123456789abcdef)`,
/// `Running tests/it/main.rs (…)`, `Doc-tests rdma_wire`.
fn begun(text: &str) -> Option<Begun<'_>> {
    if let Some(stem) = text.strip_prefix("Doc-tests ") {
        return Some(Begun {
            stem,
            source: "doc",
            names_package: true,
        });
    }
    let (source, path) = text.strip_prefix("Running ")?.split_once(" (")?;
    let stem = path.trim_end_matches(')').rsplit('/').next()?;
    let stem = stem.rsplit_once('-').map_or(stem, |(name, _)| name);
    let unit = source.strip_prefix("unittests ");
    Some(Begun {
        stem,
        source: unit.unwrap_or(source),
        names_package: unit.is_some_and(|source| !source.contains("/bin/")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "
   Compiling rdma-wire v0.1.0
     Running unittests src/lib.rs (target/debug/deps/rdma_wire-3dbf0e43ba0e6ae4)

running 3 tests
test be::tests::order ... ok
test big ... ignored, takes an hour
test files ... ok
test same ... FAILED

successes:

---- files stdout ----
SKIPPED: files: no such folder: ../shared
SKIPPED: files: no such folder: ../shared/b

successes:
    be::tests::order
    files

failures:

---- same stdout ----
thread 'same' panicked at src/lib.rs:1:1:
left is not right

failures:
    same

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/it/main.rs (target/debug/deps/it-3dbf0e43ba0e6ae4)
running 1 test
error: test failed, to rerun pass `-p rdma-wire --test it`
   Doc-tests rdma_wire
running 1 test
test src/lib.rs - (line 6) ... ok
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn read(run: &str) -> (Tally, Vec<String>) {
        let mut tally = Tally::default();
        let mut observer = tally.binary_observer();
        let shown = run.lines().filter_map(|line| observer.line(line)).collect();
        observer.finish(true);
        (tally, shown)
    }

    #[test]
    fn every_test_counts_once() {
        let (tally, shown) = read(RUN);
        // Two ran well, of which one is `files`, which skipped itself; the doctest is the second.
        assert_eq!(tally.closing_line(), "2 passed, 2 failed, 2 skipped");
        assert_eq!(
            shown,
            [
                "SKIPPED: rdma_wire src/lib.rs big: takes an hour",
                "FAILED: rdma_wire src/lib.rs same",
                "SKIPPED: rdma_wire src/lib.rs files: no such folder: ../shared",
                "SKIPPED: rdma_wire src/lib.rs files: no such folder: ../shared/b",
                "rdma_wire src/lib.rs         2 passed, 1 FAILED",
                "FAILED: rdma_wire tests/it/main.rs (ended without a result)",
                "rdma_wire doc                1 passed",
            ]
        );
    }

    #[test]
    fn the_summary_names_reasons_and_shows_what_failed() {
        let summary = read(RUN).0.summary();
        assert!(summary.contains("tests: 4 ran in 3 binaries: 2 passed, 2 failed, 2 skipped"));
        assert!(
            summary.contains("failed: rdma_wire src/lib.rs same"),
            "{summary}"
        );
        assert!(summary.contains("left is not right"), "{summary}");
        assert!(summary.contains("big (takes an hour)"), "{summary}");
        assert!(!summary.contains("ran in 0"), "{summary}");
    }

    #[test]
    fn a_run_that_compiles_nothing_counts_nothing() {
        let (tally, _) = read("error[E0425]: cannot find value\nerror: could not compile\n");
        assert_eq!(tally.closing_line(), "0 passed, 0 failed, 0 skipped");
        assert_eq!(tally.summary(), "");
    }
}
