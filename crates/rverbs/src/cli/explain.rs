//! Exit codes and hints for errors.

use rdma_cli::{Exit, Explain};

use crate::Error;

impl Explain for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::Library(_) | Self::NoDevice { .. } => Exit::Missing,
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
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Library(_) | Self::NoDevice { .. } => Some(
                "`rverbs devices` lists what there is, `rverbs explain` says why something is not"
                    .into(),
            ),
            Self::Verb { .. } => None,
        }
    }
}
