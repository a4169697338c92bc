//! The device list, and open devices.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use rverbs::provider::roce::{Config, Roce, RoceProvider};
use rverbs::provider::shm::ShmProvider;
use rverbs::provider::{self, Context, DeviceInfo, Errno, Kind, Provider, soft};
use rverbs_sys::{IBV_TRANSPORT_IB, ibv_context, ibv_device, ibv_pd, verbs_context};

use crate::{errno, extended, log};

/// A device, for as long as the process lives: programs keep the pointers.
pub(crate) struct Device {
    raw: UnsafeCell<Padded>,
    /// What its provider says about it.
    pub(crate) info: DeviceInfo,
    backend: Backend,
    /// What is open, by whoever opened it: a process is one node of its network.
    opened: Mutex<Opened>,
    /// What librdmacm opened, once, as the C library does.
    shared: Mutex<Option<Shared>>,
}

/// Who opens it.
enum Backend {
    Provider(Arc<dyn Provider>),
    /// By its configuration, since connections need more than a context.
    Roce(Config),
}

#[derive(Default)]
struct Opened {
    context: Option<Weak<dyn Context>>,
    roce: Weak<soft::Context<Roce>>,
}

/// The device's struct, and zeros behind it: vendor libraries that get hold of a device look behind
/// the struct for their own fields, and must find none.
#[repr(C)]
struct Padded {
    device: ibv_device,
    behind: [u64; 64],
}

#[derive(Clone, Copy)]
struct Shared {
    context: NonNull<ibv_context>,
    pd: NonNull<ibv_pd>,
}

// SAFETY: the struct is written while the list is made and only read afterwards; the pointers are to
// objects that may be used from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// How programs see the name: it says that the device is not an adapter.
fn public_name(info: &DeviceInfo) -> String {
    match info.provider {
        Kind::Verbs => info.name.clone(),
        _ if info.name.starts_with("rverbs") => info.name.clone(),
        _ => format!("rverbs_{}", info.name),
    }
}

fn text_into(to: &mut [c_char], text: &str) {
    let room = to.len().saturating_sub(1);
    for (to, from) in to.iter_mut().take(room).zip(text.bytes()) {
        *to = from.cast_signed();
    }
}

impl Device {
    fn new(info: DeviceInfo, backend: Backend) -> Self {
        let name = public_name(&info);
        let mut device = ibv_device {
            node_type: info.node_type,
            transport_type: IBV_TRANSPORT_IB,
            ..ibv_device::default()
        };
        text_into(&mut device.name, &name);
        text_into(&mut device.dev_name, &name);
        text_into(&mut device.dev_path, &format!("{CLASS}_verbs/{name}"));
        text_into(&mut device.ibdev_path, &format!("{CLASS}/{name}"));
        Self {
            raw: UnsafeCell::new(Padded {
                device,
                behind: [0; 64],
            }),
            info,
            backend,
            opened: Mutex::default(),
            shared: Mutex::new(None),
        }
    }

    pub(crate) fn raw(&self) -> *mut ibv_device {
        self.raw.get().cast()
    }

    /// The context and the protection domain that connections share unless a program brings its own.
    pub(crate) fn shared(&'static self) -> Result<(NonNull<ibv_context>, NonNull<ibv_pd>), Errno> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = *shared {
            return Ok((shared.context, shared.pd));
        }
        let context = self.open()?;
        // SAFETY: it was just opened.
        let open = unsafe { Open::of(context.as_ptr()) };
        let pd = open.provider.alloc_pd()?;
        // SAFETY: it was just made, and nobody else has seen it.
        unsafe { (*pd.as_ptr()).context = context.as_ptr() };
        *shared = Some(Shared { context, pd });
        Ok((context, pd))
    }

    fn open(&'static self) -> Result<NonNull<ibv_context>, Errno> {
        let context = self.context().map_err(|error| {
            tracing::warn!(device = %self.info.name, %error, "opening failed");
            Errno(error.errno().unwrap_or(libc::ENODEV))
        })?;
        Ok(Open::leak(self, context))
    }

    /// The provider's context, which all that is opened in this process shares.
    fn context(&self) -> Result<Arc<dyn Context>, rverbs::Error> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = opened.context.as_ref().and_then(Weak::upgrade) {
            return Ok(context);
        }
        let context: Arc<dyn Context> = match &self.backend {
            Backend::Provider(provider) => provider.open(&self.info.name)?,
            Backend::Roce(config) => {
                let context = provider::roce::open(config)?;
                opened.roce = Arc::downgrade(&context);
                context
            }
        };
        tracing::info!(device = %self.info.name, provider = %context.kind(), "opened");
        opened.context = Some(Arc::downgrade(&context));
        Ok(context)
    }

    /// The RoCEv2 device, of a device that is one.
    pub(crate) fn roce(&'static self) -> Result<Arc<soft::Context<Roce>>, Errno> {
        // Connections hold it open.
        self.shared()?;
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.roce.upgrade().ok_or(Errno(libc::ENODEV))
    }

    /// The UDP port that others take it to have.
    pub(crate) fn roce_port(&self) -> Option<u16> {
        match &self.backend {
            Backend::Roce(config) => Some(config.base_port),
            Backend::Provider(_) => None,
        }
    }

    /// Whether an address is the device's own, or any.
    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        match &self.backend {
            Backend::Roce(config) => match ip {
                // IPv6's "any" is IPv4's, too.
                IpAddr::V6(ip) if ip.is_unspecified() => true,
                _ if config.addr.is_ipv4() != ip.is_ipv4() => false,
                _ if ip.is_loopback() => config.addr.is_loopback(),
                _ => ip.is_unspecified() || config.addr == ip,
            },
            Backend::Provider(_) => false,
        }
    }
}

/// Where a kernel would list devices: the texts that programs read there are answered in [`read_sysfs`].
const CLASS: &str = "/sys/class/infiniband";

/// The devices of the providers that the environment names.
pub(crate) fn devices() -> &'static [Device] {
    static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        log::start();
        let wanted = std::env::var("RVERBS_PROVIDER").unwrap_or_default();
        let wanted = if wanted.is_empty() { "shm" } else { &wanted };
        let mut found = Vec::new();
        for name in wanted.split(',').map(str::trim) {
            match name {
                "shm" | "soft-shm" => {
                    let provider: Arc<dyn Provider> = Arc::new(ShmProvider);
                    match provider.devices() {
                        Ok(devices) => found.extend(devices.into_iter().map(|info| {
                            Device::new(info, Backend::Provider(Arc::clone(&provider)))
                        })),
                        Err(error) => tracing::warn!(provider = name, %error, "no devices"),
                    }
                }
                "roce" | "soft-roce" => found.extend(roce_devices()),
                _ => tracing::error!(provider = name, "RVERBS_PROVIDER names no provider"),
            }
        }
        found
    })
}

fn roce_devices() -> Vec<Device> {
    let provider = RoceProvider::default();
    let infos = provider.devices().unwrap_or_default();
    let configs = provider.configs();
    let with_config = |info: DeviceInfo| {
        let config = configs.iter().find(|config| config.name == info.name)?;
        Some(Device::new(info, Backend::Roce(config.clone())))
    };
    infos.into_iter().filter_map(with_config).collect()
}

/// The device of one of our structs.
fn device_of(raw: *mut ibv_device) -> Option<&'static Device> {
    devices().iter().find(|device| device.raw() == raw)
}

/// An open device. C holds the address of the `ibv_context` in it.
#[repr(C)]
pub(crate) struct Open {
    extended: UnsafeCell<verbs_context>,
    /// What carries the verbs out.
    pub(crate) provider: Arc<dyn Context>,
    /// Which device it is.
    pub(crate) device: &'static Device,
}

impl Open {
    fn leak(device: &'static Device, provider: Arc<dyn Context>) -> NonNull<ibv_context> {
        // SAFETY: the provider's context is live, and C only reads what is copied here.
        let mut context = unsafe { *provider.raw().as_ptr() };
        context.device = device.raw();
        context.abi_compat = core::ptr::without_provenance_mut(usize::MAX);
        let open = Box::leak(Box::new(Self {
            extended: UnsafeCell::new(extended::context(context)),
            provider,
            device,
        }));
        NonNull::from(open)
            .cast::<ibv_context>()
            .map_addr(|addr| addr.saturating_add(offset_of!(verbs_context, context)))
    }

    /// The open device of a context that C holds.
    ///
    /// # Safety
    ///
    /// The context came from `ibv_open_device` and is not closed while the reference lives.
    pub(crate) unsafe fn of<'a>(context: *mut ibv_context) -> &'a Self {
        let open = context
            .wrapping_byte_sub(offset_of!(verbs_context, context))
            .cast::<Self>();
        // SAFETY: the context is a field of the struct that starts an `Open`.
        unsafe { &*open }
    }

    /// The context, as C holds it.
    pub(crate) fn context(&self) -> *mut ibv_context {
        self.extended
            .get()
            .wrapping_byte_add(offset_of!(verbs_context, context))
            .cast()
    }
}

/// The open device of an object: its first field is the context.
macro_rules! open_of {
    ($object:expr) => {{
        // SAFETY: C's contract: the object is live, and so is its context.
        unsafe { crate::device::Open::of((*$object).context) }
    }};
}
pub(crate) use open_of;

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device {
    let devices = devices();
    // SAFETY: makes memory and touches nothing else.
    let list = unsafe { libc::calloc(devices.len() + 1, size_of::<*mut ibv_device>()) }
        .cast::<*mut ibv_device>();
    if list.is_null() {
        errno::set(libc::ENOMEM);
        return null_mut();
    }
    for (index, device) in devices.iter().enumerate() {
        // SAFETY: the list has room for one more than there are devices.
        unsafe { list.add(index).write(device.raw()) };
    }
    if !count.is_null() {
        // SAFETY: C's contract: `count` is writable.
        unsafe { count.write(c_int::try_from(devices.len()).unwrap_or(c_int::MAX)) };
    }
    list
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_free_device_list(list: *mut *mut ibv_device) {
    // SAFETY: C's contract: the list came from `ibv_get_device_list`.
    unsafe { libc::free(list.cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char {
    if device.is_null() {
        return core::ptr::null();
    }
    device
        .wrapping_byte_add(offset_of!(ibv_device, name))
        .cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_guid(device: *mut ibv_device) -> u64 {
    device_of(device).map_or(0, |device| device.info.guid.to_be())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_get_device_index(device: *mut ibv_device) -> c_int {
    let index = devices().iter().position(|other| other.raw() == device);
    index.map_or(-1, |index| c_int::try_from(index + 1).unwrap_or(-1))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context {
    let device = device_of(device).ok_or(Errno(libc::ENODEV));
    errno::pointer(device.and_then(Device::open))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_close_device(context: *mut ibv_context) -> c_int {
    if context.is_null() {
        errno::set(libc::EINVAL);
        return -1;
    }
    let open = context
        .wrapping_byte_sub(offset_of!(verbs_context, context))
        .cast::<Open>();
    // SAFETY: C's contract: the context was opened by us, and is not used again.
    drop(unsafe { Box::from_raw(open) });
    0
}

#[unsafe(no_mangle)]
extern "C" fn ibv_import_device(_fd: c_int) -> *mut ibv_context {
    errno::pointer(Err(errno::UNSUPPORTED))
}

#[unsafe(no_mangle)]
extern "C" fn ibv_get_sysfs_path() -> *const c_char {
    c"/sys".as_ptr()
}

/// What a text file of a device would say.
fn sysfs_text(device: &Device, file: &str) -> Option<String> {
    let kind = device.info.provider.name();
    Some(match file {
        "board_id" | "hca_type" => kind.to_owned(),
        "fw_ver" => format!("{kind} {}", env!("CARGO_PKG_VERSION")),
        "hw_rev" => "0".to_owned(),
        "node_desc" => format!("{kind} {}", public_name(&device.info)),
        "node_type" => "1: CA".to_owned(),
        _ => return None,
    })
}

/// The text of a file: one of our devices', or a real one.
fn read_sysfs(dir: &CStr, file: &CStr) -> Option<String> {
    let (dir, file) = (dir.to_str().ok()?, file.to_str().ok()?);
    let ours = devices().iter().find(|device| {
        dir.strip_prefix(CLASS)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|name| name == public_name(&device.info))
    });
    match ours {
        Some(device) => sysfs_text(device, file),
        None => std::fs::read_to_string(format!("{dir}/{file}"))
            .ok()
            .map(|text| text.trim_end_matches('\n').to_owned()),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_read_sysfs_file(
    dir: *const c_char,
    file: *const c_char,
    buf: *mut c_char,
    size: usize,
) -> c_int {
    if dir.is_null() || file.is_null() || size == 0 {
        return -1;
    }
    // SAFETY: C's contract: both are strings.
    let text = unsafe { read_sysfs(CStr::from_ptr(dir), CStr::from_ptr(file)) };
    let Some(text) = text else {
        return -1;
    };
    let len = text.len().min(size - 1);
    // SAFETY: C's contract: `buf` has room for `size` bytes, and `len` is less.
    unsafe {
        text.as_ptr()
            .cast::<c_char>()
            .copy_to_nonoverlapping(buf, len);
        buf.add(len).write(0);
    }
    c_int::try_from(len).unwrap_or(c_int::MAX)
}

/// Writes what the firmware would be called: that there is none.
pub(crate) fn firmware_version(to: &mut [c_char], kind: Kind) {
    to.fill(0);
    text_into(to, &format!("{kind} {}", env!("CARGO_PKG_VERSION")));
}
