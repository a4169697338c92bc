//! Exit codes and hints for errors.

use rdma_cli::{Exit, Explain};

use crate::Error;

impl Explain for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Library(_)
            | Self::NoDevice { .. }
            | Self::NoPreload { .. }
            | Self::NoProgram { .. } => Exit::Missing,
            Self::Unpreloadable { .. } => Exit::Input,
            Self::Refused { .. } | Self::Damaged { .. } => Exit::Refused,
            Self::Unanswered { .. } | Self::Silent { .. } | Self::Completion { .. } => Exit::Device,
            Self::Io { error, .. } => match error.kind() {
                std::io::ErrorKind::PermissionDenied => Exit::Denied,
                std::io::ErrorKind::ConnectionRefused => Exit::Refused,
                _ => Exit::Device,
            },
            Self::Verb { errno, .. } => match errno.0 {
                libc::EPERM | libc::EACCES => Exit::Denied,
                libc::EINVAL => Exit::Missing,
                _ => Exit::Device,
            },
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Library(_) => "library",
            Self::NoDevice { .. } => "no-device",
            Self::Verb { .. } => "verb",
            Self::NoPreload { .. } => "no-preload",
            Self::NoProgram { .. } => "no-program",
            Self::Unpreloadable { .. } => "unpreloadable",
            Self::Refused { .. } => "refused",
            Self::Unanswered { .. } => "unanswered",
            Self::Completion { .. } => "completion",
            Self::Silent { .. } => "silent",
            Self::Damaged { .. } => "damaged",
            Self::Io { .. } => "io",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Library(_) | Self::NoDevice { .. } => Some(
                "`rverbs devices` lists what there is, `rverbs explain` says why something is not"
                    .into(),
            ),
            Self::NoPreload { looked } => Some(format!(
                "set RVERBS_PRELOAD to its path, or build it with `cargo build -p rverbs-preload`; it was looked for at {}",
                looked
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>()
                    .join(", ")
            )),
            Self::Unpreloadable { .. } => Some(
                "a program must be linked dynamically, and run with its user's own rights".into(),
            ),
            Self::Refused { .. } => Some(
                "start the server first (`rverbs ping -s`, or rping -s), with the same -p".into(),
            ),
            Self::Unanswered { .. } | Self::Silent { .. } => Some(
                "is the address right, does the other side run, and do packets to UDP port 4791 pass?"
                    .into(),
            ),
            Self::Completion { .. }
            | Self::Damaged { .. }
            | Self::Io { .. }
            | Self::Verb { .. }
            | Self::NoProgram { .. } => None,
        }
    }
}
