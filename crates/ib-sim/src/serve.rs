//! ibsim's client protocol, as bytes in and out, so that programs that know ibsim run on a
//! [`Fabric`](crate::Fabric): OpenSM and infiniband-diags by ibsim's preload library, unmodified.
//!
//! Whoever has sockets gives control messages to [`Server::control`], packets to
//! [`Server::packet`], sends on what [`Server::outgoing`] gives, and calls [`Server::advance`] as time
//! goes by.
//!
//! **Limits that are not ours**: the preload library hands the first 224 bytes of a MAD to a
//! program and leaves the rest undefined, takes ten clients' ids, and never lets a request time
//! out. So a packet that cannot arrive comes back at once with status 110, as from ibsim.
//!
//! Facts are from `include/ibsim.h`, `ibsim/ibsim.c` and `umad2sim/` of linux-rdma/ibsim.

use std::time::Duration;

use bytemuck::{Pod, Zeroable};
use ib_mad::id::{Guid, Lid};
use ib_mad::port::{Address, Delivery};
use ib_mad::smp::PortInfo;
use ib_mad::{MAD_LEN, MadPort, Packet, Time};
use rdma_wire::{Be32, Be64, assert_layout};

use crate::port::{SharedFabric, SimPort};
use crate::topo::Peer;

/// Bytes of a control message, both ways.
pub const CONTROL_LEN: usize = 80;
/// Bytes of a packet, both ways.
pub const PACKET_LEN: usize = 288;

const MAGIC: u32 = 0xdead_beef;
/// What ibsim answers for a packet that cannot arrive (ETIMEDOUT).
const TIMED_OUT: u32 = 110;

/// A control message, in the host's byte order.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Control {
    magic: u32,
    client: u32,
    kind: u32,
    len: u32,
    data: [u8; 64],
}
const _: () = assert!(size_of::<Control>() == CONTROL_LEN);

/// A MAD on its way.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Wire {
    dlid: Lid,
    pad0: [u8; 2],
    slid: Lid,
    pad1: [u8; 2],
    dqp: Be32,
    sqp: Be32,
    status: Be32,
    pad2: [u8; 4],
    length: Be64,
    mad: [u8; MAD_LEN],
}
assert_layout!(Wire, PACKET_LEN);

/// What whoever has the sockets is to do beside sending the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// Nothing.
    None,
    /// A client has come: its packets go to the socket of its number `id`, from our socket `client`.
    Taken {
        /// Its place here.
        client: u32,
        /// The number that it has given itself.
        id: u32,
    },
    /// It has gone.
    Left {
        /// Its place here.
        client: u32,
    },
}

/// The server.
#[derive(Debug)]
pub struct Server {
    fabric: SharedFabric,
    clients: Vec<Option<SimPort>>,
}

impl Server {
    /// Serves a fabric to `clients` programs at once at most; ibsim has room for ten.
    #[must_use]
    pub fn new(fabric: SharedFabric, clients: usize) -> Self {
        Self {
            fabric,
            clients: (0..clients).map(|_| None).collect(),
        }
    }

    /// The fabric.
    #[must_use]
    pub const fn fabric(&self) -> &SharedFabric {
        &self.fabric
    }

    /// How many places there are.
    #[must_use]
    pub fn places(&self) -> usize {
        self.clients.len()
    }

    /// Takes a control message; gives its answer, none where it is none of ours.
    pub fn control(&mut self, bytes: &[u8]) -> Option<([u8; CONTROL_LEN], Seat)> {
        let bytes: &[u8; CONTROL_LEN] = bytes.try_into().ok()?;
        let mut message: Control = bytemuck::pod_read_unaligned(bytes);
        if message.magic != MAGIC {
            return None;
        }
        let seat = self.obey(&mut message);
        let seat = seat.unwrap_or_else(|| {
            message.kind = 0;
            Seat::None
        });
        Some((bytemuck::bytes_of(&message).try_into().ok()?, seat))
    }

    fn obey(&mut self, message: &mut Control) -> Option<Seat> {
        let client = message.client;
        match message.kind {
            1 => return self.connect(message),
            2 => {
                *self.clients.get_mut(usize::try_from(client).ok()?)? = None;
                return Some(Seat::Left { client });
            }
            _ => {}
        }
        let port = self
            .clients
            .get_mut(usize::try_from(client).ok()?)?
            .as_mut()?;
        let end = port.end();
        match message.kind {
            9 => {
                let on = message
                    .data
                    .first_chunk()
                    .is_some_and(|it| u32::from_ne_bytes(*it) != 0);
                port.announce_sm(on).ok()?;
            }
            kind => {
                message.data = self.tell(kind, end, message.data.first().copied().unwrap_or(0))?;
            }
        }
        Some(Seat::None)
    }

    fn connect(&mut self, message: &mut Control) -> Option<Seat> {
        // id, qp, issm, nodeid[32]
        let word = |at: usize| {
            message
                .data
                .get(at..)?
                .first_chunk()
                .map(|it| u32::from_ne_bytes(*it))
        };
        let (id, is_sm) = (word(0)?, word(8)?);
        let name = message.data.get(12..44)?.split(|&it| it == 0).next()?;
        let name = String::from_utf8_lossy(name).into_owned();
        let free = self.clients.iter().position(Option::is_none)?;
        let port = if name.is_empty() {
            let end = self.first()?;
            self.fabric.attach_at(end)
        } else {
            self.fabric.attach(&name)
        };
        let mut port = port.ok()?;
        port.returns_losses();
        if is_sm != 0 {
            port.announce_sm(true).ok()?;
        }
        let node = {
            let fabric = self.fabric.lock();
            fabric.topology().node(port.end().node)?.id.clone()
        };
        let client = u32::try_from(free).ok()?;
        message
            .data
            .get_mut(..4)?
            .copy_from_slice(&client.to_ne_bytes());
        let place = message.data.get_mut(12..44)?;
        place.fill(0);
        for (to, from) in place.iter_mut().take(31).zip(node.bytes()) {
            *to = from;
        }
        *self.clients.get_mut(free)? = Some(port);
        Some(Seat::Taken { client, id })
    }

    /// ibsim's default place: the first node, port 0 of a switch.
    fn first(&self) -> Option<Peer> {
        let fabric = self.fabric.lock();
        let node = fabric.topology().node(0)?;
        let port = if node.is_switch() {
            0
        } else {
            node.ports()
                .iter()
                .find(|it| it.peer.is_some())
                .map_or(1, |it| it.number)
        };
        Some(Peer { node: 0, port })
    }

    /// What a client asks about its port.
    fn tell(&self, kind: u32, end: Peer, wanted: u8) -> Option<[u8; 64]> {
        let fabric = self.fabric.lock();
        let node = fabric.topology().node(end.node)?;
        let info: PortInfo = fabric.port_info(end)?;
        let mut data = [0; 64];
        let mut put = |at: usize, bytes: &[u8]| {
            for (to, from) in data.iter_mut().skip(at).zip(bytes) {
                *to = *from;
            }
        };
        match kind {
            3 => {
                put(0, &info.lid.get().to_ne_bytes());
                put(2, &[info.state().get()]);
            }
            4 => {
                put(0, &node.vendor_id.to_ne_bytes());
                put(4, &u32::from(node.device_id).to_ne_bytes());
                put(8, &0xa1_u32.to_ne_bytes());
                put(16, &1_u64.to_ne_bytes());
            }
            5 => {
                put(0, bytemuck::bytes_of(&info.gid_prefix));
                put(8, bytemuck::bytes_of(&Guid::new(node.guid)));
            }
            6 => put(0, bytemuck::bytes_of(&Guid::new(node.guid))),
            7 => put(0, bytemuck::bytes_of(&fabric.node_info(end)?)),
            8 => {
                let port = if wanted == 0 || wanted > node.port_count {
                    end.port
                } else {
                    wanted
                };
                let mut info = fabric.port_info(Peer { port, ..end })?;
                info.local_port = port;
                put(0, bytemuck::bytes_of(&info));
            }
            10 => put(0, &[0xff, 0xff]),
            _ => return None,
        }
        Some(data)
    }

    /// Takes a packet of a client.
    pub fn packet(&mut self, client: u32, bytes: &[u8]) {
        let Some(bytes) = <&[u8; PACKET_LEN]>::try_from(bytes).ok() else {
            return;
        };
        let wire: Wire = bytemuck::pod_read_unaligned(bytes);
        let place = usize::try_from(client).unwrap_or(usize::MAX);
        let Some(port) = self.clients.get_mut(place).and_then(Option::as_mut) else {
            return;
        };
        let packet = Packet {
            address: Address {
                lid: wire.dlid,
                sl: 0,
                qpn: wire.dqp.get(),
                qkey: 0,
                pkey_index: 0,
            },
            response_time: Duration::ZERO,
            delivery: Delivery::Received,
            mad: wire.mad,
        };
        // A simulated port takes everything.
        let _ = port.send(&packet);
    }

    /// Lets everything happen up to a time.
    pub fn advance(&mut self, now: Time) {
        self.fabric.lock().advance(now);
    }

    /// When the next thing happens by itself.
    #[must_use]
    pub fn next_event(&self) -> Option<Time> {
        self.fabric.lock().next_event()
    }

    /// The next packet for a client, to be sent to it.
    pub fn outgoing(&mut self, client: u32) -> Option<[u8; PACKET_LEN]> {
        let place = usize::try_from(client).ok()?;
        let port = self.clients.get_mut(place)?.as_mut()?;
        let packet = port.collect()?;
        let own = port.local().lid;
        let directed = packet.address.lid == Lid::PERMISSIVE;
        let wire = Wire {
            dlid: if directed { Lid::PERMISSIVE } else { own },
            slid: packet.address.lid,
            dqp: Be32::new(packet.address.qpn),
            sqp: Be32::new(packet.address.qpn),
            status: Be32::new(match packet.delivery {
                Delivery::Received => 0,
                _ => TIMED_OUT,
            }),
            length: Be64::new(MAD_LEN as u64),
            mad: packet.mad,
            ..Wire::zeroed()
        };
        bytemuck::bytes_of(&wire).try_into().ok()
    }
}
