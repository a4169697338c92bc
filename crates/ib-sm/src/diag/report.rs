//! What `ib-diag topology` tells, as data.

use ib_mad::smp::{NodeType, PortState};
use serde::Serialize;

use crate::core::discovery::{Discovered, Warning};
use crate::core::topology::{Node, Port, Topology};

/// A fabric: who is there, how it is cabled, what is wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TopologyReport {
    /// Where it was looked at from.
    pub local: LocalReport,
    /// Whether the walk came to its end. If not, the fabric fell silent, and this is not all.
    pub complete: bool,
    /// Counts.
    pub summary: SummaryReport,
    /// Switches first, then channel adapters, then the rest; each by GUID.
    pub nodes: Vec<NodeReport>,
    /// Every cable once, by the lower GUID and port.
    pub links: Vec<LinkReport>,
    /// What is wrong, in the order in which it was noticed.
    pub warnings: Vec<WarningReport>,
}

/// The port from which a fabric was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LocalReport {
    /// What the device is called here.
    pub device: String,
    /// The node's GUID.
    pub guid: String,
    /// The node's name.
    pub name: String,
    /// The port; 0 is a switch's own.
    pub port: u8,
}

/// Counts of a fabric and of what it took to learn them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SummaryReport {
    /// Switches.
    pub switches: usize,
    /// Channel adapters.
    pub adapters: usize,
    /// Routers.
    pub routers: usize,
    /// Nodes of a type that is none of these.
    pub others: usize,
    /// Cables with a known node at each end.
    pub links: usize,
    /// Hops from the local node to the farthest.
    pub max_hops: u8,
    /// Requests sent, repeats among them.
    pub requests: u64,
    /// Repeats, after no answer came in time.
    pub retries: u64,
    /// Requests that had no answer in the end.
    pub unanswered: u64,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct NodeReport {
    /// `switch`, `adapter`, `router` or `unknown`.
    pub kind: &'static str,
    /// Its GUID.
    pub guid: String,
    /// Its name; absent where it did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the nodes of its box share; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_image_guid: Option<String>,
    /// The vendor's number (an OUI).
    pub vendor_id: String,
    /// The vendor's number for the device.
    pub device_id: String,
    /// How many ports it has; port 0 of a switch is not counted.
    pub ports: u8,
    /// Of those, the ones whose link is up.
    pub ports_up: usize,
    /// A switch's LID, or that of the only port that was seen; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lid: Option<u16>,
    /// How it was first reached: out-ports from the local node on.
    pub path: String,
}

/// One end of a cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct EndReport {
    /// The node.
    pub guid: String,
    /// Its name; absent where it did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port.
    pub port: u8,
    /// The LID by which it is reached; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lid: Option<u16>,
    /// The state of the port; absent where it did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// A cable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LinkReport {
    /// The end with the lower GUID and port.
    pub a: EndReport,
    /// The other end.
    pub b: EndReport,
    /// `1x` to `12x`; absent where neither end tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<String>,
    /// `SDR` to `XDR`; absent where neither end tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<String>,
    /// What such a link is sold as, Gb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gbps: Option<u16>,
    /// The MTU in use, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct WarningReport {
    /// A name that stays.
    pub code: &'static str,
    /// The node that it is about.
    pub guid: String,
    /// Its name; absent where it did not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u8>,
    /// The way to it.
    pub path: String,
    /// What is wrong, in words.
    pub text: String,
}

impl TopologyReport {
    /// The report of a walk that began at the device of that name.
    #[must_use]
    pub fn new(device: &str, found: &Discovered) -> Self {
        let topology = &found.topology;
        let local = topology.local();
        let count = |kind| {
            topology
                .nodes()
                .iter()
                .filter(|it| it.kind() == kind)
                .count()
        };
        let links: Vec<LinkReport> = topology
            .links()
            .into_iter()
            .filter_map(|(a, b)| LinkReport::new(topology, a, b))
            .collect();
        let (switches, adapters) = (count(NodeType::SWITCH), count(NodeType::CA));
        let routers = count(NodeType::ROUTER);
        let mut nodes: Vec<&Node> = topology.nodes().iter().collect();
        nodes.sort_by_key(|node| (rank(node.kind()), node.guid()));
        Self {
            local: LocalReport {
                device: device.to_owned(),
                guid: local.map(Node::guid).unwrap_or_default().to_string(),
                name: local.map(Node::name).unwrap_or_default(),
                port: topology.local_port(),
            },
            complete: found.complete,
            summary: SummaryReport {
                switches,
                adapters,
                routers,
                others: topology.nodes().len() - switches - adapters - routers,
                links: links.len(),
                max_hops: topology
                    .nodes()
                    .iter()
                    .map(|node| node.path.hops())
                    .max()
                    .unwrap_or(0),
                requests: found.stats.sent,
                retries: found.stats.retried,
                unanswered: found.stats.failed,
            },
            nodes: nodes
                .into_iter()
                .map(|node| NodeReport::new(topology, node))
                .collect(),
            links,
            warnings: found.warnings.iter().map(WarningReport::new).collect(),
        }
    }
}

/// Switches first.
const fn rank(kind: NodeType) -> u8 {
    match kind.get() {
        2 => 0,
        1 => 1,
        3 => 2,
        _ => 3,
    }
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

impl NodeReport {
    fn new(topology: &Topology, node: &Node) -> Self {
        let ports = topology.ports_of(node);
        let up = |port: &&Port| port.number > 0 && port.info.is_some_and(|it| it.is_link_up());
        let lid = match ports {
            [port, ..] if node.is_switch() => topology.lid_of(node, port).get(),
            [port] => topology.lid_of(node, port).get(),
            _ => 0,
        };
        Self {
            kind: match node.kind() {
                NodeType::SWITCH => "switch",
                NodeType::CA => "adapter",
                NodeType::ROUTER => "router",
                _ => "unknown",
            },
            guid: node.guid().to_string(),
            name: some(node.name()),
            system_image_guid: (!node.info.system_image_guid.is_zero())
                .then(|| node.info.system_image_guid.to_string()),
            vendor_id: format!("0x{:06x}", node.info.vendor_id.get()),
            device_id: format!("0x{:04x}", node.info.device_id.get()),
            ports: node.info.num_ports,
            ports_up: ports.iter().filter(up).count(),
            lid: (lid != 0).then_some(lid),
            path: node.path.to_string(),
        }
    }
}

impl LinkReport {
    fn new(topology: &Topology, a: &Port, b: &Port) -> Option<Self> {
        let (node_a, node_b) = (topology.node(a.node)?, topology.node(b.node)?);
        let rate = topology
            .rate_of(node_a, a)
            .or_else(|| topology.rate_of(node_b, b));
        Some(Self {
            a: EndReport::new(topology, node_a, a),
            b: EndReport::new(topology, node_b, b),
            width: rate.map(|(width, _)| width.to_string()),
            speed: rate.map(|(_, speed)| speed.to_string()),
            gbps: rate.and_then(|(width, speed)| speed.nominal_gbps(width)),
            mtu: a.info.or(b.info).and_then(|info| info.mtu()),
        })
    }
}

impl EndReport {
    fn new(topology: &Topology, node: &Node, port: &Port) -> Self {
        let lid = topology.lid_of(node, port).get();
        Self {
            guid: node.guid().to_string(),
            name: some(node.name()),
            port: port.number,
            lid: (lid != 0).then_some(lid),
            state: port.info.map(|info| PortState::to_string(&info.state())),
        }
    }
}

impl WarningReport {
    fn new(warning: &Warning) -> Self {
        Self {
            code: warning.kind.code(),
            guid: warning.node.to_string(),
            name: some(warning.name.clone()),
            port: warning.port,
            path: warning.path.to_string(),
            text: warning.kind.to_string(),
        }
    }
}
