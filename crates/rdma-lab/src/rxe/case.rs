//! What is tried, and how it is judged.

use crate::Output;
use crate::preload::{Expect, figure};

/// Who is the client, and with that who asks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// soft-roce is the client, rxe the server.
    OursToRxe,
    /// rxe is the client, soft-roce the server.
    RxeToOurs,
}

impl Direction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::OursToRxe, Self::RxeToOurs];

    /// In the table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OursToRxe => "soft-roce -> rxe",
            Self::RxeToOurs => "rxe -> soft-roce",
        }
    }
}

/// What programs a case is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `roce_peer ops`: each operation by itself, every byte checked.
    Ops,
    /// `roce_peer verify`: the operations behind each other without waiting, both ways, every byte checked.
    Mixed,
    /// `ibv_rc_pingpong` and its like.
    Pingpong,
    /// perftest.
    Perftest(Expect),
    /// rping.
    Rping,
}

/// A pair of programs, one on each device.
#[derive(Debug)]
pub struct Case {
    /// The name in the table.
    pub name: &'static str,
    /// RC, UC, UD, or CM where the connection manager makes the connection.
    pub transport: &'static str,
    /// The path's MTU in bytes.
    pub mtu: u32,
    /// Whether it can be run with packets lost: it ends although they are.
    pub survives_loss: bool,
    /// Whether it is one of the few that CI runs.
    pub quick: bool,
    /// Whether CI runs it with packets lost, too.
    pub quick_lossy: bool,
    kind: Kind,
    args: &'static str,
    pub(super) port: Option<u16>,
}

const fn case(
    kind: Kind,
    name: &'static str,
    transport: &'static str,
    mtu: u32,
    args: &'static str,
) -> Case {
    Case {
        name,
        transport,
        mtu,
        survives_loss: true,
        quick: false,
        quick_lossy: false,
        kind,
        args,
        port: None,
    }
}

impl Case {
    const fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

    const fn quick_lossy(mut self) -> Self {
        (self.quick, self.quick_lossy) = (true, true);
        self
    }

    /// It would wait for ever for a message that nobody sends again.
    const fn dies_of_loss(mut self) -> Self {
        self.survives_loss = false;
        self
    }

    pub(super) fn manages_connections(&self) -> bool {
        self.kind == Kind::Rping
    }

    /// The command line of an end.
    pub(super) fn command(&self, ours: bool, is_client: bool, port: u16) -> String {
        let address = |ours: bool| if ours { "10.9.0.2" } else { "10.9.0.1" };
        let (own, peer) = (address(ours), address(!ours));
        let host = if is_client { peer } else { "" };
        let (device, gid) = if ours {
            ("rverbs_roce_v1", 0)
        } else {
            ("rxe0", 1)
        };
        let code = self.mtu.checked_ilog2().unwrap_or(10).saturating_sub(7);
        let Self {
            name, args, mtu, ..
        } = self;
        match self.kind {
            Kind::Ops | Kind::Mixed => {
                let verb = match self.kind {
                    Kind::Ops => format!("ops {}", self.transport.to_lowercase()),
                    _ => "verify".to_owned(),
                };
                let device = if ours {
                    format!("--addr {own} --link-mtu 4200")
                } else {
                    format!("--device {device} --gid {gid}")
                };
                format!("roce_peer {verb} {device} --mtu {code} --port {port} {args} {host}")
            }
            Kind::Pingpong => {
                // A datagram's MTU is the port's.
                let mtu = match self.transport {
                    "UD" => String::new(),
                    _ => format!("-m {mtu}"),
                };
                format!("{name} -d {device} -g {gid} {mtu} -p {port} -c {args} {host}")
            }
            Kind::Perftest(_) => {
                let mtu = if self.transport == "UD" {
                    String::new()
                } else {
                    format!("-m {mtu}")
                };
                let transport = match self.transport {
                    "RC" => "",
                    other => &format!("-c {other}"),
                };
                format!("{name} -d {device} -x {gid} {mtu} -p {port} -F {transport} {args} {host}")
            }
            Kind::Rping if is_client => format!("rping -c -a {peer} -p {port} -v {args}"),
            Kind::Rping => format!("rping -s -a {own} -p {port} {args}"),
        }
    }

    /// What came of it, for each of its parts.
    pub(super) fn judge(
        &self,
        client: &Output,
        server: &Output,
        lossy: bool,
    ) -> Vec<(String, Result<String, String>)> {
        let said = client.stdout_text();
        let mut results = Vec::new();
        if self.kind == Kind::Ops {
            for line in said.lines().filter_map(|line| line.strip_prefix("op ")) {
                let Some((op, text)) = line.split_once(": ") else {
                    continue;
                };
                results.push((op.to_owned(), arrived(text, lossy)));
            }
        }
        let failed = |name: &str, output: &Output| {
            (output.code != 0).then(|| {
                format!(
                    "{name} exit code {}: {}",
                    output.code,
                    last(&format!("{said}\n{}", output.stderr_text()))
                )
            })
        };
        let codes: Vec<_> = [failed("client", client), failed("server", server)]
            .into_iter()
            .flatten()
            .collect();
        if !codes.is_empty() {
            results.push((String::new(), Err(codes.join("; "))));
        } else if self.kind != Kind::Ops {
            let figure = match self.kind {
                Kind::Perftest(expect) => figure(expect, &said),
                Kind::Pingpong => {
                    figure(Expect::Pingpong, &said).filter(|_| !said.contains("invalid data"))
                }
                Kind::Mixed => said
                    .contains("all right")
                    .then(|| "every byte right, both ways".to_owned()),
                Kind::Rping | Kind::Ops => {
                    let rounds = said
                        .lines()
                        .filter(|line| line.starts_with("ping data: rdma-ping-"))
                        .count();
                    (rounds > 0).then(|| format!("{rounds} rounds"))
                }
            };
            results.push((
                String::new(),
                figure.ok_or_else(|| format!("not what was expected: {}", last(&said))),
            ));
        } else if results.is_empty() {
            results.push((String::new(), Err("no operation was run".to_owned())));
        }
        results
    }
}

/// What `12 of 15 arrived, 1234 bytes` says: without loss all must arrive, and some in any case.
fn arrived(text: &str, lossy: bool) -> Result<String, String> {
    let words: Vec<&str> = text.split(' ').collect();
    let counts = match words.as_slice() {
        [some, "of", all, "arrived,", ..] => some.parse::<u32>().ok().zip(all.parse::<u32>().ok()),
        _ => None,
    };
    match counts {
        Some((some, all)) if some == all || (lossy && some > 0) => Ok(text.to_owned()),
        _ => Err(text.to_owned()),
    }
}

/// The last line that says something.
fn last(text: &str) -> String {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("nothing was said")
        .trim()
        .chars()
        .take(160)
        .collect()
}

/// All cases, in the order in which they are run.
pub static CASES: &[Case] = &[
    case(Kind::Ops, "ops", "RC", 1024, "--iters 3").quick_lossy(),
    case(Kind::Ops, "ops", "RC", 4096, "--iters 3"),
    case(Kind::Mixed, "mixed ops", "RC", 1024, "--iters 3"),
    case(Kind::Mixed, "mixed ops", "RC", 4096, "--iters 1").quick(),
    case(Kind::Ops, "ops", "UC", 1024, "--iters 3").quick(),
    case(Kind::Ops, "ops", "UC", 4096, "--iters 3"),
    case(Kind::Ops, "ops", "UD", 1024, "--iters 5"),
    case(Kind::Ops, "ops", "UD", 4096, "--iters 5").quick(),
    case(
        Kind::Pingpong,
        "ibv_rc_pingpong",
        "RC",
        1024,
        "-n 60 -s 5000",
    ),
    case(
        Kind::Pingpong,
        "ibv_rc_pingpong",
        "RC",
        4096,
        "-n 60 -s 5000",
    )
    .quick_lossy(),
    case(
        Kind::Pingpong,
        "ibv_uc_pingpong",
        "UC",
        1024,
        "-n 60 -s 5000",
    )
    .dies_of_loss(),
    case(
        Kind::Pingpong,
        "ibv_uc_pingpong",
        "UC",
        4096,
        "-n 60 -s 5000",
    )
    .dies_of_loss(),
    case(
        Kind::Pingpong,
        "ibv_ud_pingpong",
        "UD",
        4096,
        "-n 100 -s 1000",
    )
    .dies_of_loss(),
    case(Kind::Rping, "rping", "CM", 4096, "-C 10 -S 3000").quick_lossy(),
    case(
        Kind::Perftest(Expect::Latency),
        "ib_send_lat",
        "RC",
        4096,
        "-n 100",
    )
    .quick(),
    case(
        Kind::Perftest(Expect::Latency),
        "ib_send_lat",
        "UD",
        4096,
        "-n 100",
    )
    .dies_of_loss(),
    case(
        Kind::Perftest(Expect::Bandwidth),
        "ib_send_bw",
        "RC",
        1024,
        "-n 30 -s 32768",
    ),
    case(
        Kind::Perftest(Expect::Bandwidth),
        "ib_write_bw",
        "RC",
        1024,
        "-n 30 -s 32768",
    ),
    case(
        Kind::Perftest(Expect::Bandwidth),
        "ib_write_bw",
        "RC",
        4096,
        "-n 30 -s 32768",
    ),
    case(
        Kind::Perftest(Expect::Bandwidth),
        "ib_read_bw",
        "RC",
        4096,
        "-o 4 -n 30 -s 32768",
    ),
    case(
        Kind::Perftest(Expect::Latency),
        "ib_atomic_lat",
        "RC",
        4096,
        "-o 4 -n 50",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_is_no_failure_only_where_it_was_asked_for() {
        assert!(arrived("15 of 15 arrived, 3 bytes", false).is_ok());
        assert!(arrived("14 of 15 arrived, 3 bytes", false).is_err());
        assert!(arrived("14 of 15 arrived, 3 bytes", true).is_ok());
        assert!(arrived("0 of 15 arrived, 0 bytes", true).is_err());
        assert!(arrived("all is well", true).is_err());
    }

    #[test]
    fn the_mtu_goes_to_the_programs_as_they_name_it() {
        let ops = CASES.iter().find(|case| case.mtu == 4096).unwrap();
        let line = ops.command(true, false, 7);
        assert!(line.contains("ops rc --addr 10.9.0.2 --link-mtu 4200 --mtu 5 --port 7"));
        assert!(ops.command(false, true, 7).trim_end().ends_with("10.9.0.2"));
    }
}
