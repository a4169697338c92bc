//! What is done to a known fabric when a part of it changes, and how routing sees it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ib_mad::id::Guid;
use ib_mad::smp::{DrPath, NodeType};

use crate::core::topology::{Node, NodeIndex, Port, PortIndex, Topology};
use crate::routing::{End, EndKind, Fabric, FabricError, Link, Place, Switch};

/// Names a port for good: GUID of the node and number.
pub(super) type Spot = (Guid, u8);

/// A fabric for routing, in an order that does not depend on how it was found, and which switch of
/// it is which node.
#[derive(Debug, Default)]
pub(super) struct Routed {
    pub fabric: Fabric,
    /// By switch of the fabric: its node.
    pub nodes: Vec<NodeIndex>,
}

/// Data lanes by PortInfo's code.
const fn lanes(code: u8) -> u8 {
    match code {
        2 => 2,
        3 => 4,
        4 => 8,
        5 => 15,
        _ => 1,
    }
}

/// What routing is to see: `lids` by port, cables but those at a spot of `avoid` between switches.
pub(super) fn routed(
    topology: &Topology,
    lids: &[u16],
    lmc: u8,
    avoid: &BTreeSet<Spot>,
) -> Result<Routed, FabricError> {
    let mut order: Vec<(NodeIndex, &Node)> = topology.iter().collect();
    order.sort_by_key(|(index, node)| (node.guid(), *index));
    let mut fabric = Fabric::new();
    let mut nodes = Vec::new();
    let mut places: Vec<Option<Place>> = vec![None; topology.ports.len()];
    for &(index, node) in &order {
        let first = node.first_port as usize;
        let lid_at = |at: usize| lids.get(first + at).copied().unwrap_or(0);
        if node.is_switch() {
            let switch = fabric.add_switch(Switch {
                guid: node.guid(),
                name: String::new(),
                lid: lid_at(0),
                lmc: 0,
                ports: node.info.num_ports,
            });
            nodes.push(index);
            for (at, port) in topology.ports_of(node).iter().enumerate() {
                if let Some(slot) = places.get_mut(first + at).filter(|_| port.number > 0) {
                    *slot = Some(Place::Switch {
                        switch,
                        port: port.number,
                    });
                }
            }
            continue;
        }
        for (at, port) in topology.ports_of(node).iter().enumerate() {
            let end = fabric.add_end(End {
                kind: if node.kind() == NodeType::ROUTER {
                    EndKind::Router
                } else {
                    EndKind::Adapter
                },
                node_guid: node.guid(),
                port_guid: port.guid,
                name: String::new(),
                port: port.number,
                lid: lid_at(at),
                lmc: if lid_at(at) == 0 { 0 } else { lmc },
            });
            if let Some(slot) = places.get_mut(first + at) {
                *slot = Some(Place::End(end));
            }
        }
    }
    for (at, port) in topology.ports.iter().enumerate() {
        let Some(peer) = port.peer.filter(|it| it.get() >= at) else {
            continue;
        };
        let Some(far) = topology.port(peer) else {
            continue;
        };
        let place = |at: usize| places.get(at).copied().flatten();
        let (Some(a), Some(b)) = (place(at), place(peer.get())) else {
            continue;
        };
        let between = matches!((a, b), (Place::Switch { .. }, Place::Switch { .. }));
        let spot = |port: &Port| {
            topology
                .node(port.node)
                .map(|node| (node.guid(), port.number))
        };
        let avoided = |port: &Port| spot(port).is_some_and(|it| avoid.contains(&it));
        if between && (avoided(port) || avoided(far)) {
            continue;
        }
        let vls = [port, far]
            .into_iter()
            .filter_map(|it| Some(lanes(it.info?.vl_cap.vl_cap())))
            .min();
        let gbps = topology
            .node(port.node)
            .and_then(|node| topology.rate_of(node, port))
            .and_then(|(width, speed)| speed.nominal_gbps(width));
        let link = Link {
            vls: vls.unwrap_or(1),
            gbps: gbps.unwrap_or(0),
        };
        fabric.connect(a, b, link);
    }
    Ok(Routed {
        fabric: fabric.finish()?,
        nodes,
    })
}

/// A node and its ports, taken out of the flat arrays.
struct Loose {
    node: Node,
    /// With the spot at the other end.
    ports: Vec<(Port, Option<Spot>)>,
}

fn loosen(topology: &Topology, node: &Node) -> Loose {
    let spot = |port: &Port| {
        let (node, far) = topology.peer_of(port)?;
        Some((node.guid(), far.number))
    };
    Loose {
        node: node.clone(),
        ports: topology
            .ports_of(node)
            .iter()
            .map(|port| (port.clone(), spot(port)))
            .collect(),
    }
}

/// Makes the flat arrays anew: what `found` has beyond `known`, `cables` as they are said to be, and
/// only what can be reached. Ways are the shortest, first port first.
///
/// `found` may be empty. Nodes that both have are taken from `known`, with the ports of both.
pub(super) fn rebuild(
    known: &Topology,
    found: Option<&Topology>,
    cables: &[(Spot, Spot)],
) -> Topology {
    let mut loose: Vec<Loose> = Vec::with_capacity(known.nodes.len());
    let mut place: BTreeMap<Guid, usize> = BTreeMap::new();
    for node in &known.nodes {
        // Of two nodes with one GUID only the first is kept: nothing can tell them apart.
        if place.contains_key(&node.guid()) {
            continue;
        }
        place.insert(node.guid(), loose.len());
        loose.push(loosen(known, node));
    }
    for node in found.map_or(&[][..], |it| &it.nodes) {
        let Some(found) = found else { break };
        let more = loosen(found, node);
        match place.get(&node.guid()).and_then(|&at| loose.get_mut(at)) {
            None => {
                place.insert(node.guid(), loose.len());
                loose.push(more);
            }
            Some(old) => {
                for (port, spot) in more.ports {
                    let at = old
                        .ports
                        .binary_search_by_key(&port.number, |(it, _)| it.number);
                    match at {
                        Ok(at) => {
                            if let Some((_, old)) = old.ports.get_mut(at) {
                                *old = old.or(spot);
                            }
                        }
                        Err(at) => old.ports.insert(at, (port, spot)),
                    }
                }
            }
        }
    }
    for &(a, b) in cables {
        for (near, far) in [(a, b), (b, a)] {
            let ports = place.get(&near.0).and_then(|&at| loose.get_mut(at));
            let port = ports.and_then(|it| {
                let at = it
                    .ports
                    .binary_search_by_key(&near.1, |(port, _)| port.number);
                it.ports.get_mut(at.ok()?)
            });
            if let Some((_, spot)) = port {
                *spot = Some(far);
            }
        }
    }
    assemble(known, &loose, &place)
}

fn assemble(known: &Topology, loose: &[Loose], place: &BTreeMap<Guid, usize>) -> Topology {
    let local = known.nodes.first().map(Node::guid).unwrap_or_default();
    let far_of = |from: Spot, spot: Spot| -> Option<(usize, u8)> {
        let at = *place.get(&spot.0)?;
        let ports = &loose.get(at)?.ports;
        let port = ports
            .binary_search_by_key(&spot.1, |(port, _)| port.number)
            .ok()?;
        // Both ends must say the same.
        (ports.get(port)?.1 == Some(from)).then_some((at, spot.1))
    };
    let mut order: Vec<usize> = Vec::with_capacity(loose.len());
    let mut paths: Vec<Option<DrPath>> = vec![None; loose.len()];
    let mut queue = VecDeque::new();
    if let Some(&at) = place.get(&local) {
        queue.push_back(at);
        if let Some(slot) = paths.get_mut(at) {
            *slot = Some(DrPath::LOCAL);
        }
    }
    while let Some(at) = queue.pop_front() {
        order.push(at);
        let (Some(it), Some(Some(path))) = (loose.get(at), paths.get(at).copied()) else {
            continue;
        };
        let is_local = it.node.guid() == local;
        for (port, spot) in &it.ports {
            let leads_on = port.number > 0
                && (it.node.is_switch() || (is_local && port.number == known.local_port));
            let Some(spot) = spot.filter(|_| leads_on) else {
                continue;
            };
            let Some((far, _)) = far_of((it.node.guid(), port.number), spot) else {
                continue;
            };
            if let Some(slot @ None) = paths.get_mut(far)
                && let Ok(longer) = path.extended(port.number)
            {
                *slot = Some(longer);
                queue.push_back(far);
            }
        }
    }
    let mut starts: Vec<Option<u32>> = vec![None; loose.len()];
    let mut total = 0_u32;
    for &at in &order {
        if let (Some(slot), Some(it)) = (starts.get_mut(at), loose.get(at)) {
            *slot = Some(total);
            total += u32::try_from(it.ports.len()).unwrap_or(0);
        }
    }
    let mut topology = Topology {
        nodes: Vec::with_capacity(order.len()),
        ports: Vec::with_capacity(total as usize),
        by_guid: BTreeMap::new(),
        local_port: known.local_port,
    };
    for &at in &order {
        let (Some(it), Some(Some(start))) = (loose.get(at), starts.get(at)) else {
            continue;
        };
        let index = NodeIndex(u32::try_from(topology.nodes.len()).unwrap_or(u32::MAX));
        topology.by_guid.insert(it.node.guid(), index);
        let mut node = it.node.clone();
        node.path = paths.get(at).copied().flatten().unwrap_or_default();
        node.first_port = *start;
        node.port_count = u16::try_from(it.ports.len()).unwrap_or(0);
        topology.nodes.push(node);
        for (port, spot) in &it.ports {
            let peer = spot.and_then(|spot| {
                let (far, number) = far_of((it.node.guid(), port.number), spot)?;
                let start = starts.get(far).copied().flatten()?;
                let ports = &loose.get(far)?.ports;
                let at = ports
                    .binary_search_by_key(&number, |(port, _)| port.number)
                    .ok()?;
                Some(PortIndex(start + u32::try_from(at).ok()?))
            });
            topology.ports.push(Port {
                node: index,
                peer,
                ..port.clone()
            });
        }
    }
    topology
}
