//! The command line of `mlx-fw`.

mod cmd;
mod explain;
mod render;
mod source;

pub use render::flint;

use rdma_cli::{Context, Exit, Failure, Global, Report, Schema, Tool};

use crate::report::{ChecksumReport, ExtractReport, ListReport, QueryReport, VerifyReport};

/// Firmware of ConnectX, BlueField, Spectrum and Quantum, without a device.
#[derive(Debug, clap::Parser)]
#[command(
    name = "mlx-fw",
    version,
    about = "Firmware of ConnectX, BlueField, Spectrum and Quantum: query, verify, list, extract",
    after_help = "Examples:\n  \
        mlx-fw query fw.bin --full\n  \
        mlx-fw verify fw.bin\n  \
        mlx-fw list mlxsw_spectrum2-29.2014.4012.mfa2\n  \
        mlx-fw extract mlxsw_spectrum2-29.2014.4012.mfa2 --psid MT_0000000217\n\n\
        FS3 and FS4 images and MFA2 archives are read; no device is needed or touched."
)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    cmd: Cmd,
}

#[derive(Debug, clap::Subcommand)]
enum Cmd {
    /// Say what an image is: version, board, GUIDs, protection
    Query(cmd::query::Cmd),
    /// Check every part of an image against its CRC
    Verify(cmd::verify::Cmd),
    /// List what is in an archive
    List(cmd::list::Cmd),
    /// Take an image out of an archive
    Extract(cmd::extract::Cmd),
    /// Print the MD5 sum of an image without its device data
    Checksum(cmd::checksum::Cmd),
}

/// Whose text is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Compat {
    /// That of mstflint 4.36, with its exit code
    Flint,
}

impl Tool for Cli {
    fn global(&self) -> &Global {
        &self.global
    }

    fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        match self.cmd {
            Cmd::Query(cmd) => cmd.run(ctx),
            Cmd::Verify(cmd) => cmd.run(ctx),
            Cmd::List(cmd) => cmd.run(ctx),
            Cmd::Extract(cmd) => cmd.run(ctx),
            Cmd::Checksum(cmd) => cmd.run(ctx),
        }
    }

    fn schemas() -> Vec<Schema> {
        vec![
            Schema::of::<QueryReport>(),
            Schema::of::<VerifyReport>(),
            Schema::of::<ListReport>(),
            Schema::of::<ExtractReport>(),
            Schema::of::<ChecksumReport>(),
        ]
    }
}

impl Report for QueryReport {
    const SCHEMA: &'static str = "mlx-fw/query/1";
}

impl Report for VerifyReport {
    const SCHEMA: &'static str = "mlx-fw/verify/1";
}

impl Report for ListReport {
    const SCHEMA: &'static str = "mlx-fw/list/1";
}

impl Report for ExtractReport {
    const SCHEMA: &'static str = "mlx-fw/extract/1";
}

impl Report for ChecksumReport {
    const SCHEMA: &'static str = "mlx-fw/checksum/1";
}
