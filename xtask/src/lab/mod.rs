//! The labs: real peers, unmodified, without hardware.

/// Which lab to run.
#[derive(clap::Args)]
pub struct Args {}

/// Runs a lab.
pub fn run(_args: Args) -> anyhow::Result<()> {
    Ok(())
}
