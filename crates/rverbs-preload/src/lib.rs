//! `librverbs_preload.so`: unmodified programs that use libibverbs and librdmacm run on a software
//! RDMA device.
//!
//! ```text
//! rverbs run -- ib_write_bw                      # in one shell
//! rverbs run -- ib_write_bw 127.0.0.1            # in another
//!
//! LD_PRELOAD=/usr/lib/librverbs_preload.so RVERBS_PROVIDER=roce rping -s -a 192.0.2.1   # the same, by hand
//! ```
//!
//! # How it works
//!
//! The library defines libibverbs' and librdmacm's functions, without symbol versions. The dynamic
//! linker takes a preloaded definition without a version for a reference with any version
//! (`ibv_open_device@IBVERBS_1.1`), so every program that was linked with them calls ours. The
//! inline verbs (`ibv_post_send`, `ibv_poll_cq`) call through the table of operations in the
//! `ibv_context`, which is the provider's own: on the data path nothing of this library runs.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `RVERBS_PROVIDER` | `shm` (what you get without it: processes of one user on this host), `roce` (RoCEv2 over UDP in user space), or both with a comma; the first one is the first device |
//! | `RVERBS_ROCE_PORT` | the first UDP port that `roce` tries, if not 4791 |
//! | `RVERBS_ROCE_ADDRESS` | the one address of this host whose device there is to be |
//! | `RVERBS_LOG` | `error`, `warn`, `info`, `debug` or `trace`: what the library says about itself on stderr; it says nothing without it |
//!
//! # What there is
//!
//! | functions | in |
//! |---|---|
//! | device list, open, attributes, port, GIDs, PKeys, sysfs texts | `device`, `query` |
//! | PD, MR, channel, CQ, SRQ, QP, AH, asynchronous events | `verbs` |
//! | `ibv_create_qp_ex` with `ibv_wr_*`, `ibv_query_device_ex`, `ibv_create_srq_ex` | `extended`, `batch` |
//! | names of statuses, events, states; rates | `text` |
//! | mlx5dv, mlx4dv, efadv: "this device is not ours" | `vendor` |
//! | librdmacm: connections by IP address | `cm` |
//!
//! These are the symbols that the programs of Debian's packages need (`nm -D --undefined-only`),
//! and all are here:
//!
//! - perftest 6.06: `_ibv_query_gid_ex ibv_ack_cq_events ibv_alloc_pd ibv_attach_mcast
//!   ibv_close_device ibv_create_ah ibv_create_ah_from_wc ibv_create_comp_channel ibv_create_cq
//!   ibv_create_qp ibv_create_srq ibv_dealloc_pd ibv_dereg_mr ibv_destroy_ah
//!   ibv_destroy_comp_channel ibv_destroy_cq ibv_destroy_qp ibv_destroy_srq ibv_detach_mcast
//!   ibv_get_cq_event ibv_get_device_list ibv_get_device_name ibv_modify_qp ibv_open_device
//!   ibv_qp_to_qp_ex ibv_query_device ibv_query_gid ibv_query_pkey ibv_query_port ibv_query_qp
//!   ibv_reg_mr ibv_reg_mr_iova2`, nine of `mlx5dv_`, two of `efadv_`, and `rdma_accept
//!   rdma_ack_cm_event rdma_bind_addr rdma_connect rdma_create_event_channel rdma_create_id
//!   rdma_create_qp rdma_create_qp_ex rdma_destroy_event_channel rdma_destroy_id rdma_destroy_qp
//!   rdma_disconnect rdma_event_str rdma_freeaddrinfo rdma_get_cm_event rdma_getaddrinfo rdma_listen
//!   rdma_reject rdma_resolve_addr rdma_resolve_route rdma_set_option`. Its 11 `umad_` functions
//!   stay libibumad's: they are for `--use-sa` only.
//! - ibverbs-utils: also `ibv_ack_async_event ibv_free_device_list ibv_get_async_event
//!   ibv_get_device_guid ibv_query_gid_type ibv_read_sysfs_file ibv_wc_status_str`.
//! - rdmacm-utils: also `rdma_create_ep rdma_create_srq rdma_destroy_ep rdma_establish
//!   rdma_get_request rdma_init_qp_attr rdma_join_multicast_ex rdma_leave_multicast
//!   rdma_migrate_id`.
//! - qperf: also `rdma_get_src_port`.
//!
//! The rest of libibverbs' public functions is here too, doing what it can or saying `EOPNOTSUPP`:
//! no function of a real library may ever see one of our objects.
//!
//! # Limits
//!
//! - A static or set-user-ID program ignores `LD_PRELOAD`.
//! - `fork`: a child may open the device anew. It must not use objects that its parent made, and if
//!   the parent used librdmacm before, the child has no thread that serves connections.
//! - Extended completion queues (`ibv_create_cq_ex`), XRC, memory windows, device memory, flow
//!   steering and rsockets are not there; programs are told by `EOPNOTSUPP`.
//! - Figures that a program prints are those of memory copies or UDP sockets, not of an adapter: the
//!   device's name and firmware version say so (`rverbs_shm0`, `soft-shm`).
#![expect(
    unsafe_code,
    reason = "this crate is two C libraries; their contracts are in their manual pages"
)]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "to follow a pointer and to use what it leads to is one step, with one reason"
)]

mod batch;
mod cm;
mod device;
mod errno;
mod extended;
mod log;
mod query;
mod text;
mod vendor;
mod verbs;
