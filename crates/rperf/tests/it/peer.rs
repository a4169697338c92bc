//! With unmodified perftest at the other end, each side once server and once client.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use rdma_lab::preload::{self, Preload, Provider};
use rdma_lab::process::{Running, run};
use rdma_lab::qemu::Guest;
use rdma_lab::{Output, skip};
use rperf::result::Results;
use rperf::spec::{Metric, Transport, Verb};

const LIMIT: Duration = Duration::from_secs(60);

/// A test, and what both sides are told beside it.
struct Case {
    verb: Verb,
    metric: Metric,
    transport: Transport,
    more: &'static [&'static str],
}

const fn case(verb: Verb, metric: Metric, transport: Transport) -> Case {
    Case {
        verb,
        metric,
        transport,
        more: &["-n", "200"],
    }
}

impl Case {
    const fn with(mut self, more: &'static [&'static str]) -> Self {
        self.more = more;
        self
    }

    fn program(&self) -> String {
        format!("ib_{}_{}", self.verb.name(), self.metric.name())
    }
}

/// All of them with `RPERF_PAIRS=all`.
fn cases() -> Vec<Case> {
    use Metric::{Bandwidth, Latency};
    use Transport::{Rc, Uc, Ud};
    let mut all = Vec::new();
    for transport in [Rc, Uc, Ud] {
        for verb in Verb::ALL {
            if transport.carries(verb) {
                all.extend([Latency, Bandwidth].map(|metric| case(verb, metric, transport)));
            }
        }
    }
    all.extend([
        case(Verb::Send, Bandwidth, Rc).with(&["-n", "500", "-b"]),
        case(Verb::Write, Bandwidth, Rc).with(&["-n", "500", "-q", "3", "-s", "4096"]),
        case(Verb::Send, Bandwidth, Rc)
            .with(&["-n", "500", "-q", "4", "-s", "512", "-t", "64", "-Q", "16"]),
        case(Verb::Send, Latency, Rc).with(&["-D", "1", "-f", "0"]),
        case(Verb::Send, Latency, Rc).with(&["-n", "200", "-I", "0", "-m", "1024", "-s", "5000"]),
        case(Verb::Atomic, Bandwidth, Rc).with(&["-n", "200", "-A", "CMP_AND_SWAP"]),
    ]);
    if std::env::var_os("RPERF_PAIRS").is_some() {
        all.extend([
            case(Verb::Send, Bandwidth, Rc).with(&["-n", "50", "-a"]),
            case(Verb::Send, Bandwidth, Uc).with(&["-n", "50", "-a"]),
            case(Verb::Send, Bandwidth, Ud).with(&["-n", "50", "-a"]),
            case(Verb::Send, Latency, Rc).with(&["-n", "50", "-a"]),
            case(Verb::Write, Latency, Rc).with(&["-n", "50", "-a"]),
            case(Verb::Write, Bandwidth, Rc).with(&["-n", "500", "-b"]),
            case(Verb::Write, Bandwidth, Rc).with(&["-n", "50", "-a", "-b"]),
            case(Verb::Read, Bandwidth, Rc).with(&["-n", "500", "-b"]),
            case(Verb::Read, Latency, Rc).with(&["-n", "50", "-a"]),
            case(Verb::Read, Bandwidth, Rc).with(&["-D", "2", "-f", "0"]),
            case(Verb::Write, Bandwidth, Rc).with(&["-D", "2", "-q", "2"]),
        ]);
    }
    all
}

/// Ports that no other test of this process uses, other processes hardly, and callers never.
pub(crate) fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let from = 22_000 + (std::process::id() % 60) as u16 * 100;
    from + NEXT.fetch_add(1, Ordering::Relaxed) % 100
}

fn rperf(lab: &Preload, case: &Case, port: &str, host: Option<&str>) -> Command {
    let mut command = lab.command(Path::new(env!("CARGO_BIN_EXE_rperf")));
    command.env_remove("LD_PRELOAD");
    command.args(["--json", case.verb.name(), case.metric.name()]);
    command.args(host);
    command.args(["-p", port, "-c", case.transport.name()]);
    command.args(["--provider", lab.provider().name(), "--timeout", "40"]);
    command.args(
        case.more
            .iter()
            .map(|it| if *it == "-q" { "--qp" } else { it }),
    );
    command
}

fn perftest(lab: &Preload, case: &Case, port: &str, host: Option<&str>) -> Command {
    let program = rdma_lab::peer::need(&case.program()).unwrap();
    let mut command = lab.command(&program);
    let device = lab.provider().device().device();
    command.args(["-d", device, "-p", port, "-F"]);
    if !matches!(case.verb, Verb::Atomic | Verb::Read) {
        command.args(["-c", case.transport.name()]);
    }
    command.args(case.more);
    command.args(host);
    command
}

fn meet(server: &Command, client: &Command, port: u16) -> [Output; 2] {
    let mut server = Running::start(server).unwrap();
    server
        .wait_until("its port", LIMIT, |_| Ok(preload::listens(port)))
        .unwrap();
    let client = run(client, LIMIT).unwrap();
    let patience = if client.code == 0 {
        LIMIT
    } else {
        Duration::from_secs(1)
    };
    [client, server.end(patience)]
}

/// Whether a side's figures are figures.
fn check(case: &Case, ours: &Output, passive: bool) -> Result<String, String> {
    let results = Results::read(&ours.stdout).map_err(|error| error.to_string())?;
    if passive && results.measurements.is_empty() {
        return Ok("passive".to_owned());
    }
    let rows = results.measurements.iter().map(|one| {
        if case.metric == Metric::Latency {
            let seen = one.latency.as_ref().ok_or("no latency")?;
            if seen.p50 == 0 || seen.max < seen.p50 {
                return Err(format!("{seen:?}"));
            }
            Ok(format!(
                "{} B {:.2} us",
                one.spec.size,
                seen.p50 as f64 / 1000.0
            ))
        } else {
            let seen = one.bandwidth.as_ref().ok_or("no bandwidth")?;
            if seen.messages_per_second <= 0.0 {
                return Err(format!("{seen:?}"));
            }
            Ok(format!("{} B {:.3} Gb/s", one.spec.size, seen.gigabits()))
        }
    });
    let rows: Vec<String> = rows.collect::<Result<_, String>>()?;
    let first = rows.first().cloned().ok_or("nothing was measured")?;
    Ok(if rows.len() > 1 {
        format!("{first} and {} more", rows.len() - 1)
    } else {
        first
    })
}

fn both_ways(provider: Provider) {
    let name = format!("perftest over {}", provider.name());
    if skip::lacks(&name, &["ib_send_lat", "ib_atomic_bw"]) {
        return;
    }
    let lab = Preload::new(preload::library().unwrap(), provider).limit(LIMIT);
    let mut failed = Vec::new();
    let mut tried = 0;
    for case in cases() {
        for serves in [true, false] {
            let number = port();
            let text = number.to_string();
            let host = Some("127.0.0.1");
            let [client, server] = if serves {
                meet(
                    &rperf(&lab, &case, &text, None),
                    &perftest(&lab, &case, &text, host),
                    number,
                )
            } else {
                meet(
                    &perftest(&lab, &case, &text, None),
                    &rperf(&lab, &case, &text, host),
                    number,
                )
            };
            let ours = if serves { &server } else { &client };
            let found = if (client.code, server.code) == (0, 0) {
                check(&case, ours, serves)
            } else {
                let said = |it: &Output| {
                    format!("exit {}: {}{}", it.code, it.stdout_text(), it.stderr_text())
                };
                Err(format!(
                    "client {}\nserver {}",
                    said(&client),
                    said(&server)
                ))
            };
            let row = format!(
                "soft-{} {:14} {} {:28} rperf {}",
                provider.name(),
                case.program(),
                case.transport.name(),
                case.more.join(" "),
                if serves { "serves" } else { "calls" }
            );
            tried += 1;
            match found {
                Ok(figure) => eprintln!("{row} {figure}"),
                Err(why) => failed.push(format!("{row}: {why}")),
            }
        }
    }
    eprintln!(
        "soft-{}: {} of {tried} pairs with perftest measure",
        provider.name(),
        tried - failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn perftest_and_we_measure_over_shm() {
    both_ways(Provider::Shm);
}

#[test]
fn perftest_and_we_measure_over_roce() {
    both_ways(Provider::Roce);
}

/// The same on the kernel's device, through libibverbs, in a guest: one test after the other, each way.
#[test]
fn perftest_and_we_measure_on_rxe() {
    let test = "perftest_and_we_measure_on_rxe";
    if skip::lacks_qemu(test) || skip::lacks(test, &["ib_send_lat", "ib_atomic_bw"]) {
        return;
    }
    let tests = || {
        let both = |verb: Verb| [Metric::Latency, Metric::Bandwidth].map(|metric| (verb, metric));
        Verb::ALL.into_iter().flat_map(both)
    };
    let mut guest = Guest::builder()
        .rxe(true)
        .program(env!("CARGO_BIN_EXE_rperf"));
    for (verb, metric) in tests() {
        let program = format!("ib_{}_{}", verb.name(), metric.name());
        guest = guest.program(rdma_lab::peer::need(&program).unwrap());
    }
    let mut guest = guest.boot().unwrap();
    let mut failed = Vec::new();
    for (number, (verb, metric)) in tests().enumerate() {
        let (verb, metric) = (verb.name(), metric.name());
        let size = if verb == "atomic" { "" } else { "-s 64" };
        for serves in [true, false] {
            let port = 19_000 + 2 * number + usize::from(serves);
            let how = format!("-d rxe0 -x 1 -n 100 {size} -p {port}");
            let ours = format!("rperf {verb} {metric} {how}");
            let theirs = format!("ib_{verb}_{metric} -F {how}");
            let (server, client) = if serves {
                (&ours, &theirs)
            } else {
                (&theirs, &ours)
            };
            let script = format!(
                "timeout 60 {server} >/tmp/so 2>&1 & server=$!; \
                 for _ in $(seq 200); do grep -qi ':{port:04x} 0' /proc/net/tcp /proc/net/tcp6 && break; sleep 0.05; done; \
                 timeout 50 {client} 10.9.0.1 2>&1; code=$?; [ $code -eq 0 ] || kill $server; \
                 wait $server; [ $? -eq 0 ] && [ $code -eq 0 ] || {{ cat /tmp/so; exit 1; }}"
            );
            let output = guest.run(&script, LIMIT * 2).unwrap();
            let said = format!("{}{}", output.stdout_text(), output.stderr_text());
            let row = format!("rxe {client} with {server}");
            if output.code == 0 {
                let mut rows = said
                    .lines()
                    .skip_while(|line| !line.to_lowercase().contains("bytes "));
                eprintln!("{row}: {}", rows.nth(1).unwrap_or_default().trim());
            } else {
                failed.push(format!("{row}: {said}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
