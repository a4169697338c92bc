//! Exit codes and hints of this crate's errors.

use rdma_cli::{Exit, Explain};

use crate::Error;

impl Explain for Error {
    fn exit(&self) -> Exit {
        Exit::Device
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Port { .. } => "port",
            Self::LocalSilent { .. } => "local-silent",
            Self::LocalRefuses { .. } => "local-refuses",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Port { .. } | Self::LocalRefuses { .. } => None,
            Self::LocalSilent { .. } => Some(
                "the adapter's firmware does not answer; its state is shown by `ib-diag ports`, \
                 and --timeout waits longer"
                    .to_owned(),
            ),
        }
    }
}
