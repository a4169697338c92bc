//! The same cases on the kernel's rxe, in a guest.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::case::Lines;
use super::outcome::{Row, Verdict};
use super::{Case, Device, Expect, cases};
use crate::qemu::{Guest, pair};

/// A guest with `rxe0` and the programs of all cases.
#[derive(Debug)]
pub struct Rxe {
    guest: Guest,
    limit: Duration,
    port: u16,
}

impl Rxe {
    /// Boots it. A program may then run for `limit`.
    ///
    /// # Errors
    /// As [`crate::qemu::Builder::boot`].
    pub fn boot(limit: Duration) -> Result<Self> {
        let mut programs: Vec<PathBuf> = cases()
            .flat_map(Case::programs)
            .filter(|program| crate::peer(program).is_some())
            .map(PathBuf::from)
            .collect();
        programs.sort();
        programs.dedup();
        let mut builder = Guest::builder().rxe(true);
        for program in programs {
            builder = builder.program(program);
        }
        Ok(Self {
            guest: builder.boot()?,
            limit,
            port: 20_000,
        })
    }

    /// The guest.
    pub const fn guest(&mut self) -> &mut Guest {
        &mut self.guest
    }

    /// Runs a case and judges what was printed.
    ///
    /// # Errors
    /// A guest that does not answer any more.
    pub fn run(&mut self, case: &'static Case) -> Result<Row> {
        let begin = Instant::now();
        self.port += 1;
        let port = case.port.unwrap_or(self.port);
        let lines = case.lines(Device::Rxe, port);
        let stays = case.expected(Device::Rxe).0 == Expect::Stays;
        let script = script(&lines, port, self.limit, stays, case.server_stays);
        // The programs have limits of their own; the script ends then.
        let output = self.guest.run(&script, self.limit * 3)?;
        let verdict = match pair::parts(&output) {
            Ok((client, server)) => case.judge(Device::Rxe, &client, server.as_ref()),
            Err(error) => Verdict::Fails(format!("{error:#}")),
        };
        Ok(Row {
            case,
            device: Device::Rxe,
            verdict,
            wall: begin.elapsed(),
        })
    }
}

/// The script of a case: the server's and the client's exit codes and what they said.
fn script(lines: &Lines, port: u16, limit: Duration, stays: bool, server_stays: bool) -> String {
    let line = |(program, args): &(&str, Vec<String>)| format!("{program} {}", args.join(" "));
    let limit = limit.as_secs();
    let mut text = pair::BEGIN.to_owned();
    if let Some(server) = &lines.server {
        let server = line(server);
        text.push_str(&format!(
            "timeout {limit} {server} >so 2>se </dev/null & server=$!\n\
             for _ in $(seq 200); do\n\
             grep -qi ':{port:04X} [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6 && break\n\
             rdma resource show cm_id | grep -q 'LISTEN.*:{port}' && break\n\
             kill -0 $server 2>/dev/null || break\n\
             sleep 0.05\n\
             done\n"
        ));
    }
    let client = line(&lines.client);
    // busybox's timeout says 143 for who it had to end.
    let limit = if stays { 2 } else { limit };
    text.push_str(&format!(
        "timeout {limit} {client} >co 2>ce </dev/null; code=$?\n"
    ));
    if lines.server.is_some() {
        text.push_str(if server_stays {
            "kill $server; wait $server\n"
        } else {
            pair::WAIT
        });
    }
    text.push_str(pair::END);
    text
}
