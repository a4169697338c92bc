//! A node of an ibsim as a port of ours.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytemuck::Zeroable;
use ib_mad::id::Lid;
use ib_mad::port::{Address, Delivery, LocalPort, MadPort, Packet, PortError};
use ib_mad::smp::{NodeInfo, PortInfo};
use ib_mad::{MAD_LEN, Time};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rdma_wire::{Be32, Be64, view};

use crate::clock::Clock;
use crate::error::{Error, Result};

use super::socket::{Endpoint, Socket};
use super::wire::{ClientInfo, Ctl, MAGIC, SimPacket, ctl};

/// How long ibsim may take to answer on its control socket.
const CTL_TIMEOUT: Duration = Duration::from_secs(3);

/// How long ibsim may take nothing from us before it counts as hung.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// What ibsim answers for a packet that cannot arrive (ETIMEDOUT).
const STATUS_TIMED_OUT: u32 = 110;

/// Several ports in one process need several names.
static COUNTER: AtomicU32 = AtomicU32::new(0);

/// A node of an ibsim. Dropping it frees its place.
#[derive(Debug)]
pub struct IbsimPort {
    ctl: Socket,
    data: Socket,
    client_id: u32,
    local: LocalPort,
    clock: Clock,
    /// What came in while a send had to wait.
    inbox: VecDeque<Packet>,
}

impl IbsimPort {
    /// Takes the place of a node: `node` is its id in the net file or its description, none is
    /// the first node of the file.
    ///
    /// # Errors
    /// No simulator there, no such node, no place left, or it does not answer. Never waits for a
    /// simulator to come up.
    pub fn open(endpoint: &Endpoint, node: Option<&str>) -> Result<Self> {
        let clock = Clock::start();
        let (id, ctl, data) = sockets(endpoint)?;
        let name = endpoint.to_string();
        let io = |doing: &'static str| {
            let simulator = name.clone();
            move |source| Error::Simulator {
                simulator,
                doing,
                source,
            }
        };
        ctl.set_read_timeout(CTL_TIMEOUT)
            .map_err(io("setting up its control socket"))?;
        let place = join(endpoint, &ctl, id, node)?;
        let client_id = place.id;
        // From here on the place is ours, and is given back when `port` is dropped.
        let mut port = Self {
            ctl,
            data,
            client_id,
            local: LocalPort::new(format!("{endpoint}/{}", text(&place.node)), 0),
            clock,
            inbox: VecDeque::new(),
        };
        match endpoint {
            Endpoint::Unix(base) => port.data.connect_unix(&format!("{base}:out{client_id}")),
            Endpoint::Udp { host, port: first } => {
                let offset = u16::try_from(client_id).unwrap_or(0);
                let to = first.saturating_add(1).saturating_add(offset);
                port.data.connect_udp(host, to)
            }
        }
        .and_then(|()| port.data.set_nonblocking())
        .map_err(io("connecting its data socket"))?;
        port.learn(endpoint)?;
        Ok(port)
    }

    /// What ibsim says of the node and its port.
    fn learn(&mut self, endpoint: &Endpoint) -> Result<()> {
        let answer = exchange(
            endpoint,
            &self.ctl,
            self.client_id,
            ctl::GET_NODE_INFO,
            &[0; 64],
        )?;
        if let Ok(info) = view::<NodeInfo>("NodeInfo", &answer.data, 0) {
            self.local.node_guid = Some(info.node_guid);
            self.local.port_guid = Some(info.port_guid);
        }
        let answer = exchange(
            endpoint,
            &self.ctl,
            self.client_id,
            ctl::GET_PORT_INFO,
            &[0; 64],
        )?;
        if let Ok(info) = view::<PortInfo>("PortInfo", &answer.data, 0) {
            self.local.port = info.local_port;
            self.local.lid = info.lid;
            self.local.sm_lid = info.master_sm_lid;
        }
        Ok(())
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> PortError {
        let device = self.local.device.clone();
        match source.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset | ErrorKind::NotConnected => {
                PortError::Gone {
                    device,
                    source: Some(source.into()),
                }
            }
            _ => PortError::Failed {
                device,
                doing,
                source: source.into(),
            },
        }
    }

    fn wait(&self, flags: PollFlags, wait: Duration) -> io::Result<PollFlags> {
        let mut fds = [PollFd::new(self.data.as_fd(), flags)];
        // Rounded up, so that a wait is over when it returns.
        let millis = wait.as_micros().div_ceil(1000);
        let timeout = u16::try_from(millis).map_or(PollTimeout::MAX, PollTimeout::from);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(nix::Error::EINTR) => Ok(fds
                .first()
                .and_then(PollFd::revents)
                .unwrap_or(PollFlags::empty())),
            Err(error) => Err(error.into()),
        }
    }

    /// What is there now.
    fn take(&self) -> Result<Option<Packet>, PortError> {
        let mut packet = SimPacket::zeroed();
        loop {
            return match self.data.recv(bytemuck::bytes_of_mut(&mut packet)) {
                Ok(len) if len == size_of::<SimPacket>() => Ok(Some(incoming(&packet))),
                Ok(_) => continue,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => continue,
                    ErrorKind::WouldBlock => Ok(None),
                    _ => Err(self.failed("receiving", error)),
                },
            };
        }
    }
}

impl Drop for IbsimPort {
    fn drop(&mut self) {
        // Without this the place stays taken until the simulator ends. Nobody waits for the
        // answer: it would be read by nobody.
        let message = message(self.client_id, ctl::DISCONNECT, &[]);
        let _ = self.ctl.send(bytemuck::bytes_of(&message));
        let mut answer = Ctl::zeroed();
        let _ = self.ctl.recv(bytemuck::bytes_of_mut(&mut answer));
    }
}

impl MadPort for IbsimPort {
    fn local(&self) -> &LocalPort {
        &self.local
    }

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        let outgoing = outgoing(packet);
        let bytes = bytemuck::bytes_of(&outgoing);
        let end = self.now() + SEND_TIMEOUT;
        loop {
            match self.data.send(bytes) {
                Ok(_) => return Ok(()),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => continue,
                    ErrorKind::WouldBlock => {}
                    _ => return Err(self.failed("sending", error)),
                },
            }
            // ibsim spins while we do not read what it has for us, so a wait for room must read.
            let ready = self
                .wait(
                    PollFlags::POLLIN | PollFlags::POLLOUT,
                    end.since(self.now()),
                )
                .map_err(|error| self.failed("waiting for room to send", error))?;
            if ready.contains(PollFlags::POLLIN) {
                while let Some(packet) = self.take()? {
                    self.inbox.push_back(packet);
                }
            }
            if self.now() >= end {
                let error = io::Error::from(ErrorKind::TimedOut);
                return Err(self.failed("waiting for room to send", error));
            }
        }
    }

    fn announce_sm(&mut self, on: bool) -> Result<(), PortError> {
        let data = u32::from(on).to_ne_bytes();
        let request = message(self.client_id, ctl::SET_IS_SM, &data);
        let mut answer = Ctl::zeroed();
        let result = self
            .ctl
            .send(bytemuck::bytes_of(&request))
            .and_then(|_| self.ctl.recv(bytemuck::bytes_of_mut(&mut answer)));
        match result {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed("saying that a subnet manager is here", error)),
        }
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        if let Some(packet) = self.inbox.pop_front() {
            return Ok(Some(packet));
        }
        if let Some(packet) = self.take()? {
            return Ok(Some(packet));
        }
        if wait.is_zero() {
            return Ok(None);
        }
        self.wait(PollFlags::POLLIN, wait)
            .map_err(|error| self.failed("waiting for a packet", error))?;
        self.take()
    }
}

/// The number by which ibsim finds our data socket, and both sockets, the first connected.
fn sockets(endpoint: &Endpoint) -> Result<(u32, Socket, Socket)> {
    let failed = |doing: &'static str| {
        move |source| Error::Simulator {
            simulator: endpoint.to_string(),
            doing,
            source,
        }
    };
    let refused = |source: io::Error| match source.kind() {
        ErrorKind::ConnectionRefused => Error::NoSimulator {
            simulator: endpoint.to_string(),
            source: Some(source),
        },
        _ => failed("connecting to it")(source),
    };
    match endpoint {
        Endpoint::Unix(base) => {
            // Another process in another name space of processes may have our number.
            for _ in 0..64 {
                let turn = COUNTER.fetch_add(1, Ordering::Relaxed) % 256;
                let id = (std::process::id() & 0x003f_ffff) | (turn << 22) | (1 << 30);
                let ctl = match Socket::bind_unix(&format!("{base}:ctl{id}")) {
                    Ok(socket) => socket,
                    Err(error) if error.kind() == ErrorKind::AddrInUse => continue,
                    Err(error) => return Err(failed("binding a control socket")(error)),
                };
                let data = match Socket::bind_unix(&format!("{base}:in{id}")) {
                    Ok(socket) => socket,
                    Err(error) if error.kind() == ErrorKind::AddrInUse => continue,
                    Err(error) => return Err(failed("binding a data socket")(error)),
                };
                ctl.connect_unix(&format!("{base}:ctl")).map_err(refused)?;
                return Ok((id, ctl, data));
            }
            Err(failed("binding a control socket")(
                ErrorKind::AddrInUse.into(),
            ))
        }
        Endpoint::Udp { host, port } => {
            let ctl = Socket::bind_udp().map_err(failed("binding a control socket"))?;
            let data = Socket::bind_udp().map_err(failed("binding a data socket"))?;
            ctl.connect_udp(host, *port).map_err(refused)?;
            let id = data.udp_port().map_err(failed("binding a data socket"))?;
            Ok((u32::from(id), ctl, data))
        }
    }
}

fn message(client_id: u32, kind: u32, data: &[u8]) -> Ctl {
    let mut message = Ctl {
        magic: MAGIC,
        client_id,
        kind,
        len: u32::try_from(data.len()).unwrap_or(0),
        data: [0; 64],
    };
    for (to, from) in message.data.iter_mut().zip(data) {
        *to = *from;
    }
    message
}

/// Sends a control message and waits for its answer.
fn exchange(
    endpoint: &Endpoint,
    socket: &Socket,
    client_id: u32,
    kind: u32,
    data: &[u8],
) -> Result<Ctl> {
    let request = message(client_id, kind, data);
    let mut answer = Ctl::zeroed();
    let result = socket
        .send(bytemuck::bytes_of(&request))
        .and_then(|_| socket.recv(bytemuck::bytes_of_mut(&mut answer)));
    match result {
        Ok(len) if len == size_of::<Ctl>() && answer.magic == MAGIC => Ok(answer),
        Ok(len) => Err(Error::Simulator {
            simulator: endpoint.to_string(),
            doing: "reading its control message",
            source: io::Error::new(
                ErrorKind::InvalidData,
                format!("{len} bytes of another kind"),
            ),
        }),
        Err(error) => Err(match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Error::SimulatorSilent {
                simulator: endpoint.to_string(),
                waited: CTL_TIMEOUT,
            },
            ErrorKind::ConnectionRefused | ErrorKind::NotConnected => Error::NoSimulator {
                simulator: endpoint.to_string(),
                source: Some(error),
            },
            _ => Error::Simulator {
                simulator: endpoint.to_string(),
                doing: "talking on its control socket",
                source: error,
            },
        }),
    }
}

/// Asks for the place of a node.
fn join(endpoint: &Endpoint, socket: &Socket, id: u32, node: Option<&str>) -> Result<ClientInfo> {
    let wanted = node.unwrap_or("");
    if wanted.len() >= 32 {
        return Err(Error::NodeNameTooLong {
            node: wanted.to_owned(),
        });
    }
    let ask = |name: &str| {
        let mut info = ClientInfo {
            id,
            ..ClientInfo::zeroed()
        };
        for (to, from) in info.node.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        exchange(endpoint, socket, 0, ctl::CONNECT, bytemuck::bytes_of(&info))
    };
    let answer = ask(wanted)?;
    if answer.kind != ctl::ERROR {
        let bytes = answer
            .data
            .get(..size_of::<ClientInfo>())
            .unwrap_or_default();
        return Ok(bytemuck::pod_read_unaligned(bytes));
    }
    // ibsim has one answer for an unknown node and for no place left: ask for any node to know.
    let full = Error::SimulatorFull {
        simulator: endpoint.to_string(),
    };
    if wanted.is_empty() {
        return Err(full);
    }
    let answer = ask("")?;
    if answer.kind == ctl::ERROR {
        return Err(full);
    }
    let bytes = answer
        .data
        .get(..size_of::<ClientInfo>())
        .unwrap_or_default();
    let taken: ClientInfo = bytemuck::pod_read_unaligned(bytes);
    exchange(endpoint, socket, taken.id, ctl::DISCONNECT, &[])?;
    Err(Error::UnknownNode {
        simulator: endpoint.to_string(),
        node: wanted.to_owned(),
        first: text(&taken.node),
    })
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(end).into_owned()
}

fn outgoing(packet: &Packet) -> SimPacket {
    SimPacket {
        dlid: packet.address.lid,
        slid: if packet.address.lid == Lid::PERMISSIVE {
            Lid::PERMISSIVE
        } else {
            // "Mine".
            Lid::RESERVED
        },
        dqp: Be32::new(packet.address.qpn),
        length: Be64::new(MAD_LEN as u64),
        mad: packet.mad,
        ..SimPacket::zeroed()
    }
}

fn incoming(packet: &SimPacket) -> Packet {
    let address = Address {
        lid: packet.slid,
        qpn: packet.sqp.get(),
        ..Address::DIRECTED
    };
    Packet {
        delivery: match packet.status.get() {
            0 => Delivery::Received,
            STATUS_TIMED_OUT => Delivery::TimedOut,
            other => Delivery::Failed(other),
        },
        ..Packet::received(address, packet.mad)
    }
}
