//! Where what the libraries log goes.

use std::fs::File;
use std::sync::Mutex;

use tracing_subscriber::filter::LevelFilter;

use crate::{Failure, Global};

/// Installs the subscriber: warnings to stderr, more with `-v`, everything to `--log FILE`.
pub(crate) fn install(global: &Global) -> Result<(), Failure> {
    let level = match (global.quiet, global.verbose) {
        (true, _) => LevelFilter::ERROR,
        (_, 0) => LevelFilter::WARN,
        (_, 1) => LevelFilter::INFO,
        (_, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // A subscriber that is installed already (a test's) stays: what it is told is the same.
    let builder = tracing_subscriber::fmt().with_target(false);
    if let Some(path) = &global.log {
        let file = File::create(path).map_err(|error| {
            Failure::from(error).with_context(format!("cannot write {}", path.display()))
        })?;
        let _ = builder
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(Mutex::new(file))
            .try_init();
    } else {
        let _ = builder
            .without_time()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(std::io::stderr)
            .try_init();
    }
    Ok(())
}
