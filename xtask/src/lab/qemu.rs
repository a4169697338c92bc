//! `cargo xtask lab qemu`: Linux rxe in a guest without KVM, root or installed kernel.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rdma_lab::Output;
use rdma_lab::qemu::{Guest, script};

use crate::workspace::cargo;

/// Boot a guest with an rxe device on a veth pair and run commands in it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  cargo xtask lab qemu                                   ibv_devinfo, ib_send_lat and rping
  cargo xtask lab qemu --run 'rdma link' --run 'ib_write_bw -h | head -3'
  cargo xtask lab qemu --put target/release/rverbs --run 'rverbs devices'
  cargo xtask lab qemu --script steps.sh --json
  cargo xtask lab qemu --check
  cargo xtask lab qemu --conform

rxe0 is on v0 (10.9.0.1/24), whose veth peer is v1 (10.9.0.2/24). The exit code is that of the first
command that fails. Needs the packages qemu-system-x86, busybox-static, iproute2, perftest, rdmacm-utils,
ibverbs-utils and ibverbs-providers (cargo xtask deps installs them), and once downloads Debian's kernel
by apt, 70 MB, into ~/.cache/rdma-lab (RDMA_LAB_CACHE names another place).")]
pub struct Args {
    /// Put a program of this machine, with its libraries, into the guest's PATH (repeatable).
    #[arg(long, value_name = "FILE")]
    put: Vec<PathBuf>,
    /// Put a file at a path of the guest (repeatable).
    #[arg(long, value_name = "HOST:GUEST")]
    file: Vec<String>,
    /// Run a command in the guest (repeatable).
    #[arg(long, value_name = "CMD")]
    run: Vec<String>,
    /// Run a file as a shell script in the guest, after the commands of --run.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Then read commands from stdin, one a line, until its end.
    #[arg(long)]
    shell: bool,
    /// Seconds that each command may take.
    #[arg(long, default_value_t = 120, value_name = "SECONDS")]
    limit: u64,
    /// Load one more kernel module (repeatable).
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
    /// Add the iWARP device siw0 too, where the kernel has siw.
    #[arg(long)]
    siw: bool,
    /// Make neither the veth pair nor rxe0.
    #[arg(long)]
    bare: bool,
    /// Add a virtio network card on a QEMU back end (repeatable): user, or socket,listen=127.0.0.1:PORT
    /// in one guest and socket,connect=127.0.0.1:PORT in another.
    #[arg(long, value_name = "BACKEND")]
    netdev: Vec<String>,
    /// Print the results as one JSON document.
    #[arg(long)]
    json: bool,
    /// Print what the guest's kernel said, at the end.
    #[arg(long)]
    dmesg: bool,
    /// Run ibv_devinfo, ib_send_lat and rping and assert what they print.
    #[arg(long, conflicts_with_all = ["run", "script", "shell", "bare"])]
    check: bool,
    /// Run the conformance suite of rverbs on rxe0, through libibverbs.
    #[arg(long, exclusive = true)]
    conform: bool,
}

pub(super) fn run(args: &Args) -> Result<i32> {
    if args.conform {
        return conform();
    }
    let begin = Instant::now();
    let mut builder = Guest::builder().rxe(!args.bare).siw(args.siw);
    for program in &args.put {
        builder = builder.program(std::path::absolute(program).context("finding the program")?);
    }
    for pair in &args.file {
        let (host, guest) = pair
            .split_once(':')
            .with_context(|| format!("--file takes HOST:GUEST, not {pair}"))?;
        builder = builder.file(host, guest);
    }
    for module in &args.module {
        builder = builder.module(module);
    }
    for backend in &args.netdev {
        builder = builder.netdev(backend);
    }
    let script = match &args.script {
        Some(file) => Some(
            std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?,
        ),
        None => None,
    };
    let mut guest = builder.boot()?;
    eprintln!(
        "Linux {} under QEMU is up after {:.1} s (of which {:.1} s for the kernel and the initramfs)",
        guest.kernel(),
        guest.booted_after().as_secs_f64(),
        guest.built_after().as_secs_f64()
    );
    let limit = Duration::from_secs(args.limit);
    if args.check {
        check(&mut guest, limit)?;
        println!("lab qemu: ok, {:.1} s", begin.elapsed().as_secs_f64());
        return Ok(0);
    }
    let mut steps: Vec<(String, String)> = args
        .run
        .iter()
        .map(|run| (run.clone(), run.clone()))
        .collect();
    if let (Some(text), Some(file)) = (script, &args.script) {
        steps.push((file.display().to_string(), text));
    }
    if steps.is_empty() && !args.shell {
        let defaults = [
            ("ibv_devinfo", script::DEVINFO),
            ("ib_send_lat", script::SEND_LAT),
            ("rping", script::RPING),
        ];
        let defaults = defaults.into_iter().filter(|_| !args.bare);
        steps.extend(defaults.map(|(name, script)| (name.to_owned(), script.to_owned())));
    }
    let mut results = Vec::new();
    for (name, script) in steps {
        let output = guest.run(&script, limit)?;
        if !args.json {
            show(&name, &output)?;
        }
        results.push((name, output));
    }
    if args.shell {
        shell(&mut guest, limit)?;
    }
    if args.dmesg {
        eprint!("{}", guest.console());
    }
    let total = begin.elapsed();
    drop(guest);
    if args.json {
        let steps: Vec<_> = results
            .iter()
            .map(|(name, output)| {
                serde_json::json!({
                    "command": name,
                    "exit_code": output.code,
                    "milliseconds": u64::try_from(output.wall.as_millis()).unwrap_or(u64::MAX),
                    "stdout": output.stdout_text(),
                    "stderr": output.stderr_text(),
                })
            })
            .collect();
        println!(
            "{:#}",
            serde_json::json!({ "steps": steps, "seconds": total.as_secs_f64() })
        );
    }
    eprintln!("from start to result: {:.1} s", total.as_secs_f64());
    Ok(results
        .iter()
        .map(|(_, output)| output.code)
        .find(|&code| code != 0)
        .unwrap_or(0))
}

fn show(name: &str, output: &Output) -> Result<()> {
    println!("== {name}");
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(&output.stdout)
        .and_then(|()| stdout.flush())
        .context("writing to stdout")?;
    std::io::stderr()
        .lock()
        .write_all(&output.stderr)
        .context("writing to stderr")?;
    println!(
        "== exit code {}, {:.2} s in the guest",
        output.code,
        output.wall.as_secs_f64()
    );
    Ok(())
}

fn shell(guest: &mut Guest, limit: Duration) -> Result<()> {
    let stdin = std::io::stdin();
    let prompt = stdin.is_terminal();
    loop {
        if prompt {
            eprint!("guest# ");
        }
        let mut line = String::new();
        if stdin.lock().read_line(&mut line).context("reading stdin")? == 0 {
            return Ok(());
        }
        // One line fails, the shell goes on.
        match guest.run(line.trim_end(), limit) {
            Ok(output) => {
                let _ = std::io::stdout().lock().write_all(&output.stdout);
                let _ = std::io::stderr().lock().write_all(&output.stderr);
                if output.code != 0 {
                    eprintln!("exit code {}", output.code);
                }
            }
            Err(error) => eprintln!("{error:#}"),
        }
    }
}

/// The test that boots a guest and runs itself in it, so that what is tried is what CI tries.
fn conform() -> Result<i32> {
    let mut command = cargo();
    command.args(["test", "--quiet", "-p", "rverbs", "--test", "it"]);
    command.args(["conforms::verbs_conforms_on_rxe", "--", "--nocapture"]);
    let status = command.status().context("cargo could not be started")?;
    Ok(status.code().unwrap_or(1))
}

/// What CI asserts: the C tools really measured and exchanged data on rxe.
fn check(guest: &mut Guest, limit: Duration) -> Result<()> {
    let devinfo = guest.run(script::DEVINFO, limit)?.success()?;
    ensure!(
        devinfo.stdout_text().contains("PORT_ACTIVE"),
        "rxe0 is not active:\n{}",
        devinfo.stdout_text()
    );
    println!("ibv_devinfo: rxe0 PORT_ACTIVE");

    let lat = guest.run(script::SEND_LAT, limit)?.success()?;
    let typical = script::typical_latency(&lat.stdout_text()).with_context(|| {
        format!(
            "ib_send_lat printed no table with a positive typical latency:\n{}",
            lat.stdout_text()
        )
    })?;
    println!(
        "ib_send_lat: typical {typical} us (rxe under QEMU's emulation: says nothing of hardware)"
    );

    let rping = guest.run(script::RPING, limit)?.success()?;
    let rounds = rping
        .stdout_text()
        .lines()
        .filter(|line| line.starts_with("ping data: rdma-ping-"))
        .count();
    ensure!(
        rounds == 3,
        "rping made {rounds} rounds instead of 3:\n{}",
        rping.stdout_text()
    );
    println!("rping: 3 rounds");
    Ok(())
}
