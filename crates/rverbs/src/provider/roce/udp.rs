//! The UDP socket: bursts out by `UDP_SEGMENT`, bursts in by `UDP_GRO`.
//!
//! The socket is never connected, and asks for the "don't fragment" flag: only then does Linux send
//! the IPv4 identifications that the ICRC was computed with (0, 1, 2, … within a burst).

use core::ffi::{c_int, c_void};
use core::mem::{size_of, size_of_val, zeroed};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::sync::atomic::{AtomicU8, Ordering};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;

use super::proto::Burst;
use super::proto::packet::icrc::Flow;

/// Bytes that one receive can bring.
pub const MAX_DATAGRAM: usize = 65_536;
/// Bytes that we ask the system to hold in either direction.
const BUFFER: c_int = 8 << 20;

/// What came with a datagram.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Both addresses.
    pub flow: Flow,
    /// The byte with DSCP and ECN.
    pub tos: u8,
    /// Bytes in all.
    pub len: usize,
    /// Bytes of each packet but the last.
    pub segment: usize,
}

/// What became of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way, or lost as the network may lose it.
    Gone,
    /// The system takes nothing now: keep it and try again when the socket is writable.
    Later,
    /// The system does not segment here: see [`Burst::unsegmented`], which sends packet by packet.
    NoSegmentation,
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    local: SocketAddr,
    /// The byte with DSCP and ECN that packets have.
    tos: AtomicU8,
}

/// Room for the control messages that we use, aligned as they are.
#[repr(C, align(8))]
struct Control([u8; 128]);

impl Socket {
    /// Binds a socket to one address and port.
    ///
    /// # Errors
    ///
    /// What the operating system said; `EADDRINUSE` also where the kernel's rxe has the port.
    pub fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        socket.set_nonblocking(true)?;
        let this = Self {
            local: socket.local_addr()?,
            socket,
            tos: AtomicU8::new(0),
        };
        let (level, discover, tos) = match local {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_RECVTOS),
            SocketAddr::V6(_) => (
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_RECVTCLASS,
            ),
        };
        // IP_PMTUDISC_DO and IPV6_PMTUDISC_DO are both 2.
        this.set(level, discover, 2)?;
        this.set(level, tos, 1)?;
        // Without these it is slower or loses more, but works.
        let _ = this.set(libc::IPPROTO_UDP, libc::UDP_GRO, 1);
        for (forced, plain) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if this.set(libc::SOL_SOCKET, forced, BUFFER).is_err() {
                let _ = this.set(libc::SOL_SOCKET, plain, BUFFER);
            }
        }
        Ok(this)
    }

    fn set(&self, level: c_int, name: c_int, value: c_int) -> io::Result<()> {
        let len = libc::socklen_t::try_from(size_of_val(&value)).unwrap_or(0);
        // SAFETY: the value is read, as long as it says.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                name,
                (&raw const value).cast(),
                len,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// The address that it is bound to.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The descriptor to wait on.
    #[must_use]
    pub fn fd(&self) -> c_int {
        self.socket.as_raw_fd()
    }

    /// Bytes that the system holds for us before it drops.
    #[must_use]
    pub fn receive_buffer(&self) -> usize {
        let mut value: c_int = 0;
        let mut len = libc::socklen_t::try_from(size_of::<c_int>()).unwrap_or(0);
        // SAFETY: the value is written, as long as it says.
        unsafe {
            libc::getsockopt(
                self.fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUF,
                (&raw mut value).cast(),
                &raw mut len,
            );
        }
        usize::try_from(value).unwrap_or(0)
    }

    /// Sends a burst.
    pub fn send(&self, burst: &Burst) -> Sent {
        let Some(destination) = burst.destination() else {
            return Sent::Gone;
        };
        let segment =
            (burst.count() > 1).then(|| u16::try_from(burst.segment()).unwrap_or(u16::MAX));
        self.send_raw(
            destination.flow.dst,
            destination.tos,
            burst.bytes(),
            segment,
        )
    }

    /// Sends the packets of a burst that was made for that ([`Burst::unsegmented`]) one by one.
    pub fn send_each(&self, burst: &Burst) {
        if let Some(destination) = burst.destination() {
            for packet in burst.packets() {
                self.send_raw(destination.flow.dst, destination.tos, packet, None);
            }
        }
    }

    /// Says what packets have from now on. Most go to one peer and have the same; a message about it in
    /// each system call costs a tenth of a small datagram.
    fn mark(&self, to: SocketAddr, tos: u8) {
        if self.tos.swap(tos, Ordering::Relaxed) != tos {
            let (level, name) = match to {
                SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TOS),
                SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
            };
            // Packets that are marked otherwise are packets all the same.
            let _ = self.set(level, name, tos.into());
        }
    }

    /// Sends bytes as they are, cut into segments of that many. One thread at a time.
    pub fn send_raw(&self, to: SocketAddr, tos: u8, bytes: &[u8], segment: Option<u16>) -> Sent {
        let (mut name, name_len) = raw_address(to);
        let mut part = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        self.mark(to, tos);
        let mut control = Control([0; 128]);
        // SAFETY: all of its fields are numbers and pointers, which may be zero.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = name_len;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(segment) = segment {
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = size_of::<Control>();
            // SAFETY: the header points to a buffer of our own, zeroed, long enough for the message.
            message.msg_controllen = unsafe {
                let first = libc::CMSG_FIRSTHDR(&raw const message);
                put(first, libc::SOL_UDP, libc::UDP_SEGMENT, segment)
            };
        }
        loop {
            // SAFETY: everything that the header points to is live and as long as it says.
            let result =
                unsafe { libc::sendmsg(self.fd(), &raw const message, libc::MSG_NOSIGNAL) };
            if result >= 0 {
                return Sent::Gone;
            }
            match io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::ENOBUFS) => return Sent::Later,
                Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP) if segment.is_some() => {
                    return Sent::NoSegmentation;
                }
                // Unreachable, too large, refused: the peer does not get it, and timers say so.
                _ => return Sent::Gone,
            }
        }
    }

    /// Receives what is there, up to a segmented datagram; `None` if nothing is.
    pub fn receive(&self, buf: &mut [u8]) -> Option<Received> {
        // SAFETY: a socket address may be all zero.
        let mut name: libc::sockaddr_storage = unsafe { zeroed() };
        let mut part = libc::iovec {
            iov_base: buf.as_mut_ptr().cast(),
            iov_len: buf.len(),
        };
        let mut control = Control([0; 128]);
        // SAFETY: all of its fields are numbers and pointers, which may be zero.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_name = (&raw mut name).cast();
        message.msg_namelen = libc::socklen_t::try_from(size_of_val(&name)).unwrap_or(0);
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = size_of::<Control>();
        let len = loop {
            // SAFETY: everything that the header points to is live and as long as it says.
            let result = unsafe { libc::recvmsg(self.fd(), &raw mut message, libc::MSG_DONTWAIT) };
            match usize::try_from(result) {
                Ok(len) => break len,
                // An error that an ICMP message left is taken by this, too; try once more.
                Err(_) => match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR | libc::ECONNREFUSED) => {}
                    _ => return None,
                },
            }
        };
        let src = address(&name)?;
        let (mut tos, mut segment) = (0_u8, len);
        // SAFETY: the kernel filled the control buffer and set its length.
        let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        while !header.is_null() {
            // SAFETY: the header is inside the control buffer, as the macros check.
            let (level, kind, data) = unsafe {
                let data: *const c_void = libc::CMSG_DATA(header).cast();
                ((*header).cmsg_level, (*header).cmsg_type, data)
            };
            // SAFETY: these messages hold at least what is read: a byte, an int, an int.
            unsafe {
                match (level, kind) {
                    (libc::IPPROTO_IP, libc::IP_TOS) => tos = data.cast::<u8>().read(),
                    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                        tos = u8::try_from(data.cast::<c_int>().read_unaligned()).unwrap_or(0);
                    }
                    (libc::SOL_UDP, libc::UDP_GRO) => {
                        let size = data.cast::<c_int>().read_unaligned();
                        segment = usize::try_from(size).unwrap_or(len);
                    }
                    _ => {}
                }
                header = libc::CMSG_NXTHDR(&raw const message, header);
            }
        }
        Some(Received {
            flow: Flow {
                src,
                dst: self.local,
            },
            tos,
            len,
            segment: segment.max(1),
        })
    }
}

/// Writes a control message and says how much room it takes.
///
/// # Safety
///
/// `header` lies in a buffer with room for it, or is null.
unsafe fn put<T: Copy>(header: *mut libc::cmsghdr, level: c_int, kind: c_int, value: T) -> usize {
    if header.is_null() {
        return 0;
    }
    let size = u32::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: as the caller promises.
    unsafe {
        (*header).cmsg_level = level;
        (*header).cmsg_type = kind;
        (*header).cmsg_len = libc::CMSG_LEN(size) as usize;
        libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        libc::CMSG_SPACE(size) as usize
    }
}

/// As C has it, and how many bytes of it count.
pub(crate) fn raw_address(addr: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: a socket address may be all zero.
    let mut storage: libc::sockaddr_storage = unsafe { zeroed() };
    let len = match addr {
        SocketAddr::V4(addr) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or(0),
                sin_port: addr.port().to_be(),
                sin_addr: libc::in_addr {
                    s_addr: u32::from_ne_bytes(addr.ip().octets()),
                },
                sin_zero: [0; 8],
            };
            // SAFETY: the storage is larger than any address and aligned for all of them.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(addr) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::sa_family_t::try_from(libc::AF_INET6).unwrap_or(0),
                sin6_port: addr.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr {
                    s6_addr: addr.ip().octets(),
                },
                sin6_scope_id: addr.scope_id(),
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, libc::socklen_t::try_from(len).unwrap_or(0))
}

/// From C; `None` for a family that is not IP.
pub(crate) fn address(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says which address it is.
            let raw = unsafe { (&raw const *storage).cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(raw.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { (&raw const *storage).cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Some(SocketAddr::new(IpAddr::V6(ip), u16::from_be(raw.sin6_port)))
        }
        _ => None,
    }
}
