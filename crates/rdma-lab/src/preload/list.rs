//! What is tried: each tool, transport and option.

use super::case::{Case, Expect};

const XRC: &str = "no XRC yet";
const ODP: &str = "no on-demand paging";
const NO_GRH: &str = "qperf without -cm sends no GRH, which Ethernet needs";

const ALONE: &[Case] = &[
    Case::alone("ibv_devices", "", "", Expect::Text("rverbs_"))
        .rxe(Expect::Text("rxe0"), "its own name"),
    Case::alone("ibv_devinfo", "-v", "-v -d DEVICE", Expect::Text("soft-"))
        .rxe(Expect::Text("PORT_ACTIVE"), "it does not say what it is"),
    Case::alone("ibv_devinfo", "-l", "-l", Expect::Text("rverbs_"))
        .rxe(Expect::Text("rxe0"), "its own name"),
    Case::alone("ibv_asyncwatch", "", "-d DEVICE", Expect::Stays),
];

const fn rc_pingpong(option: &'static str, args: &'static str) -> Case {
    Case::pingpong("ibv_rc_pingpong", "RC", option, args)
}

const PINGPONG: &[Case] = &[
    rc_pingpong("", "-n 500"),
    rc_pingpong("-e (events)", "-n 200 -e"),
    rc_pingpong("-N (ibv_wr_*)", "-n 500 -N"),
    rc_pingpong("-c (checks the data)", "-n 500 -c"),
    rc_pingpong("-m 1024 -s 65536 -c", "-n 100 -m 1024 -s 65536 -c"),
    Case::pingpong("ibv_uc_pingpong", "UC", "", "-n 500"),
    Case::pingpong("ibv_uc_pingpong", "UC", "-e -c", "-n 200 -e -c"),
    Case::pingpong("ibv_ud_pingpong", "UD", "-s 1024", "-n 500 -s 1024"),
    Case::pingpong(
        "ibv_ud_pingpong",
        "UD",
        "-e -c -s 1024",
        "-n 200 -e -c -s 1024",
    ),
    Case::pingpong("ibv_srq_pingpong", "RC", "SRQ, 16 QPs", "-n 500"),
    Case::pingpong("ibv_srq_pingpong", "RC", "SRQ, -e -c", "-n 500 -e -c"),
];

const fn perf(
    tool: &'static str,
    expect: Expect,
    transport: &'static str,
    option: &'static str,
    args: &'static str,
) -> Case {
    Case::perftest(tool, expect, transport, option, args)
}

/// perftest without XRC.
const fn xrc(tool: &'static str) -> Case {
    Case::perftest(
        tool,
        Expect::Refusal("Couldn't create XRC resources"),
        "XRC",
        "-c XRC",
        "-n 100 -c XRC",
    )
}

const SEND_LAT: &[Case] = &{
    const fn case(transport: &'static str, option: &'static str, args: &'static str) -> Case {
        perf("ib_send_lat", Expect::Latency, transport, option, args)
    }
    [
        case("RC", "", "-n 200"),
        case("RC", "-a (2 B to 8 MiB)", "-n 5 -a").slow(),
        case("RC", "-e (events)", "-n 100 -e"),
        case("RC", "-I 64 -s 64 (inline)", "-n 200 -I 64 -s 64"),
        case("RC", "-m 1024 -s 4096", "-n 100 -m 1024 -s 4096"),
        case("RC", "-x (GID)", "-n 200 -x GID"),
        case("RC", "--use-srq", "-n 200 --use-srq"),
        case("RC", "--use_old_post_send", "-n 200 --use_old_post_send"),
        case("RC", "-R (rdma_cm)", "-n 200 -R"),
        case("UC", "", "-n 200 -c UC"),
        case("UC", "-I 64 -s 64 (inline)", "-n 200 -c UC -I 64 -s 64"),
        case("UD", "", "-n 200 -c UD"),
        case("UD", "-e (events)", "-n 100 -c UD -e"),
        case("UD", "-R (rdma_cm)", "-n 200 -c UD -R"),
        xrc("ib_send_lat"),
    ]
};

const SEND_BW: &[Case] = &{
    const fn case(transport: &'static str, option: &'static str, args: &'static str) -> Case {
        perf("ib_send_bw", Expect::Bandwidth, transport, option, args)
    }
    [
        case("RC", "", "-n 200"),
        case("RC", "-a (2 B to 8 MiB)", "-n 5 -a").slow(),
        case("RC", "-b (both ways)", "-n 200 -b"),
        case("RC", "-b -s 2097152", "-n 10 -b -s 2097152"),
        case("RC", "-e (events)", "-n 200 -e"),
        case("RC", "-m 1024", "-n 100 -m 1024"),
        case("RC", "-q 4", "-n 100 -q 4"),
        case("RC", "--mr_per_qp -q 2", "-n 100 --mr_per_qp -q 2"),
        case("RC", "-l 8 -s 1024 (post lists)", "-n 320 -l 8 -s 1024"),
        case("RC", "--recv_post_list=4", "-n 200 --recv_post_list=4"),
        case("RC", "-Q 10 (moderation)", "-n 200 -Q 10"),
        case("RC", "--use-srq", "-n 200 --use-srq"),
        case("RC", "--use_old_post_send", "-n 200 --use_old_post_send"),
        case("RC", "-D 1 -s 1024 (duration)", "-D 1 -s 1024 -Q 1"),
        case("RC", "-R (rdma_cm)", "-n 200 -R"),
        case("RC", "-z (handshake by rdma_cm)", "-n 200 -z"),
        case("UC", "", "-n 100 -c UC"),
        case("UC", "-b (both ways)", "-n 100 -c UC -b"),
        case("UD", "", "-n 100 -c UD"),
        case("UD", "-q 2 -e", "-n 100 -c UD -q 2 -e"),
        xrc("ib_send_bw"),
    ]
};

const WRITE: &[Case] = &{
    const fn lat(transport: &'static str, option: &'static str, args: &'static str) -> Case {
        perf("ib_write_lat", Expect::Latency, transport, option, args)
    }
    const fn bw(transport: &'static str, option: &'static str, args: &'static str) -> Case {
        perf("ib_write_bw", Expect::Bandwidth, transport, option, args)
    }
    [
        lat("RC", "", "-n 200"),
        lat("RC", "-a (2 B to 8 MiB)", "-n 5 -a").slow(),
        lat("RC", "-I 64 -s 64 (inline)", "-n 200 -I 64 -s 64"),
        lat("RC", "--use_old_post_send", "-n 200 --use_old_post_send").slow(),
        lat("RC", "-R (rdma_cm)", "-n 200 -R"),
        lat("UC", "", "-n 200 -c UC"),
        bw("RC", "", "-n 200"),
        bw("RC", "-a (2 B to 8 MiB)", "-n 5 -a").slow(),
        bw("RC", "-b (both ways)", "-n 200 -b"),
        bw("RC", "-s 2097152", "-n 10 -s 2097152"),
        bw("RC", "-m 1024", "-n 100 -m 1024").slow(),
        bw("RC", "-q 4", "-n 100 -q 4"),
        bw("RC", "-l 4 (post lists)", "-n 200 -l 4"),
        bw("RC", "--use_old_post_send", "-n 200 --use_old_post_send").slow(),
        bw("RC", "-D 1 -s 1024 (duration)", "-D 1 -s 1024 -Q 1").slow(),
        bw("RC", "-R (rdma_cm)", "-n 200 -R"),
        bw("UC", "", "-n 100 -c UC"),
        bw("UC", "-b -q 2", "-n 100 -c UC -b -q 2"),
        xrc("ib_write_lat"),
        xrc("ib_write_bw"),
    ]
};

const READ_ATOMIC: &[Case] = &{
    const fn lat(tool: &'static str, option: &'static str, args: &'static str) -> Case {
        perf(tool, Expect::Latency, "RC", option, args)
    }
    const fn bw(tool: &'static str, option: &'static str, args: &'static str) -> Case {
        perf(tool, Expect::Bandwidth, "RC", option, args)
    }
    [
        lat("ib_read_lat", "", "-n 200"),
        lat("ib_read_lat", "-a (2 B to 8 MiB)", "-n 5 -a").slow(),
        lat("ib_read_lat", "-e (events)", "-n 100 -e"),
        lat("ib_read_lat", "-R (rdma_cm)", "-n 200 -R"),
        bw("ib_read_bw", "", "-n 200"),
        bw("ib_read_bw", "-a (2 B to 8 MiB)", "-n 5 -a").slow(),
        bw("ib_read_bw", "-o 4 -b", "-n 200 -o 4 -b"),
        bw("ib_read_bw", "-s 2097152", "-n 10 -s 2097152"),
        bw("ib_read_bw", "-q 4", "-n 100 -q 4"),
        bw("ib_read_bw", "-R (rdma_cm)", "-n 200 -R"),
        xrc("ib_read_lat"),
        xrc("ib_read_bw"),
        lat(
            "ib_atomic_lat",
            "-A FETCH_AND_ADD",
            "-n 200 -A FETCH_AND_ADD",
        ),
        lat("ib_atomic_lat", "-A CMP_AND_SWAP", "-n 200 -A CMP_AND_SWAP"),
        lat("ib_atomic_lat", "-e (events)", "-n 100 -e"),
        lat("ib_atomic_lat", "-R (rdma_cm)", "-n 200 -R"),
        bw(
            "ib_atomic_bw",
            "-A FETCH_AND_ADD",
            "-n 200 -A FETCH_AND_ADD",
        ),
        bw("ib_atomic_bw", "-A CMP_AND_SWAP", "-n 200 -A CMP_AND_SWAP"),
        bw("ib_atomic_bw", "-q 2 -b", "-n 200 -q 2 -b"),
        xrc("ib_atomic_lat"),
        xrc("ib_atomic_bw"),
    ]
};

const CM: &[Case] = &[
    Case::pair(
        "rping",
        "RC",
        "-C 5 -v",
        ("-s -a HOST -p PORT -C 5", "-c -a HOST -p PORT -C 5 -v"),
        Expect::Text("ping data: rdma-ping-4: "),
    ),
    Case::pair(
        "rping",
        "RC",
        "-S 1024 -C 20 -V",
        (
            "-s -a HOST -p PORT -C 20 -S 1024 -V",
            "-c -a HOST -p PORT -C 20 -S 1024 -V -v",
        ),
        Expect::Text("ping data: rdma-ping-19: "),
    ),
    Case::pair(
        "ucmatose",
        "RC",
        "-c 4",
        ("-p PORT -c 4", "-p PORT -c 4 -s HOST"),
        Expect::Text("return status 0"),
    ),
    Case::pair(
        "ucmatose",
        "RC",
        "-C 100 -S 4096",
        ("-p PORT -C 100 -S 4096", "-p PORT -C 100 -S 4096 -s HOST"),
        Expect::Text("return status 0"),
    ),
    Case::pair(
        "rdma_server/_client",
        "RC",
        "endpoints",
        ("-p PORT", "-p PORT -s HOST"),
        Expect::Text("rdma_client: end 0"),
    )
    .programs_of("rdma_server", "rdma_client"),
    Case::pair(
        "rdma_xserver/_xclient",
        "RC",
        "-c r",
        ("-p PORT -c r", "-p PORT -s HOST -c r"),
        Expect::Text("rdma_xclient: end 0"),
    )
    .programs_of("rdma_xserver", "rdma_xclient"),
    Case::pair(
        "rdma_xserver/_xclient",
        "XRC",
        "-c x",
        ("-p PORT -c x", "-p PORT -s HOST -c x"),
        Expect::Refusal("rdma_xclient: end -1"),
    )
    .programs_of("rdma_xserver", "rdma_xclient"),
    Case::pair(
        "udaddy",
        "UD",
        "-c 2",
        ("-c 2", "-c 2 -s HOST"),
        Expect::Text("return status 0"),
    )
    .at(7174),
    Case::pair(
        "cmtime",
        "RC",
        "-c 10",
        ("-p PORT -c 10", "-p PORT -c 10 -s HOST"),
        Expect::Text("disconnect   :"),
    )
    .stays(),
];

/// qperf's test, by LIDs.
const fn lids(transport: &'static str, test: &'static str) -> Case {
    Case::qperf(transport, test, test).ethernet(
        Expect::Refusal("failed to modify QP to RTR: Invalid argument"),
        NO_GRH,
    )
}

const QPERF: &[Case] = &[
    lids("RC", "rc_lat"),
    lids("RC", "rc_bw").slow(),
    lids("RC", "rc_bi_bw").slow(),
    lids("RC", "rc_rdma_read_lat").slow(),
    lids("RC", "rc_rdma_read_bw").slow(),
    lids("RC", "rc_rdma_write_lat").slow(),
    lids("RC", "rc_rdma_write_bw").slow(),
    lids("RC", "rc_rdma_write_poll_lat"),
    lids("RC", "rc_compare_swap_mr"),
    lids("RC", "rc_fetch_add_mr").slow(),
    lids("UC", "uc_lat"),
    lids("UC", "uc_bw").slow(),
    lids("UC", "uc_bi_bw").slow(),
    lids("UC", "uc_rdma_write_lat").slow(),
    lids("UC", "uc_rdma_write_bw").slow(),
    lids("UC", "uc_rdma_write_poll_lat").slow(),
    Case::qperf("UD", "ud_lat", "ud_lat")
        .ethernet(Expect::Refusal("failed to create address handle"), NO_GRH),
    Case::qperf("UD", "ud_bw", "ud_bw")
        .slow()
        .ethernet(Expect::Refusal("failed to create address handle"), NO_GRH),
    Case::qperf("UD", "ud_bi_bw", "ud_bi_bw")
        .slow()
        .ethernet(Expect::Refusal("failed to create address handle"), NO_GRH),
    Case::qperf("RC", "-cm 1 rc_lat", "-cm 1 rc_lat"),
    Case::qperf("RC", "-cm 1 rc_bw", "-cm 1 rc_bw").slow(),
    Case::qperf("RC", "-cm 1 rc_bi_bw", "-cm 1 rc_bi_bw").slow(),
    Case::qperf("RC", "-cm 1 rc_rdma_read_lat", "-cm 1 rc_rdma_read_lat").slow(),
    Case::qperf("RC", "-cm 1 rc_rdma_read_bw", "-cm 1 rc_rdma_read_bw"),
    Case::qperf("RC", "-cm 1 rc_rdma_write_lat", "-cm 1 rc_rdma_write_lat").slow(),
    Case::qperf("RC", "-cm 1 rc_rdma_write_bw", "-cm 1 rc_rdma_write_bw").slow(),
    Case::qperf("RC", "-cm 1 rc_fetch_add_mr", "-cm 1 rc_fetch_add_mr").slow(),
];

const REFUSED: &[Case] = &[
    Case::alone(
        "ibv_rc_pingpong",
        "-o (on-demand paging)",
        "-d DEVICE -g GID -p PORT -o",
        Expect::Refusal("ODP"),
    )
    .soft(Expect::Refusal("ODP"), ODP),
    Case::alone(
        "ibv_xsrq_pingpong",
        "XRC",
        "-d DEVICE -g GID -p PORT",
        Expect::Refusal("Couldn't Open the XRC Domain"),
    )
    .soft(Expect::Refusal("Couldn't Open the XRC Domain"), XRC),
    rsocket(
        "rstream",
        (
            "-p PORT -S 1024 -C 10 -I 5",
            "-s HOST -p PORT -S 1024 -C 10 -I 5",
        ),
        "custom",
    ),
    rsocket(
        "riostream",
        (
            "-p PORT -S 1024 -C 10 -I 5",
            "-s HOST -p PORT -S 1024 -C 10 -I 5",
        ),
        "custom",
    ),
    rsocket(
        "udpong",
        ("-p PORT", "-s HOST -p PORT -S 1024 -C 10"),
        "custom",
    )
    .rxe(
        Expect::Refusal("rconnect: No such file or directory"),
        "librdmacm finds no way for datagram sockets there",
    ),
    rsocket(
        "rcopy",
        ("-p PORT", "/usr/bin/rcopy HOST:/tmp/rcopied -p PORT"),
        "bytes",
    )
    .stays(),
    Case::pair(
        "mckey",
        "UD",
        "multicast",
        ("-m 239.1.1.1 -b HOST -C 5", "-m 239.1.1.1 -b HOST -C 5 -s"),
        Expect::Text("return status 0"),
    )
    // rxe does not give a group's datagrams back to its own host, so only the sender ends.
    .stays()
    .soft(
        Expect::Refusal("RDMA_CM_EVENT_MULTICAST_ERROR"),
        "no multicast groups",
    ),
];

/// The program over librdmacm's sockets.
const fn rsocket(
    tool: &'static str,
    args: (&'static str, &'static str),
    text: &'static str,
) -> Case {
    Case::pair(tool, "", "rsockets", args, Expect::Text(text)).soft(
        Expect::Refusal("rsocket failed: Operation not supported"),
        "rsockets are a protocol of librdmacm's own, over its private state",
    )
}

/// Every case.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [
        ALONE,
        PINGPONG,
        SEND_LAT,
        SEND_BW,
        WRITE,
        READ_ATOMIC,
        CM,
        QPERF,
        REFUSED,
    ]
    .into_iter()
    .flatten()
}
