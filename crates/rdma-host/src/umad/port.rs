//! A port of an adapter, or of a simulator under its preload library.

use std::io::{self, ErrorKind};
use std::time::Duration;

use bytemuck::Zeroable;
use ib_mad::header::MgmtClass;
use ib_mad::id::Lid;
use ib_mad::port::{Address, Delivery, LocalPort, MadPort, Packet, PortError};
use ib_mad::{MAD_LEN, Time};
use rdma_wire::{Be16, Be32};

use crate::SysRoot;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::fd::Fd;

use super::abi::{
    ENABLE_PKEY, OLD_HEADER_LEN, REGISTER_AGENT, REGISTER_AGENT2, RegisterRequest,
    RegisterRequest2, UNREGISTER_AGENT, UserMadHeader,
};
use super::list::UmadDevice;

/// The longest header and a MAD.
const BUFFER_LEN: usize = 64 + MAD_LEN;

/// Classes that a port registers for, with queue pair and class version.
const CLASSES: [(MgmtClass, u8, u8); 2] = [(MgmtClass::SUBN_DR, 0, 1), (MgmtClass::SUBN_LID, 0, 1)];

/// A port of an adapter.
#[derive(Debug)]
pub struct UmadPort {
    fd: Fd,
    local: LocalPort,
    clock: Clock,
    header_len: usize,
    agents: Vec<(MgmtClass, u32)>,
    /// `/dev/infiniband/issmN`: while it is open, the port says that a subnet manager is here.
    issm_path: std::path::PathBuf,
    issm: Option<Fd>,
}

impl UmadPort {
    /// Opens a device for subnet management.
    ///
    /// # Errors
    /// [`Error::Ethernet`], [`Error::Denied`], [`Error::Register`], [`Error::File`].
    pub fn open(root: &SysRoot, device: &UmadDevice) -> Result<Self> {
        if !device.is_infiniband() {
            return Err(Error::Ethernet {
                device: device.device.clone(),
                port: device.port,
            });
        }
        let path = root.join(format!("dev/infiniband/{}", device.name));
        let fd = Fd::open(&path, libc::O_RDWR | libc::O_NONBLOCK).map_err(|source| match source
            .kind()
        {
            ErrorKind::PermissionDenied => Error::Denied {
                path: path.clone(),
                source,
            },
            _ => Error::File {
                doing: "opening",
                path: path.clone(),
                source,
            },
        })?;
        // The preload library takes this ioctl and keeps to the old header nevertheless. It is
        // known by its descriptors, of which the kernel knows nothing. A kernel before 2.6.23 has
        // not the new header either.
        let header_len = if fd.is_real() && fd.ioctl(ENABLE_PKEY).is_ok() {
            size_of::<UserMadHeader>()
        } else {
            OLD_HEADER_LEN
        };
        let mut agents = Vec::new();
        for (class, qpn, version) in CLASSES {
            let agent =
                register(&fd, class, qpn, version, 0).map_err(|source| Error::Register {
                    device: device.device.clone(),
                    port: device.port,
                    class: class.get(),
                    source,
                })?;
            agents.push((class, agent));
        }
        let mut local = LocalPort::new(device.device.clone(), device.port);
        local.node_guid = device.node_guid;
        local.port_guid = device.port_guid;
        local.lid = device.lid.unwrap_or(Lid::RESERVED);
        local.sm_lid = device.sm_lid.unwrap_or(Lid::RESERVED);
        Ok(Self {
            fd,
            local,
            clock: Clock::start(),
            header_len,
            agents,
            issm_path: root.join(format!(
                "dev/infiniband/{}",
                device.name.replacen("umad", "issm", 1)
            )),
            issm: None,
        })
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> PortError {
        let device = self.local.device.clone();
        match source.raw_os_error() {
            Some(libc::EIO | libc::ENODEV | libc::EPIPE) => PortError::Gone {
                device,
                source: Some(source.into()),
            },
            _ => PortError::Failed {
                device,
                doing,
                source: source.into(),
            },
        }
    }

    fn take(&self) -> Result<Option<Packet>, PortError> {
        let mut buffer = [0_u8; BUFFER_LEN];
        loop {
            return match self.fd.read(&mut buffer) {
                // Anything shorter is not from a kernel; there is nothing in it for us.
                Ok(len) if len < self.header_len => Ok(None),
                Ok(len) => Ok(Some(self.incoming(buffer.get(..len).unwrap_or_default()))),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::EAGAIN) => Ok(None),
                    // A MAD longer than 256 bytes: RMPP by the kernel, for which we do not ask.
                    Some(libc::ENOSPC) => Ok(None),
                    _ => Err(self.failed("receiving", error)),
                },
            };
        }
    }

    fn incoming(&self, bytes: &[u8]) -> Packet {
        let (head, body) = bytes.split_at_checked(self.header_len).unwrap_or_default();
        let mut header = UserMadHeader::zeroed();
        copy(bytemuck::bytes_of_mut(&mut header), head);
        let mut mad = [0; MAD_LEN];
        copy(&mut mad, body);
        let address = Address {
            lid: Lid::new(header.lid.get()),
            sl: header.sl,
            qpn: header.qpn.get(),
            qkey: header.qkey.get(),
            pkey_index: header.pkey_index,
        };
        Packet {
            delivery: match header.status {
                0 => Delivery::Received,
                110 => Delivery::TimedOut,
                other => Delivery::Failed(other),
            },
            ..Packet::received(address, mad)
        }
    }
}

fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from;
    }
}

/// Requests that a subnet manager answers: Get 1, Set 2, Trap 5, TrapRepress 7, as bits.
const MANAGER_METHODS: u32 = 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7;

/// Registers for the answers to our requests of a class, and for the requests of others with the
/// methods of a mask; returns the number to send by.
fn register(
    fd: &Fd,
    class: MgmtClass,
    qpn: u8,
    class_version: u8,
    methods: u32,
) -> io::Result<u32> {
    let mut request = RegisterRequest2 {
        method_mask: [methods.into(), 0],
        qpn: u32::from(qpn),
        class: class.get(),
        class_version,
        ..RegisterRequest2::zeroed()
    };
    match fd.ioctl_with(REGISTER_AGENT2, &mut request) {
        Ok(()) => return Ok(request.id),
        // Not known to kernels before 3.19, nor to the preload library.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => {}
        Err(error) => return Err(error),
    }
    let mut request = RegisterRequest {
        method_mask: [methods, 0, 0, 0],
        qpn,
        class: class.get(),
        class_version,
        ..RegisterRequest::zeroed()
    };
    fd.ioctl_with(REGISTER_AGENT, &mut request)?;
    Ok(request.id)
}

impl MadPort for UmadPort {
    fn local(&self) -> &LocalPort {
        &self.local
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        let class = packet.header().mgmt_class;
        let Some(&(_, agent)) = self.agents.iter().find(|(known, _)| *known == class) else {
            let error = io::Error::new(ErrorKind::Unsupported, "no client for this class");
            return Err(self.failed("sending", error));
        };
        let header = UserMadHeader {
            agent,
            timeout_ms: u32::try_from(packet.response_time.as_millis()).unwrap_or(u32::MAX),
            length: 256,
            qpn: Be32::new(packet.address.qpn),
            qkey: Be32::new(packet.address.qkey),
            lid: Be16::new(packet.address.lid.get()),
            sl: packet.address.sl,
            pkey_index: packet.address.pkey_index,
            ..UserMadHeader::zeroed()
        };
        let mut buffer = [0_u8; BUFFER_LEN];
        let len = self.header_len + MAD_LEN;
        let bytes = buffer.get_mut(..len).unwrap_or_default();
        let (head, body) = bytes.split_at_mut(self.header_len);
        copy(head, bytemuck::bytes_of(&header));
        copy(body, &packet.mad);
        loop {
            return match self.fd.write(bytes) {
                Ok(_) => Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::EAGAIN | libc::ENOMEM | libc::ENOBUFS) => Err(PortError::Full),
                    _ => Err(self.failed("sending", error)),
                },
            };
        }
    }

    fn announce_sm(&mut self, on: bool) -> Result<(), PortError> {
        if !on {
            self.issm = None;
            return Ok(());
        }
        // An agent takes requests only where it said so when it was registered.
        for (class, qpn, version) in CLASSES {
            let Some(at) = self.agents.iter().position(|(known, _)| *known == class) else {
                continue;
            };
            let (_, mut old) = self.agents.swap_remove(at);
            self.fd
                .ioctl_with(UNREGISTER_AGENT, &mut old)
                .and_then(|()| register(&self.fd, class, qpn, version, MANAGER_METHODS))
                .map(|agent| self.agents.push((class, agent)))
                .map_err(|error| self.failed("registering as a subnet manager", error))?;
        }
        let issm = Fd::open(&self.issm_path, libc::O_RDWR)
            .map_err(|error| self.failed("saying that a subnet manager is here", error))?;
        self.issm = Some(issm);
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        if let Some(packet) = self.take()? {
            return Ok(Some(packet));
        }
        if wait.is_zero() {
            return Ok(None);
        }
        self.fd
            .wait_readable(wait)
            .map_err(|error| self.failed("waiting for a packet", error))?;
        self.take()
    }
}
