//! Where fabrics come from: discovery, and simulated topologies.

use ib_mad::smp::{NodeType, PortInfo};

use super::fabric::{End, EndKind, Fabric, FabricError, Link, Place, Switch};
use crate::core::topology::{Node, Port, Topology};

/// Data lanes by PortInfo's VLCap: 1, 2, 4, 8, 15.
fn lanes(code: u8) -> u8 {
    match code {
        2 => 2,
        3 => 4,
        4 => 8,
        5 => 15,
        _ => 1,
    }
}

impl Fabric {
    /// A discovered fabric: cables whose link is up, and LIDs as they stand in the ports.
    ///
    /// Switches and ends are in the order in which they were found.
    ///
    /// # Errors
    /// Where LIDs collide or are none.
    pub fn of_topology(topology: &Topology) -> Result<Self, FabricError> {
        let mut fabric = Self::new();
        let mut places: Vec<Option<Place>> = vec![None; topology.ports().len()];
        for (_, node) in topology.iter() {
            let ports = topology.ports_of(node);
            if node.is_switch() {
                let zero = topology.port_of(node, 0);
                let switch = fabric.add_switch(Switch {
                    guid: node.guid(),
                    name: node.name(),
                    lid: zero.map_or(0, |port| topology.lid_of(node, port).get()),
                    lmc: zero.map_or(0, |port| topology.lmc_of(node, port)),
                    ports: node.info.num_ports,
                });
                for port in ports.iter().filter(|port| port.number > 0) {
                    note(topology, node, port, &mut places, |number| Place::Switch {
                        switch,
                        port: number,
                    });
                }
            } else {
                let kind = if node.kind() == NodeType::ROUTER {
                    EndKind::Router
                } else {
                    EndKind::Adapter
                };
                for port in ports {
                    let end = fabric.add_end(End {
                        kind,
                        node_guid: node.guid(),
                        port_guid: port.guid,
                        name: node.name(),
                        port: port.number,
                        lid: topology.lid_of(node, port).get(),
                        lmc: topology.lmc_of(node, port),
                    });
                    note(topology, node, port, &mut places, |_| Place::End(end));
                }
            }
        }
        for (a, b) in topology.links() {
            let place = |port: &Port| {
                let node = topology.node(port.node)?;
                let index = topology.index_of(node, port)?;
                places.get(index.get()).copied().flatten()
            };
            let up = |port: &Port| port.info.as_ref().is_none_or(PortInfo::is_link_up);
            let (Some(near), Some(far)) = (place(a), place(b)) else {
                continue;
            };
            if !up(a) || !up(b) {
                continue;
            }
            let vls = [a, b]
                .into_iter()
                .filter_map(|port| Some(lanes(port.info?.vl_cap.vl_cap())))
                .min();
            let gbps = [a, b]
                .into_iter()
                .filter_map(|port| {
                    let (width, speed) = topology.rate_of(topology.node(port.node)?, port)?;
                    speed.nominal_gbps(width)
                })
                .min();
            let link = Link {
                vls: vls.unwrap_or(1),
                gbps: gbps.unwrap_or(0),
            };
            fabric.connect(near, far, link);
        }
        fabric.finish()
    }
}

fn note(
    topology: &Topology,
    node: &Node,
    port: &Port,
    places: &mut [Option<Place>],
    place: impl Fn(u8) -> Place,
) {
    if let Some(index) = topology.index_of(node, port)
        && let Some(slot) = places.get_mut(index.get())
    {
        *slot = Some(place(port.number));
    }
}

#[cfg(any(feature = "sim", test))]
impl Fabric {
    /// A topology that was read from a file or generated. Where no port has a LID, LIDs are given
    /// out in the order of the nodes, one each.
    ///
    /// # Errors
    /// Where LIDs collide, are none, or do not suffice.
    pub fn of_sim(topology: &ib_sim::topo::Topology) -> Result<Self, FabricError> {
        use ib_mad::id::Guid;
        use ib_sim::topo::Kind;

        let nodes = topology.nodes();
        let given = nodes
            .iter()
            .any(|node| node.ports().iter().any(|it| it.lid != 0));
        let mut next = 1_u32;
        let mut lid_of = |lid: u16| {
            if given {
                return lid;
            }
            let lid = u16::try_from(next).unwrap_or(u16::MAX);
            next += 1;
            lid
        };
        let mut fabric = Self::new();
        // By node: its switch, or its first end; ends of a node stand in the order of its ports.
        let mut first = Vec::with_capacity(nodes.len());
        for node in nodes {
            if node.is_switch() {
                let zero = node.port(0);
                first.push(fabric.add_switch(Switch {
                    guid: Guid::new(node.guid),
                    name: node.description.clone(),
                    lid: lid_of(zero.map_or(0, |it| it.lid)),
                    lmc: zero.map_or(0, |it| it.lmc),
                    ports: node.port_count,
                }));
                continue;
            }
            first.push(u32::try_from(fabric.ends().len()).unwrap_or(u32::MAX));
            for port in node.ports().iter().filter(|it| it.peer.is_some()) {
                fabric.add_end(End {
                    kind: match node.kind {
                        Kind::Router => EndKind::Router,
                        _ => EndKind::Adapter,
                    },
                    node_guid: Guid::new(node.guid),
                    port_guid: Guid::new(node.port_guid(port.number)),
                    name: node.description.clone(),
                    port: port.number,
                    lid: lid_of(port.lid),
                    lmc: port.lmc,
                });
            }
        }
        let place = |peer: ib_sim::topo::Peer| {
            let node = nodes.get(peer.node)?;
            let first = *first.get(peer.node)?;
            if node.is_switch() {
                let port = peer.port;
                return Some(Place::Switch {
                    switch: first,
                    port,
                });
            }
            let plugged = node.ports().iter().filter(|it| it.peer.is_some());
            let at = plugged.take_while(|it| it.number < peer.port).count();
            Some(Place::End(first + u32::try_from(at).ok()?))
        };
        for link in topology.links() {
            if let (Some(a), Some(b)) = (place(link.a), place(link.b)) {
                let gbps = topology.active_rate(link.a).map_or(0, |(width, speed)| {
                    use ib_mad::smp::{LinkSpeed, LinkWidth};
                    LinkSpeed::by_name(&speed.to_string())
                        .and_then(|it| it.nominal_gbps(LinkWidth::of(width.mask())))
                        .unwrap_or(0)
                });
                fabric.connect(a, b, Link { vls: 8, gbps });
            }
        }
        fabric.finish()
    }
}
