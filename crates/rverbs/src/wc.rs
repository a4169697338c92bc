//! Completions.

use core::fmt;

use rverbs_sys::{
    IBV_WC_GRH, IBV_WC_RECV, IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_SUCCESS, IBV_WC_WITH_IMM,
    IBV_WC_WITH_INV, ibv_wc,
};

/// A completion, as polling gives it.
///
/// Of one that failed only what C guarantees is accessible: [`Wc::result`] tells them apart. A default
/// value is that of an array to poll into, and completes nothing.
#[repr(transparent)]
#[derive(Clone, Copy, Default)]
#[doc(alias = "ibv_wc")]
pub struct Wc(ibv_wc);

/// What a successful completion says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Success {
    /// Bytes received or read. For a datagram with its 40 bytes of route header.
    pub byte_len: u32,
    /// The immediate of the message, in host byte order.
    pub imm: Option<u32>,
    /// The remote key that the message invalidated.
    pub invalidated: Option<u32>,
    /// Whether a message was received by a write, whose data is elsewhere.
    pub by_write: bool,
    /// Queue pair of the sender of a datagram.
    pub src_qp: u32,
    /// LID of the sender of a datagram.
    pub slid: u16,
    /// Whether the first 40 bytes of a datagram are its route header.
    pub grh: bool,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{status} (vendor error {vendor_err:#x}) on queue pair {qp_num:#x}")]
pub struct WcError {
    /// The reason.
    pub status: Status,
    /// What the provider adds.
    pub vendor_err: u32,
    /// The queue pair.
    pub qp_num: u32,
}

/// `ibv_wc_status`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "ibv_wc_status")]
pub struct Status(pub u32);

macro_rules! statuses {
    ($($name:ident = $value:ident, $text:literal;)*) => {
        impl Status {
            $(
                #[doc = concat!("`", stringify!($value), "`: ", $text, ".")]
                pub const $name: Self = Self(rverbs_sys::$value);
            )*
        }

        impl fmt::Display for Status {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $( Self::$name => f.write_str($text), )*
                    Self(other) => write!(f, "status {other}"),
                }
            }
        }
    };
}

statuses! {
    SUCCESS = IBV_WC_SUCCESS, "success";
    LOC_LEN_ERR = IBV_WC_LOC_LEN_ERR, "a message was longer than its buffer";
    LOC_QP_OP_ERR = IBV_WC_LOC_QP_OP_ERR, "the request makes no sense on this queue pair";
    LOC_PROT_ERR = IBV_WC_LOC_PROT_ERR, "a buffer is not registered for what was asked";
    WR_FLUSH_ERR = IBV_WC_WR_FLUSH_ERR, "flushed, since the queue pair failed before";
    MW_BIND_ERR = IBV_WC_MW_BIND_ERR, "binding a memory window failed";
    BAD_RESP_ERR = IBV_WC_BAD_RESP_ERR, "the peer's answer made no sense";
    LOC_ACCESS_ERR = IBV_WC_LOC_ACCESS_ERR, "a buffer may not be written";
    REM_INV_REQ_ERR = IBV_WC_REM_INV_REQ_ERR, "the peer found the request invalid";
    REM_ACCESS_ERR = IBV_WC_REM_ACCESS_ERR, "the peer does not allow the access";
    REM_OP_ERR = IBV_WC_REM_OP_ERR, "the peer could not carry the request out";
    RETRY_EXC_ERR = IBV_WC_RETRY_EXC_ERR, "the peer does not answer";
    RNR_RETRY_EXC_ERR = IBV_WC_RNR_RETRY_EXC_ERR, "the peer posts no receive request";
    REM_ABORT_ERR = IBV_WC_REM_ABORT_ERR, "the peer aborted";
    FATAL_ERR = IBV_WC_FATAL_ERR, "the device failed";
    RESP_TIMEOUT_ERR = IBV_WC_RESP_TIMEOUT_ERR, "the answer took too long";
    GENERAL_ERR = IBV_WC_GENERAL_ERR, "another error";
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Wc {
    /// The queue pair.
    #[inline]
    #[must_use]
    pub fn qp_num(&self) -> u32 {
        self.0.qp_num
    }

    /// What was posted, as [`crate::qp`] numbers it.
    #[inline]
    #[must_use]
    pub fn wr_id(&self) -> u64 {
        self.0.wr_id
    }

    /// Whether the request succeeded.
    #[inline]
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.0.status == IBV_WC_SUCCESS
    }

    /// What it says.
    ///
    /// # Errors
    ///
    /// Why the request failed.
    #[inline]
    pub fn result(&self) -> Result<Success, WcError> {
        let wc = &self.0;
        if wc.status != IBV_WC_SUCCESS {
            return Err(self.error());
        }
        let word = word(wc);
        let received = wc.opcode & IBV_WC_RECV != 0;
        let has = |flag| received && wc.wc_flags & flag != 0;
        Ok(Success {
            byte_len: wc.byte_len,
            imm: has(IBV_WC_WITH_IMM).then_some(u32::from_be(word)),
            invalidated: has(IBV_WC_WITH_INV).then_some(word),
            by_write: wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM,
            src_qp: wc.src_qp,
            slid: wc.slid,
            grh: has(IBV_WC_GRH),
        })
    }

    /// Why it failed.
    #[cold]
    pub(crate) fn error(&self) -> WcError {
        WcError {
            status: Status(self.0.status),
            vendor_err: self.0.vendor_err,
            qp_num: self.0.qp_num,
        }
    }

    /// The C struct.
    #[must_use]
    pub fn as_raw(&self) -> &ibv_wc {
        &self.0
    }
}

#[inline]
fn word(wc: &ibv_wc) -> u32 {
    // SAFETY: both fields of the union are 32 bits wide.
    unsafe { wc.imm.imm_data }
}

impl fmt::Debug for Wc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wc")
            .field("qp_num", &self.qp_num())
            .field("wr_id", &self.wr_id())
            .field("result", &self.result())
            .finish()
    }
}
