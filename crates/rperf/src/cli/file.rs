//! Results files of the command line.

use std::path::Path;

use rdma_cli::{Exit, Explain, Failure, read_file};

use crate::result::{ReadError, Results};

/// The largest results file that is read.
const MAX_FILE: u64 = 256 << 20;

impl Explain for ReadError {
    fn exit(&self) -> Exit {
        Exit::Input
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Field { .. } => "results",
            Self::Schema { .. } => "schema",
        }
    }

    fn hint(&self) -> Option<String> {
        Some("a results file is what a measuring command prints with --json".into())
    }
}

/// Reads a results file; `-` is standard input.
pub(in crate::cli) fn read(path: &Path) -> Result<Results, Failure> {
    let bytes = read_file(path, MAX_FILE)?;
    Results::read(&bytes).map_err(|error| {
        Failure::from(error).with_context(format!("cannot read {}", path.display()))
    })
}
