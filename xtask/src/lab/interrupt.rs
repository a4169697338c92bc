//! Ctrl-C and its kin: leave nothing behind.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// On SIGINT, SIGTERM and SIGHUP: kill what the lab started, remove its folders, end with 128 + the signal's number.
///
/// What is started in between is killed by the kernel at this process's end.
pub(super) fn clean_up_on_signals() -> Result<()> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM, SIGHUP]).context("installing a signal handler")?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            rdma_lab::process::stop_all_and_exit(128 + signal);
        }
    });
    Ok(())
}
