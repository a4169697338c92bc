//! Datagram sockets of both families.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// Where an ibsim listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Its name in the abstract name space, `IBSIM_SOCKNAME`; `sim` where it was given none.
    Unix(String),
    /// Its control port, for `ibsim -r -l PORT`; the data ports follow it.
    Udp {
        /// Name or address.
        host: String,
        /// 7070 where it was given none.
        port: u16,
    },
}

impl Endpoint {
    /// The port that `ibsim -r` listens to by default.
    pub const DEFAULT_PORT: u16 = 7070;
    /// The name that ibsim has by default.
    pub const DEFAULT_NAME: &'static str = "sim";
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(name) => write!(f, "ibsim:{name}"),
            Self::Udp { host, port } => write!(f, "ibsim:udp:{host}:{port}"),
        }
    }
}

#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

/// A name as ibsim makes it: the zero at its end is part of it.
fn abstract_name(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{name}\0"))
}

impl Socket {
    pub(super) fn bind_unix(name: &str) -> io::Result<Self> {
        UnixDatagram::bind_addr(&abstract_name(name)?).map(Self::Unix)
    }

    pub(super) fn bind_udp() -> io::Result<Self> {
        UdpSocket::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).map(Self::Udp)
    }

    /// The port that a UDP socket was given.
    pub(super) fn udp_port(&self) -> io::Result<u16> {
        match self {
            Self::Unix(_) => Ok(0),
            Self::Udp(socket) => Ok(socket.local_addr()?.port()),
        }
    }

    pub(super) fn connect_unix(&self, name: &str) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.connect_addr(&abstract_name(name)?),
            Self::Udp(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn connect_udp(&self, host: &str, port: u16) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.connect((host, port)),
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub(super) fn set_read_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_read_timeout(Some(timeout)),
            Self::Udp(socket) => socket.set_read_timeout(Some(timeout)),
        }
    }

    pub(super) fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Unix(socket) => socket.set_nonblocking(true),
            Self::Udp(socket) => socket.set_nonblocking(true),
        }
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.send(bytes),
            Self::Udp(socket) => socket.send(bytes),
        }
    }

    pub(super) fn recv(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(socket) => socket.recv(bytes),
            Self::Udp(socket) => socket.recv(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(socket) => socket.as_fd(),
            Self::Udp(socket) => socket.as_fd(),
        }
    }
}
