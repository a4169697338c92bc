//! An open software device: objects, their counts and their checks.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::sync::Arc;

use rverbs_sys::{
    IBV_NODE_CA, IBV_QP_ACCESS_FLAGS, IBV_QP_ALT_PATH, IBV_QP_AV, IBV_QP_DEST_QPN,
    IBV_QP_INIT_ATTR_PD, IBV_QP_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC, IBV_QP_MIN_RNR_TIMER,
    IBV_QP_PATH_MIG_STATE, IBV_QP_PATH_MTU, IBV_QP_PKEY_INDEX, IBV_QP_PORT, IBV_QP_QKEY,
    IBV_QP_RETRY_CNT, IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_SQ_PSN, IBV_QP_STATE, IBV_QP_TIMEOUT,
    IBV_QPS_RESET, IBV_SRQ_LIMIT, IBV_SRQ_MAX_WR, IBV_TRANSPORT_IB, ibv_ah, ibv_ah_attr,
    ibv_async_event, ibv_async_event_element, ibv_comp_channel, ibv_context, ibv_cq, ibv_device,
    ibv_device_attr_ex, ibv_event_type, ibv_gid, ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr,
    ibv_qp, ibv_qp_attr, ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq, ibv_srq_attr,
    ibv_srq_init_attr,
};

use crate::provider::{Context as Control, Errno, Kind, Memory};

use super::ah::Ah;
use super::channel::{AsyncEvent, Channel, Notices};
use super::cq::Cq;
use super::lock::Lock;
use super::memory::Region;
use super::object::{Mr, Object, Pd, Users};
use super::qp::{NewQp, Qp};
use super::queue::RecvQueue;
use super::srq::Srq;
use super::{Transport, ops, state};

/// Numbers of protection domains, unique in the process so that keys of one device are none of another.
static NEXT_PD: AtomicU32 = AtomicU32::new(1);

/// An open software device.
pub struct Context<T: Transport> {
    raw: UnsafeCell<ibv_context>,
    /// What C's context points to.
    device: Box<UnsafeCell<ibv_device>>,
    /// What moves the messages.
    pub transport: T,
    events: Notices<AsyncEvent>,
    this: std::sync::Weak<Self>,
}

// SAFETY: the C structs are written while the context is made; C programs write nothing but the
// mutex in it, which is theirs.
unsafe impl<T: Transport> Send for Context<T> {}
// SAFETY: as above.
unsafe impl<T: Transport> Sync for Context<T> {}

impl<T: Transport> fmt::Debug for Context<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}

/// Copies a name into one of C's fixed arrays, cut to what fits with its NUL.
fn name_into(to: &mut [core::ffi::c_char], name: &str) {
    let room = to.len().saturating_sub(1);
    for (to, from) in to.iter_mut().take(room).zip(name.bytes()) {
        *to = from.cast_signed();
    }
}

/// C's struct of a device, as `ibv_get_device_list` would give it.
#[must_use]
pub(crate) fn device_struct(name: &str) -> ibv_device {
    let mut device = ibv_device {
        node_type: IBV_NODE_CA,
        transport_type: IBV_TRANSPORT_IB,
        ..ibv_device::default()
    };
    name_into(&mut device.name, name);
    name_into(&mut device.dev_name, name);
    device
}

impl<T: Transport> Context<T> {
    /// Opens a device over a transport.
    ///
    /// # Errors
    ///
    /// What making the descriptor for events said.
    pub fn new(transport: T) -> Result<Arc<Self>, Errno> {
        let events = Notices::new()?;
        let device = Box::new(UnsafeCell::new(device_struct(transport.name())));
        let raw = ibv_context {
            device: device.get(),
            ops: ops::table::<T>(),
            cmd_fd: -1,
            async_fd: events.fd(),
            num_comp_vectors: 1,
            ..ibv_context::default()
        };
        Ok(Arc::new_cyclic(|this| Self {
            raw: UnsafeCell::new(raw),
            device,
            transport,
            events,
            this: this.clone(),
        }))
    }

    /// The device that C's context points to.
    #[must_use]
    pub fn device(&self) -> *mut ibv_device {
        self.device.get()
    }

    fn share(&self) -> Result<Arc<Self>, Errno> {
        self.this.upgrade().ok_or(Errno(libc::ENODEV))
    }

    fn raw_ptr(&self) -> *mut ibv_context {
        self.raw.get()
    }

    fn give(&self, event_type: ibv_event_type, element: ibv_async_event_element) {
        self.events.push(AsyncEvent(ibv_async_event {
            element,
            event_type,
        }));
    }

    pub(super) fn cq_event(&self, cq: &Cq<T>, event: ibv_event_type) {
        self.give(event, ibv_async_event_element { cq: cq.raw.get() });
    }

    pub(super) fn qp_event(&self, qp: &Qp<T>, event: ibv_event_type) {
        self.give(event, ibv_async_event_element { qp: qp.raw.get() });
    }

    /// Gives an event about a shared receive queue.
    pub fn srq_event(&self, srq: &Srq<T>, event: ibv_event_type) {
        self.give(event, ibv_async_event_element { srq: srq.raw.get() });
    }

    /// The counter of events that were taken and not acknowledged, of the object of an event.
    ///
    /// # Safety
    ///
    /// The object of the event is live.
    unsafe fn unacked(&self, event: &ibv_async_event) -> Option<&AtomicU32> {
        use rverbs_sys::{
            IBV_EVENT_CQ_ERR, IBV_EVENT_QP_LAST_WQE_REACHED, IBV_EVENT_SRQ_ERR,
            IBV_EVENT_SRQ_LIMIT_REACHED,
        };
        // SAFETY: the type says which field of the union is set; it is set to a live object.
        unsafe {
            match event.event_type {
                IBV_EVENT_CQ_ERR => {
                    NonNull::new(event.element.cq).map(|cq| &Cq::<T>::from_raw(cq).unacked)
                }
                IBV_EVENT_SRQ_ERR | IBV_EVENT_SRQ_LIMIT_REACHED => {
                    NonNull::new(event.element.srq).map(|srq| &Srq::<T>::from_raw(srq).unacked)
                }
                1..=7 | IBV_EVENT_QP_LAST_WQE_REACHED => {
                    NonNull::new(event.element.qp).map(|qp| &Qp::<T>::from_raw(qp).unacked)
                }
                _ => None,
            }
        }
    }

    /// Removes the events of an object that goes, and waits for those that a user still looks at.
    fn settle(&self, object: usize, unacked: &AtomicU32) {
        self.events.remove(|AsyncEvent(event)| {
            // SAFETY: every field of the union is as wide as a pointer, except the port's number,
            // which is no object's address.
            unsafe { event.element.qp.addr() == object }
        });
        wait_zero(unacked);
    }
}

fn wait_zero(counter: &AtomicU32) {
    while counter.load(Ordering::Acquire) != 0 {
        std::thread::sleep(Duration::from_micros(100));
    }
}

fn limit(value: u32, max: c_int) -> Result<u32, Errno> {
    if value > max.unsigned_abs() {
        return Err(Errno(libc::EINVAL));
    }
    Ok(value)
}

// SAFETY: every object is made by `Object::into_raw` with its C struct first and this context in it,
// and the operations in the context's table are those for `T`'s objects.
unsafe impl<T: Transport> Control for Context<T> {
    fn kind(&self) -> Kind {
        T::KIND
    }

    fn name(&self) -> &str {
        self.transport.name()
    }

    fn raw(&self) -> NonNull<ibv_context> {
        // SAFETY: the address of a field is never null.
        unsafe { NonNull::new_unchecked(self.raw.get()) }
    }

    fn query_device(&self) -> Result<ibv_device_attr_ex, Errno> {
        Ok(self.transport.attributes().device)
    }

    fn query_port(&self, port: u8) -> Result<ibv_port_attr, Errno> {
        if port != 1 {
            return Err(Errno(libc::EINVAL));
        }
        Ok(self.transport.attributes().port)
    }

    fn query_gid(&self, port: u8, index: u32) -> Result<ibv_gid_entry, Errno> {
        if port != 1 {
            return Err(Errno(libc::EINVAL));
        }
        self.transport
            .attributes()
            .gid_entry(index)
            .ok_or(Errno(libc::EINVAL))
    }

    fn query_pkey(&self, port: u8, index: u16) -> Result<u16, Errno> {
        if port != 1 {
            return Err(Errno(libc::EINVAL));
        }
        let pkeys = &self.transport.attributes().pkeys;
        pkeys
            .get(usize::from(index))
            .copied()
            .ok_or(Errno(libc::EINVAL))
    }

    fn alloc_pd(&self) -> Result<NonNull<ibv_pd>, Errno> {
        let id = NEXT_PD.fetch_add(1, Ordering::Relaxed);
        Ok(Object::into_raw(Arc::new(Pd {
            raw: UnsafeCell::new(ibv_pd {
                context: self.raw_ptr(),
                handle: id,
            }),
            context: self.share()?,
            id,
            users: Users::default(),
        })))
    }

    unsafe fn dealloc_pd(&self, pd: NonNull<ibv_pd>) -> Result<(), Errno> {
        // SAFETY: the caller's domain is live.
        unsafe { Pd::<T>::from_raw(pd) }.users.none()?;
        // SAFETY: as above, and it is not used again.
        drop(unsafe { Pd::<T>::take(pd) });
        Ok(())
    }

    unsafe fn reg_mr(
        &self,
        pd: NonNull<ibv_pd>,
        addr: *mut c_void,
        len: usize,
        iova: u64,
        access: u32,
    ) -> Result<NonNull<ibv_mr>, Errno> {
        // SAFETY: the caller's domain is live.
        let pd = unsafe { Pd::<T>::share(pd) };
        if addr.is_null() && len > 0 {
            return Err(Errno(libc::EFAULT));
        }
        // Work requests name addresses as numbers, and the provider makes pointers of them again.
        let exposed = addr.expose_provenance();
        let (file, file_offset) = self.transport.backing(exposed, len);
        let key = self.transport.keys().insert(&Region {
            access,
            pd: pd.id,
            iova,
            len: len as u64,
            addr: exposed as u64,
            file,
            file_offset,
        })?;
        let raw = ibv_mr {
            context: self.raw_ptr(),
            pd: pd.raw.get(),
            addr,
            length: len,
            handle: key,
            lkey: key,
            rkey: key,
        };
        pd.users.add();
        Ok(Object::into_raw(Arc::new(Mr {
            raw: UnsafeCell::new(raw),
            pd,
            key,
        })))
    }

    unsafe fn dereg_mr(&self, mr: NonNull<ibv_mr>) -> Result<(), Errno> {
        // SAFETY: the caller's region is live.
        let key = unsafe { Mr::<T>::from_raw(mr) }.key;
        self.transport
            .keys()
            .remove(key, || self.transport.quiesce(key))?;
        // SAFETY: as above, and it is not used again.
        let mr = unsafe { Mr::<T>::take(mr) };
        mr.pd.users.remove();
        Ok(())
    }

    fn create_comp_channel(&self) -> Result<NonNull<ibv_comp_channel>, Errno> {
        let channel = Arc::new(Channel::new(self.raw_ptr())?);
        let raw = Arc::into_raw(channel).cast_mut().cast();
        // SAFETY: an `Arc` is never null.
        Ok(unsafe { NonNull::new_unchecked(raw) })
    }

    unsafe fn destroy_comp_channel(&self, channel: NonNull<ibv_comp_channel>) -> Result<(), Errno> {
        // SAFETY: the caller's channel is live and was made by `create_comp_channel`.
        let this = unsafe { channel.cast::<Channel>().as_ref() };
        if this.users.load(Ordering::Acquire) != 0 {
            return Err(Errno(libc::EBUSY));
        }
        // SAFETY: as above, and it is not used again.
        drop(unsafe { Arc::from_raw(channel.cast::<Channel>().as_ptr().cast_const()) });
        Ok(())
    }

    unsafe fn get_cq_event(
        &self,
        channel: NonNull<ibv_comp_channel>,
    ) -> Result<(NonNull<ibv_cq>, *mut c_void), Errno> {
        // SAFETY: the caller's channel is live and was made by `create_comp_channel`.
        let channel = unsafe { channel.cast::<Channel>().as_ref() };
        let event = channel.notices.pop(|event| {
            let cq = core::ptr::with_exposed_provenance_mut::<ibv_cq>(event.cq);
            if let Some(cq) = NonNull::new(cq) {
                // SAFETY: a queue removes its events, under the same lock, before it goes.
                let cq = unsafe { Cq::<T>::from_raw(cq) };
                cq.unacked.fetch_add(1, Ordering::AcqRel);
            }
        })?;
        let cq = core::ptr::with_exposed_provenance_mut::<ibv_cq>(event.cq);
        let user = core::ptr::with_exposed_provenance_mut::<c_void>(event.user);
        Ok((NonNull::new(cq).ok_or(Errno(libc::EIO))?, user))
    }

    unsafe fn ack_cq_events(&self, cq: NonNull<ibv_cq>, events: u32) {
        // SAFETY: the caller's queue is live.
        let cq = unsafe { Cq::<T>::from_raw(cq) };
        let _ = cq
            .unacked
            .try_update(Ordering::AcqRel, Ordering::Acquire, |unacked| {
                Some(unacked.saturating_sub(events))
            });
    }

    unsafe fn create_cq(
        &self,
        cqe: u32,
        user: *mut c_void,
        channel: Option<NonNull<ibv_comp_channel>>,
        vector: u32,
    ) -> Result<NonNull<ibv_cq>, Errno> {
        let max = self.transport.attributes().device.orig_attr.max_cqe;
        if cqe == 0 || vector != 0 {
            return Err(Errno(libc::EINVAL));
        }
        let cqe = limit(cqe, max)?;
        let raw_channel = channel.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        let channel = channel.map(|channel| {
            let channel = channel.cast::<Channel>().as_ptr().cast_const();
            // SAFETY: the caller's channel is live, and C holds a count of it.
            unsafe { Arc::increment_strong_count(channel) };
            // SAFETY: the count that was just added is the one that this takes.
            unsafe { Arc::from_raw(channel) }
        });
        if let Some(channel) = &channel {
            channel.users.fetch_add(1, Ordering::AcqRel);
        }
        let raw = ibv_cq {
            context: self.raw_ptr(),
            channel: raw_channel,
            cq_context: user,
            cqe: cqe.cast_signed(),
            ..ibv_cq::default()
        };
        let cq = Arc::new(Cq::new(
            raw,
            self.share()?,
            channel,
            cqe,
            user.expose_provenance(),
        ));
        cq.raw.get().expose_provenance();
        Ok(Object::into_raw(cq))
    }

    unsafe fn resize_cq(&self, cq: NonNull<ibv_cq>, cqe: u32) -> Result<(), Errno> {
        let max = self.transport.attributes().device.orig_attr.max_cqe;
        let cqe = limit(cqe, max)?;
        // SAFETY: the caller's queue is live.
        let cq = unsafe { Cq::<T>::from_raw(cq) };
        if cqe == 0 || cqe < cq.waiting() {
            return Err(Errno(libc::EINVAL));
        }
        cq.depth.store(cqe, Ordering::Relaxed);
        // SAFETY: our own struct's field, which C programs only read.
        unsafe { (&raw mut (*cq.raw.get()).cqe).write_volatile(cqe.cast_signed()) };
        Ok(())
    }

    unsafe fn destroy_cq(&self, cq: NonNull<ibv_cq>) -> Result<(), Errno> {
        // SAFETY: the caller's queue is live.
        let this = unsafe { Cq::<T>::from_raw(cq) };
        this.users.none()?;
        if let Some(channel) = &this.channel {
            channel
                .notices
                .remove(|event| event.cq == this.raw.get().addr());
            channel.users.fetch_sub(1, Ordering::AcqRel);
        }
        self.settle(this.raw.get().addr(), &this.unacked);
        // SAFETY: as above, and it is not used again.
        drop(unsafe { Cq::<T>::take(cq) });
        Ok(())
    }

    unsafe fn create_srq(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &mut ibv_srq_init_attr,
    ) -> Result<NonNull<ibv_srq>, Errno> {
        let device = &self.transport.attributes().device.orig_attr;
        let depth = limit(attr.attr.max_wr.max(1), device.max_srq_wr)?;
        let max_sge = limit(attr.attr.max_sge.max(1), device.max_srq_sge)?;
        // SAFETY: the caller's domain is live.
        let pd = unsafe { Pd::<T>::share(pd) };
        let raw = ibv_srq {
            context: self.raw_ptr(),
            srq_context: attr.srq_context,
            pd: pd.raw.get(),
            ..ibv_srq::default()
        };
        attr.attr.max_wr = depth;
        attr.attr.max_sge = max_sge;
        pd.users.add();
        Ok(Object::into_raw(Arc::new(Srq {
            raw: UnsafeCell::new(raw),
            pd,
            queue: RecvQueue::new(depth, max_sge),
            taking: Lock::new(()),
            limit: AtomicU32::new(attr.attr.srq_limit),
            depth,
            max_sge,
            users: Users::default(),
            unacked: AtomicU32::new(0),
        })))
    }

    unsafe fn modify_srq(
        &self,
        srq: NonNull<ibv_srq>,
        attr: &ibv_srq_attr,
        mask: u32,
    ) -> Result<(), Errno> {
        // SAFETY: the caller's queue is live.
        let srq = unsafe { Srq::<T>::from_raw(srq) };
        // The ring is laid out once, so a size can only be confirmed.
        if mask & IBV_SRQ_MAX_WR != 0 && attr.max_wr > srq.depth {
            return Err(Errno(libc::EINVAL));
        }
        if mask & IBV_SRQ_LIMIT != 0 {
            if attr.srq_limit > srq.depth {
                return Err(Errno(libc::EINVAL));
            }
            srq.limit.store(attr.srq_limit, Ordering::Release);
        }
        Ok(())
    }

    unsafe fn query_srq(&self, srq: NonNull<ibv_srq>) -> Result<ibv_srq_attr, Errno> {
        // SAFETY: the caller's queue is live.
        let srq = unsafe { Srq::<T>::from_raw(srq) };
        Ok(ibv_srq_attr {
            max_wr: srq.depth,
            max_sge: srq.max_sge,
            srq_limit: srq.limit.load(Ordering::Acquire),
        })
    }

    unsafe fn destroy_srq(&self, srq: NonNull<ibv_srq>) -> Result<(), Errno> {
        // SAFETY: the caller's queue is live.
        let this = unsafe { Srq::<T>::from_raw(srq) };
        this.users.none()?;
        self.settle(this.raw.get().addr(), &this.unacked);
        // SAFETY: as above, and it is not used again.
        let this = unsafe { Srq::<T>::take(srq) };
        this.pd.users.remove();
        Ok(())
    }

    unsafe fn create_qp(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &mut ibv_qp_init_attr_ex,
    ) -> Result<NonNull<ibv_qp>, Errno> {
        let attributes = self.transport.attributes();
        let device = &attributes.device.orig_attr;
        if attr.comp_mask & !IBV_QP_INIT_ATTR_PD != 0 {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        let cap = &mut attr.cap;
        limit(cap.max_send_wr, device.max_qp_wr)?;
        limit(cap.max_recv_wr, device.max_qp_wr)?;
        limit(cap.max_send_sge, device.max_sge)?;
        limit(cap.max_recv_sge, device.max_sge)?;
        if cap.max_inline_data > attributes.max_inline {
            return Err(Errno(libc::EINVAL));
        }
        let null = Errno(libc::EINVAL);
        // SAFETY: the caller's queues are live.
        let send_cq = unsafe { Cq::<T>::share(NonNull::new(attr.send_cq).ok_or(null)?) };
        // SAFETY: as above.
        let recv_cq = unsafe { Cq::<T>::share(NonNull::new(attr.recv_cq).ok_or(null)?) };
        // SAFETY: as above.
        let srq = NonNull::new(attr.srq).map(|srq| unsafe { Srq::<T>::share(srq) });
        // SAFETY: the caller's domain is live.
        let pd = unsafe { Pd::<T>::share(pd) };
        if srq.is_some() {
            cap.max_recv_wr = 0;
            cap.max_recv_sge = 0;
        } else {
            cap.max_recv_sge = cap.max_recv_sge.max(1);
        }
        cap.max_send_sge = cap.max_send_sge.max(1);
        let (qpn, engine) = self.transport.create_qp(&NewQp {
            kind: attr.qp_type,
            cap: attr.cap,
            pd: pd.id,
        })?;
        let raw = ibv_qp {
            context: self.raw_ptr(),
            qp_context: attr.qp_context,
            pd: pd.raw.get(),
            send_cq: attr.send_cq,
            recv_cq: attr.recv_cq,
            srq: attr.srq,
            handle: qpn,
            qp_num: qpn,
            state: IBV_QPS_RESET,
            qp_type: attr.qp_type,
            ..ibv_qp::default()
        };
        let qp = Arc::new(Qp {
            raw: UnsafeCell::new(raw),
            rq: RecvQueue::new(attr.cap.max_recv_wr, attr.cap.max_recv_sge),
            qpn,
            kind: attr.qp_type,
            cap: attr.cap,
            sq_sig_all: attr.sq_sig_all != 0,
            state: AtomicU32::new(IBV_QPS_RESET),
            attr: Lock::new(ibv_qp_attr::default()),
            modify: Lock::new(()),
            unacked: AtomicU32::new(0),
            pd,
            send_cq,
            recv_cq,
            srq,
            engine,
        });
        qp.pd.users.add();
        if let Some(srq) = &qp.srq {
            srq.users.add();
        }
        qp.send_cq.users.add();
        qp.send_cq.poll.lock().push(Arc::clone(&qp));
        if !Arc::ptr_eq(&qp.send_cq, &qp.recv_cq) {
            qp.recv_cq.users.add();
            qp.recv_cq.poll.lock().push(Arc::clone(&qp));
        }
        Ok(Object::into_raw(qp))
    }

    unsafe fn modify_qp(
        &self,
        qp: NonNull<ibv_qp>,
        attr: &ibv_qp_attr,
        mask: u32,
    ) -> Result<(), Errno> {
        // SAFETY: the caller's queue pair is live.
        let qp = unsafe { Qp::<T>::share(qp) };
        let _modifying = qp.modify.lock();
        let from = qp.state();
        let to = if mask & IBV_QP_STATE == 0 {
            from
        } else {
            attr.qp_state
        };
        if !state::allows(qp.kind, from, to, mask) {
            return Err(Errno(libc::EINVAL));
        }
        if mask & IBV_QP_PORT != 0 && attr.port_num != 1 {
            return Err(Errno(libc::EINVAL));
        }
        let attributes = self.transport.attributes();
        if mask & IBV_QP_PKEY_INDEX != 0 && usize::from(attr.pkey_index) >= attributes.pkeys.len() {
            return Err(Errno(libc::EINVAL));
        }
        if mask & IBV_QP_PATH_MTU != 0 && !(1..=attributes.port.active_mtu).contains(&attr.path_mtu)
        {
            return Err(Errno(libc::EINVAL));
        }
        let before = qp.attr();
        merge(&mut qp.attr.lock(), attr, mask);
        if let Err(errno) = self.transport.modify_qp(&qp, to, mask) {
            *qp.attr.lock() = before;
            return Err(errno);
        }
        if to == IBV_QPS_RESET {
            qp.send_cq.forget(qp.qpn);
            qp.recv_cq.forget(qp.qpn);
            // SAFETY: the transport's barrier is behind us, and in RESET it takes nothing.
            unsafe { qp.rq.clear() };
            *qp.attr.lock() = ibv_qp_attr::default();
        }
        if to != from {
            qp.set_state(to);
        }
        Ok(())
    }

    unsafe fn query_qp(
        &self,
        qp: NonNull<ibv_qp>,
        _mask: u32,
    ) -> Result<(ibv_qp_attr, ibv_qp_init_attr), Errno> {
        // SAFETY: the caller's queue pair is live.
        let qp = unsafe { Qp::<T>::from_raw(qp) };
        let state = qp.state();
        // SAFETY: pointers and numbers that were written when the struct was made.
        let raw = unsafe { qp.raw.get().read_volatile() };
        let init = ibv_qp_init_attr {
            qp_context: raw.qp_context,
            send_cq: raw.send_cq,
            recv_cq: raw.recv_cq,
            srq: raw.srq,
            cap: qp.cap,
            qp_type: qp.kind,
            sq_sig_all: c_int::from(qp.sq_sig_all),
        };
        let attr = ibv_qp_attr {
            qp_state: state,
            cur_qp_state: state,
            cap: qp.cap,
            ..qp.attr()
        };
        Ok((attr, init))
    }

    unsafe fn destroy_qp(&self, qp: NonNull<ibv_qp>) -> Result<(), Errno> {
        // SAFETY: the caller's queue pair is live.
        let this = unsafe { Qp::<T>::share(qp) };
        for cq in [&this.send_cq, &this.recv_cq] {
            cq.poll.lock().retain(|other| !Arc::ptr_eq(other, &this));
        }
        self.transport.destroy_qp(&this);
        this.send_cq.forget(this.qpn);
        this.recv_cq.forget(this.qpn);
        self.settle(this.raw.get().addr(), &this.unacked);
        this.pd.users.remove();
        if let Some(srq) = &this.srq {
            srq.users.remove();
        }
        this.send_cq.users.remove();
        if !Arc::ptr_eq(&this.send_cq, &this.recv_cq) {
            this.recv_cq.users.remove();
        }
        // SAFETY: the caller's queue pair is live, and not used again.
        drop(unsafe { Qp::<T>::take(qp) });
        Ok(())
    }

    unsafe fn attach_mcast(
        &self,
        qp: NonNull<ibv_qp>,
        gid: &ibv_gid,
        _lid: u16,
    ) -> Result<(), Errno> {
        // SAFETY: the caller's queue pair is live, and all bytes of the union are in `raw`.
        unsafe { self.transport.attach_mcast(Qp::<T>::from_raw(qp), gid.raw) }
    }

    unsafe fn detach_mcast(
        &self,
        qp: NonNull<ibv_qp>,
        gid: &ibv_gid,
        _lid: u16,
    ) -> Result<(), Errno> {
        // SAFETY: the caller's queue pair is live, and all bytes of the union are in `raw`.
        unsafe { self.transport.detach_mcast(Qp::<T>::from_raw(qp), gid.raw) }
    }

    unsafe fn create_ah(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &ibv_ah_attr,
    ) -> Result<NonNull<ibv_ah>, Errno> {
        // As in Linux, Ethernet's addresses are GIDs.
        let ethernet = self.transport.attributes().port.link_layer == 2;
        if attr.port_num > 1 || (ethernet && attr.is_global == 0) {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: the caller's domain is live.
        let pd = unsafe { Pd::<T>::share(pd) };
        pd.users.add();
        Ok(Object::into_raw(Arc::new(Ah {
            raw: UnsafeCell::new(ibv_ah {
                context: self.raw_ptr(),
                pd: pd.raw.get(),
                handle: 0,
            }),
            pd,
            attr: *attr,
        })))
    }

    unsafe fn destroy_ah(&self, ah: NonNull<ibv_ah>) -> Result<(), Errno> {
        // SAFETY: the caller's address handle is live, and not used again.
        let ah = unsafe { Ah::<T>::take(ah) };
        ah.pd.users.remove();
        Ok(())
    }

    fn get_async_event(&self) -> Result<ibv_async_event, Errno> {
        let AsyncEvent(event) = self.events.pop(|AsyncEvent(event)| {
            // SAFETY: an object removes its events, under the same lock, before it goes.
            if let Some(unacked) = unsafe { self.unacked(event) } {
                unacked.fetch_add(1, Ordering::AcqRel);
            }
        })?;
        Ok(event)
    }

    unsafe fn ack_async_event(&self, event: &ibv_async_event) {
        // SAFETY: the caller did not acknowledge it yet, so its object still waits for that.
        if let Some(unacked) = unsafe { self.unacked(event) } {
            unacked.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn alloc(&self, len: usize) -> Result<Memory, Errno> {
        self.transport.alloc(len)
    }

    unsafe fn free(&self, memory: Memory) {
        // SAFETY: as the caller promises.
        unsafe { self.transport.free(memory) };
    }
}

/// Takes the fields over that the mask names.
fn merge(to: &mut ibv_qp_attr, from: &ibv_qp_attr, mask: u32) {
    macro_rules! take {
        ($($bit:ident $($field:ident)+;)*) => { $(
            if mask & $bit != 0 {
                $( to.$field = from.$field; )+
            }
        )* };
    }
    take! {
        IBV_QP_PKEY_INDEX pkey_index;
        IBV_QP_PORT port_num;
        IBV_QP_ACCESS_FLAGS qp_access_flags;
        IBV_QP_QKEY qkey;
        IBV_QP_AV ah_attr;
        IBV_QP_PATH_MTU path_mtu;
        IBV_QP_TIMEOUT timeout;
        IBV_QP_RETRY_CNT retry_cnt;
        IBV_QP_RNR_RETRY rnr_retry;
        IBV_QP_RQ_PSN rq_psn;
        IBV_QP_MAX_QP_RD_ATOMIC max_rd_atomic;
        IBV_QP_ALT_PATH alt_ah_attr alt_pkey_index alt_port_num alt_timeout;
        IBV_QP_MIN_RNR_TIMER min_rnr_timer;
        IBV_QP_SQ_PSN sq_psn;
        IBV_QP_MAX_DEST_RD_ATOMIC max_dest_rd_atomic;
        IBV_QP_PATH_MIG_STATE path_mig_state;
        IBV_QP_DEST_QPN dest_qp_num;
    }
}
