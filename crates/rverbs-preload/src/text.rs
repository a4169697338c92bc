//! Names of enumerations, as the C libraries print them, and rates.

use core::ffi::{CStr, c_char, c_int};

use rverbs_sys::{
    ibv_event_type, ibv_node_type, ibv_port_state, ibv_rate, ibv_wc_status, ibv_wr_opcode,
    rdma_cm_event_type,
};

fn name<T: TryInto<usize>>(value: T, names: &[&'static CStr]) -> *const c_char {
    let name = value.try_into().ok().and_then(|value| names.get(value));
    name.map_or(c"unknown", |name| *name).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn ibv_node_type_str(kind: ibv_node_type) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"unknown",
        c"InfiniBand channel adapter",
        c"InfiniBand switch",
        c"InfiniBand router",
        c"iWARP NIC",
        c"usNIC",
        c"usNIC UDP",
        c"unspecified",
    ];
    name(kind, NAMES)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_port_state_str(state: ibv_port_state) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"no state change (NOP)",
        c"down",
        c"init",
        c"armed",
        c"active",
        c"active defer",
    ];
    name(state, NAMES)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_event_type_str(event: ibv_event_type) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
        c"WQ fatal",
    ];
    name(event, NAMES)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wc_status_str(status: ibv_wc_status) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory management operation error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
        c"TM error",
        c"TM software rendezvous",
    ];
    name(status, NAMES)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_wr_opcode_str(opcode: ibv_wr_opcode) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"rdma-write",
        c"rdma-write-with-imm",
        c"send",
        c"send-with-imm",
        c"rdma-read",
        c"atomic-cmp-and-swp",
        c"atomic-fetch-and-add",
        c"local-inv",
        c"bind-mw",
        c"send-with-inv",
        c"tso",
        c"driver1",
        c"unknown",
        c"unknown",
        c"flush",
        c"atomic-write",
    ];
    name(opcode, NAMES)
}

#[unsafe(no_mangle)]
extern "C" fn rdma_event_str(event: rdma_cm_event_type) -> *const c_char {
    const NAMES: &[&CStr] = &[
        c"RDMA_CM_EVENT_ADDR_RESOLVED",
        c"RDMA_CM_EVENT_ADDR_ERROR",
        c"RDMA_CM_EVENT_ROUTE_RESOLVED",
        c"RDMA_CM_EVENT_ROUTE_ERROR",
        c"RDMA_CM_EVENT_CONNECT_REQUEST",
        c"RDMA_CM_EVENT_CONNECT_RESPONSE",
        c"RDMA_CM_EVENT_CONNECT_ERROR",
        c"RDMA_CM_EVENT_UNREACHABLE",
        c"RDMA_CM_EVENT_REJECTED",
        c"RDMA_CM_EVENT_ESTABLISHED",
        c"RDMA_CM_EVENT_DISCONNECTED",
        c"RDMA_CM_EVENT_DEVICE_REMOVAL",
        c"RDMA_CM_EVENT_MULTICAST_JOIN",
        c"RDMA_CM_EVENT_MULTICAST_ERROR",
        c"RDMA_CM_EVENT_ADDR_CHANGE",
        c"RDMA_CM_EVENT_TIMEWAIT_EXIT",
    ];
    match usize::try_from(event)
        .ok()
        .and_then(|event| NAMES.get(event))
    {
        Some(name) => name.as_ptr(),
        None => c"UNKNOWN EVENT".as_ptr(),
    }
}

/// `ibv_rate`, multiples of 2.5 Gb/s (0: none), Mb/s.
const RATES: &[(ibv_rate, c_int, c_int)] = &[
    (2, 1, 2_500),
    (5, 2, 5_000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 0, 14_062),
    (12, 0, 56_250),
    (13, 0, 112_500),
    (14, 0, 168_750),
    (15, 0, 25_781),
    (16, 0, 103_125),
    (17, 0, 206_250),
    (18, 0, 309_375),
    (19, 11, 28_125),
    (20, 20, 53_125),
    (21, 160, 425_000),
    (22, 240, 637_500),
    (23, 320, 850_000),
    (24, 480, 1_275_000),
];

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mult(rate: ibv_rate) -> c_int {
    let found = RATES
        .iter()
        .find(|(code, mult, _)| *code == rate && *mult != 0);
    found.map_or(-1, |(_, mult, _)| *mult)
}

#[unsafe(no_mangle)]
extern "C" fn mult_to_ibv_rate(mult: c_int) -> ibv_rate {
    let found = RATES
        .iter()
        .find(|(_, other, _)| *other == mult && mult != 0);
    found.map_or(0, |(code, _, _)| *code)
}

#[unsafe(no_mangle)]
extern "C" fn ibv_rate_to_mbps(rate: ibv_rate) -> c_int {
    let found = RATES.iter().find(|(code, _, _)| *code == rate);
    found.map_or(-1, |(_, _, mbps)| *mbps)
}

#[unsafe(no_mangle)]
extern "C" fn mbps_to_ibv_rate(mbps: c_int) -> ibv_rate {
    let found = RATES.iter().find(|(_, _, other)| *other == mbps);
    found.map_or(0, |(code, _, _)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pointer: *const c_char) -> &'static str {
        // SAFETY: every function here returns a literal.
        unsafe { CStr::from_ptr(pointer) }.to_str().unwrap()
    }

    #[test]
    fn every_value_has_a_name_and_no_other() {
        assert_eq!(text(ibv_wc_status_str(0)), "success");
        assert_eq!(
            text(ibv_wc_status_str(12)),
            "transport retry counter exceeded"
        );
        assert_eq!(text(ibv_wc_status_str(24)), "unknown");
        assert_eq!(text(ibv_node_type_str(-1)), "unknown");
        assert_eq!(text(ibv_node_type_str(7)), "unspecified");
        assert_eq!(text(rdma_event_str(15)), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
        assert_eq!(text(rdma_event_str(16)), "UNKNOWN EVENT");
        assert_eq!(text(ibv_wr_opcode_str(15)), "atomic-write");
    }

    #[test]
    fn rates_convert_there_and_back() {
        for (code, mult, mbps) in RATES {
            assert_eq!(ibv_rate_to_mbps(*code), *mbps);
            assert_eq!(mbps_to_ibv_rate(*mbps), *code);
            if *mult != 0 {
                assert_eq!(ibv_rate_to_mult(*code), *mult);
                assert_eq!(mult_to_ibv_rate(*mult), *code);
            }
        }
        assert_eq!(ibv_rate_to_mult(0), -1);
        assert_eq!(mult_to_ibv_rate(0), 0);
    }
}
