//! The labs: real peers, unmodified, without hardware.

mod ibsim;
mod interrupt;
mod preload;
mod qemu;
mod rxe;

/// Start a peer that we did not write and run its tools, or ours, on it.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    lab: Lab,
}

#[derive(clap::Subcommand)]
enum Lab {
    Ibsim(ibsim::Args),
    Preload(preload::Args),
    Qemu(qemu::Args),
    Rxe(rxe::Args),
}

/// Runs a lab.
///
/// Ends the process itself where a command that the lab ran failed: the exit code is that command's.
pub fn run(args: Args) -> anyhow::Result<()> {
    interrupt::clean_up_on_signals()?;
    let code = match args.lab {
        Lab::Ibsim(args) => ibsim::run(&args)?,
        Lab::Preload(args) => preload::run(&args)?,
        Lab::Qemu(args) => qemu::run(&args)?,
        Lab::Rxe(args) => rxe::run(&args)?,
    };
    if code != 0 {
        // Everything that the lab started is stopped by now: the guards have been dropped.
        std::process::exit(code);
    }
    Ok(())
}
