//! `rverbs run`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rdma_cli::{Context, Exit, Failure};

use crate::preload::{self, Launch};
use crate::provider::roce::RoceProvider;

/// A software provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Soft {
    /// Shared memory: processes of one user on one host
    Shm,
    /// RoCEv2 over UDP: other hosts, too
    Roce,
}

/// Runs a program, unmodified, on a software RDMA device
///
/// Programs that use libibverbs or librdmacm find the software device as if it were an adapter:
/// perftest, rping, ibv_devinfo, qperf and your own. No kernel module and no privilege is needed.
/// Figures that they print are those of memory copies or UDP sockets on this machine; the device's
/// name and firmware version (soft-shm, soft-roce) say so.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  rverbs run -- ib_write_bw                             the server, in one shell
  rverbs run -- ib_write_bw 127.0.0.1                   the client, in another
  rverbs run --provider roce -- rping -s                reached by rping on adapters and on Linux's rxe
  rverbs run --provider roce --address 192.0.2.1 -- ib_send_lat
  rverbs run -- ibv_devinfo -v")]
pub(in crate::cli) struct Run {
    /// Whose devices the program sees; the first one's come first
    #[arg(long, value_enum, value_delimiter = ',', default_value = "shm")]
    provider: Vec<Soft>,
    /// The first UDP port that roce tries [default: 4791, which interoperating needs]
    #[arg(long, value_name = "PORT")]
    roce_port: Option<u16>,
    /// The device of that address of this host only: what roce listens at, and sends from
    #[arg(long, value_name = "IP")]
    address: Option<IpAddr>,
    /// Let the device talk about itself on stderr, at this level
    #[arg(long, value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    device_log: Option<String>,
    /// Print the variables to set instead of running anything
    #[arg(long)]
    print_env: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present = "print_env")]
    command: Vec<OsString>,
}

impl Run {
    /// An address is one of this host's, and roce has it.
    fn check_address(&self) -> Result<(), Failure> {
        let Some(address) = self.address else {
            return Ok(());
        };
        if !self.provider.contains(&Soft::Roce) {
            let message = "--address is for roce, which --provider does not name";
            return Err(Failure::new(Exit::Usage, "address", message));
        }
        let configs = RoceProvider::default().configs();
        if configs.iter().any(|config| config.addr == address) {
            return Ok(());
        }
        let have: Vec<String> = configs
            .iter()
            .map(|config| config.addr.to_string())
            .collect();
        let message = format!("no network interface of this host has {address}");
        let hint = format!("there are {}", have.join(", "));
        Err(Failure::new(Exit::Missing, "address", message).with_hint(hint))
    }

    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        self.check_address()?;
        let launch = Launch {
            providers: self
                .provider
                .iter()
                .map(|provider| match provider {
                    Soft::Shm => "shm".to_owned(),
                    Soft::Roce => "roce".to_owned(),
                })
                .collect(),
            roce_port: self.roce_port,
            roce_address: self.address,
            log: self.device_log,
        };
        let program = self
            .command
            .first()
            .map(|name| preload::program(name))
            .transpose()?;
        let library = preload::find()?;
        let preloaded = std::env::var_os("LD_PRELOAD");
        let variables = launch.environment(&library, preloaded.as_deref());
        if self.print_env {
            for (name, value) in &variables {
                let line = format!("{}={}\n", name.display(), value.display());
                ctx.print_raw(&line)?;
            }
            return Ok(Exit::Ok);
        }
        let (Some(program), Some((name, arguments))) = (program, self.command.split_first()) else {
            return Ok(Exit::Usage);
        };
        // The program takes this one's place, so signals and its exit code are its own. It sees the
        // name that the user typed.
        let error = Command::new(&program)
            .arg0(name)
            .args(arguments)
            .envs(variables)
            .exec();
        let doing = format!(
            "running {}",
            rdma_cli::printable(&program.to_string_lossy())
        );
        Err(Failure::new(Exit::Denied, "exec", error.to_string()).with_context(doing))
    }
}
