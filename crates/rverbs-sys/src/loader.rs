//! The exported functions, found at run time.

use core::ffi::{c_char, c_int, c_uint, c_void};

use libc::sockaddr;
use libloading::Library;

use crate::bindings::*;

/// Why a library or one of its functions cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library is not installed, or needs something that is not.
    #[error("{library} cannot be loaded")]
    Library {
        /// File name of the library.
        library: &'static str,
        /// What the dynamic linker said.
        #[source]
        source: libloading::Error,
    },
    /// The installed library is too old to have this function.
    #[error("{library} has no function {symbol}")]
    Symbol {
        /// File name of the library.
        library: &'static str,
        /// The function that is missing.
        symbol: &'static str,
    },
}

/// The library of that name, unless the process has the function already: a preloaded replacement, or
/// the library that the program was linked with, comes before what the name leads to.
fn open(file: &str, function: &str) -> Result<Library, libloading::Error> {
    let process = libloading::os::unix::Library::this();
    // SAFETY: the symbol is looked for and not used.
    if unsafe { process.get::<*const c_void>(function.as_bytes()) }.is_ok() {
        return Ok(process.into());
    }
    // SAFETY: the initialisers of rdma-core's libraries register providers and nothing else.
    unsafe { Library::new(file) }
}

macro_rules! library {
    (
        $(#[$doc:meta])*
        $name:ident, $file:literal {
            $( fn $symbol:ident($($arg:ident : $ty:ty),* $(,)?) $(-> $ret:ty)?; )*
        }
    ) => {
        $(#[$doc])*
        pub struct $name {
            $( $symbol: Option<unsafe extern "C" fn($($ty),*) $(-> $ret)?>, )*
            /// Keeps the code mapped that the pointers above lead to.
            _library: Library,
        }

        impl $name {
            /// File name under which the dynamic linker looks for the library.
            pub const LIBRARY: &'static str = $file;

            /// Every function that is looked for.
            pub const SYMBOLS: &'static [&'static str] = &[$(stringify!($symbol)),*];

            /// Loads the library, or takes what the process has of it already: a preloaded
            /// replacement is used, as it is by programs that are linked with it.
            ///
            /// # Errors
            ///
            /// [`Error::Library`] where it is not installed or cannot be linked.
            pub fn load() -> Result<Self, Error> {
                let first = Self::SYMBOLS.first().copied().unwrap_or_default();
                let library = open($file, first).map_err(|source| Error::Library { library: $file, source })?;
                $(
                    // SAFETY: the type is the one that rdma-core's public header declares, and
                    // its symbol version is kept by rdma-core for ever.
                    let $symbol = unsafe {
                        library.get::<unsafe extern "C" fn($($ty),*) $(-> $ret)?>(
                            stringify!($symbol).as_bytes(),
                        )
                    }
                    .ok()
                    .map(|symbol| *symbol);
                )*
                Ok(Self { $($symbol,)* _library: library })
            }

            /// The functions that the installed library does not have.
            #[must_use]
            pub fn missing(&self) -> Vec<&'static str> {
                let mut missing = Vec::new();
                $( if self.$symbol.is_none() { missing.push(stringify!($symbol)); } )*
                missing
            }

            $(
                #[doc = concat!("The function `", stringify!($symbol), "`; see its manual page.")]
                ///
                /// # Errors
                ///
                /// [`Error::Symbol`] where the installed library is older than it.
                #[inline]
                pub fn $symbol(
                    &self,
                ) -> Result<unsafe extern "C" fn($($ty),*) $(-> $ret)?, Error> {
                    self.$symbol.ok_or(Error::Symbol {
                        library: $file,
                        symbol: stringify!($symbol),
                    })
                }
            )*
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("library", &$file)
                    .field("missing", &self.missing())
                    .finish_non_exhaustive()
            }
        }
    };
}

library! {
    /// libibverbs, as far as it exports functions; the rest is in [`crate::inline`].
    Verbs, "libibverbs.so.1" {
        fn ibv_get_device_list(num: *mut c_int) -> *mut *mut ibv_device;
        fn ibv_free_device_list(list: *mut *mut ibv_device);
        fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
        fn ibv_get_device_guid(device: *mut ibv_device) -> u64;
        fn ibv_get_device_index(device: *mut ibv_device) -> c_int;
        fn ibv_node_type_str(kind: ibv_node_type) -> *const c_char;
        fn ibv_port_state_str(state: ibv_port_state) -> *const c_char;
        fn ibv_event_type_str(event: ibv_event_type) -> *const c_char;
        fn ibv_wc_status_str(status: ibv_wc_status) -> *const c_char;
        fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
        fn ibv_import_device(fd: c_int) -> *mut ibv_context;
        fn ibv_close_device(context: *mut ibv_context) -> c_int;
        fn ibv_query_device(context: *mut ibv_context, attr: *mut ibv_device_attr) -> c_int;
        fn ibv_query_port(
            context: *mut ibv_context,
            port: u8,
            attr: *mut ibv_port_attr,
        ) -> c_int;
        fn ibv_query_gid(
            context: *mut ibv_context,
            port: u8,
            index: c_int,
            gid: *mut ibv_gid,
        ) -> c_int;
        fn _ibv_query_gid_ex(
            context: *mut ibv_context,
            port: u32,
            index: u32,
            entry: *mut ibv_gid_entry,
            flags: u32,
            size: usize,
        ) -> c_int;
        fn _ibv_query_gid_table(
            context: *mut ibv_context,
            entries: *mut ibv_gid_entry,
            max: usize,
            flags: u32,
            size: usize,
        ) -> isize;
        fn ibv_query_pkey(
            context: *mut ibv_context,
            port: u8,
            index: c_int,
            pkey: *mut u16,
        ) -> c_int;
        fn ibv_get_pkey_index(context: *mut ibv_context, port: u8, pkey: u16) -> c_int;
        fn ibv_get_async_event(context: *mut ibv_context, event: *mut ibv_async_event) -> c_int;
        fn ibv_ack_async_event(event: *mut ibv_async_event);
        fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
        fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
        fn ibv_reg_mr(
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            access: c_int,
        ) -> *mut ibv_mr;
        fn ibv_reg_mr_iova(
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            iova: u64,
            access: c_int,
        ) -> *mut ibv_mr;
        fn ibv_reg_mr_iova2(
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            iova: u64,
            access: c_uint,
        ) -> *mut ibv_mr;
        fn ibv_reg_dmabuf_mr(
            pd: *mut ibv_pd,
            offset: u64,
            length: usize,
            iova: u64,
            fd: c_int,
            access: c_int,
        ) -> *mut ibv_mr;
        fn ibv_rereg_mr(
            mr: *mut ibv_mr,
            flags: c_int,
            pd: *mut ibv_pd,
            addr: *mut c_void,
            length: usize,
            access: c_int,
        ) -> c_int;
        fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
        fn ibv_create_comp_channel(context: *mut ibv_context) -> *mut ibv_comp_channel;
        fn ibv_destroy_comp_channel(channel: *mut ibv_comp_channel) -> c_int;
        fn ibv_create_cq(
            context: *mut ibv_context,
            cqe: c_int,
            user: *mut c_void,
            channel: *mut ibv_comp_channel,
            vector: c_int,
        ) -> *mut ibv_cq;
        fn ibv_resize_cq(cq: *mut ibv_cq, cqe: c_int) -> c_int;
        fn ibv_destroy_cq(cq: *mut ibv_cq) -> c_int;
        fn ibv_get_cq_event(
            channel: *mut ibv_comp_channel,
            cq: *mut *mut ibv_cq,
            user: *mut *mut c_void,
        ) -> c_int;
        fn ibv_ack_cq_events(cq: *mut ibv_cq, events: c_uint);
        fn ibv_create_srq(pd: *mut ibv_pd, attr: *mut ibv_srq_init_attr) -> *mut ibv_srq;
        fn ibv_modify_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr, mask: c_int) -> c_int;
        fn ibv_query_srq(srq: *mut ibv_srq, attr: *mut ibv_srq_attr) -> c_int;
        fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int;
        fn ibv_create_qp(pd: *mut ibv_pd, attr: *mut ibv_qp_init_attr) -> *mut ibv_qp;
        fn ibv_modify_qp(qp: *mut ibv_qp, attr: *mut ibv_qp_attr, mask: c_int) -> c_int;
        fn ibv_query_qp(
            qp: *mut ibv_qp,
            attr: *mut ibv_qp_attr,
            mask: c_int,
            init: *mut ibv_qp_init_attr,
        ) -> c_int;
        fn ibv_destroy_qp(qp: *mut ibv_qp) -> c_int;
        fn ibv_qp_to_qp_ex(qp: *mut ibv_qp) -> *mut ibv_qp_ex;
        fn ibv_create_ah(pd: *mut ibv_pd, attr: *mut ibv_ah_attr) -> *mut ibv_ah;
        fn ibv_create_ah_from_wc(
            pd: *mut ibv_pd,
            wc: *mut ibv_wc,
            grh: *mut ibv_grh,
            port: u8,
        ) -> *mut ibv_ah;
        fn ibv_init_ah_from_wc(
            context: *mut ibv_context,
            port: u8,
            wc: *mut ibv_wc,
            grh: *mut ibv_grh,
            attr: *mut ibv_ah_attr,
        ) -> c_int;
        fn ibv_destroy_ah(ah: *mut ibv_ah) -> c_int;
        fn ibv_attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;
        fn ibv_detach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, lid: u16) -> c_int;
        fn ibv_fork_init() -> c_int;
        fn ibv_is_fork_initialized() -> ibv_fork_status;
    }
}

library! {
    /// librdmacm: connections by IP address.
    Cm, "librdmacm.so.1" {
        fn rdma_create_event_channel() -> *mut rdma_event_channel;
        fn rdma_destroy_event_channel(channel: *mut rdma_event_channel);
        fn rdma_create_id(
            channel: *mut rdma_event_channel,
            id: *mut *mut rdma_cm_id,
            context: *mut c_void,
            space: rdma_port_space,
        ) -> c_int;
        fn rdma_destroy_id(id: *mut rdma_cm_id) -> c_int;
        fn rdma_bind_addr(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int;
        fn rdma_resolve_addr(
            id: *mut rdma_cm_id,
            source: *mut sockaddr,
            destination: *mut sockaddr,
            timeout_ms: c_int,
        ) -> c_int;
        fn rdma_resolve_route(id: *mut rdma_cm_id, timeout_ms: c_int) -> c_int;
        fn rdma_create_qp(
            id: *mut rdma_cm_id,
            pd: *mut ibv_pd,
            attr: *mut ibv_qp_init_attr,
        ) -> c_int;
        fn rdma_destroy_qp(id: *mut rdma_cm_id);
        fn rdma_connect(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int;
        fn rdma_establish(id: *mut rdma_cm_id) -> c_int;
        fn rdma_listen(id: *mut rdma_cm_id, backlog: c_int) -> c_int;
        fn rdma_accept(id: *mut rdma_cm_id, param: *mut rdma_conn_param) -> c_int;
        fn rdma_reject(id: *mut rdma_cm_id, data: *const c_void, length: u8) -> c_int;
        fn rdma_disconnect(id: *mut rdma_cm_id) -> c_int;
        fn rdma_notify(id: *mut rdma_cm_id, event: ibv_event_type) -> c_int;
        fn rdma_join_multicast(
            id: *mut rdma_cm_id,
            addr: *mut sockaddr,
            context: *mut c_void,
        ) -> c_int;
        fn rdma_leave_multicast(id: *mut rdma_cm_id, addr: *mut sockaddr) -> c_int;
        fn rdma_get_cm_event(
            channel: *mut rdma_event_channel,
            event: *mut *mut rdma_cm_event,
        ) -> c_int;
        fn rdma_ack_cm_event(event: *mut rdma_cm_event) -> c_int;
        fn rdma_get_src_port(id: *mut rdma_cm_id) -> u16;
        fn rdma_get_dst_port(id: *mut rdma_cm_id) -> u16;
        fn rdma_get_devices(num: *mut c_int) -> *mut *mut ibv_context;
        fn rdma_free_devices(list: *mut *mut ibv_context);
        fn rdma_event_str(event: rdma_cm_event_type) -> *const c_char;
        fn rdma_set_option(
            id: *mut rdma_cm_id,
            level: c_int,
            option: c_int,
            value: *mut c_void,
            length: usize,
        ) -> c_int;
        fn rdma_migrate_id(id: *mut rdma_cm_id, channel: *mut rdma_event_channel) -> c_int;
        fn rdma_getaddrinfo(
            node: *const c_char,
            service: *const c_char,
            hints: *const rdma_addrinfo,
            result: *mut *mut rdma_addrinfo,
        ) -> c_int;
        fn rdma_freeaddrinfo(list: *mut rdma_addrinfo);
        fn rdma_create_ep(
            id: *mut *mut rdma_cm_id,
            list: *mut rdma_addrinfo,
            pd: *mut ibv_pd,
            attr: *mut ibv_qp_init_attr,
        ) -> c_int;
        fn rdma_destroy_ep(id: *mut rdma_cm_id);
        fn rdma_get_request(listen: *mut rdma_cm_id, id: *mut *mut rdma_cm_id) -> c_int;
        fn rdma_init_qp_attr(
            id: *mut rdma_cm_id,
            attr: *mut ibv_qp_attr,
            mask: *mut c_int,
        ) -> c_int;
    }
}
