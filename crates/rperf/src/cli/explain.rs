//! Exit codes and hints for errors.

use rdma_cli::{Exit, Explain};

use crate::{Error, peer};

impl Explain for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Verbs(error) => error.exit(),
            Self::Peer(peer::Error::Io { .. }) | Self::Io { .. } => Exit::Device,
            Self::Peer(peer::Error::Closed { .. }) | Self::Left { .. } => Exit::Device,
            Self::Peer(_) => Exit::Refused,
            Self::Completion { .. } | Self::Silent { .. } => Exit::Device,
            Self::Spec { .. } => Exit::Usage,
            Self::Plans { .. } => Exit::Refused,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Verbs(error) => error.code(),
            Self::Peer(peer::Error::Closed { .. }) => "closed",
            Self::Peer(peer::Error::Stranger { .. }) => "stranger",
            Self::Peer(peer::Error::Old { .. }) => "old",
            Self::Peer(peer::Error::Malformed { .. }) => "malformed",
            Self::Peer(_) => "peer",
            Self::Io { .. } => "io",
            Self::Completion { .. } => "completion",
            Self::Left { .. } => "left",
            Self::Silent { .. } => "silent",
            Self::Spec { .. } => "spec",
            Self::Plans { .. } => "plans",
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Verbs(error) => return error.hint(),
            Self::Peer(peer::Error::Closed { .. } | peer::Error::Malformed { .. }) => {
                "both sides need the same test with the same options, also -x: who uses a GID says it in \
                 another form"
            }
            Self::Peer(peer::Error::Stranger { .. }) => {
                "is that port perftest's, or another program's? Both sides take -p"
            }
            Self::Peer(peer::Error::Io { .. }) => {
                "does the other side run the same test, with the same options?"
            }
            Self::Peer(peer::Error::Old { .. }) => "update perftest on the other side",
            Self::Peer(peer::Error::Long { .. }) => "is the other side of the same version?",
            Self::Io { error, .. } if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                "start the server first: the same command without a host"
            }
            Self::Io { error, .. } if error.kind() == std::io::ErrorKind::AddrInUse => {
                "another server waits there; take another port with -p, on both sides"
            }
            Self::Completion { .. } => {
                "the other side may be gone; between hosts, do packets to UDP port 4791 pass, and is the MTU \
                 not too large (-m)?"
            }
            Self::Left { .. } => "look at what the other side says",
            Self::Plans { .. } => "give both sides the same options",
            Self::Silent { .. } => "do both sides run the same test, with the same -n or -D?",
            Self::Io { .. } | Self::Spec { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
