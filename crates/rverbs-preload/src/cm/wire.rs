//! How the two sides of a connection reach each other.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rverbs::provider::{Errno, Kind};

use super::address::{is_local, source_for};
use super::id::Id;
use super::message::Message;
use super::{local, roce};
use crate::device::{Device, devices};

/// Talking to the other side of one connection. Dropping the last reference hangs up.
pub(crate) trait Talk: Send + Sync + fmt::Debug {
    /// Sends a message.
    fn send(&self, message: &Message) -> Result<(), Errno>;

    /// Hears nothing more.
    fn close(&self);
}

/// An address that requests are taken at. Dropping it ends that.
pub(crate) trait Listening: Send + fmt::Debug {}

/// A port that nobody else may use.
pub(crate) trait Reservation: Send + Sync + fmt::Debug {
    /// The address with its port.
    fn address(&self) -> SocketAddr;

    /// Takes requests for `id` at the port from now on.
    fn listen(&self, id: &Arc<Id>, backlog: i32) -> Result<Box<dyn Listening>, Errno>;
}

/// Takes a port at an address; 0 means any that is free.
pub(crate) fn reserve(space: u32, address: SocketAddr) -> Result<Arc<dyn Reservation>, Errno> {
    local::reserve(space, address)
}

/// Calls the other side for `id` and sends the first message. What comes of it is told by
/// [`Id::answered`] or [`Id::refused`], perhaps before this returns.
pub(crate) fn dial(
    id: &Arc<Id>,
    device: &'static Device,
    to: SocketAddr,
    message: Message,
) -> Result<(), Errno> {
    // Processes of this host are also reached where no packet reaches them: see `roce`.
    if is_local(to.ip())
        && let Ok(talk) = local::dial(id, to, &message)
    {
        id.answered(talk);
        return Ok(());
    }
    match device.info.provider {
        Kind::Shm => local::dial_later(id, to, message),
        Kind::Roce => roce::dial(device, id, to, message),
        _ => Err(Errno(libc::EOPNOTSUPP)),
    }
}

/// Takes requests for `id` at its address, by every device that has it.
pub(crate) fn listen(
    id: &Arc<Id>,
    reservation: &dyn Reservation,
    backlog: i32,
) -> Result<Vec<Box<dyn Listening>>, Errno> {
    let address = reservation.address();
    let mut listening = Vec::new();
    let mut locally = false;
    for device in devices() {
        match device.info.provider {
            Kind::Shm => locally = true,
            Kind::Roce if device.has(address.ip()) => {
                listening.push(roce::listen(device, id, address.port())?);
                locally |= !roce::is_reached(device)?;
            }
            _ => {}
        }
    }
    if locally {
        listening.push(reservation.listen(id, backlog)?);
    }
    Ok(listening)
}

/// The device that reaches an address, or that has it.
pub(crate) fn device_for(ip: IpAddr) -> Result<&'static Device, Errno> {
    // A group is where its members are.
    let local = ip.is_multicast() || is_local(ip);
    let source = source_for(ip)?;
    let reaches = |device: &&Device| match device.info.provider {
        Kind::Shm => local,
        _ => device.has(source),
    };
    let device = devices().iter().find(reaches);
    device.ok_or_else(|| {
        Errno(if devices().is_empty() {
            libc::ENODEV
        } else {
            libc::EHOSTUNREACH
        })
    })
}
