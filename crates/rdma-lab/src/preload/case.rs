//! What is tried: each tool, transport and option.

use crate::Output;

use super::outcome::{Verdict, figure};

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
    /// Failure, and this text: what the device does not do, and says so.
    Refusal(&'static str),
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
    pub(super) program: &'static str,
    pub(super) client_program: Option<&'static str>,
    /// Arguments; `PORT`, `HOST`, `DEVICE` and `GID` are filled in. No server where there is none.
    pub(super) server: Option<&'static str>,
    pub(super) client: &'static str,
    /// The server does not end by itself.
    pub(super) server_stays: bool,
    /// The port, of programs that cannot be told one.
    pub(super) port: Option<u16>,
    pub(super) expect: Expect,
}

/// Whether an exit code means that a signal ended the program.
fn is_signal(code: i32) -> bool {
    (129..160).contains(&code)
}

impl Case {
    /// The programs that it needs.
    pub fn programs(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.program).chain(self.client_program)
    }

    pub(super) fn judge(&self, client: &Output, server: Option<&Output>) -> Verdict {
        let said = format!("{}{}", client.stdout_text(), client.stderr_text());
        let last = |text: &str| {
            let line = text.lines().rev().find(|line| !line.trim().is_empty());
            line.unwrap_or("nothing was printed").trim().to_owned()
        };
        if let Expect::Refusal(text) = self.expect {
            return if client.code != 0 && !is_signal(client.code) && said.contains(text) {
                Verdict::Refuses(text.to_owned())
            } else {
                Verdict::Fails(format!("exit code {}: {}", client.code, last(&said)))
            };
        }
        if client.code != 0 {
            return Verdict::Fails(format!("client exit code {}: {}", client.code, last(&said)));
        }
        if let Some(server) = server
            && server.code != 0
        {
            let said = format!("{}{}", server.stdout_text(), server.stderr_text());
            return Verdict::Fails(format!("server exit code {}: {}", server.code, last(&said)));
        }
        match figure(self.expect, &said) {
            Some(figure) => Verdict::Works(figure),
            None => Verdict::Fails(format!("not what was expected: {}", last(&said))),
        }
    }
}

/// perftest: server and client take the same arguments.
macro_rules! perftest {
    ($($tool:literal $kind:ident $transport:literal $option:literal = $args:literal;)*) => { [$(
        Case {
            tool: $tool,
            transport: $transport,
            option: $option,
            program: $tool,
            client_program: None,
            server: Some(concat!($args, " -F -d DEVICE -p PORT")),
            client: concat!($args, " -F -d DEVICE -p PORT HOST"),
            server_stays: false,
            port: None,
            expect: Expect::$kind,
        },
    )*] };
}

macro_rules! pingpong {
    ($($tool:literal $transport:literal $option:literal = $args:literal;)*) => { [$(
        Case {
            tool: $tool,
            transport: $transport,
            option: $option,
            program: $tool,
            client_program: None,
            server: Some(concat!($args, " -d DEVICE GID -p PORT")),
            client: concat!($args, " -d DEVICE GID -p PORT HOST"),
            server_stays: false,
            port: None,
            expect: Expect::Pingpong,
        },
    )*] };
}

macro_rules! pair {
    ($($tool:literal $transport:literal $option:literal = $server:literal, $client:literal => $expect:expr;)*) => { [$(
        Case {
            tool: $tool,
            transport: $transport,
            option: $option,
            program: $tool,
            client_program: None,
            server: Some($server),
            client: $client,
            server_stays: false,
            port: None,
            expect: $expect,
        },
    )*] };
}

macro_rules! alone {
    ($($tool:literal $option:literal = $args:literal => $expect:expr;)*) => { [$(
        Case {
            tool: $tool,
            transport: "",
            option: $option,
            program: $tool,
            client_program: None,
            server: None,
            client: $args,
            server_stays: false,
            port: None,
            expect: $expect,
        },
    )*] };
}

macro_rules! qperf {
    ($($transport:literal $test:literal;)*) => { [$(
        Case {
            tool: "qperf",
            transport: $transport,
            option: $test,
            program: "qperf",
            client_program: None,
            server: Some("-lp PORT"),
            client: concat!("-lp PORT -i DEVICE -t 1 HOST ", $test),
            server_stays: true,
            port: None,
            expect: Expect::Qperf,
        },
    )*] };
}

const ALONE: &[Case] = &alone! {
    "ibv_devices" "" = "" => Expect::Text("rverbs_");
    "ibv_devinfo" "-v" = "-v -d DEVICE" => Expect::Text("soft-");
    "ibv_devinfo" "-l" = "-l" => Expect::Text("rverbs_");
};

const PINGPONG: &[Case] = &pingpong! {
    "ibv_rc_pingpong" "RC" "" = "-n 500";
    "ibv_rc_pingpong" "RC" "-e (events)" = "-n 500 -e";
    "ibv_rc_pingpong" "RC" "-N (ibv_wr_*)" = "-n 500 -N";
    "ibv_rc_pingpong" "RC" "-m 1024 -s 65536" = "-n 200 -m 1024 -s 65536";
    "ibv_uc_pingpong" "UC" "" = "-n 500";
    "ibv_uc_pingpong" "UC" "-e (events)" = "-n 500 -e";
    "ibv_ud_pingpong" "UD" "-s 1024" = "-n 500 -s 1024";
    "ibv_ud_pingpong" "UD" "-e -s 1024" = "-n 500 -e -s 1024";
    "ibv_srq_pingpong" "RC" "SRQ, 16 QPs" = "-n 500";
    "ibv_srq_pingpong" "RC" "SRQ, -e" = "-n 500 -e";
};

const PERFTEST: &[Case] = &perftest! {
    "ib_send_lat" Latency "RC" "" = "-n 200";
    "ib_send_lat" Latency "RC" "-e (events)" = "-n 200 -e";
    "ib_send_lat" Latency "RC" "-I 64 -s 64 (inline)" = "-n 200 -I 64 -s 64";
    "ib_send_lat" Latency "RC" "--use-srq" = "-n 200 --use-srq";
    "ib_send_lat" Latency "RC" "-x 0 (GID)" = "-n 200 -x 0";
    "ib_send_lat" Latency "RC" "-R (rdma_cm)" = "-n 200 -R";
    "ib_send_lat" Latency "UC" "" = "-n 200 -c UC";
    "ib_send_lat" Latency "UD" "" = "-n 200 -c UD";
    "ib_send_lat" Latency "UD" "-R (rdma_cm)" = "-n 200 -c UD -R";
    "ib_send_bw" Bandwidth "RC" "" = "-n 300";
    "ib_send_bw" Bandwidth "RC" "-b (both ways)" = "-n 300 -b";
    "ib_send_bw" Bandwidth "RC" "-q 4" = "-n 300 -q 4";
    "ib_send_bw" Bandwidth "RC" "-e (events)" = "-n 300 -e";
    "ib_send_bw" Bandwidth "RC" "-l 8 -s 1024" = "-n 320 -l 8 -s 1024";
    "ib_send_bw" Bandwidth "RC" "--recv_post_list=4" = "-n 300 --recv_post_list=4";
    "ib_send_bw" Bandwidth "RC" "-Q 10 (moderation)" = "-n 300 -Q 10";
    "ib_send_bw" Bandwidth "RC" "--use-srq" = "-n 300 --use-srq";
    "ib_send_bw" Bandwidth "RC" "-a (2 B to 8 MiB)" = "-n 20 -a";
    "ib_send_bw" Bandwidth "RC" "-m 1024" = "-n 300 -m 1024";
    "ib_send_bw" Bandwidth "RC" "--mr_per_qp -q 2" = "-n 300 --mr_per_qp -q 2";
    "ib_send_bw" Bandwidth "RC" "-D 1 (duration)" = "-D 1";
    "ib_send_bw" Bandwidth "RC" "-R (rdma_cm)" = "-n 300 -R";
    "ib_send_bw" Bandwidth "RC" "-z (handshake by rdma_cm)" = "-n 300 -z";
    "ib_send_bw" Bandwidth "UC" "" = "-n 100 -c UC";
    "ib_send_bw" Bandwidth "UD" "" = "-n 100 -c UD";
    "ib_write_lat" Latency "RC" "" = "-n 200";
    "ib_write_lat" Latency "RC" "-I 64 -s 64 (inline)" = "-n 200 -I 64 -s 64";
    "ib_write_lat" Latency "RC" "-R (rdma_cm)" = "-n 200 -R";
    "ib_write_lat" Latency "UC" "" = "-n 200 -c UC";
    "ib_write_bw" Bandwidth "RC" "" = "-n 500";
    "ib_write_bw" Bandwidth "RC" "-b (both ways)" = "-n 300 -b";
    "ib_write_bw" Bandwidth "RC" "-q 4" = "-n 300 -q 4";
    "ib_write_bw" Bandwidth "RC" "-l 4" = "-n 320 -l 4";
    "ib_write_bw" Bandwidth "RC" "-a (2 B to 8 MiB)" = "-n 20 -a";
    "ib_write_bw" Bandwidth "RC" "-R (rdma_cm)" = "-n 300 -R";
    "ib_write_bw" Bandwidth "UC" "" = "-n 300 -c UC";
    "ib_read_lat" Latency "RC" "" = "-n 200";
    "ib_read_lat" Latency "RC" "-e (events)" = "-n 200 -e";
    "ib_read_lat" Latency "RC" "-R (rdma_cm)" = "-n 200 -R";
    "ib_read_bw" Bandwidth "RC" "" = "-n 300";
    "ib_read_bw" Bandwidth "RC" "-o 4 -b" = "-n 300 -o 4 -b";
    "ib_read_bw" Bandwidth "RC" "-a (2 B to 8 MiB)" = "-n 20 -a";
    "ib_read_bw" Bandwidth "RC" "-R (rdma_cm)" = "-n 300 -R";
    "ib_atomic_lat" Latency "RC" "-A FETCH_AND_ADD" = "-n 200 -A FETCH_AND_ADD";
    "ib_atomic_lat" Latency "RC" "-A CMP_AND_SWAP" = "-n 200 -A CMP_AND_SWAP";
    "ib_atomic_lat" Latency "RC" "-R (rdma_cm)" = "-n 200 -R";
    "ib_atomic_bw" Bandwidth "RC" "-A FETCH_AND_ADD" = "-n 200 -A FETCH_AND_ADD";
    "ib_atomic_bw" Bandwidth "RC" "-A CMP_AND_SWAP" = "-n 200 -A CMP_AND_SWAP";
};

const CM: &[Case] = &pair! {
    "rping" "RC" "-C 5 -v" = "-s -a HOST -p PORT -C 5", "-c -a HOST -p PORT -C 5 -v"
        => Expect::Text("ping data: rdma-ping-4: ");
    "rping" "RC" "-S 1024 -C 20 -V" = "-s -a HOST -p PORT -C 20 -S 1024 -V",
        "-c -a HOST -p PORT -C 20 -S 1024 -V -v" => Expect::Text("ping data: rdma-ping-19: ");
    "ucmatose" "RC" "-c 4" = "-p PORT -c 4", "-p PORT -c 4 -s HOST" => Expect::Text("return status 0");
};

const MIXED: &[Case] = &[
    Case {
        tool: "rdma_server/_client",
        transport: "RC",
        option: "endpoints",
        program: "rdma_server",
        client_program: Some("rdma_client"),
        server: Some("-p PORT"),
        client: "-p PORT -s HOST",
        server_stays: false,
        port: None,
        expect: Expect::Text("rdma_client: end 0"),
    },
    Case {
        tool: "rdma_xserver/_xclient",
        transport: "RC",
        option: "endpoints",
        program: "rdma_xserver",
        client_program: Some("rdma_xclient"),
        server: Some("-p PORT"),
        client: "-p PORT -s HOST",
        server_stays: false,
        port: None,
        expect: Expect::Text("rdma_xclient: end 0"),
    },
    Case {
        tool: "udaddy",
        transport: "UD",
        option: "-c 2",
        program: "udaddy",
        client_program: None,
        server: Some("-c 2"),
        client: "-c 2 -s HOST",
        server_stays: false,
        port: Some(7174),
        expect: Expect::Text("return status 0"),
    },
    Case {
        tool: "cmtime",
        transport: "RC",
        option: "-c 10",
        program: "cmtime",
        client_program: None,
        server: Some("-p PORT -c 10"),
        client: "-p PORT -c 10 -s HOST",
        server_stays: true,
        port: None,
        expect: Expect::Text("disconnect   :"),
    },
];

const QPERF: &[Case] = &qperf! {
    "RC" "rc_lat"; "RC" "rc_bw"; "RC" "rc_bi_bw"; "RC" "rc_rdma_read_lat"; "RC" "rc_rdma_read_bw";
    "RC" "rc_rdma_write_lat"; "RC" "rc_rdma_write_bw"; "RC" "rc_rdma_write_poll_lat";
    "RC" "rc_compare_swap_mr"; "RC" "rc_fetch_add_mr";
    "UC" "uc_lat"; "UC" "uc_bw"; "UC" "uc_rdma_write_bw"; "UD" "ud_lat"; "UD" "ud_bw";
    "RC" "-cm 1 rc_lat";
};

const REFUSED: &[Case] = &alone! {
    "ibv_xsrq_pingpong" "XRC" = "-d DEVICE GID -p PORT" => Expect::Refusal("Couldn't Open the XRC Domain");
    "rstream" "rsockets" = "-s HOST -p PORT" => Expect::Refusal("rsocket failed: Operation not supported");
    "mckey" "multicast" = "-m 239.1.1.1 -b HOST" => Expect::Refusal("RDMA_CM_EVENT_MULTICAST_ERROR");
    "ib_send_bw" "-c XRC" = "-c XRC -d DEVICE -p PORT" => Expect::Refusal("XRC");
};

/// Every case.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [ALONE, PINGPONG, PERFTEST, CM, MIXED, QPERF, REFUSED]
        .into_iter()
        .flatten()
}
