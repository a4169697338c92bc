//! What is wrong in a file, and where.

use std::fmt;

use crate::error::TopologyError;

/// A file that does not describe a fabric.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {fault}")]
pub struct FileError {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub fault: FileFault,
}

impl FileError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        Some(match &self.fault {
            FileFault::PortBeyond { .. } | FileFault::PeerPortBeyond { .. } => {
                "check the port number, and the number of ports in the node's first line"
            }
            FileFault::PortTwice { .. } | FileFault::Topology(TopologyError::PortTaken { .. }) => {
                "a port holds one cable: change the number in one of the two lines"
            }
            FileFault::Mismatch { .. } => {
                "both ends of a cable must name each other; correct one of the two lines"
            }
            FileFault::OneSided { .. } => {
                "add the port line to the other node, or read without `strict`"
            }
            FileFault::UnknownPeer { .. } => {
                "add the node, correct the id, or read without `strict`"
            }
            FileFault::Include { .. } => {
                "put the file beside the one that includes it, or paste its lines in"
            }
            FileFault::Topology(TopologyError::DuplicateId { .. }) => {
                "every node needs its own id between the quotes"
            }
            FileFault::Topology(TopologyError::DuplicateGuid { .. }) => {
                "give each node its own line switchguid=, caguid= or rtguid="
            }
            FileFault::Topology(TopologyError::NoCommonRate { .. }) => {
                "the masks w=, s= and e= of the two ports must overlap"
            }
            FileFault::Empty => {
                "the file should be an ibsim net file or the output of ibnetdiscover"
            }
            _ => return None,
        })
    }
}

/// What is wrong in a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFault {
    /// No node in the whole file.
    Empty,
    /// Something is missing or not of its form.
    Syntax {
        /// What was expected.
        want: &'static str,
        /// The piece of the line where it should have been, shortened.
        found: String,
    },
    /// A number out of its range.
    Range {
        /// What the number is.
        what: &'static str,
        /// The number as it stands there.
        found: String,
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// A port number beyond the node's ports.
    PortBeyond {
        /// The node.
        id: String,
        /// The port.
        port: u64,
        /// How many ports it has.
        count: u8,
    },
    /// Two different lines for one port.
    PortTwice {
        /// The node.
        id: String,
        /// The port.
        port: u8,
        /// The other line.
        first: usize,
    },
    /// A cable that leads to a port beyond the other node's ports.
    PeerPortBeyond {
        /// The near end.
        near: String,
        /// The other node.
        id: String,
        /// The port.
        port: u8,
        /// How many ports it has.
        count: u8,
    },
    /// The other end names another port.
    Mismatch {
        /// The near end.
        near: String,
        /// Where its line says the cable leads.
        far: String,
        /// What the line of the other end names.
        back: String,
        /// That line.
        line: usize,
    },
    /// The other end has no line (only with `strict`).
    OneSided {
        /// The near end.
        near: String,
        /// The other end.
        far: String,
    },
    /// The other node is not in the file (only with `strict`).
    UnknownPeer {
        /// The near end.
        near: String,
        /// The id of the other node.
        id: String,
    },
    /// An alias twice.
    DuplicateAlias {
        /// The alias.
        alias: String,
    },
    /// An included file cannot be had.
    Include {
        /// Its name.
        name: String,
    },
    /// Files include each other without end.
    IncludeDepth {
        /// How deep they may.
        limit: usize,
    },
    /// A node or cable that contradicts the rest.
    Topology(TopologyError),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("no Switch, Ca or Rt line in the whole file"),
            Self::Syntax { want, found } if found.is_empty() => {
                write!(f, "{want} expected, but the line ends")
            }
            Self::Syntax { want, found } => write!(f, "{want} expected at {found:?}"),
            Self::Range {
                what,
                found,
                min,
                max,
            } => write!(f, "{what} {found:?} is not from {min} to {max}"),
            Self::PortBeyond { id, port: 0, .. } => {
                write!(f, "port 0 of {id:?}, which holds no cable")
            }
            Self::PortBeyond { id, port, count } => {
                write!(f, "port {port} of {id:?}, which has ports 1 to {count}")
            }
            Self::PortTwice { id, port, first } => write!(
                f,
                "port {port} of {id:?} was given in line {first} already, and otherwise"
            ),
            Self::PeerPortBeyond {
                near,
                id,
                port,
                count,
            } => {
                write!(
                    f,
                    "{near} leads to port {port} of {id:?}, which has ports 1 to {count}"
                )
            }
            Self::Mismatch {
                near,
                far,
                back,
                line,
            } => {
                write!(
                    f,
                    "{near} leads to {far}, which by line {line} leads to {back}"
                )
            }
            Self::OneSided { near, far } => {
                write!(f, "{near} leads to {far}, which does not lead back")
            }
            Self::UnknownPeer { near, id } => {
                write!(f, "{near} leads to {id:?}, and there is no such node")
            }
            Self::DuplicateAlias { alias } => write!(f, "the alias {alias:?} is given twice"),
            Self::Include { name } => write!(f, "cannot include {name:?}"),
            Self::IncludeDepth { limit } => {
                write!(f, "files include each other more than {limit} levels deep")
            }
            Self::Topology(error) => error.fmt(f),
        }
    }
}

/// What the reader passed over or completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What it was.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}
