//! What a software device says about itself.

use rverbs_sys::{
    IBV_ATOMIC_HCA, IBV_DEVICE_CHANGE_PHY_PORT, IBV_DEVICE_CURR_QP_STATE_MOD,
    IBV_DEVICE_RC_RNR_NAK_GEN, IBV_DEVICE_SRQ_RESIZE, IBV_DEVICE_SYS_IMAGE_GUID, IBV_GID_TYPE_IB,
    IBV_PORT_ACTIVE, IBV_PORT_CM_SUP, ibv_device_attr, ibv_device_attr_ex, ibv_gid, ibv_gid_entry,
    ibv_port_attr,
};

/// Attributes of a device with one port.
#[derive(Clone)]
pub struct Attributes {
    /// Of the device.
    pub device: ibv_device_attr_ex,
    /// Of port 1.
    pub port: ibv_port_attr,
    /// The GID table of port 1.
    pub gids: Vec<Gid>,
    /// The PKey table of port 1.
    pub pkeys: Vec<u16>,
    /// Send requests of a queue pair at most; `max_qp_wr` is for both queues.
    pub max_inline: u32,
}

impl core::fmt::Debug for Attributes {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Attributes")
            .field("gids", &self.gids)
            .field("pkeys", &self.pkeys)
            .finish_non_exhaustive()
    }
}

/// An entry of a GID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gid {
    /// The address.
    pub raw: [u8; 16],
    /// `ibv_gid_type`.
    pub kind: u32,
    /// Index of the network interface, 0 where there is none.
    pub ifindex: u32,
}

impl Attributes {
    /// Generous limits, an active port, one GID made from the GUID and the default PKey.
    #[must_use]
    pub fn new(guid: u64) -> Self {
        let mut orig = ibv_device_attr {
            node_guid: guid.to_be(),
            sys_image_guid: guid.to_be(),
            max_mr_size: u64::MAX >> 16,
            page_size_cap: 0xffff_f000,
            vendor_id: 0,
            vendor_part_id: 0,
            hw_ver: 1,
            max_qp: 1 << 14,
            max_qp_wr: 1 << 15,
            device_cap_flags: IBV_DEVICE_CHANGE_PHY_PORT
                | IBV_DEVICE_CURR_QP_STATE_MOD
                | IBV_DEVICE_RC_RNR_NAK_GEN
                | IBV_DEVICE_SRQ_RESIZE
                | IBV_DEVICE_SYS_IMAGE_GUID,
            max_sge: 32,
            max_sge_rd: 32,
            max_cq: 1 << 16,
            max_cqe: 1 << 22,
            max_mr: 1 << 13,
            max_pd: 1 << 16,
            max_qp_rd_atom: 16,
            max_ee_rd_atom: 0,
            max_res_rd_atom: 16 << 14,
            max_qp_init_rd_atom: 16,
            atomic_cap: IBV_ATOMIC_HCA,
            max_ah: 1 << 16,
            max_srq: 1 << 14,
            max_srq_wr: 1 << 15,
            max_srq_sge: 32,
            max_pkeys: 1,
            local_ca_ack_delay: 15,
            phys_port_cnt: 1,
            ..ibv_device_attr::default()
        };
        let version = concat!("rverbs ", env!("CARGO_PKG_VERSION"));
        for (to, from) in orig.fw_ver.iter_mut().zip(version.bytes()) {
            *to = from.cast_signed();
        }
        let mut raw = [0; 16];
        raw[..8].copy_from_slice(&0xfe80_0000_0000_0000_u64.to_be_bytes());
        raw[8..].copy_from_slice(&guid.to_be_bytes());
        Self {
            device: ibv_device_attr_ex {
                orig_attr: orig,
                phys_port_cnt_ex: 1,
                ..ibv_device_attr_ex::default()
            },
            port: ibv_port_attr {
                state: IBV_PORT_ACTIVE,
                max_mtu: 5,
                active_mtu: 5,
                gid_tbl_len: 1,
                port_cap_flags: IBV_PORT_CM_SUP,
                max_msg_sz: 1 << 30,
                pkey_tbl_len: 1,
                active_width: 2,
                active_speed: 32,
                phys_state: 5,
                ..ibv_port_attr::default()
            },
            gids: vec![Gid {
                raw,
                kind: IBV_GID_TYPE_IB,
                ifindex: 0,
            }],
            pkeys: vec![0xffff],
            max_inline: 1024,
        }
    }

    /// Replaces the GID table.
    #[must_use]
    pub fn with_gids(mut self, gids: Vec<Gid>) -> Self {
        self.port.gid_tbl_len = i32::try_from(gids.len()).unwrap_or(i32::MAX);
        self.gids = gids;
        self
    }

    /// An entry of the GID table as C has it.
    #[must_use]
    pub fn gid_entry(&self, index: u32) -> Option<ibv_gid_entry> {
        let gid = self.gids.get(usize::try_from(index).ok()?)?;
        Some(ibv_gid_entry {
            gid: ibv_gid { raw: gid.raw },
            gid_index: index,
            port_num: 1,
            gid_type: gid.kind,
            ndev_ifindex: gid.ifindex,
        })
    }
}
