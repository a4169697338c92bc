//! What all generators share: nodes with consecutive GUIDs, cables between the next free ports.

use super::{Kind, Node, Peer, Port, Speeds, Topology, Widths};
use crate::error::TopologyError;

/// First GUID of generated CAs; each takes 16.
const CA_GUID: u64 = 0x0002_c903_0010_0000;
/// First GUID of generated switches; each takes 16.
const SWITCH_GUID: u64 = 0x0002_c903_0080_0000;

/// A topology under construction.
#[derive(Debug)]
pub(super) struct Plant {
    topology: Topology,
    speeds: Speeds,
    widths: Widths,
    /// The next free port of each node.
    free: Vec<u8>,
    hosts: u64,
    switches: u64,
}

impl Plant {
    pub(super) fn new(widths: Widths, speeds: Speeds) -> Self {
        Self {
            topology: Topology::new(),
            speeds,
            widths,
            free: Vec::new(),
            hosts: 0,
            switches: 0,
        }
    }

    /// Adds the next host: a CA of one port, `host-N` with the description `host-N mlx5_0`.
    pub(super) fn host(&mut self) -> Result<usize, TopologyError> {
        let number = self.hosts;
        self.hosts += 1;
        let mut node = Node::new(Kind::Ca, format!("host-{number}"), CA_GUID + 16 * number, 1);
        node.description = format!("host-{number} mlx5_0");
        node.device_id = 0x1013;
        self.node(node)
    }

    /// Adds a switch of this name.
    pub(super) fn switch(&mut self, name: String, ports: u8) -> Result<usize, TopologyError> {
        let number = self.switches;
        self.switches += 1;
        let mut node = Node::new(Kind::Switch, name, SWITCH_GUID + 16 * number, ports);
        node.device_id = 0xcb20;
        node.enhanced_port_zero = Some(true);
        self.node(node)
    }

    fn node(&mut self, mut node: Node) -> Result<usize, TopologyError> {
        node.vendor_id = 0x2c9;
        node.system_guid = node.guid + 3;
        self.free.push(1);
        self.topology.add(node)
    }

    /// Plugs a cable between the next free port of each.
    pub(super) fn cable(&mut self, a: usize, b: usize) -> Result<(), TopologyError> {
        let a = Peer {
            node: a,
            port: self.next_free(a),
        };
        let b = Peer {
            node: b,
            port: self.next_free(b),
        };
        self.plug(a, b)
    }

    /// Plugs a cable between given ports.
    pub(super) fn plug(&mut self, a: Peer, b: Peer) -> Result<(), TopologyError> {
        for end in [a, b] {
            if let Some(port) = self
                .topology
                .node_mut(end.node)
                .and_then(|n| n.port_mut(end.port))
            {
                *port = Port {
                    widths: self.widths,
                    speeds: self.speeds,
                    ..port.clone()
                };
            }
        }
        self.topology.connect(a, b)
    }

    /// Takes the next free port; beyond the last one, `connect` refuses.
    fn next_free(&mut self, node: usize) -> u8 {
        match self.free.get_mut(node) {
            Some(next) => {
                let port = *next;
                *next = next.saturating_add(1);
                port
            }
            None => 0,
        }
    }

    /// Ports of this node that are still free.
    pub(super) fn spare(&self, node: usize) -> u8 {
        let count = self.topology.node(node).map_or(0, |n| n.port_count);
        let used = self.free.get(node).map_or(0, |next| next - 1);
        count.saturating_sub(used)
    }

    pub(super) fn finish(self) -> Topology {
        self.topology
    }
}
