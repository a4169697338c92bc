//! What the user is told about a work request.

/// How a work request ended, with the names of `ibv_wc_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was carried out.
    Success,
    /// A message was longer than the receive it met.
    LocalLength,
    /// A request that the queue pair cannot carry out.
    LocalQpOperation,
    /// A local key did not allow the access.
    LocalProtection,
    /// The queue pair went into error first.
    Flushed,
    /// The peer answered with what does not fit the request.
    BadResponse,
    /// The peer took the request for an invalid one.
    RemoteInvalidRequest,
    /// The peer did not allow the access.
    RemoteAccess,
    /// The peer could not carry it out.
    RemoteOperation,
    /// No answer, though asked again as often as allowed.
    RetryExceeded,
    /// The peer had no receive posted, though asked again as often as allowed.
    RnrRetryExceeded,
}

/// What kind of request ended, with the names of `ibv_wc_opcode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompletionOp {
    /// SEND.
    Send,
    /// RDMA WRITE.
    Write,
    /// RDMA READ.
    Read,
    /// CMP_SWAP.
    CompareSwap,
    /// FETCH_ADD.
    FetchAdd,
    /// A receive that a SEND consumed.
    Receive,
    /// A receive that an RDMA WRITE with immediate consumed.
    ReceiveWriteImm,
}

/// The end of a work request.
///
/// Unless `status` is [`Status::Success`], only `cq`, `qpn` and `wr_id` mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The completion queue it goes to.
    pub cq: u32,
    /// The queue pair it was posted to.
    pub qpn: u32,
    /// The number the user gave.
    pub wr_id: u64,
    /// How it ended.
    pub status: Status,
    /// What it was.
    pub op: CompletionOp,
    /// Bytes that arrived.
    pub len: u32,
    /// Immediate data.
    pub imm: Option<u32>,
    /// The key that the sender took back.
    pub invalidated: Option<u32>,
    /// Who sent a datagram.
    pub src_qp: u32,
    /// Whether the 40 bytes before a datagram hold its addresses.
    pub grh: bool,
    /// Whether the sender asked for an event.
    pub solicited: bool,
}

impl Completion {
    /// An end without anything to say beyond its status.
    pub(super) const fn of(
        cq: u32,
        qpn: u32,
        wr_id: u64,
        op: CompletionOp,
        status: Status,
    ) -> Self {
        Self {
            cq,
            qpn,
            wr_id,
            status,
            op,
            len: 0,
            imm: None,
            invalidated: None,
            src_qp: 0,
            grh: false,
            solicited: false,
        }
    }
}
