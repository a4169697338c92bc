//! `ibv_wr_*`: the functions of `ibv_qp_ex`, which build a list of requests that is posted at once.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::hint::spin_loop;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rverbs_sys::inline::ibv_post_send;
use rverbs_sys::{
    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
    IBV_QP_EX_WITH_RDMA_READ, IBV_QP_EX_WITH_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM,
    IBV_QP_EX_WITH_SEND, IBV_QP_EX_WITH_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_INV,
    IBV_SEND_INLINE, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_READ,
    IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND, IBV_WR_SEND_WITH_IMM,
    IBV_WR_SEND_WITH_INV, ibv_ah, ibv_data_buf, ibv_qp, ibv_qp_ex, ibv_qp_init_attr_ex,
    ibv_send_wr, ibv_send_wr_atomic, ibv_send_wr_imm, ibv_send_wr_op, ibv_send_wr_rdma,
    ibv_send_wr_ud, ibv_sge, ibv_wr_opcode,
};

/// What a program may ask for in `send_ops_flags`.
pub(crate) const SUPPORTED: u64 = (IBV_QP_EX_WITH_RDMA_WRITE
    | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
    | IBV_QP_EX_WITH_SEND
    | IBV_QP_EX_WITH_SEND_WITH_IMM
    | IBV_QP_EX_WITH_RDMA_READ
    | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP
    | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
    | IBV_QP_EX_WITH_SEND_WITH_INV) as u64;

/// The struct that C holds, and the list behind it.
#[repr(C)]
struct Batch {
    raw: UnsafeCell<ibv_qp_ex>,
    /// The queue pair that requests go to.
    qp: *mut ibv_qp,
    /// Held from `wr_start` to `wr_complete` or `wr_abort`, as libibverbs does.
    held: AtomicBool,
    list: UnsafeCell<List>,
}

/// Requests that were built and not posted yet.
#[derive(Default)]
struct List {
    requests: Vec<ibv_send_wr>,
    /// Where the entries of each request start in `sges`.
    starts: Vec<usize>,
    sges: Vec<ibv_sge>,
    /// Inline data of each request: a program may reuse its buffer at once.
    inline: Vec<Vec<u8>>,
    /// Why posting will fail.
    errno: c_int,
    /// How many requests a batch may have.
    room: usize,
    max_inline: usize,
}

// SAFETY: who holds `held` is the only one that touches the list; the pointers are C's.
unsafe impl Send for Batch {}
// SAFETY: as above.
unsafe impl Sync for Batch {}

type Batches = HashMap<usize, Box<Batch>>;

fn batches() -> MutexGuard<'static, Batches> {
    static BATCHES: LazyLock<Mutex<Batches>> = LazyLock::new(Mutex::default);
    BATCHES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives a queue pair the functions.
pub(crate) fn add(qp: NonNull<ibv_qp>, attr: &ibv_qp_init_attr_ex) {
    let raw = ibv_qp_ex {
        // SAFETY: the queue pair was just made.
        qp_base: unsafe { *qp.as_ptr() },
        comp_mask: 0,
        wr_id: 0,
        wr_flags: 0,
        wr_atomic_cmp_swp: Some(atomic_cmp_swp),
        wr_atomic_fetch_add: Some(atomic_fetch_add),
        wr_bind_mw: None,
        wr_local_inv: None,
        wr_rdma_read: Some(rdma_read),
        wr_rdma_write: Some(rdma_write),
        wr_rdma_write_imm: Some(rdma_write_imm),
        wr_send: Some(send),
        wr_send_imm: Some(send_imm),
        wr_send_inv: Some(send_inv),
        wr_send_tso: None,
        wr_set_ud_addr: Some(set_ud_addr),
        wr_set_xrc_srqn: None,
        wr_set_inline_data: Some(set_inline_data),
        wr_set_inline_data_list: Some(set_inline_data_list),
        wr_set_sge: Some(set_sge),
        wr_set_sge_list: Some(set_sge_list),
        wr_start: Some(start),
        wr_complete: Some(complete),
        wr_abort: Some(abort),
        wr_atomic_write: None,
    };
    let batch = Box::new(Batch {
        raw: UnsafeCell::new(raw),
        qp: qp.as_ptr(),
        held: AtomicBool::new(false),
        list: UnsafeCell::new(List {
            room: attr.cap.max_send_wr as usize,
            max_inline: attr.cap.max_inline_data as usize,
            ..List::default()
        }),
    });
    batches().insert(qp.as_ptr().addr(), batch);
}

/// The functions of a queue pair, where it has any.
pub(crate) fn of(qp: *mut ibv_qp) -> Option<NonNull<ibv_qp_ex>> {
    let batches = batches();
    let batch = batches.get(&qp.addr())?;
    Some(NonNull::from(&**batch).cast())
}

/// A queue pair is gone.
pub(crate) fn forget(qp: *mut ibv_qp) {
    batches().remove(&qp.addr());
}

/// The list of a queue pair, between `wr_start` and its end.
///
/// # Safety
///
/// The pointer came from [`of`], its queue pair is live, and this thread called `wr_start`.
unsafe fn list<'a>(qp: *mut ibv_qp_ex) -> &'a mut List {
    // SAFETY: the struct is the first field of a `Batch`, and who called `wr_start` is alone.
    unsafe { &mut *(*qp.cast::<Batch>()).list.get() }
}

/// Adds a request.
///
/// # Safety
///
/// As for [`list`].
unsafe fn push(
    qp: *mut ibv_qp_ex,
    opcode: ibv_wr_opcode,
    imm: ibv_send_wr_imm,
    wr: ibv_send_wr_op,
) {
    // SAFETY: as the caller promises; the program sets both fields before it adds a request.
    let (list, wr_id, send_flags) = unsafe { (list(qp), (*qp).wr_id, (*qp).wr_flags) };
    if list.requests.len() >= list.room {
        list.errno = libc::ENOMEM;
        return;
    }
    list.starts.push(list.sges.len());
    list.requests.push(ibv_send_wr {
        wr_id,
        opcode,
        send_flags,
        imm,
        wr,
        ..ibv_send_wr::default()
    });
}

const fn no_imm() -> ibv_send_wr_imm {
    ibv_send_wr_imm { imm_data: 0 }
}

const fn nowhere() -> ibv_send_wr_op {
    rdma(0, 0)
}

const fn rdma(rkey: u32, remote_addr: u64) -> ibv_send_wr_op {
    ibv_send_wr_op {
        rdma: ibv_send_wr_rdma { remote_addr, rkey },
    }
}

unsafe extern "C" fn start(qp: *mut ibv_qp_ex) {
    // SAFETY: C's contract: the queue pair is live.
    let batch = unsafe { &*qp.cast::<Batch>() };
    while batch
        .held
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        spin_loop();
    }
    // SAFETY: this thread holds the batch now.
    let list = unsafe { list(qp) };
    list.requests.clear();
    list.starts.clear();
    list.sges.clear();
    list.errno = 0;
}

unsafe extern "C" fn complete(qp: *mut ibv_qp_ex) -> c_int {
    // SAFETY: C's contract: this thread called `wr_start`.
    let (batch, list) = unsafe { (&*qp.cast::<Batch>(), list(qp)) };
    let mut errno = list.errno;
    if errno == 0 && !list.requests.is_empty() {
        let count = list.requests.len();
        let first = list.requests.as_mut_ptr();
        for (index, (request, start)) in list.requests.iter_mut().zip(&list.starts).enumerate() {
            request.sg_list = list.sges.as_mut_ptr().wrapping_add(*start);
            if index + 1 < count {
                request.next = first.wrapping_add(index + 1);
            }
        }
        let mut bad = null_mut();
        // SAFETY: the list was just linked, its entries are in place, the queue pair is live.
        errno = unsafe { ibv_post_send(batch.qp, first, &raw mut bad) };
    }
    batch.held.store(false, Ordering::Release);
    errno
}

unsafe extern "C" fn abort(qp: *mut ibv_qp_ex) {
    // SAFETY: C's contract: the queue pair is live.
    let batch = unsafe { &*qp.cast::<Batch>() };
    batch.held.store(false, Ordering::Release);
}

unsafe extern "C" fn send(qp: *mut ibv_qp_ex) {
    // SAFETY: C's contract: this thread called `wr_start`. So in all that follow.
    unsafe { push(qp, IBV_WR_SEND, no_imm(), nowhere()) };
}

unsafe extern "C" fn send_imm(qp: *mut ibv_qp_ex, imm_data: u32) {
    // SAFETY: as for `send`.
    unsafe {
        push(
            qp,
            IBV_WR_SEND_WITH_IMM,
            ibv_send_wr_imm { imm_data },
            nowhere(),
        );
    };
}

unsafe extern "C" fn send_inv(qp: *mut ibv_qp_ex, invalidate_rkey: u32) {
    let imm = ibv_send_wr_imm { invalidate_rkey };
    // SAFETY: as for `send`.
    unsafe { push(qp, IBV_WR_SEND_WITH_INV, imm, nowhere()) };
}

unsafe extern "C" fn rdma_read(qp: *mut ibv_qp_ex, rkey: u32, remote_addr: u64) {
    // SAFETY: as for `send`.
    unsafe { push(qp, IBV_WR_RDMA_READ, no_imm(), rdma(rkey, remote_addr)) };
}

unsafe extern "C" fn rdma_write(qp: *mut ibv_qp_ex, rkey: u32, remote_addr: u64) {
    // SAFETY: as for `send`.
    unsafe { push(qp, IBV_WR_RDMA_WRITE, no_imm(), rdma(rkey, remote_addr)) };
}

unsafe extern "C" fn rdma_write_imm(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    remote_addr: u64,
    imm_data: u32,
) {
    let imm = ibv_send_wr_imm { imm_data };
    // SAFETY: as for `send`.
    unsafe { push(qp, IBV_WR_RDMA_WRITE_WITH_IMM, imm, rdma(rkey, remote_addr)) };
}

unsafe extern "C" fn atomic_cmp_swp(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    remote_addr: u64,
    compare_add: u64,
    swap: u64,
) {
    let wr = ibv_send_wr_op {
        atomic: ibv_send_wr_atomic {
            remote_addr,
            compare_add,
            swap,
            rkey,
        },
    };
    // SAFETY: as for `send`.
    unsafe { push(qp, IBV_WR_ATOMIC_CMP_AND_SWP, no_imm(), wr) };
}

unsafe extern "C" fn atomic_fetch_add(
    qp: *mut ibv_qp_ex,
    rkey: u32,
    remote_addr: u64,
    compare_add: u64,
) {
    let wr = ibv_send_wr_op {
        atomic: ibv_send_wr_atomic {
            remote_addr,
            compare_add,
            swap: 0,
            rkey,
        },
    };
    // SAFETY: as for `send`.
    unsafe { push(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, no_imm(), wr) };
}

unsafe extern "C" fn set_ud_addr(
    qp: *mut ibv_qp_ex,
    ah: *mut ibv_ah,
    remote_qpn: u32,
    remote_qkey: u32,
) {
    // SAFETY: as for `send`.
    if let Some(request) = unsafe { list(qp) }.requests.last_mut() {
        request.wr = ibv_send_wr_op {
            ud: ibv_send_wr_ud {
                ah,
                remote_qpn,
                remote_qkey,
            },
        };
    }
}

unsafe extern "C" fn set_sge(qp: *mut ibv_qp_ex, lkey: u32, addr: u64, length: u32) {
    let sge = ibv_sge { addr, length, lkey };
    // SAFETY: as for `send`; the entry is ours.
    unsafe { set_sge_list(qp, 1, &raw const sge) };
}

unsafe extern "C" fn set_sge_list(qp: *mut ibv_qp_ex, count: usize, entries: *const ibv_sge) {
    // SAFETY: as for `send`.
    let list = unsafe { list(qp) };
    let (Some(request), Some(start)) = (list.requests.last_mut(), list.starts.last()) else {
        return;
    };
    list.sges.truncate(*start);
    if count > 0 {
        // SAFETY: C's contract: that many entries can be read.
        list.sges
            .extend_from_slice(unsafe { core::slice::from_raw_parts(entries, count) });
    }
    request.num_sge = c_int::try_from(count).unwrap_or(c_int::MAX);
}

unsafe extern "C" fn set_inline_data(qp: *mut ibv_qp_ex, addr: *mut c_void, length: usize) {
    let buffer = ibv_data_buf { addr, length };
    // SAFETY: as for `send`; the buffer's description is ours.
    unsafe { set_inline_data_list(qp, 1, &raw const buffer) };
}

unsafe extern "C" fn set_inline_data_list(
    qp: *mut ibv_qp_ex,
    count: usize,
    buffers: *const ibv_data_buf,
) {
    // SAFETY: as for `send`.
    let list = unsafe { list(qp) };
    let index = list.requests.len().wrapping_sub(1);
    let (Some(request), Some(start)) = (list.requests.last_mut(), list.starts.last()) else {
        return;
    };
    if list.inline.len() <= index {
        list.inline.resize_with(index + 1, Vec::new);
    }
    let Some(data) = list.inline.get_mut(index) else {
        return;
    };
    data.clear();
    for at in 0..count {
        // SAFETY: C's contract: that many descriptions can be read.
        let buffer = unsafe { buffers.add(at).read() };
        if data.len().saturating_add(buffer.length) > list.max_inline {
            list.errno = libc::ENOMEM;
            return;
        }
        if buffer.length > 0 {
            // SAFETY: C's contract: each buffer can be read.
            data.extend_from_slice(unsafe {
                core::slice::from_raw_parts(buffer.addr.cast::<u8>(), buffer.length)
            });
        }
    }
    list.sges.truncate(*start);
    list.sges.push(ibv_sge {
        addr: data.as_ptr().expose_provenance() as u64,
        length: u32::try_from(data.len()).unwrap_or(u32::MAX),
        lkey: 0,
    });
    request.num_sge = 1;
    request.send_flags |= IBV_SEND_INLINE;
}
