//! Ports of the fabric, for programs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ib_mad::id::Guid;
use ib_mad::port::LocalPort;
use ib_mad::{MadPort, Packet, PortError, Time};

use crate::error::TopologyError;
use crate::fabric::Fabric;
use crate::topo::{Kind, Peer};

/// A fabric that several programs share, each by a port of its own.
///
/// ```
/// use std::time::Duration;
/// use ib_mad::header::AttributeId;
/// use ib_mad::smp::{DrPath, NodeInfo, Smp};
/// use ib_mad::{MadPort, Packet};
/// use ib_sim::{Config, Fabric, SharedFabric};
/// use ib_sim::topo::Spec;
///
/// let topology = "switch:hosts=3".parse::<Spec>()?.build()?;
/// let fabric = SharedFabric::new(Fabric::new(topology, Config::default())?);
/// let mut port = fabric.attach("host-1")?;
///
/// let request = Smp::get(&"0,1".parse()?, AttributeId::NODE_INFO, 0);
/// port.send(&Packet::directed(&request, Duration::from_millis(1)))?;
/// let answer = port.receive(Duration::from_millis(1))?.expect("an answer");
/// let info: &NodeInfo = answer.smp().attribute();
/// assert_eq!((info.num_ports, info.local_port), (36, 2));
/// assert_eq!(port.now().as_micros(), 12, "two hops and an answer, in simulated time");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SharedFabric(Arc<Mutex<Fabric>>);

impl SharedFabric {
    /// Shares a fabric.
    #[must_use]
    pub fn new(fabric: Fabric) -> Self {
        Self(Arc::new(Mutex::new(fabric)))
    }

    /// The fabric, to look at it or to break it. Ports wait while the guard lives.
    pub fn lock(&self) -> MutexGuard<'_, Fabric> {
        // A panic in another holder leaves nothing half done that a simulation could not bear.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A port at the node of this id or NodeDescription: port 0 of a switch, the first port with
    /// a cable of another node, or the port of `name[3]`.
    ///
    /// # Errors
    /// Where there is no such node or port.
    pub fn attach(&self, name: &str) -> Result<SimPort, TopologyError> {
        let end = {
            let fabric = self.lock();
            let topology = fabric.topology();
            let (id, port) = match topology.find(name) {
                Some(_) => (name, None),
                None => split(name),
            };
            let node = topology
                .find(id)
                .ok_or_else(|| TopologyError::NoNodeNamed {
                    name: name.to_owned(),
                })?;
            let cabled = topology
                .node(node)
                .filter(|n| n.kind != Kind::Switch)
                .map(|n| {
                    let first = n.ports().iter().find(|p| p.peer.is_some());
                    first.map_or(1, |p| p.number)
                });
            Peer {
                node,
                port: port.or(cabled).unwrap_or(0),
            }
        };
        self.attach_at(end)
    }

    /// A port at the first node of the topology that is no switch, or at the first one.
    ///
    /// # Errors
    /// Where the topology has no node.
    pub fn attach_first(&self) -> Result<SimPort, TopologyError> {
        let name = {
            let fabric = self.lock();
            let nodes = fabric.topology().nodes();
            let node = nodes
                .iter()
                .find(|n| n.kind == Kind::Ca && n.ports().iter().any(|p| p.peer.is_some()));
            node.or_else(|| nodes.first()).map(|n| n.id.clone())
        };
        self.attach(&name.ok_or(TopologyError::NoNode { index: 0 })?)
    }

    /// A port at exactly this place: of a switch, port 0.
    ///
    /// # Errors
    /// Where there is no such port.
    pub fn attach_at(&self, end: Peer) -> Result<SimPort, TopologyError> {
        let mut fabric = self.lock();
        let client = fabric.attach(end)?;
        let node = fabric.topology().node(end.node);
        let mut local = LocalPort::new(node.map_or("", |n| n.id.as_str()), end.port);
        local.node_guid = node.map(|n| Guid::new(n.guid));
        local.port_guid = node.map(|n| Guid::new(n.port_guid(end.port)));
        (local.lid, local.sm_lid) = fabric.lids(end);
        drop(fabric);
        Ok(SimPort {
            fabric: self.clone(),
            client,
            end,
            local,
        })
    }
}

/// `name[3]`.
fn split(name: &str) -> (&str, Option<u8>) {
    let parts = name.strip_suffix(']').and_then(|n| n.rsplit_once('['));
    match parts.and_then(|(id, port)| Some((id, port.parse().ok()?))) {
        Some((id, port)) => (id, Some(port)),
        None => (name, None),
    }
}

/// A program's port. Its clock is the fabric's, which moves when a program waits.
#[derive(Debug)]
pub struct SimPort {
    fabric: SharedFabric,
    client: u32,
    end: Peer,
    local: LocalPort,
}

impl SimPort {
    /// The fabric behind it.
    #[must_use]
    pub const fn fabric(&self) -> &SharedFabric {
        &self.fabric
    }

    /// From now on requests that cannot arrive, or whose answer cannot, come back as timed out.
    pub(crate) fn returns_losses(&mut self) {
        self.fabric.lock().return_losses(self.client);
    }

    /// What has arrived, without waiting and without moving the clock.
    pub fn collect(&mut self) -> Option<Packet> {
        let mut fabric = self.fabric.lock();
        (self.local.lid, self.local.sm_lid) = fabric.lids(self.end);
        fabric.collect(self.client)
    }

    /// Where it is attached.
    #[must_use]
    pub const fn end(&self) -> Peer {
        self.end
    }
}

impl MadPort for SimPort {
    fn local(&self) -> &LocalPort {
        &self.local
    }

    fn now(&self) -> Time {
        self.fabric.lock().now()
    }

    fn send(&mut self, packet: &Packet) -> Result<(), PortError> {
        self.fabric.lock().send(self.client, packet);
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> Result<Option<Packet>, PortError> {
        let mut fabric = self.fabric.lock();
        let end = fabric.now() + wait;
        let packet = loop {
            if let Some(packet) = fabric.collect(self.client) {
                break Some(packet);
            }
            match fabric.next_event() {
                Some(time) if time <= end => fabric.step(),
                _ => {
                    fabric.advance(end);
                    break None;
                }
            };
        };
        (self.local.lid, self.local.sm_lid) = fabric.lids(self.end);
        Ok(packet)
    }

    fn announce_sm(&mut self, on: bool) -> Result<(), PortError> {
        self.fabric.lock().announce(self.client, on);
        Ok(())
    }
}

impl Drop for SimPort {
    fn drop(&mut self) {
        self.fabric.lock().detach(self.client);
    }
}
