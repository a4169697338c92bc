//! A fabric as it was found: nodes, ports and links in flat arrays.

use std::collections::BTreeMap;

use ib_mad::id::{Guid, Lid};
use ib_mad::smp::{
    DrPath, LinkSpeed, LinkWidth, NodeDescription, NodeInfo, NodeType, PortInfo, SwitchInfo,
};

/// A node's place in [`Topology::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub(crate) u32);

/// A port's place in [`Topology::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub(crate) u32);

impl NodeIndex {
    /// As an index into an array of one's own.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

impl PortIndex {
    /// As an index into an array of one's own.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0 as usize
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it said of itself when it was first reached.
    pub info: NodeInfo,
    /// Its name; none where it did not tell.
    pub description: Option<NodeDescription>,
    /// What a switch can hold; none for other nodes and where it did not tell.
    pub switch: Option<SwitchInfo>,
    /// How it was first reached.
    pub path: DrPath,
    pub(crate) first_port: u32,
    pub(crate) port_count: u16,
}

impl Node {
    /// What kind of node it is.
    #[must_use]
    pub const fn kind(&self) -> NodeType {
        self.info.node_type
    }

    /// Whether it is a switch.
    #[must_use]
    pub fn is_switch(&self) -> bool {
        self.info.node_type == NodeType::SWITCH
    }

    /// Its GUID.
    #[must_use]
    pub const fn guid(&self) -> Guid {
        self.info.node_guid
    }

    /// Its name, printable; empty where it did not tell.
    #[must_use]
    pub fn name(&self) -> String {
        self.description.map_or_else(String::new, |it| it.text())
    }
}

/// A port that told its state, or at which a cable was seen to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Whose it is.
    pub node: NodeIndex,
    /// Its number; 0 is a switch's own.
    pub number: u8,
    /// Its GUID; that of the switch's port 0 for all ports of a switch.
    pub guid: Guid,
    /// Its state; none where it did not tell.
    pub info: Option<PortInfo>,
    /// Whether it runs at FDR10; none where it was not asked or did not tell.
    pub fdr10: Option<bool>,
    /// The other end of its cable.
    pub peer: Option<PortIndex>,
}

/// A fabric.
///
/// Nodes stand in the order in which they were found, the one we sit on first; the ports of a node
/// stand together in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    pub(crate) nodes: Vec<Node>,
    pub(crate) ports: Vec<Port>,
    pub(crate) by_guid: BTreeMap<Guid, NodeIndex>,
    pub(crate) local_port: u8,
}

impl Topology {
    /// All nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All ports.
    #[must_use]
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// The node we sit on; none in an empty fabric.
    #[must_use]
    pub fn local(&self) -> Option<&Node> {
        self.nodes.first()
    }

    /// The port of it that we sit on.
    #[must_use]
    pub const fn local_port(&self) -> u8 {
        self.local_port
    }

    /// A node by its place.
    #[must_use]
    pub fn node(&self, index: NodeIndex) -> Option<&Node> {
        self.nodes.get(index.get())
    }

    /// A port by its place.
    #[must_use]
    pub fn port(&self, index: PortIndex) -> Option<&Port> {
        self.ports.get(index.get())
    }

    /// A node by its GUID; the first that was found where two have the same.
    #[must_use]
    pub fn find(&self, guid: Guid) -> Option<NodeIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// The nodes with their places.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (NodeIndex, &Node)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(index, node)| (NodeIndex(u32::try_from(index).unwrap_or(u32::MAX)), node))
    }

    /// The ports of a node that are known, in the order of their numbers.
    #[must_use]
    pub fn ports_of(&self, node: &Node) -> &[Port] {
        let first = node.first_port as usize;
        self.ports
            .get(first..first + usize::from(node.port_count))
            .unwrap_or_default()
    }

    /// A port of a node by its number.
    #[must_use]
    pub fn port_of(&self, node: &Node, number: u8) -> Option<&Port> {
        let ports = self.ports_of(node);
        let at = ports
            .binary_search_by_key(&number, |port| port.number)
            .ok()?;
        ports.get(at)
    }

    /// The place of a node's port.
    #[must_use]
    pub fn index_of(&self, node: &Node, port: &Port) -> Option<PortIndex> {
        let ports = self.ports_of(node);
        let at = ports
            .binary_search_by_key(&port.number, |port| port.number)
            .ok()?;
        Some(PortIndex(node.first_port + u32::try_from(at).ok()?))
    }

    /// The other end of a port's cable.
    #[must_use]
    pub fn peer_of(&self, port: &Port) -> Option<(&Node, &Port)> {
        let peer = self.port(port.peer?)?;
        Some((self.node(peer.node)?, peer))
    }

    /// The base LID under which a port is reached: port 0's for a switch.
    #[must_use]
    pub fn lid_of(&self, node: &Node, port: &Port) -> Lid {
        let port = if node.is_switch() {
            self.port_of(node, 0)
        } else {
            Some(port)
        };
        port.and_then(|port| port.info)
            .map_or(Lid::RESERVED, |info| info.lid)
    }

    /// The LMC that goes with [`lid_of`](Self::lid_of).
    #[must_use]
    pub fn lmc_of(&self, node: &Node, port: &Port) -> u8 {
        let port = if node.is_switch() {
            self.port_of(node, 0)
        } else {
            Some(port)
        };
        port.and_then(|port| port.info)
            .map_or(0, |info| info.mkey_lmc.lmc())
    }

    /// The width and speed in use at a port; none where it did not tell.
    #[must_use]
    pub fn rate_of(&self, node: &Node, port: &Port) -> Option<(LinkWidth, LinkSpeed)> {
        let info = port.info?;
        let speaker = if node.is_switch() {
            self.port_of(node, 0).and_then(|port| port.info)
        } else {
            Some(info)
        };
        let speed = match speaker {
            Some(speaker) => info.speed(&speaker, port.fdr10 == Some(true)),
            // Without port 0 nobody says whether the extended speeds mean anything.
            None => LinkSpeed::Other(0),
        };
        Some((info.width(), speed))
    }

    /// Every cable once, its lower end (by node GUID and port number) first, sorted by that.
    #[must_use]
    pub fn links(&self) -> Vec<(&Port, &Port)> {
        let key = |port: &Port| {
            let guid = self.node(port.node).map(Node::guid);
            (guid, port.number, port.node)
        };
        let mut links: Vec<(&Port, &Port)> = self
            .ports
            .iter()
            .filter_map(|port| Some((port, self.port(port.peer?)?)))
            .filter(|(port, peer)| key(port) <= key(peer))
            .collect();
        links.sort_by_key(|(port, _)| key(port));
        links
    }
}
