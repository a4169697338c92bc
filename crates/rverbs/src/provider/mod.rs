//! Providers: what makes verbs happen.
//!
//! | provider | devices | module |
//! |---|---|---|
//! | `verbs` | what libibverbs finds: adapters, and Linux's rxe and siw | [`verbs`] |
//! | `shm` | `shm0`: processes of one user on one host | [`shm`] |
//! | `roce` | RoCEv2 over UDP in user space | [`roce`] |
//!
//! # The trait
//!
//! A [`Provider`] lists devices and opens them; an open device is a [`Context`]. Both are used as
//! `dyn`: they are the **control path**, and making an object may cost what it likes.
//!
//! The **data path** is libibverbs' own public ABI. An object that a [`Context`] makes is a genuine
//! C structure (`ibv_qp`, `ibv_cq`, `ibv_srq`, …) whose `context` points to an `ibv_context` with a
//! filled table of operations, so posting and polling are the same indirect calls that C makes:
//! [`rverbs_sys::inline::ibv_post_send`], `ibv_post_recv`, `ibv_post_srq_recv`, `ibv_poll_cq`,
//! `ibv_req_notify_cq`. Three things follow from it:
//!
//! - the safe API has one implementation for every provider and costs nothing over C's call;
//! - a C library over a software provider (`rverbs-preload`) hands our pointers out as they are:
//!   each exported function is one call of [`Context`], and the inline verbs need no code at all;
//! - a benchmark compares the safe path with the C loop on the same provider, in one process.
//!
//! Work requests and completions are therefore C's structs too, and a software provider must check
//! them as an adapter would: nothing that is posted may make it touch memory that is not registered
//! with sufficient rights in the right protection domain ([`soft::memory`]).
//!
//! # Ownership
//!
//! A pointer that a method returns is owned by the caller until the matching `destroy`, `dealloc` or
//! `dereg` returns `Ok`; an object in use refuses with `EBUSY` (16). The safe API keeps parents alive by
//! `Arc`, so it never sees that; C programs do. Destroying a queue pair is a barrier: afterwards the
//! provider touches none of its buffers. Deregistering is one too, for remote accesses as well.
//!
//! # Writing a software provider
//!
//! Don't implement [`Context`]. Implement [`soft::Transport`], which is about moving messages, and
//! get the rest from [`soft::Context`]: objects, reference counts, attributes and their checks, the
//! state machine of queue pairs, memory keys, completion queues and channels, events, and the table
//! of operations.

use core::ffi::{c_int, c_void};
use core::fmt;
use core::ptr::NonNull;
use std::sync::Arc;

use rverbs_sys::{
    ibv_ah, ibv_ah_attr, ibv_async_event, ibv_comp_channel, ibv_context, ibv_cq,
    ibv_device_attr_ex, ibv_gid, ibv_gid_entry, ibv_mr, ibv_pd, ibv_port_attr, ibv_qp, ibv_qp_attr,
    ibv_qp_init_attr, ibv_qp_init_attr_ex, ibv_srq, ibv_srq_attr, ibv_srq_init_attr,
};

pub mod roce;
pub mod shm;
pub mod soft;
pub mod verbs;

/// Which provider something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// libibverbs: real adapters and the kernel's software devices.
    Verbs,
    /// Shared memory between processes of one user on one host.
    Shm,
    /// RoCEv2 over UDP sockets, in user space.
    Roce,
}

impl Kind {
    /// The name for reports: a software device never hides that it is one.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verbs => "verbs",
            Self::Shm => "soft-shm",
            Self::Roce => "soft-roce",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error number, which is how verbs report failure.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub c_int);

impl Errno {
    /// What `errno` holds now.
    #[must_use]
    pub fn last() -> Self {
        Self(
            std::io::Error::last_os_error()
                .raw_os_error()
                .unwrap_or(libc::EIO),
        )
    }

    /// The result of a verb that returns 0 or an error number.
    ///
    /// # Errors
    ///
    /// The number, where it is not 0; some providers return it negated, or -1 with `errno` set.
    pub fn check(code: c_int) -> Result<(), Self> {
        match code {
            0 => Ok(()),
            -1 => Err(Self::last()),
            code => Err(Self(code.saturating_abs())),
        }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::io::Error::from_raw_os_error(self.0).fmt(f)
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Errno({}: {self})", self.0)
    }
}

impl std::error::Error for Errno {}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

/// A device that a provider found, before it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name, such as `mlx5_0` or `shm0`.
    pub name: String,
    /// The provider that found it.
    pub provider: Kind,
    /// `ibv_node_type`: 1 for a channel adapter, 4 for an iWARP adapter.
    pub node_type: c_int,
    /// `ibv_transport_type`: 0 for InfiniBand and RoCE, 1 for iWARP.
    pub transport: c_int,
    /// GUID of the node in host byte order, 0 where it is unknown.
    pub guid: u64,
}

/// Lists devices and opens them.
pub trait Provider: Send + Sync + fmt::Debug {
    /// Which provider this is.
    fn kind(&self) -> Kind;

    /// The devices that can be opened now.
    ///
    /// # Errors
    ///
    /// Why devices cannot even be looked for: libibverbs is missing, the kernel has no RDMA, the
    /// directory for shared memory cannot be used.
    fn devices(&self) -> Result<Vec<DeviceInfo>, crate::Error>;

    /// Opens the device of that name.
    ///
    /// # Errors
    ///
    /// [`crate::Error::NoDevice`] where there is none, otherwise what opening it said.
    fn open(&self, name: &str) -> Result<Arc<dyn Context>, crate::Error>;
}

/// Memory that a provider prefers for buffers: [`Context::alloc`].
#[derive(Debug)]
pub struct Memory {
    /// First byte, aligned to a page.
    pub addr: NonNull<u8>,
    /// Length in bytes, a multiple of the page size.
    pub len: usize,
    /// What [`Context::free`] needs to know.
    pub cookie: u64,
}

/// An open device: the control path of verbs.
///
/// Methods are named as the C functions without `ibv_`, and take and give C's structures; see the
/// module for ownership. All may be called from any thread.
///
/// # Safety
///
/// The implementor promises that every object it returns is a live C structure whose `context` is
/// [`Context::raw`], with operations that accept it, until it is destroyed.
///
/// For every `unsafe` method the caller promises that the objects it passes came from this context
/// and are not destroyed yet, and that a destroyed object is not used again.
pub unsafe trait Context: Send + Sync + fmt::Debug {
    /// Which provider this is.
    fn kind(&self) -> Kind;

    /// Name of the device.
    fn name(&self) -> &str;

    /// The C structure, with the operations of the data path.
    fn raw(&self) -> NonNull<ibv_context>;

    /// Attributes of the device. Extended ones are zero where the provider has none.
    ///
    /// # Errors
    ///
    /// What the provider said.
    fn query_device(&self) -> Result<ibv_device_attr_ex, Errno>;

    /// Attributes of a port; ports count from 1.
    ///
    /// # Errors
    ///
    /// `EINVAL` where there is no such port.
    fn query_port(&self, port: u8) -> Result<ibv_port_attr, Errno>;

    /// An entry of the GID table, with its type and network interface.
    ///
    /// # Errors
    ///
    /// `EINVAL` behind the end of the table, `ENODATA` where the entry is empty.
    fn query_gid(&self, port: u8, index: u32) -> Result<ibv_gid_entry, Errno>;

    /// An entry of the PKey table, in host byte order.
    ///
    /// # Errors
    ///
    /// `EINVAL` behind the end of the table.
    fn query_pkey(&self, port: u8, index: u16) -> Result<u16, Errno>;

    /// Makes a protection domain.
    ///
    /// # Errors
    ///
    /// `ENOMEM` where the device has no more.
    fn alloc_pd(&self) -> Result<NonNull<ibv_pd>, Errno>;

    /// Frees a protection domain.
    ///
    /// # Errors
    ///
    /// `EBUSY` while something is in it.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn dealloc_pd(&self, pd: NonNull<ibv_pd>) -> Result<(), Errno>;

    /// Registers memory that work requests and peers will call `iova` and following.
    ///
    /// # Errors
    ///
    /// `EINVAL` for rights that don't go together, `ENOMEM` beyond a limit, `EFAULT` for memory that
    /// is not there (where the provider looks).
    ///
    /// # Safety
    ///
    /// See the trait; and `addr` to `addr + len` stays mapped, and is accessed in no way that
    /// conflicts with what the rights allow the device and peers, until it is deregistered.
    unsafe fn reg_mr(
        &self,
        pd: NonNull<ibv_pd>,
        addr: *mut c_void,
        len: usize,
        iova: u64,
        access: u32,
    ) -> Result<NonNull<ibv_mr>, Errno>;

    /// Registers memory of a device that exports it as a dma-buf.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` where the provider cannot.
    ///
    /// # Safety
    ///
    /// See the trait; what peers do to the buffer is the caller's affair.
    unsafe fn reg_dmabuf_mr(
        &self,
        pd: NonNull<ibv_pd>,
        offset: u64,
        len: usize,
        iova: u64,
        fd: c_int,
        access: u32,
    ) -> Result<NonNull<ibv_mr>, Errno> {
        let _ = (pd, offset, len, iova, fd, access);
        Err(Errno(libc::EOPNOTSUPP))
    }

    /// Ends a registration. A barrier: no access by the device or a peer follows.
    ///
    /// # Errors
    ///
    /// `EBUSY` while memory windows are bound to it.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn dereg_mr(&self, mr: NonNull<ibv_mr>) -> Result<(), Errno>;

    /// Makes a completion channel; its `fd` is readable while events wait.
    ///
    /// # Errors
    ///
    /// What the operating system said.
    fn create_comp_channel(&self) -> Result<NonNull<ibv_comp_channel>, Errno>;

    /// Destroys a completion channel.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a completion queue uses it.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn destroy_comp_channel(&self, channel: NonNull<ibv_comp_channel>) -> Result<(), Errno>;

    /// Takes an event, waiting for one unless `fd` is non-blocking. Returns the queue it is for and
    /// the pointer that the queue was made with.
    ///
    /// # Errors
    ///
    /// `EAGAIN` where none waits and `fd` is non-blocking.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn get_cq_event(
        &self,
        channel: NonNull<ibv_comp_channel>,
    ) -> Result<(NonNull<ibv_cq>, *mut c_void), Errno>;

    /// Acknowledges events; destroying a completion queue waits until all are.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn ack_cq_events(&self, cq: NonNull<ibv_cq>, events: u32);

    /// Makes a completion queue with room for at least `cqe` completions.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size or vector out of range, `ENOMEM` beyond a limit.
    ///
    /// # Safety
    ///
    /// See the trait. `user` is not looked at.
    unsafe fn create_cq(
        &self,
        cqe: u32,
        user: *mut c_void,
        channel: Option<NonNull<ibv_comp_channel>>,
        vector: u32,
    ) -> Result<NonNull<ibv_cq>, Errno>;

    /// Changes the size of a completion queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size out of range.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn resize_cq(&self, cq: NonNull<ibv_cq>, cqe: u32) -> Result<(), Errno>;

    /// Destroys a completion queue, after all its events were acknowledged.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a queue pair uses it.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn destroy_cq(&self, cq: NonNull<ibv_cq>) -> Result<(), Errno>;

    /// Makes a shared receive queue; `attr` returns the sizes that it really has.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size out of range.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn create_srq(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &mut ibv_srq_init_attr,
    ) -> Result<NonNull<ibv_srq>, Errno>;

    /// Changes the limit at which an event is given, or the size, of a shared receive queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a value out of range.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn modify_srq(
        &self,
        srq: NonNull<ibv_srq>,
        attr: &ibv_srq_attr,
        mask: u32,
    ) -> Result<(), Errno>;

    /// Attributes of a shared receive queue.
    ///
    /// # Errors
    ///
    /// What the provider said.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn query_srq(&self, srq: NonNull<ibv_srq>) -> Result<ibv_srq_attr, Errno>;

    /// Destroys a shared receive queue.
    ///
    /// # Errors
    ///
    /// `EBUSY` while a queue pair uses it.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn destroy_srq(&self, srq: NonNull<ibv_srq>) -> Result<(), Errno>;

    /// Makes a queue pair in state RESET; `attr.cap` returns the sizes that it really has.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size out of range or a type the device lacks, `ENOMEM` beyond a limit.
    ///
    /// # Safety
    ///
    /// See the trait, also for the queues that `attr` names.
    unsafe fn create_qp(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &mut ibv_qp_init_attr_ex,
    ) -> Result<NonNull<ibv_qp>, Errno>;

    /// Changes attributes and state of a queue pair; `mask` says which fields of `attr` count.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a transition that the state machine lacks, or a mask that it doesn't go with.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn modify_qp(
        &self,
        qp: NonNull<ibv_qp>,
        attr: &ibv_qp_attr,
        mask: u32,
    ) -> Result<(), Errno>;

    /// Attributes of a queue pair, and what it was made with.
    ///
    /// # Errors
    ///
    /// What the provider said.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn query_qp(
        &self,
        qp: NonNull<ibv_qp>,
        mask: u32,
    ) -> Result<(ibv_qp_attr, ibv_qp_init_attr), Errno>;

    /// Destroys a queue pair. A barrier: no access to its buffers follows, and its completions that
    /// were not polled are gone.
    ///
    /// # Errors
    ///
    /// What the provider said.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn destroy_qp(&self, qp: NonNull<ibv_qp>) -> Result<(), Errno>;

    /// Joins a multicast group with a queue pair for datagrams.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` where the provider cannot.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn attach_mcast(
        &self,
        qp: NonNull<ibv_qp>,
        gid: &ibv_gid,
        lid: u16,
    ) -> Result<(), Errno> {
        let _ = (qp, gid, lid);
        Err(Errno(libc::EOPNOTSUPP))
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    ///
    /// `EINVAL` where the queue pair is not in it.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn detach_mcast(
        &self,
        qp: NonNull<ibv_qp>,
        gid: &ibv_gid,
        lid: u16,
    ) -> Result<(), Errno> {
        let _ = (qp, gid, lid);
        Err(Errno(libc::EOPNOTSUPP))
    }

    /// Makes an address handle.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an address that no packet can be sent to.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn create_ah(
        &self,
        pd: NonNull<ibv_pd>,
        attr: &ibv_ah_attr,
    ) -> Result<NonNull<ibv_ah>, Errno>;

    /// Destroys an address handle.
    ///
    /// # Errors
    ///
    /// What the provider said.
    ///
    /// # Safety
    ///
    /// See the trait.
    unsafe fn destroy_ah(&self, ah: NonNull<ibv_ah>) -> Result<(), Errno>;

    /// Takes an asynchronous event, waiting for one unless `async_fd` is non-blocking.
    ///
    /// # Errors
    ///
    /// `EAGAIN` where none waits and the descriptor is non-blocking.
    fn get_async_event(&self) -> Result<ibv_async_event, Errno>;

    /// Acknowledges an asynchronous event; destroying its object waits for that.
    ///
    /// # Safety
    ///
    /// `event` came from [`Context::get_async_event`] and was not acknowledged yet.
    unsafe fn ack_async_event(&self, event: &ibv_async_event);

    /// Memory for buffers of at least `len` bytes, zeroed, that this provider moves data to fastest.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what the operating system said.
    fn alloc(&self, len: usize) -> Result<Memory, Errno>;

    /// Gives memory of [`Context::alloc`] back.
    ///
    /// # Safety
    ///
    /// The memory is registered no more and not used again.
    unsafe fn free(&self, memory: Memory);
}

/// An address or a length as this 64-bit machine has it.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the bindings are for 64-bit Linux, where the two are the same"
)]
pub(crate) const fn native(value: u64) -> usize {
    const { assert!(usize::BITS == 64) };
    value as usize
}

/// A count that is known to be small.
#[inline]
pub(crate) fn small(value: usize) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
