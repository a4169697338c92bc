//! The flags that choose a port.

use clap::Args;
use ib_mad::MadPort;
use rdma_cli::Failure;
use rdma_host::{Selector, SysRoot};

/// Which port a command talks through.
#[derive(Debug, Args)]
pub(super) struct Device {
    /// The port to talk through: umad0, mlx5_0, mlx5_0:1, ibsim:NAME[/NODE] or
    /// ibsim:udp:HOST:PORT[/NODE]; the first port that is up where none is given
    #[arg(long, short = 'd', value_name = "PORT", env = "IB_DEVICE")]
    device: Option<Selector>,
}

impl Device {
    /// Opens the port.
    pub(super) fn open(&self) -> Result<Box<dyn MadPort>, Failure> {
        let selector = self.device.as_ref().unwrap_or(&Selector::Any);
        rdma_host::open(&SysRoot::default(), selector)
            .map_err(|error| Failure::from(error).with_context(format!("opening {selector}")))
    }
}
