//! Socket addresses, as C has them and as Rust does.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use rverbs::provider::Errno;
use rverbs_sys::rdma_addr;

/// The address behind a pointer of C's.
///
/// # Safety
///
/// The pointer is null or leads to a `sockaddr` that is as long as its family says.
pub(crate) unsafe fn read(from: *const libc::sockaddr) -> Option<SocketAddr> {
    // SAFETY: as the caller promises.
    let family = c_int_family(unsafe { from.as_ref() }?);
    match family {
        libc::AF_INET => {
            // SAFETY: the family says that it is this struct.
            let from = unsafe { from.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(from.sin_addr.s_addr));
            Some(SocketAddr::V4(SocketAddrV4::new(
                ip,
                u16::from_be(from.sin_port),
            )))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is this struct.
            let from = unsafe { from.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(SocketAddr::V6(SocketAddrV6::new(
                Ipv6Addr::from(from.sin6_addr.s6_addr),
                u16::from_be(from.sin6_port),
                from.sin6_flowinfo,
                from.sin6_scope_id,
            )))
        }
        _ => None,
    }
}

fn c_int_family(address: &libc::sockaddr) -> i32 {
    i32::from(address.sa_family)
}

/// A family as an address holds it; all that there are fit.
fn family(number: i32) -> libc::sa_family_t {
    libc::sa_family_t::try_from(number).unwrap_or_default()
}

fn v4(from: &SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: family(libc::AF_INET),
        sin_port: from.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*from.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

fn v6(from: &SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: family(libc::AF_INET6),
        sin6_port: from.port().to_be(),
        sin6_flowinfo: from.flowinfo(),
        sin6_addr: libc::in6_addr {
            s6_addr: from.ip().octets(),
        },
        sin6_scope_id: from.scope_id(),
    }
}

/// Writes an address where C wants to see the source.
pub(crate) fn write_source(to: &mut rdma_addr, from: &SocketAddr) {
    match from {
        SocketAddr::V4(from) => to.src.src_sin = v4(from),
        SocketAddr::V6(from) => to.src.src_sin6 = v6(from),
    }
}

/// Writes an address where C wants to see the destination.
pub(crate) fn write_destination(to: &mut rdma_addr, from: &SocketAddr) {
    match from {
        SocketAddr::V4(from) => to.dst.dst_sin = v4(from),
        SocketAddr::V6(from) => to.dst.dst_sin6 = v6(from),
    }
}

/// An address inside IPv6 that is really IPv4 is treated as IPv4.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// "Any address" of the same family.
pub(crate) fn any_like(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Whether an address is this host's.
pub(crate) fn is_local(ip: IpAddr) -> bool {
    if ip.is_loopback() {
        return true;
    }
    let Ok(interfaces) = nix::ifaddrs::getifaddrs() else {
        return false;
    };
    interfaces
        .filter_map(|interface| interface.address)
        .any(|address| {
            let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
            let v6 = address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip()));
            v4.or(v6).is_some_and(|found| found.to_canonical() == ip)
        })
}

/// The address from which this host talks to another.
pub(crate) fn source_for(to: IpAddr) -> Result<IpAddr, Errno> {
    if is_local(to) {
        return Ok(to);
    }
    if to.is_multicast() {
        return Ok(any_like(to));
    }
    // Connecting a datagram socket sends nothing and asks the routing table.
    let socket = std::net::UdpSocket::bind((any_like(to), 0))?;
    socket.connect((to, 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The GID that RoCE derives from an address.
pub(crate) fn gid_of(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_go_to_c_and_back() {
        for text in ["192.0.2.1:7471", "[2001:db8::1]:80", "0.0.0.0:0"] {
            let address: SocketAddr = text.parse().unwrap();
            // SAFETY: an address of zeros is a value of each member.
            let mut c: rdma_addr = unsafe { core::mem::zeroed() };
            write_source(&mut c, &address);
            write_destination(&mut c, &address);
            // SAFETY: both were just written.
            let (source, destination) = unsafe {
                (
                    read(&raw const c.src.src_addr),
                    read(&raw const c.dst.dst_addr),
                )
            };
            assert_eq!(source, Some(address));
            assert_eq!(destination, Some(address));
        }
        // SAFETY: null is allowed.
        assert_eq!(unsafe { read(core::ptr::null()) }, None);
    }

    #[test]
    fn loopback_is_local_and_documentation_is_not() {
        assert!(is_local("127.0.0.1".parse().unwrap()));
        assert!(is_local("127.3.2.1".parse().unwrap()));
        assert!(is_local("::1".parse().unwrap()));
        assert!(!is_local("192.0.2.1".parse().unwrap()));
        assert_eq!(
            gid_of("192.0.2.1".parse().unwrap())[10..],
            [0xff, 0xff, 192, 0, 2, 1]
        );
    }
}
