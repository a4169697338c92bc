//! Multicast groups.

use core::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr};

use rverbs::provider::Errno;
use rverbs_sys::{
    RDMA_CM_EVENT_MULTICAST_ERROR, RDMA_CM_EVENT_MULTICAST_JOIN, RDMA_CM_JOIN_MC_ATTR_ADDRESS,
    RDMA_UDP_QKEY, ibv_ah_attr, ibv_gid, ibv_global_route, ibv_qp, rdma_cm_id,
    rdma_cm_join_mc_attr_ex,
};

use super::address;
use super::channel::Param;
use super::id::Id;
use crate::device::open_of;
use crate::errno::{self, given};

/// The address of a group: RoCE takes the IP address, inside IPv6 where it is IPv4.
fn group(ip: IpAddr) -> ibv_ah_attr {
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid {
                raw: address::gid_of(ip),
            },
            flow_label: 0,
            sgid_index: 0,
            hop_limit: 1,
            traffic_class: 0,
        },
        dlid: 0xc000,
        is_global: 1,
        port_num: 1,
        ..ibv_ah_attr::default()
    }
}

/// # Safety
///
/// The queue pair is live.
unsafe fn attach(qp: *mut ibv_qp, group: &ibv_ah_attr) -> Result<(), Errno> {
    let qp = given(qp)?;
    let open = open_of!(qp.as_ptr());
    // SAFETY: as the caller promises.
    unsafe { open.provider.attach_mcast(qp, &group.grh.dgid, group.dlid) }
}

/// # Safety
///
/// As for `rdma_join_multicast`.
unsafe fn join(
    raw: *mut rdma_cm_id,
    to: *const libc::sockaddr,
    user: *mut c_void,
) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live, the address as long as its family says.
    let (id, to) = unsafe { (Id::share(raw)?, address::read(to)) };
    let to: SocketAddr = to.ok_or(Errno(libc::EINVAL))?;
    id.open()?;
    let group = group(to.ip());
    // SAFETY: C's contract: the queue pair is live where there is one.
    let joined = unsafe {
        match (*raw).qp {
            qp if qp.is_null() => Ok(()),
            qp => attach(qp, &group),
        }
    };
    let param = Param::Group(group, RDMA_UDP_QKEY, user.expose_provenance());
    match joined {
        Ok(()) => {
            id.state().groups.push((to, group));
            id.give(RDMA_CM_EVENT_MULTICAST_JOIN, 0, param);
        }
        Err(Errno(errno)) => id.give(RDMA_CM_EVENT_MULTICAST_ERROR, -errno, param),
    }
    // SAFETY: C's contract.
    unsafe { id.complete() }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_join_multicast(
    id: *mut rdma_cm_id,
    to: *mut libc::sockaddr,
    user: *mut c_void,
) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { join(id, to, user) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_join_multicast_ex(
    id: *mut rdma_cm_id,
    attr: *mut rdma_cm_join_mc_attr_ex,
    user: *mut c_void,
) -> c_int {
    // SAFETY: C's contract: `attr` is readable.
    let attr = unsafe { &*attr };
    if attr.comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS == 0 {
        return errno::minus_one(Err(Errno(libc::EINVAL)));
    }
    // SAFETY: C's contract.
    errno::minus_one(unsafe { join(id, attr.addr, user) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_leave_multicast(id: *mut rdma_cm_id, from: *mut libc::sockaddr) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { leave(id, from) })
}

/// # Safety
///
/// As for `rdma_leave_multicast`.
unsafe fn leave(raw: *mut rdma_cm_id, from: *const libc::sockaddr) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live, the address as long as its family says.
    let (id, from) = unsafe { (Id::share(raw)?, address::read(from)) };
    let from = from.ok_or(Errno(libc::EINVAL))?;
    let found = {
        let mut state = id.state();
        let at = state
            .groups
            .iter()
            .position(|(address, _)| *address == from);
        at.map(|at| state.groups.swap_remove(at))
    };
    let (_, group) = found.ok_or(Errno(libc::EADDRNOTAVAIL))?;
    // SAFETY: C's contract: the identifier is live.
    let Ok(qp) = given(unsafe { (*raw).qp }) else {
        return Ok(());
    };
    let open = open_of!(qp.as_ptr());
    // SAFETY: C's contract: the queue pair is live.
    unsafe { open.provider.detach_mcast(qp, &group.grh.dgid, group.dlid) }
}
