//! Why a fabric could not be looked at.

use std::time::Duration;

use ib_mad::PortError;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a fabric could not be looked at. What is wrong *in* a fabric is a warning in its report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The port that we sit on failed.
    #[error("the local port failed after {answers} answers")]
    Port {
        /// How many answers had come by then.
        answers: u64,
        /// What happened.
        source: PortError,
    },
    /// The local node itself does not answer.
    #[error("the local port {device} does not answer: {attempts} requests within {} ms each", timeout.as_millis())]
    LocalSilent {
        /// The port's name.
        device: String,
        /// How often it was asked.
        attempts: u8,
        /// How long each time.
        timeout: Duration,
    },
    /// The local node refuses to say who it is.
    #[error("the local port {device} refuses to tell its NodeInfo: status {status:#06x}")]
    LocalRefuses {
        /// The port's name.
        device: String,
        /// The MAD status.
        status: u16,
    },
}
