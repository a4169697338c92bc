//! The edge between this crate and the world: a port that MADs go out of and come in by.

use core::error::Error;
use core::time::Duration;

use crate::header::MadHeader;
use crate::id::{Guid, Lid};
use crate::smp::Smp;
use crate::{MAD_LEN, Time};

/// Where a packet goes to, or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// The other end; [`Lid::PERMISSIVE`] for a directed route.
    pub lid: Lid,
    /// Service level, 0 to 15.
    pub sl: u8,
    /// Queue pair: 0 for subnet management, 1 for the other classes.
    pub qpn: u32,
    /// The other end's key for its queue pair.
    pub qkey: u32,
    /// Index into the local port's partition table.
    pub pkey_index: u16,
}

impl Address {
    /// Subnet management by a directed route.
    pub const DIRECTED: Self = Self {
        lid: Lid::PERMISSIVE,
        sl: 0,
        qpn: 0,
        qkey: 0,
        pkey_index: 0,
    };
}

/// What became of a packet that a port hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Delivery {
    /// It came in from the other end. Packets to be sent have this too.
    Received,
    /// It is our own request, and no answer came within its `response_time`. Only some ports say
    /// so; a client keeps its own time as well.
    TimedOut,
    /// It is our own request, and it could not be sent: the system's error number.
    Failed(u32),
}

/// A MAD and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The other end.
    pub address: Address,
    /// How long an answer may take; zero where none is expected. A kernel drops an answer that
    /// nobody waits for.
    pub response_time: Duration,
    /// What became of it.
    pub delivery: Delivery,
    /// The bytes.
    pub mad: [u8; MAD_LEN],
}

impl Packet {
    /// A subnet management packet with a directed route.
    #[must_use]
    pub fn directed(smp: &Smp, response_time: Duration) -> Self {
        Self {
            address: Address::DIRECTED,
            response_time,
            delivery: Delivery::Received,
            mad: smp.to_bytes(),
        }
    }

    /// The packet that came in from `address`.
    #[must_use]
    pub const fn received(address: Address, mad: [u8; MAD_LEN]) -> Self {
        Self {
            address,
            response_time: Duration::ZERO,
            delivery: Delivery::Received,
            mad,
        }
    }

    /// The common header.
    #[must_use]
    pub fn header(&self) -> &MadHeader {
        &self.smp().header
    }

    /// The common header, to be changed.
    pub fn header_mut(&mut self) -> &mut MadHeader {
        let smp: &mut Smp = bytemuck::must_cast_mut(&mut self.mad);
        &mut smp.header
    }

    /// Viewed as a subnet management packet.
    #[must_use]
    pub fn smp(&self) -> &Smp {
        Smp::from_bytes(&self.mad)
    }
}

/// Which port of which node we sit on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalPort {
    /// What it is called: `mlx5_0`, `ibsim0`, the name of a simulated node.
    pub device: String,
    /// The node's GUID, where it is known before a MAD was sent.
    pub node_guid: Option<Guid>,
    /// The port's GUID, where it is known.
    pub port_guid: Option<Guid>,
    /// The port's number; 0 is a switch's own.
    pub port: u8,
    /// Its base LID; [`Lid::RESERVED`] before a subnet manager has given one.
    pub lid: Lid,
    /// Where its subnet manager is.
    pub sm_lid: Lid,
}

impl LocalPort {
    /// A port of which only the name and the number are known.
    #[must_use]
    pub fn new(device: impl Into<String>, port: u8) -> Self {
        Self {
            device: device.into(),
            port,
            ..Self::default()
        }
    }
}

/// Why a port does no longer work, or not now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The port cannot take another packet now; receive, then send again.
    #[error("the port cannot take another packet now")]
    Full,
    /// The other side of the port is gone: the adapter was removed, the simulator has ended.
    #[error("{device} is gone")]
    Gone {
        /// The port's name.
        device: String,
        /// What the system said.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Anything else that the system said.
    #[error("{device} failed while {doing}")]
    Failed {
        /// The port's name.
        device: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// A port that MADs go out of and come in by.
///
/// Implemented by adapters, by simulators, and by wrappers such as
/// [`FaultPort`](crate::FaultPort).
pub trait MadPort {
    /// Which port of which node this is.
    fn local(&self) -> &LocalPort;

    /// The port's clock: monotonic on a live port, virtual in a simulator.
    fn now(&self) -> Time;

    /// Sends a packet. Does not wait for an answer.
    ///
    /// # Errors
    /// [`PortError::Full`] where the packet was not taken and may be given again after a
    /// [`receive`](Self::receive); anything else is final.
    fn send(&mut self, packet: &Packet) -> Result<(), PortError>;

    /// The next packet, waiting `wait` for it at most. A simulator moves its clock instead.
    ///
    /// # Errors
    /// As [`send`](Self::send), without [`PortError::Full`].
    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError>;

    /// Says that a subnet manager runs here, or no longer does: the IsSM bit of the port. Requests
    /// and traps for a subnet manager are received from then on, where the port can do that.
    ///
    /// # Errors
    /// As [`send`](Self::send), without [`PortError::Full`].
    fn announce_sm(&mut self, _on: bool) -> Result<(), PortError> {
        Ok(())
    }
}

impl<P: MadPort + ?Sized> MadPort for Box<P> {
    fn local(&self) -> &LocalPort {
        (**self).local()
    }

    fn now(&self) -> Time {
        (**self).now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        (**self).send(packet)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        (**self).receive(wait)
    }

    fn announce_sm(&mut self, on: bool) -> Result<(), PortError> {
        (**self).announce_sm(on)
    }
}

impl<P: MadPort + ?Sized> MadPort for &mut P {
    fn local(&self) -> &LocalPort {
        (**self).local()
    }

    fn now(&self) -> Time {
        (**self).now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        (**self).send(packet)
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        (**self).receive(wait)
    }

    fn announce_sm(&mut self, on: bool) -> Result<(), PortError> {
        (**self).announce_sm(on)
    }
}
