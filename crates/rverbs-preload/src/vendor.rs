//! Vendor libraries: whatever they are asked about our devices, the answer is "not ours".
//!
//! The real functions look at fields that a vendor's driver keeps behind an object's struct. Ours has
//! other things there, so they must never be called: perftest asks mlx5dv and efadv which adapter it
//! has. Arguments are not looked at, so none are declared; the calling convention allows that.

use core::ffi::{c_int, c_void};

use crate::errno::{self, UNSUPPORTED};

macro_rules! not_ours {
    (pointer: $($pointer:ident)*; code: $($code:ident)*; no: $($no:ident)*;) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $pointer() -> *mut c_void {
                errno::pointer(Err(UNSUPPORTED))
            }
        )*
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $code() -> c_int {
                errno::code(Err(UNSUPPORTED))
            }
        )*
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $no() -> bool {
                false
            }
        )*
    };
}

not_ours! {
    pointer:
        mlx5dv_open_device mlx5dv_create_qp mlx5dv_qp_ex_from_ibv_qp_ex mlx5dv_create_mkey
        mlx5dv_dek_create mlx5dv_create_cq mlx5dv_wrap_create_srq mlx5dv_create_wq mlx5dv_alloc_dm
        mlx5dv_devx_obj_create mlx5dv_devx_umem_reg mlx5dv_devx_alloc_uar mlx5dv_create_flow
        mlx5dv_dr_domain_create mlx5dv_alloc_var mlx5dv_sched_node_create mlx5dv_sched_leaf_create
        mlx5dv_create_steering_anchor mlx5dv_devx_create_cmd_comp mlx5dv_devx_create_event_channel
        efadv_create_qp_ex efadv_create_driver_qp efadv_create_cq manadv_create_cq;
    code:
        mlx5dv_query_device mlx5dv_init_obj mlx5dv_query_qp_lag_port mlx5dv_modify_qp_lag_port
        mlx5dv_modify_qp_udp_sport mlx5dv_modify_qp_sched_elem mlx5dv_destroy_mkey
        mlx5dv_dek_destroy mlx5dv_dek_query mlx5dv_crypto_login mlx5dv_crypto_login_query_state
        mlx5dv_crypto_logout mlx5dv_devx_general_cmd mlx5dv_set_context_attr
        mlx5dv_get_clock_info _mlx5dv_query_port mlx5dv_devx_query_eqn mlx5dv_devx_qp_query
        mlx5dv_vfio_process_events mlx5dv_reserved_qpn_alloc mlx5dv_reserved_qpn_dealloc
        mlx4dv_init_obj mlx4dv_query_device mlx4dv_set_context_attr
        efadv_query_device efadv_query_ah efadv_query_mr
        manadv_init_obj manadv_set_context_attr;
    no:
        mlx5dv_is_supported hnsdv_is_supported;
}
