//! A small tool, run as a process, shows what every tool does.

#![expect(clippy::unwrap_used, reason = "a test may panic, and says where")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rdma_cli::{Exit, Explain, Failure, Table, Text, printable, read_file, units, write_file};

/// The example `tool`, which cargo builds beside the tests.
fn tool() -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples/tool");
    assert!(
        path.exists(),
        "{} is not built; run the tests by `cargo test`",
        path.display()
    );
    let mut command = Command::new(path);
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn run(args: &[&str]) -> Output {
    tool().args(args).stdin(Stdio::null()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

#[test]
fn text_is_for_people_and_json_for_machines() {
    let text = run(&["sum", "2", "3"]);
    assert_eq!(
        (code(&text), stdout(&text).as_str()),
        (0, "sum                   5\n")
    );
    let json = run(&["--json", "sum", "2", "3"]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        value,
        serde_json::json!({"schema": "tool/sum/1", "data": {"sum": 5}})
    );
    assert!(json.stderr.is_empty());
}

#[test]
fn a_failure_says_what_why_and_what_to_do() {
    let output = run(&["fail"]);
    assert_eq!(code(&output), 6);
    assert_eq!(
        stderr(&output),
        "error: asking mlx5_0\ncaused by: the device did not answer\ncaused by: timer ran out\nhint: reset it\n"
    );
    assert!(output.stdout.is_empty());

    let output = run(&["-j", "fail"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["schema"], "rdma-cli/error/1");
    assert_eq!(value["error"]["code"], "silent");
    assert_eq!(value["error"]["exit"], 6);
    assert_eq!(value["error"]["hint"], "reset it");
}

#[test]
fn wrong_usage_is_2_and_help_is_0() {
    let output = run(&["sum", "many"]);
    assert_eq!(code(&output), 2);
    assert!(
        stderr(&output).contains("invalid value 'many'"),
        "{}",
        stderr(&output)
    );
    let output = run(&["--help"]);
    assert_eq!(code(&output), 0);
    assert!(
        stdout(&output).contains("Exit codes:\n    0  done, or nothing to do\n"),
        "{}",
        stdout(&output)
    );
    assert!(!stdout(&output).contains("completions"));
    assert_eq!(code(&run(&["--version"])), 0);
    assert_eq!(code(&run(&[])), 2);
}

#[test]
fn a_panic_is_a_bug_and_says_so() {
    let output = run(&["panic"]);
    assert_eq!(code(&output), 70);
    assert!(
        stderr(&output).contains("error: this program has a bug"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_answer_of_no_is_1() {
    assert_eq!(code(&run(&["no"])), 1);
}

#[test]
fn colour_only_where_it_is_wanted() {
    let plain = run(&["table"]);
    assert_eq!(stdout(&plain), "LID  Node\n 12  a\\u{1b}[2Jb\n");
    assert!(stdout(&run(&["--color", "always", "table"])).starts_with("\u{1b}[1mLID"));
    let mut command = tool();
    let output = command
        .env("CLICOLOR_FORCE", "1")
        .arg("table")
        .output()
        .unwrap();
    assert!(stdout(&output).starts_with('\u{1b}'));
    let output = command
        .env("NO_COLOR", "1")
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap();
    assert!(!stdout(&output).contains('\u{1b}'));
}

#[test]
fn the_output_file_is_whole_and_plain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("answer");
    let output = run(&["--color", "always", "-o", path.to_str().unwrap(), "table"]);
    assert_eq!((code(&output), output.stdout.len()), (0, 0));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "LID  Node\n 12  a\\u{1b}[2Jb\n"
    );
    let output = run(&["-o", dir.path().join("no/such").to_str().unwrap(), "table"]);
    assert_eq!(code(&output), 3);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = tool()
        .arg("endless")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 4];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    // The pipe is closed here.
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
fn nobody_to_ask_means_no() {
    let output = run(&["change"]);
    assert_eq!(code(&output), 7);
    assert!(stderr(&output).contains("--yes"));
    assert_eq!(code(&run(&["change", "--yes"])), 0);
}

#[test]
fn progress_is_silent_off_a_terminal() {
    let output = run(&["work"]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""));
}

#[test]
fn the_log_goes_to_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    assert_eq!(code(&run(&["--log", path.to_str().unwrap(), "log"])), 0);
    assert!(fs::read_to_string(&path).unwrap().contains("swept lid=7"));
    let output = run(&["log"]);
    assert!(stderr(&output).contains("odd"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("swept"));
    assert!(stderr(&run(&["-vv", "log"])).contains("swept"));
    assert!(!stderr(&run(&["-q", "log"])).contains("odd"));
}

#[test]
fn completions_and_manual_come_from_the_definition() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert!(
            code(&output) == 0 && stdout(&output).contains("sum"),
            "{shell}"
        );
    }
    let output = run(&["man"]);
    assert!(
        stdout(&output).contains(".TH tool 1"),
        "{}",
        stdout(&output)
    );
    assert_eq!(code(&run(&["completions", "tcsh"])), 2);
}

#[test]
fn everything_that_is_generated_comes_from_the_definition() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    assert_eq!(code(&run(&["generate", dir.path().to_str().unwrap()])), 0);
    let read = |name: &str| fs::read_to_string(path(name)).unwrap();
    assert!(read("commands.tsv").contains("tool sum\tAdds numbers\n"));
    assert!(!read("commands.tsv").contains("generate"));
    let reference = read("reference/tool.md");
    assert!(reference.contains("## tool sum\n"), "{reference}");
    assert_eq!(reference.matches("--json").count(), 1, "{reference}");
    assert!(read("schemas/tool.sum.1.json").contains("\"tool/sum/1\""));
    for file in ["man/tool.1", "man/tool-sum.1", "completions/_tool"] {
        assert!(path(file).exists(), "{file}");
    }
}

#[test]
fn files_are_read_with_their_trouble_explained() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, b"12345").unwrap();
    assert_eq!(read_file(&path, 5).unwrap(), b"12345");
    let told = |path: &Path, limit| {
        let failure = read_file(path, limit).unwrap_err();
        (failure.exit(), failure.code())
    };
    assert_eq!(told(&path, 4), (Exit::Input, "too-large"));
    assert_eq!(told(dir.path(), 4), (Exit::Input, "is-a-directory"));
    assert_eq!(
        told(&dir.path().join("none"), 4),
        (Exit::Input, "not-found")
    );
    // An endless file is read no further than the limit.
    assert_eq!(
        told(Path::new("/dev/zero"), 1 << 20),
        (Exit::Input, "too-large")
    );
}

#[test]
fn files_are_written_whole_and_not_over_others() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    write_file(&path, b"one", false).unwrap();
    let failure = write_file(&path, b"two", false).unwrap_err();
    assert_eq!((failure.exit(), failure.code()), (Exit::Refused, "exists"));
    assert_eq!(fs::read(&path).unwrap(), b"one");
    write_file(&path, b"two", true).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(
        write_file(dir.path(), b"x", true).unwrap_err().code(),
        "is-a-directory"
    );
    let left: Vec<PathBuf> = fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(left, [path], "no temporary file stays");
}

#[test]
fn a_failure_keeps_the_chain() {
    let failure = Failure::from(std::io::Error::from(std::io::ErrorKind::PermissionDenied))
        .with_context("opening umad0")
        .with_hint("run as root");
    assert_eq!(
        (failure.exit(), failure.code(), failure.message()),
        (Exit::Denied, "permission-denied", "opening umad0")
    );
    assert_eq!(
        (failure.causes(), failure.hint()),
        (&["permission denied".to_owned()][..], Some("run as root"))
    );
    assert_eq!(std::io::Error::other("x").exit(), Exit::Input);
}

#[test]
fn quantities_are_short() {
    let bytes = |n| units::Bytes(n).to_string();
    assert_eq!(
        [bytes(0), bytes(1023), bytes(4096), bytes(33_030_144)],
        ["0 B", "1023 B", "4.0 KiB", "31.5 MiB"]
    );
    assert_eq!(bytes(u64::MAX), "15.9 EiB");
    let span = |ns| units::Span(std::time::Duration::from_nanos(ns)).to_string();
    assert_eq!(
        [span(850), span(14_250), span(3_100_000)],
        ["850 ns", "14.2 us", "3.1 ms"]
    );
    assert_eq!(
        [span(2_759_000_000), span(200_000_000_000)],
        ["2.75 s", "3m 20s"]
    );
    assert_eq!(units::count(1, "switch", "switches"), "1 switch");
    assert_eq!(units::count(36, "switch", "switches"), "36 switches");
}

#[test]
fn text_and_tables_line_up() {
    let mut buffer = String::new();
    let mut out = Text::new(&mut buffer);
    let mut table = Table::new(["LID", "Node"]).right(0);
    assert!(table.is_empty());
    table.row(["1", "a"]).row(["100", "a longer one"]);
    out.heading("Nodes").unwrap();
    out.table(&table).unwrap();
    out.heading("Sum").unwrap();
    out.field("nodes", 2).unwrap();
    let plain = anstream::adapter::strip_str(&buffer).to_string();
    assert_eq!(
        plain,
        "Nodes\nLID  Node\n  1  a\n100  a longer one\n\nSum\nnodes                 2\n"
    );
    assert_eq!(printable("a\u{7}\nb"), "a\\u{7}\\nb");
}

#[test]
fn exit_codes_are_the_documented_ones() {
    let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
    assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 70, 130]);
}
