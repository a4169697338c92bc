//! The same cases on the kernel's rxe, in a guest.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::case::Lines;
use super::outcome::{Row, Verdict};
use super::{Case, Device, Expect, cases};
use crate::Output;
use crate::qemu::Guest;

/// A guest with `rxe0` and the programs of all cases.
#[derive(Debug)]
pub struct Rxe {
    guest: Guest,
    limit: Duration,
    port: u16,
}

/// What stands between the parts of what a case's script prints.
const MARK: &str = "@@ rdma-lab @@";

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
        let verdict = match parts(&output) {
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
    let mut text = "cd /tmp; rm -f so se co ce; sc=none\n".to_owned();
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
            "[ $code -eq 0 ] || { sleep 1; kill $server 2>/dev/null; }; wait $server; sc=$?\n"
        });
    }
    text.push_str(&format!(
        "touch so se co ce; echo \"$code $sc\"; for f in co ce so se; do echo '{MARK}'; cat $f; done\n"
    ));
    text
}

/// What client and server said, out of what the script printed.
fn parts(output: &Output) -> Result<(Output, Option<Output>)> {
    let text = output.stdout_text();
    let mark = format!("{MARK}\n");
    let parts: Vec<&str> = text.split(mark.as_str()).collect();
    let said = || format!("the guest said {text:?} and {:?}", output.stderr_text());
    let [codes, co, ce, so, se] = parts.as_slice() else {
        anyhow::bail!(said());
    };
    let (client, server) = codes.trim().split_once(' ').with_context(said)?;
    let part = |name: &str, code: &str, stdout: &str, stderr: &str| -> Result<Output> {
        Ok(Output {
            command: name.to_owned(),
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.as_bytes().to_vec(),
            code: code.parse().with_context(said)?,
            wall: output.wall,
        })
    };
    let client = part("client", client, co, ce)?;
    let server = match server {
        "none" => None,
        code => Some(part("server", code, so, se)?),
    };
    Ok((client, server))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(stdout: &str) -> Output {
        Output {
            command: String::new(),
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            code: 0,
            wall: Duration::ZERO,
        }
    }

    #[test]
    fn what_a_script_prints_is_taken_apart() {
        let text = format!("0 3\n{MARK}\nout\n{MARK}\n{MARK}\n{MARK}\nerror\n");
        let (client, server) = parts(&output(&text)).unwrap();
        assert_eq!((client.code, client.stdout_text().as_str()), (0, "out\n"));
        let server = server.unwrap();
        assert_eq!((server.code, server.stderr_text().as_str()), (3, "error\n"));
        assert!(parts(&output("0 none\n")).is_err());
    }
}
