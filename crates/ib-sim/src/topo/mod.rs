//! What a fabric consists of: nodes, ports, cables.
//!
//! A [`Topology`] is plain data without state: who is there and what is plugged where. It is read
//! from a net file or a dump ([`mod@file`]), or generated from a [`Spec`], and a
//! [`Fabric`](crate::Fabric) brings it to life.
//!
//! ```
//! use ib_sim::topo::Spec;
//!
//! let topology = "fat-tree:108".parse::<Spec>()?.build()?;
//! assert_eq!((topology.hosts().count(), topology.switches().count(), topology.links().count()), (108, 9, 216));
//! # Ok::<(), ib_sim::Error>(())
//! ```

pub mod file;

mod dragonfly;
mod fat_tree;
mod plant;
mod random;
mod rate;
mod simple;
mod spec;
mod torus;

use std::collections::BTreeMap;

pub use dragonfly::Dragonfly;
pub use fat_tree::FatTree;
pub use random::Random;
pub use rate::{Speeds, Widths};
pub use simple::{BackToBack, Ring, SingleSwitch};
pub use spec::{Shape, Spec, SpecError, SpecFault};
pub use torus::Torus;

use crate::error::TopologyError;

/// Nodes that one topology may have: more than a subnet's 49 151 unicast LIDs can name.
pub const MAX_NODES: usize = 65_536;

/// Bytes of a node's id, as in ibsim.
pub const MAX_ID: usize = 64;

/// What kind of node it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A channel adapter: a host, a storage box, a switch's aggregation node.
    #[doc(alias = "HCA")]
    Ca,
    /// A switch; its port 0 is its own management port.
    Switch,
    /// A router.
    Router,
}

impl Kind {
    /// The word that opens the node in a net file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Ca => "Ca",
            Self::Switch => "Switch",
            Self::Router => "Rt",
        }
    }

    /// NodeInfo's NodeType: 1, 2, 3.
    #[must_use]
    pub const fn node_type(self) -> u8 {
        match self {
            Self::Ca => 1,
            Self::Switch => 2,
            Self::Router => 3,
        }
    }
}

/// The far end of a cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Peer {
    /// Index of the node in [`Topology::nodes`].
    pub node: usize,
    /// Port number there.
    pub port: u8,
}

/// One port. Only ports about which something is known are kept; all others are like
/// [`Port::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Port number; 0 is a switch's management port.
    pub number: u8,
    /// Port GUID, where it is not the usual one (see [`Node::port_guid`]).
    pub guid: Option<u64>,
    /// Base LID; 0: none assigned yet.
    pub lid: u16,
    /// LID mask control: the port answers to 2^lmc LIDs.
    pub lmc: u8,
    /// Enabled widths.
    pub widths: Widths,
    /// Enabled speeds.
    pub speeds: Speeds,
    /// Where the cable leads.
    pub peer: Option<Peer>,
}

impl Port {
    /// A port as ibsim has it where nothing is said: 4x SDR, no LID, no cable.
    #[must_use]
    pub const fn new(number: u8) -> Self {
        Self {
            number,
            guid: None,
            lid: 0,
            lmc: 0,
            widths: Widths::X4,
            speeds: Speeds::SDR,
            peer: None,
        }
    }
}

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What kind it is.
    pub kind: Kind,
    /// Name in the file, unique in the fabric: 1 to 64 bytes without `"`, `#` and `@`.
    pub id: String,
    /// NodeDescription.
    pub description: String,
    /// Node GUID, unique in the fabric.
    pub guid: u64,
    /// System image GUID.
    pub system_guid: u64,
    /// Vendor id (24 bits).
    pub vendor_id: u32,
    /// Device id.
    pub device_id: u16,
    /// Number of ports, without a switch's port 0.
    pub port_count: u8,
    /// Switches: whether port 0 is an enhanced one. `None`: not known.
    pub enhanced_port_zero: Option<bool>,
    /// The ports about which something is known, sorted by number.
    ports: Vec<Port>,
}

impl Node {
    /// A node whose system image GUID is its GUID, with nothing plugged in.
    #[must_use]
    pub fn new(kind: Kind, id: impl Into<String>, guid: u64, port_count: u8) -> Self {
        let id = id.into();
        Self {
            kind,
            description: id.clone(),
            id,
            guid,
            system_guid: guid,
            vendor_id: 0,
            device_id: 0,
            port_count,
            enhanced_port_zero: None,
            ports: Vec::new(),
        }
    }

    /// Is it a switch?
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.kind == Kind::Switch
    }

    /// The ports about which something is known, in order of their numbers.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// A port; `None` where nothing is known about it or it does not exist.
    #[must_use]
    pub fn port(&self, number: u8) -> Option<&Port> {
        let at = self
            .ports
            .binary_search_by_key(&number, |p| p.number)
            .ok()?;
        self.ports.get(at)
    }

    /// Does the node have a port of this number? Only switches have a port 0.
    #[must_use]
    pub fn has_port(&self, number: u8) -> bool {
        number <= self.port_count && (number > 0 || self.is_switch())
    }

    /// A port, made known where it was not; `None` where the node has no port of this number.
    pub fn port_mut(&mut self, number: u8) -> Option<&mut Port> {
        if !self.has_port(number) {
            return None;
        }
        let at = match self.ports.binary_search_by_key(&number, |p| p.number) {
            Ok(at) => at,
            Err(at) => {
                self.ports.insert(at, Port::new(number));
                at
            }
        };
        self.ports.get_mut(at)
    }

    /// GUID of a port: the switch's own, or the one given, or node GUID plus number as ibsim and
    /// adapters up to ConnectX-3 have it.
    #[must_use]
    pub fn port_guid(&self, number: u8) -> u64 {
        match self.port(number).and_then(|p| p.guid) {
            Some(guid) => guid,
            None => self.default_port_guid(number),
        }
    }

    pub(crate) fn default_port_guid(&self, number: u8) -> u64 {
        if self.is_switch() {
            self.guid
        } else {
            self.guid.wrapping_add(u64::from(number))
        }
    }
}

/// A cable, named from its end with the smaller (node, port).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link {
    /// One end.
    pub a: Peer,
    /// The other.
    pub b: Peer,
}

/// Nodes and cables. Every cable is known at both ends.
#[derive(Debug, Clone, Default)]
pub struct Topology {
    nodes: Vec<Node>,
    by_id: BTreeMap<String, usize>,
    by_guid: BTreeMap<u64, usize>,
}

impl PartialEq for Topology {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Eq for Topology {}

impl Topology {
    /// A fabric without nodes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// All nodes, in the order of the file or of generation.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// A node.
    #[must_use]
    pub fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }

    /// A node, to set its ports' attributes. Cables are set by [`Topology::connect`] only.
    pub(crate) fn node_mut(&mut self, index: usize) -> Option<&mut Node> {
        self.nodes.get_mut(index)
    }

    /// Index of the node with this id, or with this NodeDescription where no id fits.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_id
            .get(name)
            .copied()
            .or_else(|| self.nodes.iter().position(|n| n.description == name))
    }

    /// Index of the node with exactly this id.
    #[must_use]
    pub fn find_id(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// Index of the node with this node GUID.
    #[must_use]
    pub fn find_guid(&self, guid: u64) -> Option<usize> {
        self.by_guid.get(&guid).copied()
    }

    /// The channel adapters.
    pub fn hosts(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|n| n.kind == Kind::Ca)
    }

    /// The switches.
    pub fn switches(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|n| n.is_switch())
    }

    /// Every cable once, in order of its smaller end.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.nodes.iter().enumerate().flat_map(|(node, n)| {
            n.ports.iter().filter_map(move |p| {
                let (a, b) = (
                    Peer {
                        node,
                        port: p.number,
                    },
                    p.peer?,
                );
                (a <= b).then_some(Link { a, b })
            })
        })
    }

    /// Adds a node and returns its index.
    ///
    /// # Errors
    /// Where the id is not a valid one, or the id or GUID is taken, or there are
    /// [`MAX_NODES`] nodes already.
    pub fn add(&mut self, node: Node) -> Result<usize, TopologyError> {
        if node.id.is_empty()
            || node.id.len() > MAX_ID
            || node.id.contains(['"', '#', '@', '\n', '\r'])
        {
            return Err(TopologyError::Id { id: node.id });
        }
        if let Some(other) = self.by_id.get(&node.id) {
            return Err(TopologyError::DuplicateId {
                id: node.id,
                index: *other,
            });
        }
        if let Some(other) = self.by_guid.get(&node.guid) {
            let other = self
                .nodes
                .get(*other)
                .map_or_else(String::new, |n| n.id.clone());
            return Err(TopologyError::DuplicateGuid {
                guid: node.guid,
                id: node.id,
                other,
            });
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(TopologyError::TooManyNodes { limit: MAX_NODES });
        }
        let index = self.nodes.len();
        self.by_id.insert(node.id.clone(), index);
        self.by_guid.insert(node.guid, index);
        self.nodes.push(node);
        Ok(index)
    }

    /// Plugs a cable. A port may be plugged into itself: that is a loop-back plug.
    ///
    /// # Errors
    /// Where an end does not exist, already holds another cable, or the two ports have no width
    /// or speed in common. Plugging the same cable again is not an error.
    pub fn connect(&mut self, a: Peer, b: Peer) -> Result<(), TopologyError> {
        let mut enabled = (Widths::ALL, None);
        for (end, far) in [(a, b), (b, a)] {
            let node = self
                .node(end.node)
                .ok_or(TopologyError::NoNode { index: end.node })?;
            if end.port == 0 || !node.has_port(end.port) {
                return Err(TopologyError::NoPort {
                    id: node.id.clone(),
                    port: end.port,
                    count: node.port_count,
                });
            }
            let port = node
                .port(end.port)
                .cloned()
                .unwrap_or_else(|| Port::new(end.port));
            if let Some(old) = port.peer.filter(|old| *old != far) {
                return Err(TopologyError::PortTaken {
                    id: node.id.clone(),
                    port: end.port,
                    first: self.name(old),
                    second: self.name(far),
                });
            }
            enabled.0 = enabled.0.and(port.widths);
            enabled.1 = Some(
                enabled
                    .1
                    .map_or(port.speeds, |s: Speeds| s.and(port.speeds)),
            );
        }
        if enabled.0 == Widths::NONE || enabled.1 == Some(Speeds::NONE) {
            return Err(TopologyError::NoCommonRate {
                a: self.name(a),
                b: self.name(b),
            });
        }
        for (end, far) in [(a, b), (b, a)] {
            if let Some(port) = self.node_mut(end.node).and_then(|n| n.port_mut(end.port)) {
                port.peer = Some(far);
            }
        }
        Ok(())
    }

    /// Sets what a port has enabled.
    ///
    /// # Errors
    /// Where there is no such port.
    pub fn set_rate(
        &mut self,
        end: Peer,
        widths: Widths,
        speeds: Speeds,
    ) -> Result<(), TopologyError> {
        let node = self
            .node_mut(end.node)
            .ok_or(TopologyError::NoNode { index: end.node })?;
        let (id, count) = (node.id.clone(), node.port_count);
        let port = node.port_mut(end.port).ok_or(TopologyError::NoPort {
            id,
            port: end.port,
            count,
        })?;
        (port.widths, port.speeds) = (widths, speeds);
        Ok(())
    }

    /// Pulls the cable out of a port and returns where it led.
    pub fn disconnect(&mut self, end: Peer) -> Option<Peer> {
        let far = self.node_mut(end.node)?.port_mut(end.port)?.peer.take()?;
        if let Some(port) = self.node_mut(far.node).and_then(|n| n.port_mut(far.port)) {
            port.peer = None;
        }
        Some(far)
    }

    /// Width and speed that the link of this port comes up with; `None` without a cable.
    #[must_use]
    pub fn active_rate(&self, end: Peer) -> Option<(Widths, Speeds)> {
        let port = self.node(end.node)?.port(end.port)?;
        let far = port.peer?;
        let far = self.node(far.node)?.port(far.port)?;
        Some((
            port.widths.and(far.widths).widest(),
            port.speeds.and(far.speeds).fastest(),
        ))
    }

    /// A port's name for people: `leaf-3[17]`.
    #[must_use]
    pub fn name(&self, end: Peer) -> String {
        match self.node(end.node) {
            Some(node) => format!("{}[{}]", node.id, end.port),
            None => format!("#{}[{}]", end.node, end.port),
        }
    }

    /// Gives LIDs as a subnet manager would, in order of the nodes: a switch gets one, a CA or
    /// router one for every port that holds a cable. For tests that want a fabric already up.
    ///
    /// # Errors
    /// Where the unicast LIDs (1 to 0xbfff) do not suffice.
    pub fn assign_lids(&mut self) -> Result<(), TopologyError> {
        let mut next = 1_u16;
        for node in &mut self.nodes {
            let switch = node.is_switch();
            let numbers: Vec<u8> = if switch {
                vec![0]
            } else {
                node.ports
                    .iter()
                    .filter(|p| p.peer.is_some())
                    .map(|p| p.number)
                    .collect()
            };
            for number in numbers {
                if next > 0xbfff {
                    return Err(TopologyError::NoMoreLids);
                }
                if let Some(port) = node.port_mut(number) {
                    port.lid = next;
                    port.lmc = 0;
                    next += 1;
                }
            }
        }
        Ok(())
    }
}
