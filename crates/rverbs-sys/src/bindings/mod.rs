//! The declarations of rdma-core's public headers, for 64-bit Linux.
//!
//! Made once from the headers of rdma-core 44 and checked in; names are C's, so that the manual
//! pages (`ibv_post_send(3)`, `rdma_cm(7)`) document them. The layouts are the same up to rdma-core
//! 56 except that `ibv_port_attr` and `ibv_qp_ex` grow at their end: callers pass the size that they
//! know, and never read behind it. The tests compare every size and offset with the C compiler.
//!
//! C's unnamed unions have names here: `ibv_send_wr::imm`, `ibv_send_wr::ext`, `ibv_wc::imm`.

mod attribute;
mod cm;
mod constant;
mod object;
mod work;

pub use attribute::*;
pub use cm::*;
pub use constant::*;
pub use object::*;
pub use work::*;

macro_rules! zeroed {
    ($($name:ident)*) => { $(
        impl Default for $name {
            /// All bytes zero, which is what C's `= {}` and `memset` make.
            fn default() -> Self {
                // SAFETY: integers, null pointers, absent functions: zero is a value of each.
                unsafe { core::mem::zeroed() }
            }
        }
    )* };
}

zeroed! {
    ibv_gid ibv_gid_entry ibv_device ibv_device_attr ibv_device_attr_ex ibv_port_attr ibv_ah_attr
    ibv_global_route ibv_grh ibv_context ibv_context_ops verbs_context ibv_pd ibv_mr ibv_cq ibv_qp
    ibv_srq ibv_ah ibv_comp_channel ibv_async_event ibv_qp_attr ibv_qp_cap ibv_qp_init_attr
    ibv_qp_init_attr_ex ibv_srq_attr ibv_srq_init_attr ibv_srq_init_attr_ex ibv_send_wr
    ibv_recv_wr ibv_sge ibv_wc ibv_mw_bind ibv_cq_init_attr_ex ibv_modify_cq_attr
    rdma_conn_param rdma_addrinfo rdma_ud_param
}
