//! Directors of Voltaire: which chip sits where, told from device ids and internal cabling.
//!
//! Facts are from `libibnetdisc/chassis.c` of rdma-core: a spine chip's port tells the slot of the
//! line board behind it, and a line chip's port that of the spine board.

use std::collections::btree_map::Entry;

use ib_mad::id::Guid;

use super::chassis::{Board, Chassis, Grouping, MAX_LINES, MAX_SPINES, ports_of, switches};
use crate::core::topology::{Node, NodeIndex, Topology};

const VENDOR: u32 = 0x8f1;

/// A kind of spine chip, by its device id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spine {
    Isr9096,
    Isr9288,
    Isr2004,
    Isr2012,
    Isr4700,
    Isr4700x2,
    Isr4200,
}

/// A kind of line chip, by its device id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Slb24,
    Slb8,
    Slb2024,
    Slb4018,
}

fn is_ours(node: &Node) -> bool {
    node.info.vendor_id.get() == VENDOR
}

const fn spine(node: &Node) -> Option<Spine> {
    Some(match node.info.device_id.get() {
        0x5a0b | 0x5a33 => Spine::Isr9096,
        0x5a08 | 0x5a32 => Spine::Isr9288,
        0x5a40 => Spine::Isr2004,
        0x5a37 => Spine::Isr2012,
        0x5a5c => Spine::Isr4700,
        0x5a5d => Spine::Isr4700x2,
        0x5a60 => Spine::Isr4200,
        _ => return None,
    })
}

const fn line(node: &Node) -> Option<Line> {
    Some(match node.info.device_id.get() {
        0x5a09 | 0x5a34 | 0x5a42 => Line::Slb24,
        0x5a0d => Line::Slb8,
        0x5a38 => Line::Slb2024,
        0x5a5b => Line::Slb4018,
        _ => return None,
    })
}

const fn is_router(node: &Node) -> bool {
    matches!(node.info.device_id.get(), 0x5a00 | 0x5a01)
}

impl Spine {
    const fn model(self) -> &'static str {
        match self {
            Self::Isr9096 => "ISR9096",
            Self::Isr9288 => "ISR9288",
            Self::Isr2004 => "ISR2004",
            Self::Isr2012 => "ISR2012",
            Self::Isr4700 | Self::Isr4700x2 => "ISR4700",
            Self::Isr4200 => "ISR4200",
        }
    }

    /// Slot and chip of the spine itself, by the line chip's port that it is seen from.
    const fn own_seat(self, port: u8) -> (u8, u8) {
        if port == 0 {
            return (0, 0);
        }
        let n = port - 1;
        match self {
            Self::Isr9096 | Self::Isr2004 if n < 12 => (n / 3 + 1, 1),
            Self::Isr9288 | Self::Isr2012 if n < 12 => (n / 3 + 1, n % 3 + 1),
            Self::Isr4700 if n < 18 => (n / 2 + 1, 1),
            Self::Isr4700x2 if n < 18 => (n / 2 + 1, 2 - n % 2),
            Self::Isr4200 if n < 4 => (1, 1),
            Self::Isr4200 if n < 6 => (0, 1),
            Self::Isr4200 if n < 18 => ((n - 6) / 4 + 2, 1),
            _ => (0, 0),
        }
    }

    /// Slot and chip of the line board behind a port of the spine.
    const fn line_seat(self, port: u8) -> (u8, u8) {
        if port == 0 {
            return (0, 0);
        }
        let n = port - 1;
        match self {
            Self::Isr9096 | Self::Isr2004 if n < 24 => (n / 6 + 1, n / 3 % 2 + 1),
            Self::Isr9288 | Self::Isr2012 if n < 24 => (n / 2 + 1, n % 2 + 1),
            Self::Isr4700 if n < 36 => (n / 2 + 1, 1),
            Self::Isr4700x2 if n < 18 => (n + 1, 1),
            Self::Isr4200 if n < 36 => (n / 4 + 1, 1),
            _ => (0, 0),
        }
    }

    /// Slot and chip of the router board behind a port of the spine with this GUID.
    const fn router_seat(self, port: u8, guid: Guid) -> Option<(u8, u8)> {
        match self {
            Self::Isr9096 | Self::Isr2004 => {
                let module = if port == 0 || port > 24 {
                    0
                } else {
                    3 - (port - 1) % 3
                };
                Some((self.line_seat(port).0, module))
            }
            Self::Isr9288 | Self::Isr2012 => {
                // A guess by the order of the GUIDs on a board.
                let module = match guid.get() % 4 {
                    3 => 1,
                    1 => 3,
                    _ => 2,
                };
                Some((self.line_seat(port).0, module))
            }
            _ => None,
        }
    }
}

/// Ports of a chip that stay within the box.
fn is_internal(node: &Node, port: u8) -> bool {
    match (spine(node), line(node)) {
        (Some(Spine::Isr4700x2), _) | (None, Some(Line::Slb4018)) => port <= 18,
        (None, Some(_)) => port <= 12,
        _ => true,
    }
}

/// Finds the seat of a switch of this vendor, and of the routers that are plugged into it.
pub(super) fn seat(grouping: &mut Grouping, topology: &Topology, index: NodeIndex, node: &Node) {
    match grouping.seats.get_mut(index.get()) {
        Some(seat) if !seat.found => seat.found = true,
        _ => return,
    }
    let cables: Vec<(u8, NodeIndex, &Node, u8)> = ports_of(topology, node)
        .filter_map(|(_, port)| {
            let (far, far_port) = topology.peer_of(port)?;
            Some((port.number, far_port.node, far, far_port.number))
        })
        .collect();
    let mut place = |index: NodeIndex, board, model: &str, (slot, chip)| {
        if let Some(seat) = grouping.seats.get_mut(index.get()) {
            seat.found = true;
            seat.board = Some((board, slot, chip));
            seat.model = Some(model.to_owned());
        }
    };
    if is_router(node) {
        for (_, _, far, far_port) in &cables {
            if let Some(kind) = spine(far)
                && let Some(at) = kind.router_seat(*far_port, far.guid())
            {
                place(index, Board::Router, kind.model(), at);
            }
        }
    } else if let Some(kind) = spine(node) {
        let mut own = false;
        for (port, far_index, far, far_port) in &cables {
            if !is_internal(node, *port) {
                continue;
            }
            if far.is_switch() {
                if !std::mem::replace(&mut own, true) {
                    place(index, Board::Spine, kind.model(), kind.own_seat(*far_port));
                }
            } else if let Some(at) = kind.router_seat(*port, node.guid()) {
                place(*far_index, Board::Router, kind.model(), at);
            }
        }
    } else if line(node).is_some()
        && let Some((_, _, far, far_port)) = cables.iter().find(|it| is_internal(node, it.0))
        && let Some(kind) = spine(far)
    {
        place(index, Board::Line, kind.model(), kind.line_seat(*far_port));
    }
    let chip = grouping
        .seats
        .get(index.get())
        .and_then(|seat| seat.board)
        .map_or(0, |(_, _, chip)| chip);
    for (at, port) in ports_of(topology, node) {
        if let Some(label) = grouping.labels.get_mut(at.get()) {
            *label = label_of(node, chip, port.number);
        }
    }
}

/// What is printed at the box beside a chip's port; 0 where nothing is.
fn label_of(node: &Node, chip: u8, port: u8) -> u8 {
    const SLB24: [[u8; 12]; 2] = [
        [6, 5, 4, 18, 17, 16, 1, 2, 3, 13, 14, 15],
        [12, 11, 10, 24, 23, 22, 7, 8, 9, 19, 20, 21],
    ];
    const SLB8: [[u8; 12]; 2] = [
        [2, 2, 2, 6, 6, 6, 1, 1, 1, 5, 5, 5],
        [4, 4, 4, 8, 8, 8, 3, 3, 3, 7, 7, 7],
    ];
    let Some(chip) = chip.checked_sub(1).filter(|&chip| chip < 2) else {
        return 0;
    };
    let row = |table: &[[u8; 12]; 2]| {
        port.checked_sub(13)
            .and_then(|at| table.get(usize::from(chip))?.get(usize::from(at)).copied())
            .unwrap_or(0)
    };
    match (spine(node), line(node), port) {
        (_, Some(Line::Slb4018), 19..=36) => port - 18,
        (Some(Spine::Isr4700x2), _, 19..=36) => (port - 19) / 3 + if chip == 0 { 7 } else { 1 },
        (_, Some(Line::Slb24), 13..=24) => row(&SLB24),
        (_, Some(Line::Slb2024), 13..=24) => {
            if chip == 0 {
                port
            } else {
                port - 12
            }
        }
        (_, Some(Line::Slb8), 13..=24) => row(&SLB8),
        _ => 0,
    }
}

/// Builds a box around each spine that has none yet.
pub(super) fn build(grouping: &mut Grouping, topology: &Topology, number: &mut u8) {
    for (index, node) in switches(topology) {
        let seat = grouping.seat(index);
        let free = seat.is_some_and(|seat| seat.found && seat.chassis.is_none());
        if !free || !is_ours(node) || spine(node).is_none() {
            continue;
        }
        *number = number.wrapping_add(1);
        let chassis = grouping.boxes.len();
        grouping.boxes.push(Chassis {
            number: *number,
            ..Chassis::default()
        });
        insert_spine(grouping, topology, index, chassis);
        // Boards are found through each other; four passes reach all.
        for _ in 0..3 {
            lines_of_spines(grouping, topology, chassis);
            spines_of_lines(grouping, topology, chassis);
        }
        // Voltaire's own manager takes the first spine's GUID less one.
        if let Some(chassis) = grouping.boxes.get_mut(chassis)
            && let Some(first) = chassis.spines.values().next()
            && let Some(node) = topology.node(*first)
        {
            chassis.guid = Guid::new(node.guid().get().wrapping_sub(1));
        }
    }
}

/// The nodes behind the internal ports of boards.
fn neighbours(topology: &Topology, boards: Vec<NodeIndex>) -> Vec<NodeIndex> {
    let nodes = boards.into_iter().filter_map(|index| topology.node(index));
    nodes
        .flat_map(|node| {
            ports_of(topology, node)
                .filter(|(_, port)| is_internal(node, port.number))
                .filter_map(|(_, port)| Some(topology.peer_of(port)?.1.node))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn lines_of_spines(grouping: &mut Grouping, topology: &Topology, chassis: usize) {
    let spines = grouping
        .boxes
        .get(chassis)
        .map(|it| it.spines.values().copied().collect());
    for index in neighbours(topology, spines.unwrap_or_default()) {
        let seat = grouping.seat(index).filter(|seat| seat.found);
        let Some(node) = topology.node(index) else {
            continue;
        };
        let Some((_, slot, chip)) = seat.and_then(|seat| seat.board) else {
            continue;
        };
        let place = if line(node) == Some(Line::Slb4018) {
            u16::from(slot)
        } else {
            (3 * u16::from(slot) + u16::from(chip)).saturating_sub(3)
        };
        insert(grouping, index, chassis, place, Board::Line);
    }
}

fn spines_of_lines(grouping: &mut Grouping, topology: &Topology, chassis: usize) {
    let lines: Vec<NodeIndex> = grouping
        .boxes
        .get(chassis)
        .map(|it| it.lines.values().copied().collect())
        .unwrap_or_default();
    let lines = lines.into_iter().filter(|&index| {
        topology
            .node(index)
            .is_some_and(|node| line(node).is_some())
    });
    for index in neighbours(topology, lines.collect()) {
        if grouping.seat(index).is_some_and(|seat| seat.found) {
            insert_spine(grouping, topology, index, chassis);
        }
    }
}

fn insert_spine(grouping: &mut Grouping, topology: &Topology, index: NodeIndex, chassis: usize) {
    let board = grouping.seat(index).and_then(|seat| seat.board);
    let (Some(node), Some((_, slot, chip))) = (topology.node(index), board) else {
        return;
    };
    let (slot, chip) = (u16::from(slot), u16::from(chip));
    let place = match spine(node) {
        Some(Spine::Isr9288 | Spine::Isr2012) => (3 * slot + chip).saturating_sub(3),
        Some(Spine::Isr4700 | Spine::Isr4700x2) => (2 * slot + chip).saturating_sub(2),
        _ => slot,
    };
    insert(grouping, index, chassis, place, Board::Spine);
}

/// Puts a board into a slot that is free.
fn insert(grouping: &mut Grouping, index: NodeIndex, chassis: usize, place: u16, board: Board) {
    let Some(target) = grouping.boxes.get_mut(chassis) else {
        return;
    };
    let (slots, most) = match board {
        Board::Spine => (&mut target.spines, MAX_SPINES),
        _ => (&mut target.lines, MAX_LINES),
    };
    let Some(place) = u8::try_from(place)
        .ok()
        .filter(|place| (1..=most).contains(place))
    else {
        return;
    };
    if let Entry::Vacant(entry) = slots.entry(place) {
        entry.insert(index);
        if let Some(seat) = grouping.seats.get_mut(index.get()) {
            seat.chassis = Some(chassis);
        }
    }
}
