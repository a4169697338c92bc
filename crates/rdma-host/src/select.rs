//! How a user says which port is meant.

use std::fmt;
use std::str::FromStr;

use ib_mad::MadPort;

use crate::SysRoot;
use crate::error::Result;
use crate::ibsim::{Endpoint, IbsimPort};
use crate::umad::{self, UmadPort};

/// Which port is meant.
///
/// | text | port |
/// |---|---|
/// | `umad0` | that MAD device |
/// | `mlx5_0`, `mlx5_0:1` | that adapter, its first port or the one that is named |
/// | `ibsim:NAME`, `ibsim:NAME/NODE` | a node of the ibsim whose `IBSIM_SOCKNAME` is NAME |
/// | `ibsim:udp:HOST:PORT`, `…/NODE` | the same, by UDP |
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Selector {
    /// The first port that is up.
    Any,
    /// A device of this host.
    Umad {
        /// `umad0` or `mlx5_0`.
        name: String,
        /// Its port.
        port: Option<u8>,
    },
    /// A node of a simulator.
    Ibsim {
        /// Where it listens.
        endpoint: Endpoint,
        /// The node's id or description; the first of the net file where none is given.
        node: Option<String>,
    },
}

/// The text does not choose a port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} names no port: {problem}")]
pub struct ParseSelectorError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl FromStr for Selector {
    type Err = ParseSelectorError;

    fn from_str(text: &str) -> Result<Self, ParseSelectorError> {
        let error = |problem| ParseSelectorError {
            text: text.to_owned(),
            problem,
        };
        if let Some(rest) = text.strip_prefix("ibsim:") {
            let (place, node) = match rest.split_once('/') {
                Some((place, node)) => (place, Some(node.to_owned())),
                None => (rest, None),
            };
            let node = node.filter(|node| !node.is_empty());
            let endpoint = match place.strip_prefix("udp:") {
                Some(place) => {
                    let (host, port) = match place.rsplit_once(':') {
                        Some((host, port)) => {
                            let port = port.parse();
                            (host, port.map_err(|_| error("its UDP port is no number"))?)
                        }
                        None => (place, Endpoint::DEFAULT_PORT),
                    };
                    if host.is_empty() {
                        return Err(error("its host is missing"));
                    }
                    Endpoint::Udp {
                        host: host.to_owned(),
                        port,
                    }
                }
                None if place.is_empty() => Endpoint::Unix(Endpoint::DEFAULT_NAME.to_owned()),
                None if place.len() > 80 => return Err(error("its name is too long")),
                None => Endpoint::Unix(place.to_owned()),
            };
            return Ok(Self::Ibsim { endpoint, node });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => {
                let port = port.parse();
                (
                    name,
                    Some(port.map_err(|_| error("its port is no number"))?),
                )
            }
            None => (text, None),
        };
        if name.is_empty() || name.contains('/') {
            return Err(error(
                "a device such as mlx5_0, umad0 or ibsim:sim is wanted",
            ));
        }
        Ok(Self::Umad {
            name: name.to_owned(),
            port,
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("the first port that is up"),
            Self::Umad { name, port: None } => f.write_str(name),
            Self::Umad {
                name,
                port: Some(port),
            } => write!(f, "{name}:{port}"),
            Self::Ibsim {
                endpoint,
                node: None,
            } => write!(f, "{endpoint}"),
            Self::Ibsim {
                endpoint,
                node: Some(node),
            } => write!(f, "{endpoint}/{node}"),
        }
    }
}

/// Opens the port that is meant, for subnet management.
///
/// # Errors
/// Whatever is in the way, see [`Error`](crate::Error).
pub fn open(root: &SysRoot, selector: &Selector) -> Result<Box<dyn MadPort>> {
    let (name, port) = match selector {
        Selector::Ibsim { endpoint, node } => {
            return Ok(Box::new(IbsimPort::open(endpoint, node.as_deref())?));
        }
        Selector::Any => (None, None),
        Selector::Umad { name, port } => (Some(name.as_str()), *port),
    };
    let device = umad::pick(&umad::list(root)?, name, port)?;
    Ok(Box::new(UmadPort::open(root, &device)?))
}
