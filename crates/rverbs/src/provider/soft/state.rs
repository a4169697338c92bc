//! The state machine of queue pairs: which transition needs which attributes.
//!
//! The table is the kernel's (`qp_state_table` in `drivers/infiniband/core/verbs.c`), which is that
//! of IBTA 10.3.1, so a program that works on an adapter works here and one that does not is told so.

use rverbs_sys::{
    IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_AV, IBV_QP_CAP, IBV_QP_CUR_STATE, IBV_QP_DEST_QPN,
    IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC,
    IBV_QP_MIN_RNR_TIMER, IBV_QP_PATH_MIG_STATE, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT,
    IBV_QP_QKEY, IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE,
    IBV_QP_TIMEOUT, IBV_QPS_ERR, IBV_QPS_INIT, IBV_QPS_RESET, IBV_QPS_RTR, IBV_QPS_RTS,
    IBV_QPS_SQD, IBV_QPS_SQE, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, ibv_qp_state, ibv_qp_type,
};

/// Attributes that a transition must have and those that it may have.
type Rule = (u32, u32);

/// The rule of a transition, where there is such a transition for that type of queue pair.
#[must_use]
pub fn rule(kind: ibv_qp_type, from: ibv_qp_state, to: ibv_qp_state) -> Option<Rule> {
    let rc = kind == IBV_QPT_RC;
    let uc = kind == IBV_QPT_UC;
    if !rc && !uc && kind != IBV_QPT_UD {
        return None;
    }
    let pick = |for_rc, for_uc, for_ud| {
        if rc {
            for_rc
        } else if uc {
            for_uc
        } else {
            for_ud
        }
    };
    let connected = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    let datagram = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    let running = (
        0,
        pick(
            IBV_QP_CUR_STATE
                | IBV_QP_ACCESS_FLAGS
                | IBV_QP_MIN_RNR_TIMER
                | IBV_QP_ALT_PATH
                | IBV_QP_PATH_MIG_STATE,
            IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE,
            IBV_QP_CUR_STATE | IBV_QP_QKEY,
        ),
    );
    Some(match (from, to) {
        (_, IBV_QPS_RESET | IBV_QPS_ERR) => (0, 0),
        (IBV_QPS_RESET, IBV_QPS_INIT) => (pick(connected, connected, datagram), 0),
        (IBV_QPS_INIT, IBV_QPS_INIT) => (0, pick(connected, connected, datagram)),
        (IBV_QPS_INIT, IBV_QPS_RTR) => {
            let path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
            let may = IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX;
            (
                pick(
                    path | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                    path,
                    0,
                ),
                pick(may, may, IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
            )
        }
        (IBV_QPS_RTR, IBV_QPS_RTS) => (
            pick(
                IBV_QP_TIMEOUT
                    | IBV_QP_RETRY_CNT
                    | IBV_QP_RNR_RETRY
                    | IBV_QP_SQ_PSN
                    | IBV_QP_MAX_QP_RD_ATOMIC,
                IBV_QP_SQ_PSN,
                IBV_QP_SQ_PSN,
            ),
            running.1,
        ),
        (IBV_QPS_RTS | IBV_QPS_SQD, IBV_QPS_RTS) => running,
        (IBV_QPS_RTS, IBV_QPS_SQD) => (0, IBV_QP_EN_SQD_ASYNC_NOTIFY),
        (IBV_QPS_SQD, IBV_QPS_SQD) => (
            0,
            pick(
                IBV_QP_PORT
                    | IBV_QP_AV
                    | IBV_QP_TIMEOUT
                    | IBV_QP_RETRY_CNT
                    | IBV_QP_RNR_RETRY
                    | IBV_QP_MAX_QP_RD_ATOMIC
                    | IBV_QP_MAX_DEST_RD_ATOMIC
                    | IBV_QP_ALT_PATH
                    | IBV_QP_ACCESS_FLAGS
                    | IBV_QP_PKEY_INDEX
                    | IBV_QP_MIN_RNR_TIMER
                    | IBV_QP_PATH_MIG_STATE,
                IBV_QP_AV
                    | IBV_QP_ALT_PATH
                    | IBV_QP_ACCESS_FLAGS
                    | IBV_QP_PKEY_INDEX
                    | IBV_QP_PATH_MIG_STATE,
                IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
            ),
        ),
        (IBV_QPS_SQE, IBV_QPS_RTS) if !rc => (
            0,
            pick(
                0,
                IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS,
                IBV_QP_CUR_STATE | IBV_QP_QKEY,
            ),
        ),
        _ => return None,
    })
}

/// Whether a transition may be made with these attributes.
///
/// `mask` may name the state, the current state and the sizes in any case, as the kernel allows.
#[must_use]
pub fn allows(kind: ibv_qp_type, from: ibv_qp_state, to: ibv_qp_state, mask: u32) -> bool {
    let Some((must, may)) = rule(kind, from, to) else {
        return false;
    };
    mask & must == must && mask & !(must | may | IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_CAP) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connected_queue_pair_walks_the_usual_way() {
        let init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        assert!(allows(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, init));
        assert!(!allows(
            IBV_QPT_RC,
            IBV_QPS_RESET,
            IBV_QPS_INIT,
            init & !IBV_QP_PORT
        ));
        assert!(!allows(
            IBV_QPT_RC,
            IBV_QPS_RESET,
            IBV_QPS_INIT,
            init | IBV_QP_QKEY
        ));
        assert!(!allows(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, init));
        assert!(!allows(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTR, u32::MAX));
        assert!(!allows(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTS, 0));
        assert!(allows(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE));
        assert!(!allows(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE));
    }

    #[test]
    fn error_and_reset_are_reached_from_anywhere_but_left_only_by_reset() {
        for from in 0..=IBV_QPS_ERR {
            for to in [IBV_QPS_RESET, IBV_QPS_ERR] {
                assert!(allows(IBV_QPT_RC, from, to, IBV_QP_STATE));
            }
        }
        for to in [IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD] {
            assert!(!allows(IBV_QPT_RC, IBV_QPS_ERR, to, IBV_QP_STATE));
        }
    }
}
