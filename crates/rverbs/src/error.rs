//! Why something did not work.

use std::path::PathBuf;

use crate::preload::Obstacle;
use crate::provider::Errno;
use crate::wc::WcError;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A C library, or a function of it, is missing.
    #[error(transparent)]
    Library(#[from] rverbs_sys::Error),
    /// No device has that name.
    #[error("no device is called {name}")]
    NoDevice {
        /// The name that was asked for.
        name: String,
    },
    /// A verb failed.
    #[error("{verb} failed")]
    Verb {
        /// The function, as C calls it.
        verb: &'static str,
        /// What it said.
        #[source]
        errno: Errno,
    },
    /// A peer refused to connect.
    #[error("{to} refused the connection: {why}")]
    Refused {
        /// The peer.
        to: String,
        /// Why.
        why: String,
    },
    /// A peer did not answer a call.
    #[error("{to} does not answer")]
    Unanswered {
        /// The peer.
        to: String,
    },
    /// A request failed.
    #[error("{doing} failed")]
    Completion {
        /// What was being done.
        doing: &'static str,
        /// The completion.
        #[source]
        error: WcError,
    },
    /// A connected peer says nothing any more.
    #[error("the peer has said nothing for {seconds} s")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
    },
    /// A peer did something else than the protocol says.
    #[error("{what}")]
    Damaged {
        /// What.
        what: String,
    },
    /// The operating system said no.
    #[error("{doing} failed")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        #[source]
        error: std::io::Error,
    },
    /// The library that is preloaded under programs is not where it should be.
    #[error("librverbs_preload.so is not found")]
    NoPreload {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// There is no such program.
    #[error("no program is called {name}")]
    NoProgram {
        /// The name that was asked for.
        name: String,
    },
    /// A program would not notice a preloaded library.
    #[error("{} cannot be run on a software device: {why}", path.display())]
    Unpreloadable {
        /// The program.
        path: PathBuf,
        /// Why not.
        why: Obstacle,
    },
}

impl Error {
    /// The failure of a verb, for `map_err`.
    pub fn verb(verb: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| Self::Verb { verb, errno }
    }

    /// What the operating system said, for `map_err`.
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::Io { doing, error }
    }

    /// The error number, where a verb gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Verb { errno, .. } => Some(errno.0),
            _ => None,
        }
    }
}
