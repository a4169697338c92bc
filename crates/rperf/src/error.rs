//! Why something was not measured.

use std::io;

use rverbs::wc::WcError;

use crate::peer;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Verbs said no.
    #[error(transparent)]
    Verbs(#[from] rverbs::Error),
    /// The two sides do not come together.
    #[error(transparent)]
    Peer(#[from] peer::Error),
    /// The operating system said no.
    #[error("{doing} failed")]
    Io {
        /// What was being done.
        doing: String,
        /// What it said.
        #[source]
        error: io::Error,
    },
    /// A request ended badly.
    #[error("a request of queue pair {qpn:#08x} failed, after {done} that did not")]
    Completion {
        /// The queue pair.
        qpn: u32,
        /// How many requests had ended well.
        done: u64,
        /// The completion.
        #[source]
        error: WcError,
    },
    /// The peer ended the conversation during the measurement.
    #[error("the peer left during the measurement, after {done} requests")]
    Left {
        /// How many requests had ended well.
        done: u64,
    },
    /// Nothing has come for a long time.
    #[error("nothing has arrived for {seconds} s, after {done} requests")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
        /// How many requests had ended well.
        done: u64,
    },
    /// The two sides want to measure different things.
    #[error("{field} is {own} here and {theirs} at the peer")]
    Plans {
        /// What differs.
        field: &'static str,
        /// Of this side.
        own: String,
        /// Of the other one.
        theirs: String,
    },
    /// The request makes no sense.
    #[error("{what}")]
    Spec {
        /// What does not.
        what: String,
    },
}

impl Error {
    /// What the operating system said, for `map_err`.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |error| Self::Io { doing, error }
    }
}
