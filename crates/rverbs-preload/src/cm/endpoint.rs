//! Names to addresses, endpoints that are made in one call, and the device list of librdmacm.

use core::ffi::{CStr, c_char, c_int};
use core::ptr::{NonNull, null_mut};

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_QPT_RC, IBV_QPT_UD, RAI_NUMERICHOST, RAI_PASSIVE, RDMA_CM_EVENT_CONNECT_REQUEST,
    RDMA_CM_EVENT_REJECTED, RDMA_PS_IPOIB, RDMA_PS_TCP, RDMA_PS_UDP, ibv_context, ibv_pd,
    ibv_qp_init_attr, rdma_addrinfo, rdma_cm_id,
};

use super::channel::{acknowledge, next};
use super::connect::{self, resolve_addr, resolve_route};
use super::id::Id;
use super::qp;
use crate::device::devices;
use crate::errno::{self, UNSUPPORTED};

unsafe extern "C" {
    // In qp.rs; an exported function is called by its name here as C calls it.
    fn rdma_destroy_qp(id: *mut rdma_cm_id);
    fn rdma_destroy_srq(id: *mut rdma_cm_id);
}

/// Sockets over connections are made of librdmacm's own parts, which know nothing of our
/// identifiers: so there are none. With descriptors of the kernel's, `rpoll` and the others work.
#[unsafe(no_mangle)]
extern "C" fn rsocket(_domain: c_int, _kind: c_int, _protocol: c_int) -> c_int {
    errno::minus_one(Err(UNSUPPORTED))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_devices(count: *mut c_int) -> *mut *mut ibv_context {
    let contexts: Vec<_> = devices()
        .iter()
        .filter_map(|device| device.shared().ok())
        .map(|(context, _)| context.as_ptr())
        .collect();
    // SAFETY: makes memory and touches nothing else.
    let list = unsafe { libc::calloc(contexts.len() + 1, size_of::<*mut ibv_context>()) }
        .cast::<*mut ibv_context>();
    if list.is_null() {
        errno::set(libc::ENOMEM);
        return list;
    }
    for (index, context) in contexts.iter().enumerate() {
        // SAFETY: the list has room for one more than there are contexts.
        unsafe { list.add(index).write(*context) };
    }
    if !count.is_null() {
        // SAFETY: C's contract: `count` is writable.
        unsafe { count.write(c_int::try_from(contexts.len()).unwrap_or(c_int::MAX)) };
    }
    list
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_free_devices(list: *mut *mut ibv_context) {
    // SAFETY: C's contract: the list came from `rdma_get_devices`.
    unsafe { libc::free(list.cast()) };
}

/// A copy in memory of C's, which `rdma_freeaddrinfo` frees.
///
/// # Safety
///
/// `from` can be read for `len` bytes.
unsafe fn copy(from: *const libc::sockaddr, len: libc::socklen_t) -> *mut libc::sockaddr {
    // SAFETY: makes memory and touches nothing else.
    let to = unsafe { libc::malloc(len as usize) };
    if !to.is_null() {
        // SAFETY: as the caller promises; the memory is new and that long.
        unsafe {
            to.cast::<u8>()
                .copy_from_nonoverlapping(from.cast(), len as usize);
        }
    }
    to.cast()
}

/// What the hints mean for `getaddrinfo`.
fn hints_for(hints: &rdma_addrinfo) -> libc::addrinfo {
    // SAFETY: integers and null pointers: zero is a value of each.
    let mut to: libc::addrinfo = unsafe { core::mem::zeroed() };
    let flags = hints.ai_flags.cast_unsigned();
    if flags & RAI_PASSIVE != 0 {
        to.ai_flags |= libc::AI_PASSIVE;
    }
    if flags & RAI_NUMERICHOST != 0 {
        to.ai_flags |= libc::AI_NUMERICHOST;
    }
    to.ai_family = hints.ai_family;
    to.ai_socktype = match hints.ai_qp_type.cast_unsigned() {
        0 => 0,
        IBV_QPT_UD => libc::SOCK_DGRAM,
        _ => libc::SOCK_STREAM,
    };
    to.ai_protocol = match hints.ai_port_space.cast_unsigned() {
        RDMA_PS_TCP => libc::IPPROTO_TCP,
        RDMA_PS_UDP | RDMA_PS_IPOIB => libc::IPPROTO_UDP,
        _ => 0,
    };
    to
}

/// # Safety
///
/// As for `rdma_getaddrinfo`.
unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: Option<&rdma_addrinfo>,
    to: &mut rdma_addrinfo,
) -> Result<(), c_int> {
    let c_hints = hints.map(hints_for);
    let c_hints = c_hints
        .as_ref()
        .map_or(core::ptr::null(), core::ptr::from_ref);
    let mut list = null_mut();
    // SAFETY: C's contract: both are null or strings.
    let code = unsafe { libc::getaddrinfo(node, service, c_hints, &raw mut list) };
    if code != 0 {
        return Err(code);
    }
    // SAFETY: the call succeeded, so there is at least one.
    let found = unsafe { &*list };
    let (qp_type, space) = hints.map_or((0, 0), |hints| (hints.ai_qp_type, hints.ai_port_space));
    let datagram = found.ai_socktype == libc::SOCK_DGRAM;
    let default = if datagram {
        (IBV_QPT_UD, RDMA_PS_UDP)
    } else {
        (IBV_QPT_RC, RDMA_PS_TCP)
    };
    to.ai_qp_type = if qp_type == 0 {
        default.0.cast_signed()
    } else {
        qp_type
    };
    to.ai_port_space = if space == 0 {
        default.1.cast_signed()
    } else {
        space
    };
    to.ai_family = found.ai_family;
    // Without hints the C library takes whatever comes first, too.
    let passive = c_hints.is_null() || found.ai_flags & libc::AI_PASSIVE == 0;
    // SAFETY: the list's addresses are as long as it says.
    let address = unsafe { copy(found.ai_addr, found.ai_addrlen) };
    if passive {
        (to.ai_dst_addr, to.ai_dst_len) = (address, found.ai_addrlen);
    } else {
        to.ai_flags = RAI_PASSIVE.cast_signed();
        (to.ai_src_addr, to.ai_src_len) = (address, found.ai_addrlen);
    }
    // SAFETY: the list is not used again.
    unsafe { libc::freeaddrinfo(list) };
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
    result: *mut *mut rdma_addrinfo,
) -> c_int {
    if node.is_null() && service.is_null() && hints.is_null() {
        return errno::minus_one(Err(Errno(libc::EINVAL)));
    }
    if devices().is_empty() {
        return errno::minus_one(Err(Errno(libc::ENODEV)));
    }
    // SAFETY: makes memory and touches nothing else.
    let info = unsafe { libc::calloc(1, size_of::<rdma_addrinfo>()) }.cast::<rdma_addrinfo>();
    if info.is_null() {
        return errno::minus_one(Err(Errno(libc::ENOMEM)));
    }
    // SAFETY: C's contract: the hints are null or readable; the memory is new and zeroed.
    let (hints, to) = unsafe { (hints.as_ref(), &mut *info) };
    if node.is_null() && service.is_null() {
        if let Some(hints) = hints {
            to.ai_flags = hints.ai_flags;
            to.ai_family = hints.ai_family;
            to.ai_qp_type = hints.ai_qp_type;
            to.ai_port_space = hints.ai_port_space;
            if hints.ai_dst_len > 0 {
                // SAFETY: C's contract: the address is as long as it says.
                to.ai_dst_addr = unsafe { copy(hints.ai_dst_addr, hints.ai_dst_len) };
                to.ai_dst_len = hints.ai_dst_len;
            }
        }
    // SAFETY: C's contract: both are null or strings.
    } else if let Err(code) = unsafe { look_up(node, service, hints, to) } {
        // SAFETY: it was made above.
        unsafe { rdma_freeaddrinfo(info) };
        let name = (!node.is_null())
            // SAFETY: C's contract: it is a string.
            .then(|| unsafe { CStr::from_ptr(node) }.to_string_lossy());
        tracing::debug!(?name, code, "getaddrinfo failed");
        return code;
    }
    if let Some(hints) = hints
        && to.ai_src_len == 0
        && hints.ai_src_len > 0
    {
        // SAFETY: C's contract: the address is as long as it says.
        to.ai_src_addr = unsafe { copy(hints.ai_src_addr, hints.ai_src_len) };
        to.ai_src_len = hints.ai_src_len;
    }
    // SAFETY: C's contract: `result` is writable.
    unsafe { result.write(info) };
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_freeaddrinfo(list: *mut rdma_addrinfo) {
    let mut next = list;
    while let Some(this) = NonNull::new(next) {
        // SAFETY: C's contract: the list came from `rdma_getaddrinfo`, so every pointer in it is null
        // or was allocated for it.
        unsafe {
            let info = *this.as_ptr();
            next = info.ai_next;
            libc::free(info.ai_connect);
            libc::free(info.ai_route);
            libc::free(info.ai_src_canonname.cast());
            libc::free(info.ai_dst_canonname.cast());
            libc::free(info.ai_src_addr.cast());
            libc::free(info.ai_dst_addr.cast());
            libc::free(this.as_ptr().cast());
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_create_ep(
    id: *mut *mut rdma_cm_id,
    info: *mut rdma_addrinfo,
    pd: *mut ibv_pd,
    attr: *mut ibv_qp_init_attr,
) -> c_int {
    let mut made = null_mut();
    // SAFETY: C's contract: `info` came from `rdma_getaddrinfo`.
    let info = unsafe { &*info };
    let created = {
        let space = info.ai_port_space.cast_unsigned();
        let qp_type = info.ai_qp_type.cast_unsigned();
        // SAFETY: `made` is ours.
        unsafe { connect::create(null_mut(), &raw mut made, null_mut(), space, qp_type) }
    };
    errno::minus_one(created.and_then(|()| {
        // SAFETY: C's contract.
        match unsafe { fill(made, info, pd, attr) } {
            Ok(()) => {
                // SAFETY: C's contract: `id` is writable.
                unsafe { id.write(made) };
                Ok(())
            }
            Err(error) => {
                // SAFETY: nobody else has seen it.
                unsafe { rdma_destroy_ep(made) };
                Err(error)
            }
        }
    }))
}

/// # Safety
///
/// As for `rdma_create_ep`.
unsafe fn fill(
    raw: *mut rdma_cm_id,
    info: &rdma_addrinfo,
    pd: *mut ibv_pd,
    attr: *mut ibv_qp_init_attr,
) -> Result<(), Errno> {
    // SAFETY: the identifier was just made; C's contract for the rest.
    unsafe {
        let id = Id::share(raw)?;
        if info.ai_flags.cast_unsigned() & RAI_PASSIVE != 0 {
            connect::bind(raw, info.ai_src_addr)?;
            if !pd.is_null() {
                (*raw).pd = pd;
            }
            if let Some(attr) = attr.as_ref() {
                let mut attr = *attr;
                attr.qp_type = info.ai_qp_type.cast_unsigned();
                id.state().qp_init_attr = Some(attr);
            }
            return Ok(());
        }
        resolve_addr(raw, info.ai_src_addr, info.ai_dst_addr)?;
        resolve_route(raw)?;
        if let Some(attr) = attr.as_mut() {
            attr.qp_type = info.ai_qp_type.cast_unsigned();
            qp::create_basic(raw, pd, attr)?;
        }
        if !info.ai_connect.is_null() && info.ai_connect_len > 0 {
            let data = core::slice::from_raw_parts(info.ai_connect.cast(), info.ai_connect_len);
            id.state().connect_data = data.to_vec();
        }
    }
    Ok(())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_destroy_ep(id: *mut rdma_cm_id) {
    // SAFETY: C's contract: the identifier and its objects are live, and not used again.
    unsafe {
        if !(*id).qp.is_null() {
            rdma_destroy_qp(id);
        }
        if !(*id).srq.is_null() {
            rdma_destroy_srq(id);
        }
        // C returns no error here either.
        let _ = Id::destroy(id);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rdma_get_request(listen: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int {
    // SAFETY: C's contract.
    errno::minus_one(unsafe { request(listen, id) })
}

/// # Safety
///
/// As for `rdma_get_request`.
unsafe fn request(listen: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> Result<(), Errno> {
    // SAFETY: C's contract: the identifier is live.
    let this = unsafe { Id::share(listen) }?;
    let (sync, queue, attr) = {
        let state = this.state();
        (state.sync, state.queue.clone(), state.qp_init_attr)
    };
    if !sync {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the program's thread is the only one that uses the struct.
    let before = unsafe { core::mem::replace(&mut (*listen).event, null_mut()) };
    if !before.is_null() {
        // SAFETY: the event was left there by this function.
        unsafe { acknowledge(before) };
    }
    // SAFETY: C's contract.
    let event = unsafe { next(&queue) }?;
    // SAFETY: the event is live until it is acknowledged.
    let (kind, status, child) = unsafe { ((*event).event, (*event).status, (*event).id) };
    let result = match kind {
        RDMA_CM_EVENT_REJECTED => Err(Errno(libc::ECONNREFUSED)),
        _ if status != 0 => Err(Errno(status.saturating_abs())),
        RDMA_CM_EVENT_CONNECT_REQUEST => match attr {
            // SAFETY: C's contract: the queues that the attributes name are live.
            Some(mut attr) => unsafe { qp::create_basic(child, (*listen).pd, &mut attr) },
            None => Ok(()),
        },
        _ => Err(Errno(libc::EINVAL)),
    };
    // SAFETY: C's contract: `id` is writable; the program's thread alone uses the structs.
    unsafe {
        match result {
            Ok(()) => {
                id.write(child);
                (*child).event = event;
            }
            Err(_) => (*listen).event = event,
        }
    }
    result
}
