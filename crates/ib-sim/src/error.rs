//! What can go wrong.

use crate::topo::SpecError;
use crate::topo::file::FileError;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A net file or dump does not describe a fabric.
    #[error(transparent)]
    File(#[from] FileError),
    /// A topology's word description is not understood.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A topology contradicts itself.
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

/// Why a node or a cable cannot be added to a topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// The id is empty, longer than 64 bytes or has a reserved character.
    #[error("{id:?} is not a node id: 1 to 64 bytes without quotes, '#' and '@'")]
    Id {
        /// The id.
        id: String,
    },
    /// Two nodes with one id.
    #[error("there are two nodes with the id {id:?}")]
    DuplicateId {
        /// The id.
        id: String,
        /// Index of the first.
        index: usize,
    },
    /// Two nodes with one GUID.
    #[error("nodes {other:?} and {id:?} have the same GUID {guid:#018x}")]
    DuplicateGuid {
        /// The GUID.
        guid: u64,
        /// The node that came second.
        id: String,
        /// The node that came first.
        other: String,
    },
    /// Too many nodes for one subnet.
    #[error("more than {limit} nodes")]
    TooManyNodes {
        /// How many there may be.
        limit: usize,
    },
    /// Too many ports to simulate.
    #[error("{ports} ports are more than the {limit} that can be simulated")]
    TooManyPorts {
        /// How many there are.
        ports: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A node index out of range.
    #[error("there is no node number {index}")]
    NoNode {
        /// The index.
        index: usize,
    },
    /// No node of this name.
    #[error("there is no node {name:?}")]
    NoNodeNamed {
        /// Id or description.
        name: String,
    },
    /// A port number beyond the node's ports.
    #[error("{id:?} has no port {port} to plug a cable into, only 1 to {count}")]
    NoPort {
        /// The node.
        id: String,
        /// The port number.
        port: u8,
        /// How many ports it has.
        count: u8,
    },
    /// Two cables in one port.
    #[error("port {port} of {id:?} has two cables, to {first} and to {second}")]
    PortTaken {
        /// The node.
        id: String,
        /// The port.
        port: u8,
        /// Where the first cable leads.
        first: String,
        /// Where the second leads.
        second: String,
    },
    /// The enabled masks of two ports exclude each other.
    #[error("ports {a} and {b} have no enabled width and speed in common")]
    NoCommonRate {
        /// One end.
        a: String,
        /// The other.
        b: String,
    },
    /// More ports than unicast LIDs.
    #[error("the fabric needs more than the 49151 unicast LIDs")]
    NoMoreLids,
}
