//! What can be wrong with a fabric.

use std::fmt;

use ib_mad::header::AttributeId;
use ib_mad::id::Guid;
use ib_mad::smp::DrPath;

/// Something that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What.
    pub kind: WarningKind,
    /// The node that it is about.
    pub node: Guid,
    /// Its name, as far as it is known.
    pub name: String,
    /// The way to it.
    pub path: DrPath,
    /// The port of it.
    pub port: Option<u8>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WarningKind {
    /// The link is up, and nobody answers behind it.
    NobodyBehind {
        /// How often was asked.
        attempts: u8,
    },
    /// A node that answers did not answer this.
    NoAnswer {
        /// What was asked for.
        attribute: AttributeId,
        /// How often was asked.
        attempts: u8,
    },
    /// A node answered with an error.
    Refused {
        /// What was asked for.
        attribute: AttributeId,
        /// The MAD status.
        status: u16,
    },
    /// A node refuses to tell of ports that it says it has.
    PortsRefused {
        /// How many it says it has.
        claimed: u8,
        /// How many of them it does not tell of; the warning's port is the first.
        count: u16,
        /// The MAD status.
        status: u16,
    },
    /// A request could not be sent.
    NotSent {
        /// What was asked for.
        attribute: AttributeId,
        /// The system's error number.
        error: u32,
    },
    /// A node stopped answering and was left alone.
    NodeSilent {
        /// How many requests to it were not made any more.
        skipped: u32,
    },
    /// The whole fabric stopped answering; the walk ended there.
    FabricSilent {
        /// How many requests in a row had no answer.
        failures: u32,
    },
    /// A node says that the question came in by a port that it does not have.
    PortOutOfRange {
        /// The port it says.
        claimed: u8,
        /// How many it has.
        ports: u8,
    },
    /// Two nodes have the same GUID.
    DuplicateGuid {
        /// Where the other was found.
        other: DrPath,
    },
    /// A node has no GUID. It is kept, and nothing behind it is looked at.
    ZeroGuid,
    /// A node is neither a channel adapter, a switch nor a router.
    UnknownType {
        /// What it says it is.
        value: u8,
    },
    /// Two cables seem to end in the same port: two nodes have the same GUID, or the cabling
    /// changed during the walk.
    PortTakenTwice {
        /// The node behind the port.
        behind: Guid,
        /// Its port, which is also
        behind_port: u8,
        /// the end of a cable from this node
        other: Guid,
        /// and this port.
        other_port: u8,
    },
    /// One end of a cable says that the link is up, the other that it is not.
    OneSided,
    /// Nodes may follow, but the route to them would have more than 63 hops.
    TooManyHops,
    /// More nodes than are kept.
    TooManyNodes {
        /// How many are kept.
        limit: u32,
    },
}

impl WarningKind {
    /// A name that stays, for machines.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NobodyBehind { .. } => "nobody-behind",
            Self::NoAnswer { .. } => "no-answer",
            Self::Refused { .. } => "refused",
            Self::PortsRefused { .. } => "ports-refused",
            Self::NotSent { .. } => "not-sent",
            Self::NodeSilent { .. } => "node-silent",
            Self::FabricSilent { .. } => "fabric-silent",
            Self::PortOutOfRange { .. } => "port-out-of-range",
            Self::DuplicateGuid { .. } => "duplicate-guid",
            Self::ZeroGuid => "zero-guid",
            Self::UnknownType { .. } => "unknown-type",
            Self::PortTakenTwice { .. } => "port-taken-twice",
            Self::OneSided => "one-sided",
            Self::TooManyHops => "too-many-hops",
            Self::TooManyNodes { .. } => "too-many-nodes",
        }
    }
}

impl fmt::Display for WarningKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NobodyBehind { attempts } => write!(
                f,
                "the link is up, but nobody answers behind it (asked {attempts} times)"
            ),
            Self::NoAnswer {
                attribute,
                attempts,
            } => write!(f, "no answer to {attribute} (asked {attempts} times)"),
            Self::Refused { attribute, status } => {
                write!(f, "{attribute} was refused with status {status:#06x}")
            }
            Self::PortsRefused {
                claimed,
                count,
                status,
            } => write!(
                f,
                "it says that it has {claimed} ports, but does not tell of {count} of them, from \
                 this one on (status {status:#06x})"
            ),
            Self::NotSent { attribute, error } => {
                write!(
                    f,
                    "the request for {attribute} could not be sent (error {error})"
                )
            }
            Self::NodeSilent { skipped } => write!(
                f,
                "it stopped answering and was left alone; {skipped} requests were not made"
            ),
            Self::FabricSilent { failures } => write!(
                f,
                "the fabric stopped answering: {failures} requests in a row had no answer, and \
                 what is here is not all"
            ),
            Self::PortOutOfRange { claimed, ports } => write!(
                f,
                "behind it a node of {ports} ports says that it was reached by its port {claimed}"
            ),
            Self::DuplicateGuid { other } => {
                write!(f, "another node, at {other}, has the same GUID")
            }
            Self::ZeroGuid => f.write_str("it has no GUID; nothing behind it was looked at"),
            Self::UnknownType { value } => write!(f, "it is of the unknown type {value}"),
            Self::PortTakenTwice {
                behind,
                behind_port,
                other,
                other_port,
            } => write!(
                f,
                "its cable seems to end in port {behind_port} of {behind}, where the one from \
                 port {other_port} of {other} ends: two nodes have that GUID, or the cabling \
                 changed meanwhile"
            ),
            Self::OneSided => f.write_str("its cable is up at one end and not at the other"),
            Self::TooManyHops => f.write_str("what is behind it is more than 63 hops away"),
            Self::TooManyNodes { limit } => {
                write!(
                    f,
                    "more than {limit} nodes; what is behind it was not looked at"
                )
            }
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.node)?;
        if !self.name.is_empty() {
            write!(f, " \"{}\"", self.name)?;
        }
        if let Some(port) = self.port {
            write!(f, " port {port}")?;
        }
        write!(f, " (path {}): {}", self.path, self.kind)
    }
}
