//! libibverbs, loaded at run time: real adapters, and the kernel's software devices.

use core::ffi::{CStr, c_int, c_void};
use core::fmt;
use core::mem::{offset_of, size_of};
use core::ptr::NonNull;
use std::sync::{Arc, OnceLock};

use rverbs_sys::inline::verbs_get_ctx_op;
use rverbs_sys::{
    IBV_ACCESS_OPTIONAL_FIRST, IBV_QP_INIT_ATTR_PD, Verbs, ibv_ah, ibv_ah_attr, ibv_async_event,
    ibv_comp_channel, ibv_context, ibv_cq, ibv_device, ibv_device_attr_ex, ibv_gid, ibv_gid_entry,
    ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex,
    ibv_srq, ibv_srq_attr, ibv_srq_init_attr, verbs_context,
};

use crate::Error;

use super::soft::{anonymous, unmap};
use super::{Context as Control, DeviceInfo, Errno, Kind, Memory, Provider};

/// The provider. The library is loaded when it is first needed.
#[derive(Debug, Default)]
pub struct VerbsProvider(());

/// The library, loaded once for the process: unloading it would leave its threads without code.
fn library() -> Result<&'static Arc<Verbs>, Error> {
    static LIBRARY: OnceLock<Arc<Verbs>> = OnceLock::new();
    if let Some(verbs) = LIBRARY.get() {
        return Ok(verbs);
    }
    let verbs = Arc::new(Verbs::load()?);
    Ok(LIBRARY.get_or_init(|| verbs))
}

/// A list of devices, freed at its end.
struct List {
    verbs: Arc<Verbs>,
    first: NonNull<*mut ibv_device>,
    len: usize,
}

impl List {
    fn get() -> Result<Self, Error> {
        let verbs = Arc::clone(library()?);
        let get = verbs.ibv_get_device_list()?;
        // Where the list is freed there must be what frees it.
        verbs.ibv_free_device_list()?;
        let mut len: c_int = 0;
        // SAFETY: the count is writable.
        let first = unsafe { get(&raw mut len) };
        let first = NonNull::new(first).ok_or_else(Errno::last);
        let first = first.map_err(Error::verb("ibv_get_device_list"))?;
        Ok(Self {
            verbs,
            first,
            len: usize::try_from(len).unwrap_or(0),
        })
    }

    fn devices(&self) -> impl Iterator<Item = NonNull<ibv_device>> + '_ {
        // SAFETY: the list has that many entries until it is freed.
        let list = unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.len) };
        list.iter().filter_map(|device| NonNull::new(*device))
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if let Ok(free) = self.verbs.ibv_free_device_list() {
            // SAFETY: the list is the library's, and not used any more.
            unsafe { free(self.first.as_ptr()) };
        }
    }
}

fn name_of(device: NonNull<ibv_device>) -> String {
    // SAFETY: the device is live, and its name is terminated in its array.
    let name = unsafe { CStr::from_ptr((&raw const (*device.as_ptr()).name).cast()) };
    name.to_string_lossy().into_owned()
}

impl Provider for VerbsProvider {
    fn kind(&self) -> Kind {
        Kind::Verbs
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, Error> {
        let list = List::get()?;
        let guid = list.verbs.ibv_get_device_guid()?;
        Ok(list
            .devices()
            .map(|device| {
                // SAFETY: the device is live while the list is.
                let (struct_, guid) = unsafe { (device.as_ref(), guid(device.as_ptr())) };
                DeviceInfo {
                    name: name_of(device),
                    provider: Kind::Verbs,
                    node_type: struct_.node_type,
                    transport: struct_.transport_type,
                    guid: u64::from_be(guid),
                }
            })
            .collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Control>, Error> {
        let list = List::get()?;
        let device = list
            .devices()
            .find(|device| name_of(*device) == name)
            .ok_or_else(|| Error::NoDevice { name: name.into() })?;
        let open = list.verbs.ibv_open_device()?;
        // SAFETY: the device is live while the list is; the context keeps it afterwards.
        let raw = NonNull::new(unsafe { open(device.as_ptr()) }).ok_or_else(Errno::last);
        let raw = raw.map_err(Error::verb("ibv_open_device"))?;
        Ok(Arc::new(Context {
            verbs: Arc::clone(&list.verbs),
            raw,
            name: name.into(),
        }))
    }
}

/// An open device.
struct Context {
    verbs: Arc<Verbs>,
    raw: NonNull<ibv_context>,
    name: String,
}

// SAFETY: libibverbs' functions may be called from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(close) = self.verbs.ibv_close_device() {
            // SAFETY: what was made from the context keeps it, so this is the last use.
            unsafe { close(self.raw.as_ptr()) };
        }
    }
}

/// A function that this library is too old for.
fn absent(_: rverbs_sys::Error) -> Errno {
    Errno(libc::EOPNOTSUPP)
}

/// A pointer that C returns, or `errno`.
fn made<T>(pointer: *mut T) -> Result<NonNull<T>, Errno> {
    NonNull::new(pointer).ok_or_else(Errno::last)
}

macro_rules! call {
    ($self:ident . $name:ident ( $($arg:expr),* $(,)? )) => {{
        let function = $self.verbs.$name().map_err(absent)?;
        // SAFETY: the objects are live, by the contract of the trait; the other arguments are ours.
        unsafe { function($($arg),*) }
    }};
}

impl Context {
    fn ptr(&self) -> *mut ibv_context {
        self.raw.as_ptr()
    }

    /// The extended context, where it has the operation at `offset`.
    fn extended(&self, offset: usize) -> Option<&verbs_context> {
        // SAFETY: the context is live.
        let extended = unsafe { verbs_get_ctx_op(self.ptr(), offset) }?;
        // SAFETY: it lives as long as the context that lies in it; a part of it that the library
        // does not have is in front of what it allocated, so only the operation asked for is read.
        Some(unsafe { &*extended })
    }
}

// SAFETY: objects are libibverbs' own.
unsafe impl Control for Context {
    fn kind(&self) -> Kind {
        Kind::Verbs
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn raw(&self) -> NonNull<ibv_context> {
        self.raw
    }

    fn query_device(&self) -> Result<ibv_device_attr_ex, Errno> {
        let mut attr = ibv_device_attr_ex::default();
        let offset = offset_of!(verbs_context, query_device_ex);
        if let Some(query) = self.extended(offset).and_then(|ext| ext.query_device_ex) {
            let size = size_of::<ibv_device_attr_ex>();
            // SAFETY: the context is live and the struct as large as we say.
            let code = unsafe { query(self.ptr(), core::ptr::null(), &raw mut attr, size) };
            if code == 0 {
                return Ok(attr);
            }
        }
        Errno::check(call!(
            self.ibv_query_device(self.ptr(), &raw mut attr.orig_attr)
        ))?;
        Ok(attr)
    }

    fn query_port(&self, port: u8) -> Result<ibv_port_attr, Errno> {
        // The exported function fills only the part of the struct that the first version had.
        let mut attr = ibv_port_attr::default();
        let offset = offset_of!(verbs_context, query_port);
        if let Some(query) = self.extended(offset).and_then(|ext| ext.query_port) {
            let size = size_of::<ibv_port_attr>();
            // SAFETY: the context is live and the struct as large as we say.
            Errno::check(unsafe { query(self.ptr(), port, &raw mut attr, size) })?;
            return Ok(attr);
        }
        Errno::check(call!(self.ibv_query_port(self.ptr(), port, &raw mut attr)))?;
        Ok(attr)
    }

    fn query_gid(&self, port: u8, index: u32) -> Result<ibv_gid_entry, Errno> {
        let mut entry = ibv_gid_entry::default();
        let size = size_of::<ibv_gid_entry>();
        if self.verbs._ibv_query_gid_ex().is_ok() {
            Errno::check(call!(self._ibv_query_gid_ex(
                self.ptr(),
                port.into(),
                index,
                &raw mut entry,
                0,
                size
            )))?;
            return Ok(entry);
        }
        let at = c_int::try_from(index).map_err(|_| Errno(libc::EINVAL))?;
        Errno::check(call!(self.ibv_query_gid(
            self.ptr(),
            port,
            at,
            &raw mut entry.gid
        )))?;
        entry.gid_index = index;
        entry.port_num = port.into();
        Ok(entry)
    }

    fn query_pkey(&self, port: u8, index: u16) -> Result<u16, Errno> {
        let mut pkey = 0_u16;
        Errno::check(call!(self.ibv_query_pkey(
            self.ptr(),
            port,
            index.into(),
            &raw mut pkey
        )))?;
        Ok(u16::from_be(pkey))
    }

    fn alloc_pd(&self) -> Result<NonNull<ibv_pd>, Errno> {
        made(call!(self.ibv_alloc_pd(self.ptr())))
    }

    unsafe fn dealloc_pd(&self, pd: NonNull<ibv_pd>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_dealloc_pd(pd.as_ptr())))
    }

    unsafe fn reg_mr(
        &self,
        pd: NonNull<ibv_pd>,
        addr: *mut c_void,
        len: usize,
        iova: u64,
        access: u32,
    ) -> Result<NonNull<ibv_mr>, Errno> {
        // Optional rights are known to the newer function only.
        if access >= IBV_ACCESS_OPTIONAL_FIRST && self.verbs.ibv_reg_mr_iova2().is_ok() {
            return made(call!(self.ibv_reg_mr_iova2(
                pd.as_ptr(),
                addr,
                len,
                iova,
                access
            )));
        }
        let access = access.cast_signed() & (IBV_ACCESS_OPTIONAL_FIRST.cast_signed() - 1);
        if iova == addr.addr() as u64 {
            return made(call!(self.ibv_reg_mr(pd.as_ptr(), addr, len, access)));
        }
        made(call!(self.ibv_reg_mr_iova(
            pd.as_ptr(),
            addr,
            len,
            iova,
            access
        )))
    }

    unsafe fn reg_dmabuf_mr(
        &self,
        pd: NonNull<ibv_pd>,
        offset: u64,
        len: usize,
        iova: u64,
        fd: c_int,
        access: u32,
    ) -> Result<NonNull<ibv_mr>, Errno> {
        made(call!(self.ibv_reg_dmabuf_mr(
            pd.as_ptr(),
            offset,
            len,
            iova,
            fd,
            access.cast_signed()
        )))
    }

    unsafe fn dereg_mr(&self, mr: NonNull<ibv_mr>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_dereg_mr(mr.as_ptr())))
    }

    fn create_comp_channel(&self) -> Result<NonNull<ibv_comp_channel>, Errno> {
        made(call!(self.ibv_create_comp_channel(self.ptr())))
    }

    unsafe fn destroy_comp_channel(&self, channel: NonNull<ibv_comp_channel>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_destroy_comp_channel(channel.as_ptr())))
    }

    unsafe fn get_cq_event(
        &self,
        channel: NonNull<ibv_comp_channel>,
    ) -> Result<(NonNull<ibv_cq>, *mut c_void), Errno> {
        let mut cq = core::ptr::null_mut();
        let mut user = core::ptr::null_mut();
        Errno::check(call!(self.ibv_get_cq_event(
            channel.as_ptr(),
            &raw mut cq,
            &raw mut user
        )))?;
        Ok((NonNull::new(cq).ok_or(Errno(libc::EIO))?, user))
    }

    unsafe fn ack_cq_events(&self, cq: NonNull<ibv_cq>, events: u32) {
        if let Ok(ack) = self.verbs.ibv_ack_cq_events() {
            // SAFETY: the queue is live, by the contract of the trait.
            unsafe { ack(cq.as_ptr(), events) };
        }
    }

    unsafe fn create_cq(
        &self,
        cqe: u32,
        user: *mut c_void,
        channel: Option<NonNull<ibv_comp_channel>>,
        vector: u32,
    ) -> Result<NonNull<ibv_cq>, Errno> {
        let cqe = c_int::try_from(cqe).map_err(|_| Errno(libc::EINVAL))?;
        let vector = c_int::try_from(vector).map_err(|_| Errno(libc::EINVAL))?;
        let channel = channel.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        made(call!(self.ibv_create_cq(
            self.ptr(),
            cqe,
            user,
            channel,
            vector
        )))
    }

    unsafe fn resize_cq(&self, cq: NonNull<ibv_cq>, cqe: u32) -> Result<(), Errno> {
        let cqe = c_int::try_from(cqe).map_err(|_| Errno(libc::EINVAL))?;
        Errno::check(call!(self.ibv_resize_cq(cq.as_ptr(), cqe)))
    }

    unsafe fn destroy_cq(&self, cq: NonNull<ibv_cq>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_destroy_cq(cq.as_ptr())))
    }

    unsafe fn create_srq(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &mut ibv_srq_init_attr,
    ) -> Result<NonNull<ibv_srq>, Errno> {
        made(call!(
            self.ibv_create_srq(pd.as_ptr(), core::ptr::from_mut(attr))
        ))
    }

    unsafe fn modify_srq(
        &self,
        srq: NonNull<ibv_srq>,
        attr: &ibv_srq_attr,
        mask: u32,
    ) -> Result<(), Errno> {
        let mut attr = *attr;
        Errno::check(call!(self.ibv_modify_srq(
            srq.as_ptr(),
            &raw mut attr,
            mask.cast_signed()
        )))
    }

    unsafe fn query_srq(&self, srq: NonNull<ibv_srq>) -> Result<ibv_srq_attr, Errno> {
        let mut attr = ibv_srq_attr::default();
        Errno::check(call!(self.ibv_query_srq(srq.as_ptr(), &raw mut attr)))?;
        Ok(attr)
    }

    unsafe fn destroy_srq(&self, srq: NonNull<ibv_srq>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_destroy_srq(srq.as_ptr())))
    }

    unsafe fn create_qp(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &mut ibv_qp_init_attr_ex,
    ) -> Result<NonNull<ibv_qp>, Errno> {
        if attr.comp_mask & !IBV_QP_INIT_ATTR_PD != 0 {
            let offset = offset_of!(verbs_context, create_qp_ex);
            let create = self.extended(offset).and_then(|ext| ext.create_qp_ex);
            let create = create.ok_or(Errno(libc::EOPNOTSUPP))?;
            attr.pd = pd.as_ptr();
            attr.comp_mask |= IBV_QP_INIT_ATTR_PD;
            // SAFETY: the context and what the attributes name are live, by the contract.
            return made(unsafe { create(self.ptr(), attr) });
        }
        let mut init = ibv_qp_init_attr {
            qp_context: attr.qp_context,
            send_cq: attr.send_cq,
            recv_cq: attr.recv_cq,
            srq: attr.srq,
            cap: attr.cap,
            qp_type: attr.qp_type,
            sq_sig_all: attr.sq_sig_all,
        };
        let qp = made(call!(self.ibv_create_qp(pd.as_ptr(), &raw mut init)))?;
        attr.cap = init.cap;
        Ok(qp)
    }

    unsafe fn modify_qp(
        &self,
        qp: NonNull<ibv_qp>,
        attr: &ibv_qp_attr,
        mask: u32,
    ) -> Result<(), Errno> {
        let mut attr = *attr;
        Errno::check(call!(self.ibv_modify_qp(
            qp.as_ptr(),
            &raw mut attr,
            mask.cast_signed()
        )))
    }

    unsafe fn query_qp(
        &self,
        qp: NonNull<ibv_qp>,
        mask: u32,
    ) -> Result<(ibv_qp_attr, ibv_qp_init_attr), Errno> {
        let mut attr = ibv_qp_attr::default();
        let mut init = ibv_qp_init_attr::default();
        Errno::check(call!(self.ibv_query_qp(
            qp.as_ptr(),
            &raw mut attr,
            mask.cast_signed(),
            &raw mut init
        )))?;
        Ok((attr, init))
    }

    unsafe fn destroy_qp(&self, qp: NonNull<ibv_qp>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_destroy_qp(qp.as_ptr())))
    }

    unsafe fn attach_mcast(
        &self,
        qp: NonNull<ibv_qp>,
        gid: &ibv_gid,
        lid: u16,
    ) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_attach_mcast(qp.as_ptr(), gid, lid)))
    }

    unsafe fn detach_mcast(
        &self,
        qp: NonNull<ibv_qp>,
        gid: &ibv_gid,
        lid: u16,
    ) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_detach_mcast(qp.as_ptr(), gid, lid)))
    }

    unsafe fn create_ah(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &ibv_ah_attr,
    ) -> Result<NonNull<ibv_ah>, Errno> {
        let mut attr = *attr;
        made(call!(self.ibv_create_ah(pd.as_ptr(), &raw mut attr)))
    }

    unsafe fn destroy_ah(&self, ah: NonNull<ibv_ah>) -> Result<(), Errno> {
        Errno::check(call!(self.ibv_destroy_ah(ah.as_ptr())))
    }

    fn get_async_event(&self) -> Result<ibv_async_event, Errno> {
        let mut event = ibv_async_event::default();
        Errno::check(call!(self.ibv_get_async_event(self.ptr(), &raw mut event)))?;
        Ok(event)
    }

    unsafe fn ack_async_event(&self, event: &ibv_async_event) {
        let mut event = *event;
        if let Ok(ack) = self.verbs.ibv_ack_async_event() {
            // SAFETY: the event was not acknowledged yet, by the contract of the trait.
            unsafe { ack(&raw mut event) };
        }
    }

    fn alloc(&self, len: usize) -> Result<Memory, Errno> {
        anonymous(len)
    }

    unsafe fn free(&self, memory: Memory) {
        // SAFETY: the memory is a mapping of `alloc`, by the contract of the trait.
        unsafe { unmap(&memory) };
    }
}
