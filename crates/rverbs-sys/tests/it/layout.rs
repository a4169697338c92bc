//! Sizes and offsets, against the C compiler and against a table of rdma-core's.

use std::mem::{offset_of, size_of};
use std::process::Command;

use rverbs_sys::*;

macro_rules! layout {
    ($($name:ident { $($field:ident)* })*) => {
        /// Every size and offset, as this crate has it: the name as C calls it, and bytes.
        fn ours() -> Vec<(String, usize)> {
            let mut ours = Vec::new();
            $(
                ours.push((concat!("sizeof ", stringify!($name)).into(), size_of::<$name>()));
                $(
                    ours.push((
                        concat!(stringify!($name), ".", stringify!($field)).into(),
                        offset_of!($name, $field),
                    ));
                )*
            )*
            ours
        }

        /// A program that prints the same as C has it.
        fn program() -> String {
            let mut program = String::from(concat!(
                "#include <stdio.h>\n#include <stddef.h>\n#include <infiniband/verbs.h>\n",
                "#include <rdma/rdma_cma.h>\nint main(void) {\n"
            ));
            $(
                program.push_str(concat!(
                    "printf(\"sizeof ", stringify!($name), " %zu\\n\", sizeof(struct_",
                    stringify!($name), "));\n"
                ));
                $(
                    program.push_str(concat!(
                        "printf(\"", stringify!($name), ".", stringify!($field),
                        " %zu\\n\", offsetof(struct_", stringify!($name), ", ",
                        stringify!($field), "));\n"
                    ));
                )*
            )*
            program.push_str("return 0; }\n");
            program
                .replace("struct_ibv_gid)", "union ibv_gid)")
                .replace("struct_ibv_gid,", "union ibv_gid,")
                .replace("struct_", "struct ")
        }
    };
}

layout! {
    ibv_gid { raw global }
    ibv_gid_entry { gid gid_index port_num gid_type ndev_ifindex }
    ibv_device_attr { fw_ver node_guid sys_image_guid max_mr_size page_size_cap vendor_id vendor_part_id hw_ver max_qp max_qp_wr device_cap_flags max_sge max_sge_rd max_cq max_cqe max_mr max_pd max_qp_rd_atom max_ee_rd_atom max_res_rd_atom max_qp_init_rd_atom max_ee_init_rd_atom atomic_cap max_ee max_rdd max_mw max_raw_ipv6_qp max_raw_ethy_qp max_mcast_grp max_mcast_qp_attach max_total_mcast_qp_attach max_ah max_fmr max_map_per_fmr max_srq max_srq_wr max_srq_sge max_pkeys local_ca_ack_delay phys_port_cnt }
    ibv_device_attr_ex { orig_attr comp_mask odp_caps completion_timestamp_mask hca_core_clock device_cap_flags_ex tso_caps rss_caps max_wq_type_rq packet_pacing_caps raw_packet_caps tm_caps cq_mod_caps max_dm_size pci_atomic_caps xrc_odp_caps phys_port_cnt_ex }
    ibv_port_attr { state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr pkey_tbl_len lid sm_lid lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed phys_state link_layer flags port_cap_flags2 }
    ibv_async_event { element event_type }
    ibv_wc { wr_id status opcode vendor_err byte_len qp_num src_qp wc_flags pkey_index slid sl dlid_path_bits }
    ibv_mw_bind_info { mr addr length mw_access_flags }
    ibv_pd { context handle }
    ibv_mr { context pd addr length handle lkey rkey }
    ibv_mw { context pd rkey handle }
    ibv_global_route { dgid flow_label sgid_index hop_limit traffic_class }
    ibv_grh { version_tclass_flow paylen next_hdr hop_limit sgid dgid }
    ibv_ah_attr { grh dlid sl src_path_bits static_rate is_global port_num }
    ibv_srq_attr { max_wr max_sge srq_limit }
    ibv_srq_init_attr { srq_context attr }
    ibv_srq_init_attr_ex { srq_context attr comp_mask srq_type pd xrcd cq tm_cap }
    ibv_qp_cap { max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data }
    ibv_qp_init_attr { qp_context send_cq recv_cq srq cap qp_type sq_sig_all }
    ibv_qp_init_attr_ex { qp_context send_cq recv_cq srq cap qp_type sq_sig_all comp_mask pd xrcd create_flags max_tso_header rwq_ind_tbl rx_hash_conf source_qpn send_ops_flags }
    ibv_qp_open_attr { comp_mask qp_num xrcd qp_context qp_type }
    ibv_qp_attr { qp_state cur_qp_state path_mtu path_mig_state qkey rq_psn sq_psn dest_qp_num qp_access_flags cap ah_attr alt_ah_attr pkey_index alt_pkey_index en_sqd_async_notify sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num timeout retry_cnt rnr_retry alt_port_num alt_timeout rate_limit }
    ibv_data_buf { addr length }
    ibv_sge { addr length lkey }
    ibv_send_wr { wr_id next sg_list num_sge opcode send_flags wr qp_type }
    ibv_recv_wr { wr_id next sg_list num_sge }
    ibv_mw_bind { wr_id send_flags bind_info }
    ibv_srq { context srq_context pd handle mutex cond events_completed }
    ibv_qp { context qp_context pd send_cq recv_cq srq handle qp_num state qp_type mutex cond events_completed }
    ibv_qp_ex { qp_base comp_mask wr_id wr_flags wr_atomic_cmp_swp wr_atomic_fetch_add wr_bind_mw wr_local_inv wr_rdma_read wr_rdma_write wr_rdma_write_imm wr_send wr_send_imm wr_send_inv wr_send_tso wr_set_ud_addr wr_set_xrc_srqn wr_set_inline_data wr_set_inline_data_list wr_set_sge wr_set_sge_list wr_start wr_complete wr_abort wr_atomic_write }
    ibv_comp_channel { context fd refcnt }
    ibv_cq { context channel cq_context handle cqe mutex cond comp_events_completed async_events_completed }
    ibv_cq_ex { context channel cq_context handle cqe mutex cond comp_events_completed async_events_completed comp_mask status wr_id start_poll next_poll end_poll read_opcode read_vendor_err read_byte_len read_imm_data read_qp_num read_src_qp read_wc_flags read_slid read_sl read_dlid_path_bits read_completion_ts read_cvlan read_flow_tag read_tm_info read_completion_wallclock_ns }
    ibv_ah { context pd handle }
    ibv_device { node_type transport_type name dev_name dev_path ibdev_path }
    ibv_context_ops { alloc_mw bind_mw dealloc_mw poll_cq req_notify_cq post_srq_recv post_send post_recv }
    ibv_context { device ops cmd_fd async_fd num_comp_vectors mutex abi_compat }
    ibv_cq_init_attr_ex { cqe cq_context channel comp_vector wc_flags comp_mask flags parent_domain }
    ibv_parent_domain_init_attr { pd td comp_mask alloc free pd_context }
    ibv_modify_cq_attr { attr_mask moderate }
    verbs_context { query_port advise_mr alloc_null_mr read_counters attach_counters_point_flow create_counters destroy_counters reg_dm_mr alloc_dm free_dm modify_flow_action_esp destroy_flow_action create_flow_action_esp modify_qp_rate_limit alloc_parent_domain dealloc_td alloc_td modify_cq post_srq_ops destroy_rwq_ind_table create_rwq_ind_table destroy_wq modify_wq create_wq query_rt_values create_cq_ex query_device_ex ibv_destroy_flow ABI_placeholder2 ibv_create_flow ABI_placeholder1 open_qp create_qp_ex get_srq_num create_srq_ex open_xrcd close_xrcd sz context }
    rdma_cm_id { verbs channel context qp route ps port_num event send_cq_channel send_cq recv_cq_channel recv_cq srq pd qp_type }
    rdma_cm_event { id listen_id event status param }
    rdma_conn_param { private_data private_data_len responder_resources initiator_depth flow_control retry_count rnr_retry_count srq qp_num }
    rdma_ud_param { private_data private_data_len ah_attr qp_num qkey }
    rdma_addrinfo { ai_flags ai_family ai_qp_type ai_port_space ai_src_len ai_dst_len ai_src_addr ai_dst_addr ai_src_canonname ai_dst_canonname ai_route_len ai_route ai_connect_len ai_connect ai_next }
    rdma_event_channel { fd }
    rdma_route { addr path_rec num_paths }
    rdma_ib_addr { sgid dgid pkey }
    ibv_sa_path_rec { dgid sgid dlid slid raw_traffic flow_label hop_limit traffic_class reversible numb_path pkey sl mtu_selector mtu rate_selector rate packet_life_time_selector packet_life_time preference }
    ibv_path_record { service_id dgid sgid dlid slid flowlabel_hoplimit tclass reversible_numpath pkey qosclass_sl mtu rate packetlifetime preference reserved }
    ibv_path_data { flags reserved path }
}

/// What rdma-core 44 to 56 have on x86-64: (name, bytes).
const TABLE: &[(&str, usize)] = &[
    ("sizeof ibv_context", 328),
    ("ibv_context.device", 0),
    ("ibv_context.ops", 8),
    ("ibv_context.cmd_fd", 264),
    ("ibv_context.async_fd", 268),
    ("ibv_context.num_comp_vectors", 272),
    ("ibv_context.abi_compat", 320),
    ("sizeof ibv_context_ops", 256),
    ("ibv_context_ops.alloc_mw", 56),
    ("ibv_context_ops.bind_mw", 64),
    ("ibv_context_ops.dealloc_mw", 72),
    ("ibv_context_ops.poll_cq", 88),
    ("ibv_context_ops.req_notify_cq", 96),
    ("ibv_context_ops.post_srq_recv", 160),
    ("ibv_context_ops.post_send", 200),
    ("ibv_context_ops.post_recv", 208),
    ("sizeof verbs_context", 648),
    ("verbs_context.query_port", 0),
    ("verbs_context.create_cq_ex", 200),
    ("verbs_context.query_device_ex", 216),
    ("verbs_context.ibv_create_flow", 240),
    ("verbs_context.create_qp_ex", 264),
    ("verbs_context.sz", 312),
    ("verbs_context.context", 320),
    ("sizeof ibv_send_wr", 128),
    ("ibv_send_wr.wr", 40),
    ("sizeof ibv_recv_wr", 32),
    ("sizeof ibv_sge", 16),
    ("sizeof ibv_wc", 48),
    ("ibv_wc.status", 8),
    ("ibv_wc.byte_len", 20),
    ("ibv_wc.qp_num", 28),
    ("sizeof ibv_qp", 160),
    ("ibv_qp.qp_num", 52),
    ("ibv_qp.state", 56),
    ("sizeof ibv_cq", 128),
    ("sizeof ibv_mr", 48),
    ("ibv_mr.lkey", 36),
    ("ibv_mr.rkey", 40),
    ("ibv_qp_ex.wr_id", 168),
    ("ibv_qp_ex.wr_flags", 176),
    ("ibv_qp_ex.wr_start", 320),
    ("ibv_qp_ex.wr_complete", 328),
    ("sizeof ibv_device", 664),
    ("ibv_device.node_type", 16),
    ("ibv_device.transport_type", 20),
    ("ibv_device.name", 24),
    ("ibv_device.dev_name", 88),
    ("sizeof ibv_device_attr", 232),
    ("sizeof ibv_qp_attr", 144),
    ("sizeof ibv_qp_init_attr", 64),
    ("sizeof ibv_qp_init_attr_ex", 136),
    ("sizeof ibv_ah_attr", 32),
];

/// Structures that newer headers make longer, and nothing else.
const GROWING: &[&str] = &["sizeof ibv_port_attr", "sizeof ibv_qp_ex"];

#[test]
fn sizes_and_offsets_are_those_of_the_table() {
    let ours = ours();
    for (name, bytes) in TABLE {
        let found = ours.iter().find(|(other, _)| other == name);
        assert_eq!(found.map(|(_, bytes)| bytes), Some(bytes), "{name}");
    }
    assert_eq!(offset_of!(ibv_send_wr, imm), 36);
}

#[test]
fn sizes_and_offsets_are_those_of_the_c_compiler() {
    if !std::path::Path::new("/usr/include/infiniband/verbs.h").exists()
        || !std::path::Path::new("/usr/include/rdma/rdma_cma.h").exists()
    {
        eprintln!(
            "SKIPPED: sizes_and_offsets_are_those_of_the_c_compiler: no headers of rdma-core"
        );
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (source, binary) = (dir.path().join("layout.c"), dir.path().join("layout"));
    std::fs::write(&source, program()).unwrap();
    let cc = Command::new("cc")
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .output();
    let cc = match cc {
        Ok(cc) => cc,
        Err(error) => {
            eprintln!("SKIPPED: sizes_and_offsets_are_those_of_the_c_compiler: cc: {error}");
            return;
        }
    };
    assert!(
        cc.status.success(),
        "{}",
        String::from_utf8_lossy(&cc.stderr)
    );
    let output = Command::new(&binary).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let ours = ours();
    assert_eq!(output.lines().count(), ours.len());
    for (line, (name, bytes)) in output.lines().zip(&ours) {
        let (theirs, length) = line.rsplit_once(' ').unwrap();
        assert_eq!(theirs, name);
        let length: usize = length.parse().unwrap();
        if GROWING.contains(&theirs) {
            assert!(length >= *bytes, "{line}: here {bytes}");
        } else {
            assert_eq!(length, *bytes, "{line}");
        }
    }
}
