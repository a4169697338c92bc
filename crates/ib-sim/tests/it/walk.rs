//! A small discovery, by nothing but SMPs: what a fabric looks like from one of its ports.

use std::collections::BTreeMap;
use std::time::Duration;

use ib_mad::client::{ClientConfig, ClientStats, Event};
use ib_mad::header::AttributeId;
use ib_mad::smp::{
    DrPath, MlnxExtPortInfo, NodeDescription, NodeInfo, NodeType, PortInfo, Smp, SwitchInfo,
};
use ib_mad::{Client, MadPort, Packet};

/// What the walk has learned of a node.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) info: NodeInfo,
    pub(crate) description: String,
    pub(crate) enhanced: Option<bool>,
    pub(crate) ports: BTreeMap<u8, PortInfo>,
    pub(crate) fdr10: BTreeMap<u8, MlnxExtPortInfo>,
    path: DrPath,
}

/// What a request was for: the node's GUID, but for the first NodeInfo.
type Token = (u64, AttributeId, u8, DrPath);

/// What came of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    pub(crate) nodes: BTreeMap<u64, Seen>,
    /// Cables, as (GUID, port) pairs, smaller end first.
    pub(crate) links: Vec<((u64, u8), (u64, u8))>,
    /// Requests that nobody answered.
    pub(crate) failed: Vec<(DrPath, AttributeId)>,
    pub(crate) stats: ClientStats,
}

fn ask(client: &mut Client<Token>, guid: u64, path: DrPath, attribute: AttributeId, port: u8) {
    let smp = Smp::get(&path, attribute, u32::from(port));
    client.submit(
        (guid, attribute, port, path),
        Packet::directed(&smp, Duration::ZERO),
    );
}

/// Walks from the port until nothing is left to ask.
pub(crate) fn walk(port: &mut impl MadPort, config: ClientConfig) -> Walk {
    let mut client: Client<Token> = Client::new(config);
    let mut walk = Walk::default();
    // Where each path came from, for the cable's other end.
    let mut from: BTreeMap<String, (u64, u8)> = BTreeMap::new();
    ask(&mut client, 0, DrPath::LOCAL, AttributeId::NODE_INFO, 0);
    loop {
        while let Some(packet) = client.poll_transmit(port.now()) {
            port.send(&packet).unwrap();
        }
        while let Some(event) = client.poll_event() {
            match event {
                Event::Response { token, mad, .. } => answer(
                    &mut client,
                    &mut walk,
                    &mut from,
                    token,
                    Smp::from_bytes(&mad),
                ),
                Event::Failed { token, .. } => walk.failed.push((token.3, token.1)),
                other => panic!("{other:?}"),
            }
        }
        if client.is_idle() {
            break;
        }
        if let Some(deadline) = client.poll_timeout().filter(|_| client.in_flight() > 0) {
            if let Some(packet) = port.receive(deadline.since(port.now())).unwrap() {
                client.handle_mad(port.now(), &packet);
            }
            client.handle_timeout(port.now());
        }
    }
    walk.links.sort_unstable();
    walk.links.dedup();
    walk.stats = client.stats();
    walk
}

fn answer(
    client: &mut Client<Token>,
    walk: &mut Walk,
    from: &mut BTreeMap<String, (u64, u8)>,
    token: Token,
    smp: &Smp,
) {
    let (guid, attribute, number, path) = token;
    if !smp.status().is_ok() {
        walk.failed.push((path, attribute));
        return;
    }
    match attribute {
        AttributeId::NODE_INFO => {
            let info: NodeInfo = *smp.attribute();
            let guid = info.node_guid.get();
            if let Some(near) = from.get(&path.to_string()) {
                let far = (guid, info.local_port);
                walk.links.push((*near.min(&far), *near.max(&far)));
            }
            if walk.nodes.contains_key(&guid) {
                return;
            }
            let seen = Seen {
                info,
                description: String::new(),
                enhanced: None,
                ports: BTreeMap::new(),
                fdr10: BTreeMap::new(),
                path,
            };
            walk.nodes.insert(guid, seen);
            ask(client, guid, path, AttributeId::NODE_DESCRIPTION, 0);
            let switch = info.node_type == NodeType::SWITCH;
            if switch {
                ask(client, guid, path, AttributeId::SWITCH_INFO, 0);
            }
            for port in u8::from(!switch)..=info.num_ports {
                ask(client, guid, path, AttributeId::PORT_INFO, port);
            }
        }
        AttributeId::NODE_DESCRIPTION => {
            let text: &NodeDescription = smp.attribute();
            if let Some(node) = walk.nodes.get_mut(&guid) {
                node.description = text.text();
            }
        }
        AttributeId::SWITCH_INFO => {
            let info: &SwitchInfo = smp.attribute();
            if let Some(node) = walk.nodes.get_mut(&guid) {
                node.enhanced = Some(info.flags.enhanced_port0());
            }
        }
        AttributeId::PORT_INFO => {
            let info: PortInfo = *smp.attribute();
            let Some(node) = walk.nodes.get_mut(&guid) else {
                return;
            };
            node.ports.insert(number, info);
            let switch = node.info.node_type == NodeType::SWITCH;
            let local = node.path.hops() == 0;
            if info.is_link_up() && number > 0 {
                if info.link_speed.active() == 4 {
                    ask(client, guid, path, AttributeId::MLNX_EXT_PORT_INFO, number);
                }
                // A CA passes nothing on; the local one sends by its own port.
                let leads_on = switch || (local && number == node.info.local_port);
                if let Some(next) = path.extended(number).ok().filter(|_| leads_on) {
                    from.insert(next.to_string(), (guid, number));
                    ask(client, 0, next, AttributeId::NODE_INFO, 0);
                }
            }
        }
        AttributeId::MLNX_EXT_PORT_INFO => {
            if let Some(node) = walk.nodes.get_mut(&guid) {
                node.fdr10.insert(number, *smp.attribute());
            }
        }
        _ => {}
    }
}

impl Walk {
    /// The walk in the words that [`super::ibsim::facts`] has for a topology.
    pub(crate) fn facts(&self) -> Vec<String> {
        let kind = |t: NodeType| match t {
            NodeType::SWITCH => "Switch",
            NodeType::ROUTER => "Router",
            _ => "Ca",
        };
        let mut facts: Vec<String> = self
            .nodes
            .iter()
            .map(|(guid, n)| {
                let i = &n.info;
                format!(
                    "{} {guid:#x} sys {:#x} {:#x}:{:#x} {} {:?} {:?}",
                    kind(i.node_type),
                    i.system_image_guid.get(),
                    i.vendor_id.get(),
                    i.device_id.get(),
                    i.num_ports,
                    n.description,
                    n.enhanced
                )
            })
            .collect();
        for (a, b) in &self.links {
            let node = &self.nodes[&a.0];
            let switch = node.info.node_type == NodeType::SWITCH;
            let port = &node.ports[&a.1];
            let agent = if switch { &node.ports[&0] } else { port };
            facts.push(format!(
                "{a:?} {b:?} {}{}",
                port.width(),
                port.speed(
                    agent,
                    node.fdr10.get(&a.1).is_some_and(|info| info.active.fdr10())
                )
            ));
        }
        facts.sort_unstable();
        facts
    }
}
