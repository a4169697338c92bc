//! Work requests, completions, and the extended queues that `ibv_wr_*` and `ibv_start_poll` use.

use super::*;
use core::ffi::*;
use libc::{pthread_cond_t, pthread_mutex_t};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_wc {
    pub wr_id: u64,
    pub status: ibv_wc_status,
    pub opcode: ibv_wc_opcode,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm: ibv_wc_imm,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_wc_imm {
    pub imm_data: u32,
    pub invalidated_rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_mw_bind_info {
    pub mr: *mut ibv_mr,
    pub addr: u64,
    pub length: u64,
    pub mw_access_flags: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_data_buf {
    pub addr: *mut c_void,
    pub length: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr {
    pub wr_id: u64,
    pub next: *mut Self,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
    pub opcode: ibv_wr_opcode,
    pub send_flags: c_uint,
    pub imm: ibv_send_wr_imm,
    pub wr: ibv_send_wr_op,
    pub qp_type: ibv_send_wr_qp_type,
    pub ext: ibv_send_wr_ext,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_imm {
    pub imm_data: u32,
    pub invalidate_rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_op {
    pub rdma: ibv_send_wr_rdma,
    pub atomic: ibv_send_wr_atomic,
    pub ud: ibv_send_wr_ud,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr_rdma {
    pub remote_addr: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr_atomic {
    pub remote_addr: u64,
    pub compare_add: u64,
    pub swap: u64,
    pub rkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr_ud {
    pub ah: *mut ibv_ah,
    pub remote_qpn: u32,
    pub remote_qkey: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_qp_type {
    pub xrc: ibv_send_wr_xrc,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr_xrc {
    pub remote_srqn: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union ibv_send_wr_ext {
    pub bind_mw: ibv_send_wr_bind_mw,
    pub tso: ibv_send_wr_tso,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr_bind_mw {
    pub mw: *mut ibv_mw,
    pub rkey: u32,
    pub bind_info: ibv_mw_bind_info,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_send_wr_tso {
    pub hdr: *mut c_void,
    pub hdr_sz: u16,
    pub mss: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_recv_wr {
    pub wr_id: u64,
    pub next: *mut Self,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_ops_wr {
    pub wr_id: u64,
    pub next: *mut Self,
    pub opcode: ibv_ops_wr_opcode,
    pub flags: c_int,
    pub tm: ibv_ops_wr_tm,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_ops_wr_tm {
    pub unexpected_cnt: u32,
    pub handle: u32,
    pub add: ibv_ops_wr_tm_add,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_ops_wr_tm_add {
    pub recv_wr_id: u64,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
    pub tag: u64,
    pub mask: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_mw_bind {
    pub wr_id: u64,
    pub send_flags: c_uint,
    pub bind_info: ibv_mw_bind_info,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_qp_ex {
    pub qp_base: ibv_qp,
    pub comp_mask: u64,
    pub wr_id: u64,
    pub wr_flags: c_uint,
    pub wr_atomic_cmp_swp: Option<
        unsafe extern "C" fn(qp: *mut Self, rkey: u32, remote_addr: u64, compare: u64, swap: u64),
    >,
    pub wr_atomic_fetch_add:
        Option<unsafe extern "C" fn(qp: *mut Self, rkey: u32, remote_addr: u64, add: u64)>,
    pub wr_bind_mw: Option<
        unsafe extern "C" fn(
            qp: *mut Self,
            mw: *mut ibv_mw,
            rkey: u32,
            bind_info: *const ibv_mw_bind_info,
        ),
    >,
    pub wr_local_inv: Option<unsafe extern "C" fn(qp: *mut Self, invalidate_rkey: u32)>,
    pub wr_rdma_read: Option<unsafe extern "C" fn(qp: *mut Self, rkey: u32, remote_addr: u64)>,
    pub wr_rdma_write: Option<unsafe extern "C" fn(qp: *mut Self, rkey: u32, remote_addr: u64)>,
    pub wr_rdma_write_imm:
        Option<unsafe extern "C" fn(qp: *mut Self, rkey: u32, remote_addr: u64, imm_data: u32)>,
    pub wr_send: Option<unsafe extern "C" fn(qp: *mut Self)>,
    pub wr_send_imm: Option<unsafe extern "C" fn(qp: *mut Self, imm_data: u32)>,
    pub wr_send_inv: Option<unsafe extern "C" fn(qp: *mut Self, invalidate_rkey: u32)>,
    pub wr_send_tso:
        Option<unsafe extern "C" fn(qp: *mut Self, hdr: *mut c_void, hdr_sz: u16, mss: u16)>,
    pub wr_set_ud_addr: Option<
        unsafe extern "C" fn(qp: *mut Self, ah: *mut ibv_ah, remote_qpn: u32, remote_qkey: u32),
    >,
    pub wr_set_xrc_srqn: Option<unsafe extern "C" fn(qp: *mut Self, remote_srqn: u32)>,
    pub wr_set_inline_data:
        Option<unsafe extern "C" fn(qp: *mut Self, addr: *mut c_void, length: usize)>,
    pub wr_set_inline_data_list:
        Option<unsafe extern "C" fn(qp: *mut Self, num_buf: usize, buf_list: *const ibv_data_buf)>,
    pub wr_set_sge: Option<unsafe extern "C" fn(qp: *mut Self, lkey: u32, addr: u64, length: u32)>,
    pub wr_set_sge_list:
        Option<unsafe extern "C" fn(qp: *mut Self, num_sge: usize, sg_list: *const ibv_sge)>,
    pub wr_start: Option<unsafe extern "C" fn(qp: *mut Self)>,
    pub wr_complete: Option<unsafe extern "C" fn(qp: *mut Self) -> c_int>,
    pub wr_abort: Option<unsafe extern "C" fn(qp: *mut Self)>,
    pub wr_atomic_write: Option<
        unsafe extern "C" fn(qp: *mut Self, rkey: u32, remote_addr: u64, atomic_wr: *const c_void),
    >,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_poll_cq_attr {
    pub comp_mask: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_wc_tm_info {
    pub tag: u64,
    pub priv_: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_cq_ex {
    pub context: *mut ibv_context,
    pub channel: *mut ibv_comp_channel,
    pub cq_context: *mut c_void,
    pub handle: u32,
    pub cqe: c_int,
    pub mutex: pthread_mutex_t,
    pub cond: pthread_cond_t,
    pub comp_events_completed: u32,
    pub async_events_completed: u32,
    pub comp_mask: u32,
    pub status: ibv_wc_status,
    pub wr_id: u64,
    pub start_poll:
        Option<unsafe extern "C" fn(current: *mut Self, attr: *mut ibv_poll_cq_attr) -> c_int>,
    pub next_poll: Option<unsafe extern "C" fn(current: *mut Self) -> c_int>,
    pub end_poll: Option<unsafe extern "C" fn(current: *mut Self)>,
    pub read_opcode: Option<unsafe extern "C" fn(current: *mut Self) -> ibv_wc_opcode>,
    pub read_vendor_err: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_byte_len: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_imm_data: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_qp_num: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_src_qp: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_wc_flags: Option<unsafe extern "C" fn(current: *mut Self) -> c_uint>,
    pub read_slid: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_sl: Option<unsafe extern "C" fn(current: *mut Self) -> u8>,
    pub read_dlid_path_bits: Option<unsafe extern "C" fn(current: *mut Self) -> u8>,
    pub read_completion_ts: Option<unsafe extern "C" fn(current: *mut Self) -> u64>,
    pub read_cvlan: Option<unsafe extern "C" fn(current: *mut Self) -> u16>,
    pub read_flow_tag: Option<unsafe extern "C" fn(current: *mut Self) -> u32>,
    pub read_tm_info:
        Option<unsafe extern "C" fn(current: *mut Self, tm_info: *mut ibv_wc_tm_info)>,
    pub read_completion_wallclock_ns: Option<unsafe extern "C" fn(current: *mut Self) -> u64>,
}
