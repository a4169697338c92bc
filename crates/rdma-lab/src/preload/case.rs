//! A case: a program, or a server and its client, and what they must print on each device.

use crate::Output;

use super::outcome::{Verdict, figure};

/// What the programs run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The preloaded library, by shared memory.
    Shm,
    /// The preloaded library, by RoCEv2 over UDP on the loopback interface.
    Roce,
    /// The kernel's RoCEv2, without the library, in a guest of [`crate::qemu`].
    Rxe,
}

impl Device {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shm, Self::Roce, Self::Rxe];

    /// How tables call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shm => "soft-shm",
            Self::Roce => "soft-roce",
            Self::Rxe => "rxe",
        }
    }

    /// How programs call it.
    #[must_use]
    pub const fn device(self) -> &'static str {
        match self {
            Self::Shm => "rverbs_shm0",
            Self::Roce => "rverbs_roce_lo",
            Self::Rxe => "rxe0",
        }
    }

    /// The address by which clients reach their server.
    const fn host(self) -> &'static str {
        match self {
            Self::Shm | Self::Roce => "127.0.0.1",
            Self::Rxe => "10.9.0.1",
        }
    }

    /// Its GID that is made of that address. InfiniBand needs none, Ethernet cannot do without.
    const fn gid(self) -> &'static str {
        match self {
            Self::Shm | Self::Roce => "0",
            Self::Rxe => "1",
        }
    }
}

/// What a program must print, and what is taken from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// perftest's table of latencies.
    Latency,
    /// perftest's table of bandwidths.
    Bandwidth,
    /// The pingpong programs' last line.
    Pingpong,
    /// qperf's `latency` or `bw` or `msg_rate`.
    Qperf,
    /// Success, and this text.
    Text(&'static str),
    /// It goes on until it is stopped.
    Stays,
    /// Failure, and this text of the program or its server: what the device does not do, and says so.
    Refusal(&'static str),
}

/// Which arguments programs take besides a case's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// No server.
    Alone,
    Perftest,
    Pingpong,
    /// Its server does not end by itself.
    Qperf,
    /// Server and client have arguments of their own.
    Pair,
}

/// A program, or a server and its client, and what they must print.
#[derive(Debug)]
pub struct Case {
    /// The name in the table.
    pub tool: &'static str,
    /// RC, UC, UD or what there is else.
    pub transport: &'static str,
    /// What is special about it.
    pub option: &'static str,
    program: &'static str,
    client_program: Option<&'static str>,
    shape: Shape,
    /// Arguments; `PORT`, `HOST`, `DEVICE` and `GID` are filled in.
    server: &'static str,
    client: &'static str,
    /// The server does not end by itself.
    pub(super) server_stays: bool,
    /// The port, of programs that cannot be told one.
    pub(super) port: Option<u16>,
    expect: Expect,
    /// Not in the list that CI goes through.
    slow: bool,
    /// What is different on a device, and why.
    on: [Option<(Expect, &'static str)>; 3],
}

/// The command lines of a case on a device.
#[derive(Debug)]
pub(super) struct Lines {
    pub(super) server: Option<(&'static str, Vec<String>)>,
    pub(super) client: (&'static str, Vec<String>),
}

impl Case {
    const fn new(tool: &'static str, transport: &'static str, option: &'static str) -> Self {
        Self {
            tool,
            transport,
            option,
            program: tool,
            client_program: None,
            shape: Shape::Pair,
            server: "",
            client: "",
            server_stays: false,
            port: None,
            expect: Expect::Stays,
            slow: false,
            on: [None; 3],
        }
    }

    /// perftest: server and client take the same arguments.
    pub(super) const fn perftest(
        tool: &'static str,
        expect: Expect,
        transport: &'static str,
        option: &'static str,
        args: &'static str,
    ) -> Self {
        let mut case = Self::new(tool, transport, option);
        (case.shape, case.expect) = (Shape::Perftest, expect);
        (case.server, case.client) = (args, args);
        case
    }

    /// ibv_rc_pingpong and its like.
    pub(super) const fn pingpong(
        tool: &'static str,
        transport: &'static str,
        option: &'static str,
        args: &'static str,
    ) -> Self {
        let mut case = Self::new(tool, transport, option);
        (case.shape, case.expect) = (Shape::Pingpong, Expect::Pingpong);
        (case.server, case.client) = (args, args);
        case
    }

    /// A server and a client with arguments of their own.
    pub(super) const fn pair(
        tool: &'static str,
        transport: &'static str,
        option: &'static str,
        (server, client): (&'static str, &'static str),
        expect: Expect,
    ) -> Self {
        let mut case = Self::new(tool, transport, option);
        (case.server, case.client, case.expect) = (server, client, expect);
        case
    }

    /// No server.
    pub(super) const fn alone(
        tool: &'static str,
        option: &'static str,
        args: &'static str,
        expect: Expect,
    ) -> Self {
        let mut case = Self::new(tool, "", option);
        (case.shape, case.client, case.expect) = (Shape::Alone, args, expect);
        case
    }

    /// One of qperf's tests.
    pub(super) const fn qperf(
        transport: &'static str,
        option: &'static str,
        client: &'static str,
    ) -> Self {
        let mut case = Self::new("qperf", transport, option);
        (case.shape, case.expect) = (Shape::Qperf, Expect::Qperf);
        (case.client, case.server_stays) = (client, true);
        case
    }

    /// Two programs under a name of their own.
    pub(super) const fn programs_of(mut self, server: &'static str, client: &'static str) -> Self {
        (self.program, self.client_program) = (server, Some(client));
        self
    }

    /// It takes seconds and shows little that others don't: CI leaves it out.
    pub(super) const fn slow(mut self) -> Self {
        self.slow = true;
        self
    }

    /// Whether CI leaves it out.
    #[must_use]
    pub const fn is_slow(&self) -> bool {
        self.slow
    }

    /// The server does not end by itself.
    pub(super) const fn stays(mut self) -> Self {
        self.server_stays = true;
        self
    }

    /// The port cannot be chosen.
    pub(super) const fn at(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// What the software devices print, and why.
    pub(super) const fn soft(mut self, expect: Expect, why: &'static str) -> Self {
        (self.on[0], self.on[1]) = (Some((expect, why)), Some((expect, why)));
        self
    }

    /// What RoCE devices print, and why.
    pub(super) const fn ethernet(mut self, expect: Expect, why: &'static str) -> Self {
        (self.on[1], self.on[2]) = (Some((expect, why)), Some((expect, why)));
        self
    }

    /// What the kernel's device prints, and why.
    pub(super) const fn rxe(mut self, expect: Expect, why: &'static str) -> Self {
        self.on[2] = Some((expect, why));
        self
    }

    /// The programs that it needs.
    pub fn programs(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.program).chain(self.client_program)
    }

    /// What is expected on a device, and why it is not what other devices do.
    #[must_use]
    pub fn expected(&self, device: Device) -> (Expect, Option<&'static str>) {
        let [shm, roce, rxe] = self.on;
        let own = match device {
            Device::Shm => shm,
            Device::Roce => roce,
            Device::Rxe => rxe,
        };
        own.map_or((self.expect, None), |(expect, why)| (expect, Some(why)))
    }

    /// Its command lines.
    pub(super) fn lines(&self, device: Device, port: u16) -> Lines {
        let fill = |args: &[&str]| -> Vec<String> {
            args.iter()
                .flat_map(|args| args.split_whitespace())
                .map(|arg| match arg {
                    "PORT" => port.to_string(),
                    "DEVICE" => device.device().to_owned(),
                    "HOST" => device.host().to_owned(),
                    "GID" => device.gid().to_owned(),
                    arg => arg.replace("HOST:", &format!("{}:", device.host())),
                })
                .collect()
        };
        let (server, client) = match self.shape {
            Shape::Alone => (None, fill(&[self.client])),
            Shape::Pair => (Some(fill(&[self.server])), fill(&[self.client])),
            Shape::Perftest => {
                let args = "-F -d DEVICE -p PORT";
                let server = fill(&[self.server, args]);
                (Some(server), fill(&[self.client, args, "HOST"]))
            }
            Shape::Pingpong => {
                let args = match device {
                    Device::Shm => "-d DEVICE -p PORT",
                    _ => "-d DEVICE -g GID -p PORT",
                };
                let server = fill(&[self.server, args]);
                (Some(server), fill(&[self.client, args, "HOST"]))
            }
            Shape::Qperf => {
                let args = match device {
                    // Emulation moves little in a second.
                    Device::Rxe => "-lp PORT -t 12",
                    _ => "-lp PORT -t 1",
                };
                let client = fill(&[args, "HOST", self.client]);
                // Options come before the host.
                let (options, test) = self.client.rsplit_once(' ').unwrap_or(("", self.client));
                let client = if options.is_empty() {
                    client
                } else {
                    fill(&[args, options, "HOST", test])
                };
                (Some(fill(&["-lp PORT"])), client)
            }
        };
        Lines {
            server: server.map(|args| (self.program, args)),
            client: (self.client_program.unwrap_or(self.program), client),
        }
    }

    pub(super) fn judge(
        &self,
        device: Device,
        client: &Output,
        server: Option<&Output>,
    ) -> Verdict {
        let said = |output: &Output| format!("{}{}", output.stdout_text(), output.stderr_text());
        let (client_said, server_said) = (said(client), server.map(said).unwrap_or_default());
        let (expect, why) = self.expected(device);
        match expect {
            Expect::Refusal(text) => {
                let told = client_said.contains(text) || server_said.contains(text);
                if client.code != 0 && !is_signal(client.code) && told {
                    let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
                    return Verdict::Refuses(format!("{text}{why}"));
                }
                return Verdict::Fails(format!(
                    "not refused: exit code {}: {}",
                    client.code,
                    last(&client_said)
                ));
            }
            Expect::Stays => {
                // It was stopped by SIGTERM; timeout says so with a code of its own.
                return if [124, 143].contains(&client.code) {
                    Verdict::Works("waits until it is stopped".to_owned())
                } else {
                    let said = last(&client_said);
                    Verdict::Fails(format!("exit code {}: {said}", client.code))
                };
            }
            _ => {}
        }
        if client.code != 0 {
            let mut text = format!("client exit code {}: {}", client.code, last(&client_said));
            if let Some(server) = server {
                let server_last = last(&server_said);
                text.push_str(&format!(
                    "; server exit code {}: {server_last}",
                    server.code
                ));
            }
            return Verdict::Fails(text);
        }
        if let Some(server) = server
            && server.code != 0
        {
            return Verdict::Fails(format!(
                "server exit code {}: {}",
                server.code,
                last(&server_said)
            ));
        }
        match figure(expect, &client_said) {
            Some(figure) => Verdict::Works(figure),
            None => Verdict::Fails(format!("not what was expected: {}", last(&client_said))),
        }
    }
}

/// Whether an exit code means that a signal ended the program.
fn is_signal(code: i32) -> bool {
    (129..160).contains(&code)
}

/// The last line that says something.
fn last(text: &str) -> String {
    let says = |line: &&str| line.chars().any(|c| c.is_alphanumeric());
    let line = text.lines().rev().find(says);
    line.unwrap_or("nothing was printed").trim().to_owned()
}
