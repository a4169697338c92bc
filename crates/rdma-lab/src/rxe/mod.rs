//! Our RoCEv2 provider against Linux's rxe, packet by packet, in a guest of [`crate::qemu`].
//!
//! `v0` with `rxe0` is in the guest's first network namespace (Linux 6.1's rxe works in no other), `v1` in a namespace of ours, where programs
//! run on the library that is preloaded, or `roce_peer` on the provider itself. What crosses the wire is captured on `v0`.
//!
//! Figures of this lab are those of soft-roce and of rxe under QEMU's emulation: they say nothing of hardware, and little of each other.

mod capture;
mod case;
mod outcome;
mod speed;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::qemu::{Guest, pair};
use crate::{Output, peer};

pub use capture::{Capture, dissect};
pub use case::{CASES, Case, Direction};
pub use outcome::{Row, table};
pub use speed::{Compared, MEASURES, Maker, Measure, Speed};

/// The programs that a guest of this lab has, besides those of every guest.
const PROGRAMS: &[&str] = &[
    "ibv_rc_pingpong",
    "ibv_uc_pingpong",
    "ibv_ud_pingpong",
    "ib_send_bw",
    "ib_read_bw",
    "ib_atomic_lat",
    "tcpdump",
];

/// What is ours in the guest, by its path on this machine.
#[derive(Debug, Clone)]
pub struct Ours {
    /// The example `roce_peer` of rverbs.
    pub peer: PathBuf,
    /// `librverbs_preload.so`.
    pub library: PathBuf,
}

/// Where a captured packet is kept.
const PCAP: &str = "/tmp/rxe.pcap";

/// A guest with the two devices and a wire between them.
#[derive(Debug)]
pub struct Lab {
    guest: Guest,
    limit: Duration,
    port: u16,
    loss: u32,
}

/// Which device a program runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Rxe,
}

impl Side {
    /// The line that runs a program on this side, of `roce_peer` and of a program on the C library.
    fn line(self, command: &str, limit: Duration) -> String {
        let limit = limit.as_secs();
        let preloaded = !command.starts_with("roce_peer ");
        match self {
            Self::Rxe => format!("timeout {limit} {command}"),
            Self::Ours if preloaded => format!(
                "timeout {limit} ip netns exec ours env LD_PRELOAD=/usr/bin/librverbs_preload.so RVERBS_PROVIDER=roce {command}"
            ),
            Self::Ours => format!("timeout {limit} ip netns exec ours {command}"),
        }
    }

    const fn namespace(self) -> &'static str {
        match self {
            Self::Ours => "ip netns exec ours ",
            Self::Rxe => "",
        }
    }
}

impl Lab {
    /// Boots it. A program may then run for `limit`.
    ///
    /// # Errors
    /// As [`crate::qemu::Builder::boot`].
    pub fn boot(ours: &Ours, limit: Duration) -> Result<Self> {
        let mut builder = Guest::builder()
            .rxe(true)
            .program(&ours.peer)
            .program(&ours.library);
        for program in PROGRAMS {
            builder = builder.program(*program);
        }
        let mut lab = Self::of(builder.boot()?, limit);
        lab.must(
            "set -e; mkdir -p /var/run/netns; ip netns add ours; ip link set v1 netns ours; ip netns exec ours ip link set lo up\n\
             ip netns exec ours ip addr add 10.9.0.2/24 dev v1; ip netns exec ours ip link set v1 mtu 4200 up\n\
             for _ in $(seq 100); do ping -c 1 -W 1 10.9.0.2 >/dev/null && exit 0; done; exit 1",
        )?;
        Ok(lab)
    }

    const fn of(guest: Guest, limit: Duration) -> Self {
        Self {
            guest,
            limit,
            port: 20_000,
            loss: 0,
        }
    }

    /// The guest.
    pub const fn guest(&mut self) -> &mut Guest {
        &mut self.guest
    }

    fn must(&mut self, script: &str) -> Result<Output> {
        self.guest.run(script, Duration::from_secs(60))?.success()
    }

    /// Loses that many of 100 packets from now on, in each direction.
    ///
    /// # Errors
    /// A guest that refuses it.
    pub fn lose(&mut self, percent: u32) -> Result<()> {
        if percent == self.loss {
            return Ok(());
        }
        let verb = match (self.loss, percent) {
            (0, _) => "add",
            (_, 0) => "del",
            _ => "change",
        };
        let rest = match percent {
            0 => String::new(),
            _ => format!(" netem loss {percent}%"),
        };
        self.must(&format!(
            "tc qdisc {verb} dev v0 root{rest} && ip netns exec ours tc qdisc {verb} dev v1 root{rest}"
        ))?;
        self.loss = percent;
        Ok(())
    }

    /// Captures the packets of RoCEv2 from now on.
    ///
    /// # Errors
    /// tcpdump that does not start.
    pub fn start_capture(&mut self) -> Result<()> {
        // -U: what is captured is in the file, also before tcpdump ends.
        self.must(&format!(
            "tcpdump -Z root -U -B 65536 -s 0 -i v0 -w {PCAP} udp port 4791 >/tmp/tcpdump.out 2>&1 & echo $! >/tmp/tcpdump.pid\n\
             for _ in $(seq 200); do grep -q 'listening on' /tmp/tcpdump.out && exit 0; sleep 0.05; done\n\
             cat /tmp/tcpdump.out >&2; exit 1"
        ))
        .map(|_| ())
    }

    /// Ends the capture and brings it here.
    ///
    /// # Errors
    /// A guest that does not answer, and tcpdump that did not capture all.
    pub fn end_capture(&mut self) -> Result<Vec<u8>> {
        let said = self.must(
            "kill -INT $(cat /tmp/tcpdump.pid); for _ in $(seq 200); do grep -q 'dropped by kernel' /tmp/tcpdump.out && break; sleep 0.05; done\n\
             cat /tmp/tcpdump.out",
        )?;
        let said = said.stdout_text();
        if !said.contains("\n0 packets dropped by kernel") {
            bail!("tcpdump lost packets:\n{said}");
        }
        Ok(self.must(&format!("cat {PCAP}; rm {PCAP}"))?.stdout)
    }

    /// Runs a case with packets lost as [`Lab::lose`] said last.
    ///
    /// # Errors
    /// A guest that does not answer any more.
    pub fn run(&mut self, case: &'static Case, direction: Direction) -> Result<Vec<Row>> {
        let begin = Instant::now();
        self.port += 1;
        let script = self.script(case, direction);
        let output = self.guest.run(&script, self.limit * 3)?;
        let results = match pair::parts(&output) {
            Ok((client, Some(server))) => case.judge(&client, &server, self.loss > 0),
            Ok((_, None)) => vec![(String::new(), Err("the server did not end".to_owned()))],
            Err(error) => vec![(String::new(), Err(format!("{error:#}")))],
        };
        Ok(results
            .into_iter()
            .map(|(part, result)| Row {
                case,
                part,
                direction,
                loss: self.loss,
                result,
                wall: begin.elapsed(),
            })
            .collect())
    }

    fn script(&self, case: &Case, direction: Direction) -> String {
        let (client, server) = match direction {
            Direction::OursToRxe => (Side::Ours, Side::Rxe),
            Direction::RxeToOurs => (Side::Rxe, Side::Ours),
        };
        let port = case.port.unwrap_or(self.port);
        let line = |side: Side, is_client: bool| {
            side.line(
                &case.command(side == Side::Ours, is_client, port),
                self.limit,
            )
        };
        let listens = match (case.manages_connections(), server) {
            (false, side) => format!(
                "{}cat /proc/net/tcp /proc/net/tcp6 | grep -qi ':{port:04X} [0-9A-F:]* 0A '",
                side.namespace()
            ),
            (true, Side::Rxe) => "rdma resource show cm_id | grep -q LISTEN".to_owned(),
            // Its datagram socket is made, and then it listens at once.
            (true, Side::Ours) => {
                "ip netns exec ours grep -q ':12B7 ' /proc/net/udp && sleep 0.5".to_owned()
            }
        };
        script(&line(server, false), &line(client, true), &listens)
    }
}

/// The script that runs a server and, once `listens` succeeds, a client; see [`pair::parts`].
fn script(server: &str, client: &str, listens: &str) -> String {
    format!(
        "{}\
         {server} >so 2>se </dev/null & server=$!\n\
         for _ in $(seq 200); do {listens} && break; kill -0 $server 2>/dev/null || break; sleep 0.05; done\n\
         {client} >co 2>ce </dev/null; code=$?\n\
         {}{}",
        pair::BEGIN,
        pair::WAIT,
        pair::END
    )
}

/// True, after [`crate::peer_missing`], when what this lab needs is not on this machine.
///
/// # Panics
/// As [`crate::peer_missing`].
#[must_use]
pub fn lacks(test: &str) -> bool {
    let missing = PROGRAMS
        .iter()
        .chain(&["tshark"])
        .find(|program| peer(program).is_none());
    match missing {
        Some(program) => {
            crate::peer_missing(test, &peer::not_found(program));
            true
        }
        None => crate::skip::lacks_qemu(test),
    }
}
