//! Connecting by the RDMA communication manager, as rdma_cm does: by IP address and port, with a peer
//! that may be a kernel, an adapter or this crate.
//!
//! Two managers speak the same protocol: the system's, reached through librdmacm, for the devices of
//! libibverbs; and our own ([`crate::provider::roce::proto::cm`]) for the provider `roce`. Devices in
//! shared memory have none: see [`crate::exchange`].

mod roce;
mod system;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::Error;
use crate::device::{Context, Device};
use crate::mr::Buf;
use crate::provider::roce::Config;
use crate::provider::roce::proto::cm::wire::Reason;
use crate::qp::{ConnectAttr, Qp, Rc};

/// The manager of a device.
#[derive(Debug, Clone)]
pub struct Cm(Manager);

#[derive(Debug, Clone)]
enum Manager {
    Roce(roce::Port),
    System(system::System),
}

/// Takes calls for a port, until it is dropped.
#[derive(Debug)]
pub struct Listener(Listens);

#[derive(Debug)]
enum Listens {
    Roce(roce::Listener),
    System(system::Listener),
}

/// A call: [`Cm::accept`] it, or drop it to refuse.
#[derive(Debug)]
pub struct Call(Calls);

#[derive(Debug)]
enum Calls {
    Roce(roce::Call),
    System(system::Call),
}

/// A connection, which ends when it is dropped.
#[derive(Debug)]
pub struct Connection(Connects);

#[derive(Debug)]
enum Connects {
    Roce(roce::Connection),
    System(system::Connection),
}

/// Why a peer refused, in words.
fn reason(code: u16) -> String {
    match Reason::new(code) {
        Reason::INVALID_SERVICE_ID => "nobody listens on that port".to_owned(),
        Reason::CONSUMER => "the program that listens does not want the connection".to_owned(),
        Reason::NO_QP | Reason::NO_RESOURCES => "it has no resources for another one".to_owned(),
        Reason::STALE_CONNECTION => {
            "it still has an older connection of this queue pair".to_owned()
        }
        _ => format!("reason {code}"),
    }
}

/// Whether there is something to read, or will be within the time.
fn is_ready(fd: i32, milliseconds: i32) -> bool {
    let mut fd = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor of our own.
    unsafe { libc::poll(&raw mut fd, 1, milliseconds) > 0 }
}

/// The device of libibverbs that has an address of this host, as the system finds it.
///
/// # Errors
///
/// [`Error::NoDevice`] where none has it; why the system cannot be asked.
pub fn device_at(source: IpAddr) -> Result<Device, Error> {
    let none = || Error::NoDevice {
        name: source.to_string(),
    };
    Device::by_name(&system::device_of(source)?.ok_or_else(none)?)
}

impl Cm {
    /// Opens a device of the provider `roce` for connections: see
    /// [`crate::provider::roce::RoceProvider::configs`].
    ///
    /// # Errors
    ///
    /// What opening it said.
    pub fn open(config: &Config) -> Result<Self, Error> {
        Ok(Self(Manager::Roce(roce::Port::open(config)?)))
    }

    /// The system's manager, for a device of libibverbs that has the address: see [`device_at`].
    #[doc(alias = "librdmacm")]
    #[must_use]
    pub const fn system(context: Context, source: IpAddr) -> Self {
        Self(Manager::System(system::System::new(context, source)))
    }

    /// The device, to make queue pairs on.
    #[must_use]
    pub fn context(&self) -> &Context {
        match &self.0 {
            Manager::Roce(port) => port.context(),
            Manager::System(system) => &system.context,
        }
    }

    /// Whether peers of other kinds can call: whether this process has the standard port of the
    /// address.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        match &self.0 {
            Manager::Roce(port) => port.is_reached(),
            Manager::System(_) => true,
        }
    }

    /// Takes calls for a port.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` where this process does so already, or another one does with the system's manager.
    #[doc(alias = "rdma_listen")]
    pub fn listen(&self, port: u16) -> Result<Listener, Error> {
        Ok(Listener(match &self.0 {
            Manager::Roce(own) => Listens::Roce(own.listen(port)?),
            Manager::System(system) => Listens::System(system.listen(port)?),
        }))
    }

    /// Calls whoever listens, and connects the queue pair, which is in INIT: its receive requests are best
    /// posted before.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] and [`Error::Unanswered`] say why there is no connection.
    #[doc(alias = "rdma_connect")]
    pub fn connect<S: Buf, R: Buf>(
        &self,
        qp: &Qp<Rc, S, R>,
        to: SocketAddr,
        how: &ConnectAttr,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        Ok(Connection(match &self.0 {
            Manager::Roce(port) => Connects::Roce(port.connect(qp, to, how, timeout)?),
            Manager::System(system) => Connects::System(system.connect(qp, to, how, timeout)?),
        }))
    }

    /// Accepts a call with a queue pair in INIT, and waits until the peer is ready.
    ///
    /// # Errors
    ///
    /// [`Error::Unanswered`] where the peer does not say that it is ready; `EINVAL` for a call of another
    /// manager.
    #[doc(alias = "rdma_accept")]
    pub fn accept<S: Buf, R: Buf>(
        &self,
        call: Call,
        qp: &Qp<Rc, S, R>,
        how: &ConnectAttr,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        Ok(Connection(match (&self.0, call.0) {
            (Manager::Roce(port), Calls::Roce(call)) => {
                Connects::Roce(port.accept(call, qp, how, timeout)?)
            }
            (Manager::System(system), Calls::System(call)) => {
                Connects::System(system.accept(call, qp, how, timeout)?)
            }
            _ => {
                return Err(Error::verb("rdma_accept")(crate::provider::Errno(
                    libc::EINVAL,
                )));
            }
        }))
    }
}

impl Listener {
    /// The next call; `None` when the time is over, which without a timeout it never is.
    ///
    /// # Errors
    ///
    /// What waiting said.
    #[doc(alias = "rdma_get_request")]
    pub fn next(&self, timeout: Option<Duration>) -> Result<Option<Call>, Error> {
        Ok(match &self.0 {
            Listens::Roce(listener) => listener.next(timeout)?.map(Calls::Roce),
            Listens::System(listener) => listener.next(timeout)?.map(Calls::System),
        }
        .map(Call))
    }
}

impl Call {
    /// The address of who calls.
    #[must_use]
    pub fn from(&self) -> IpAddr {
        match &self.0 {
            Calls::Roce(call) => call.from(),
            Calls::System(call) => call.from(),
        }
    }
}

impl Connection {
    /// Whether the peer has ended it, or cannot be reached any more.
    ///
    /// # Errors
    ///
    /// What looking said.
    pub fn is_over(&self) -> Result<bool, Error> {
        match &self.0 {
            Connects::Roce(connection) => connection.is_over(),
            Connects::System(connection) => connection.is_over(),
        }
    }

    /// Ends it, and waits until the peer knows.
    ///
    /// # Errors
    ///
    /// What waiting said.
    #[doc(alias = "rdma_disconnect")]
    pub fn disconnect(self, timeout: Duration) -> Result<(), Error> {
        match self.0 {
            Connects::Roce(connection) => connection.disconnect(timeout),
            Connects::System(connection) => connection.disconnect(timeout),
        }
    }
}
