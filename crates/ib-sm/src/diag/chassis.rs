//! Which nodes share a box, and which board of it each is.
//!
//! Three rules, those of `libibnetdisc/chassis.c` of rdma-core: the chips of a Voltaire director
//! are told by their device ids and by how they are cabled, the boards of a Mellanox InfiniScale IV
//! director by their descriptions, and all other nodes by their system image GUID.

use std::collections::BTreeMap;

use ib_mad::id::Guid;
use ib_mad::smp::NodeType;

use super::voltaire;
use crate::core::topology::{Node, NodeIndex, Port, PortIndex, Topology};

const VOLTAIRE: u32 = 0x8f1;
const MELLANOX: u32 = 0x2c9;
const TOPSPIN: u32 = 0x5ad;
const SILVERSTORM: u32 = 0x66a;
const XSIGO: u32 = 0x1397;

/// The InfiniScale IV switch.
const IS4: u16 = 0xbd36;

/// The most boards of each kind.
pub(super) const MAX_SPINES: u8 = 18;
pub(super) const MAX_LINES: u8 = 36;

/// What a board is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// A line board: cables leave here.
    Line,
    /// A spine board: joins the line boards.
    Spine,
    /// A board with a router.
    Router,
}

impl Board {
    /// As ibnetdiscover calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Line => "Line",
            Self::Spine => "Spine",
            Self::Router => "SRBD",
        }
    }
}

/// Where a node sits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seat {
    /// Its box, by its place in [`Grouping::boxes`].
    pub chassis: Option<usize>,
    /// The box's model.
    pub model: Option<String>,
    /// The kind of board, its slot, and the chip on it.
    pub board: Option<(Board, u8, u8)>,
    /// It has been looked at.
    pub(super) found: bool,
}

/// A box.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chassis {
    /// 1 and up; 0 where it holds one node only.
    pub number: u8,
    /// What its nodes share.
    pub guid: Guid,
    /// Boards by their slots.
    pub spines: BTreeMap<u8, NodeIndex>,
    /// Boards by their slots.
    pub lines: BTreeMap<u8, NodeIndex>,
    /// Its other nodes, in the order in which they were found.
    pub nodes: Vec<NodeIndex>,
    pub(super) count: usize,
}

/// All boxes of a fabric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// The boxes.
    pub boxes: Vec<Chassis>,
    pub(super) seats: Vec<Seat>,
    /// What is printed at the box beside a port, where that differs: by port.
    pub(super) labels: Vec<u8>,
}

impl Grouping {
    /// Groups the nodes of a fabric.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let mut grouping = Self {
            boxes: Vec::new(),
            seats: vec![Seat::default(); topology.nodes().len()],
            labels: vec![0; topology.ports().len()],
        };
        for (index, node) in switches(topology) {
            match node.info.vendor_id.get() {
                VOLTAIRE => voltaire::seat(&mut grouping, topology, index, node),
                MELLANOX => grouping.seat_by_description(topology, index, node),
                _ => {}
            }
        }
        let mut number = 0_u8;
        voltaire::build(&mut grouping, topology, &mut number);
        grouping.group_by_guid(topology, &mut number);
        grouping
    }

    /// Where a node sits.
    #[must_use]
    pub fn seat(&self, index: NodeIndex) -> Option<&Seat> {
        self.seats.get(index.get())
    }

    /// The box of a node, where it holds more than that node.
    #[must_use]
    pub fn chassis_of(&self, index: NodeIndex) -> Option<&Chassis> {
        let chassis = self.boxes.get(self.seat(index)?.chassis?)?;
        (chassis.number != 0).then_some(chassis)
    }

    /// The number that is printed at the box beside a port, where it differs from the port's own.
    #[must_use]
    pub fn label(&self, port: PortIndex) -> Option<u8> {
        self.labels
            .get(port.get())
            .copied()
            .filter(|&label| label != 0)
    }

    /// `MF0;<system>:<model>/<slot>[:<board>]/U<chip>`, the slot `L01` to `L36` or `S01` to `S18`.
    fn seat_by_description(&mut self, topology: &Topology, index: NodeIndex, node: &Node) {
        let text = node
            .description
            .map(|it| String::from_utf8_lossy(it.bytes()).into_owned());
        let Some(text) = text.filter(|_| node.info.device_id.get() == IS4) else {
            return;
        };
        let parts = || {
            let rest = text.strip_prefix("MF0;")?;
            let (_, rest) = rest.split_once(':')?;
            let (model, rest) = rest.split_once('/')?;
            let at = rest.find(['/', ':'])?;
            let (slot, rest) = rest.split_at(at);
            let rest = match rest.strip_prefix(':') {
                Some(rest) => rest.split_once('/')?.1,
                None => rest.strip_prefix('/')?,
            };
            Some((model, slot, rest.strip_prefix('U')?))
        };
        let Some((model, slot, chip)) = parts() else {
            return;
        };
        let (board, most) = match slot.bytes().next() {
            Some(b'L') => (Board::Line, MAX_LINES),
            Some(b'S') => (Board::Spine, MAX_SPINES),
            _ => return,
        };
        let number = leading_number(slot.get(1..).unwrap_or_default());
        let Some(seat) = self.seats.get_mut(index.get()) else {
            return;
        };
        seat.found = true;
        if number > most {
            seat.board = Some((board, 0, leading_number(chip)));
            return;
        }
        seat.board = Some((board, number, leading_number(chip)));
        seat.model = Some(model.chars().take(19).collect());
        if board == Board::Line {
            for (at, port) in ports_of(topology, node) {
                if (1..=18).contains(&port.number)
                    && let Some(label) = self.labels.get_mut(at.get())
                {
                    *label = port.number;
                }
            }
        }
    }

    fn group_by_guid(&mut self, topology: &Topology, number: &mut u8) {
        let of_guid = |(_, node): &(NodeIndex, &Node)| {
            node.info.vendor_id.get() != VOLTAIRE && !node.info.system_image_guid.is_zero()
        };
        let mut by_guid: BTreeMap<Guid, usize> = BTreeMap::new();
        for (place, chassis) in self.boxes.iter().enumerate() {
            by_guid.entry(chassis.guid).or_insert(place);
        }
        for (_, node) in topology.iter().rev().filter(of_guid) {
            let guid = chassis_guid(topology, node);
            let place = *by_guid.entry(guid).or_insert_with(|| {
                self.boxes.push(Chassis {
                    guid,
                    ..Chassis::default()
                });
                self.boxes.len() - 1
            });
            if let Some(chassis) = self.boxes.get_mut(place) {
                chassis.count += 1;
            }
        }
        for (index, node) in topology.iter().rev().filter(of_guid) {
            let place = by_guid.get(&chassis_guid(topology, node)).copied();
            let Some(place) = place else { continue };
            let (Some(chassis), Some(seat)) =
                (self.boxes.get_mut(place), self.seats.get_mut(index.get()))
            else {
                continue;
            };
            if chassis.count < 2 {
                continue;
            }
            if chassis.number == 0 {
                *number = number.wrapping_add(1);
                chassis.number = *number;
            }
            if !seat.found {
                seat.found = true;
                seat.chassis = Some(place);
                // The tool puts each before those it had; reversed below.
                chassis.nodes.push(index);
            } else if node.info.vendor_id.get() == MELLANOX {
                let boards = match seat.board {
                    Some((Board::Line, slot, _)) => (&mut chassis.lines, slot),
                    Some((Board::Spine, slot, _)) => (&mut chassis.spines, slot),
                    _ => continue,
                };
                if let std::collections::btree_map::Entry::Vacant(entry) = boards.0.entry(boards.1)
                {
                    entry.insert(index);
                    seat.chassis = Some(place);
                }
            }
        }
        for chassis in &mut self.boxes {
            chassis.nodes.reverse();
        }
    }
}

/// As `atoi` reads it into a byte.
fn leading_number(text: &str) -> u8 {
    text.bytes()
        .take_while(u8::is_ascii_digit)
        .fold(0_u8, |number, digit| {
            number.wrapping_mul(10).wrapping_add(digit - b'0')
        })
}

/// The switches, last found first, as the tool goes through them.
pub(super) fn switches(topology: &Topology) -> impl Iterator<Item = (NodeIndex, &Node)> {
    topology.iter().rev().filter(|(_, node)| node.is_switch())
}

/// The ports of a node but port 0, with their places.
pub(super) fn ports_of<'a>(
    topology: &'a Topology,
    node: &'a Node,
) -> impl Iterator<Item = (PortIndex, &'a Port)> {
    (node.first_port..)
        .map(PortIndex)
        .zip(topology.ports_of(node))
        .filter(|(_, port)| port.number > 0)
}

/// Whether the GUID is one of Xsigo's.
pub(super) const fn is_xsigo(guid: Guid) -> bool {
    guid.get() & 0xffff_ff00_0000_0000 == 0x0013_9700_0000_0000
}

/// Whether the GUID is that of an Xsigo host adapter.
pub(super) const fn is_xsigo_hca(guid: Guid) -> bool {
    guid.get() >> 32 == 0x0013_9702
}

/// Whether the GUID is that of an Xsigo target adapter.
pub(super) const fn is_xsigo_tca(guid: Guid) -> bool {
    guid.get() >> 32 == 0x0013_9703
}

/// What the nodes of a box share.
fn chassis_guid(topology: &Topology, node: &Node) -> Guid {
    // Byte 4 is the slot.
    const NO_SLOT: u64 = 0xffff_ffff_00ff_ffff;
    let guid = node.info.system_image_guid;
    let vendor = node.info.vendor_id.get();
    if matches!(vendor, TOPSPIN | SILVERSTORM) {
        return Guid::new(guid.get() & NO_SLOT);
    }
    if vendor != XSIGO && !is_xsigo(guid) {
        return guid;
    }
    if guid.get() >> 32 == 0x0013_9701 {
        return Guid::new(guid.get() & NO_SLOT);
    }
    if !is_xsigo_hca(guid) && !is_xsigo_tca(guid) {
        return guid;
    }
    // An adapter belongs to the box of the leaf that it is plugged into.
    let Some(port) = topology.port_of(node, 1) else {
        return Guid::ZERO;
    };
    match topology.peer_of(port) {
        Some((far, _)) if far.info.system_image_guid.get() >> 24 == 0x00_1397_0102 => {
            Guid::new(far.info.system_image_guid.get() & NO_SLOT)
        }
        _ => guid,
    }
}

/// Whether a node is a channel adapter.
pub(super) fn is_adapter(node: &Node) -> bool {
    node.kind() == NodeType::CA
}
