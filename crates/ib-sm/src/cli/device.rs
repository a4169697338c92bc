//! The flags that choose a port.

use clap::Args;
use ib_mad::MadPort;
use rdma_cli::{Context, Failure};
use rdma_host::{Selector, SysRoot};

/// Which port a command talks through.
#[derive(Debug, Args)]
pub(super) struct Device {
    /// The port to talk through: umad0, mlx5_0, mlx5_0:1, ibsim:NAME[/NODE] or
    /// ibsim:udp:HOST:PORT[/NODE]; the first port that is up where none is given
    #[arg(long, short = 'd', value_name = "PORT", env = "IB_DEVICE")]
    device: Option<Selector>,
    #[cfg(feature = "sim")]
    #[command(flatten)]
    sim: simulated::Sim,
}

/// A port, and what it is called in a report.
pub(super) struct Opened {
    pub(super) port: Box<dyn MadPort>,
    pub(super) label: String,
}

impl Device {
    /// Opens the port.
    pub(super) fn open(&self, ctx: &Context) -> Result<Opened, Failure> {
        #[cfg(feature = "sim")]
        if let Some(port) = self.sim.open(ctx)? {
            let label = format!("sim:{}", port.local().device);
            return Ok(Opened { port, label });
        }
        #[cfg(not(feature = "sim"))]
        let _ = ctx;
        let selector = self.device.as_ref().unwrap_or(&Selector::Any);
        let port = rdma_host::open(&SysRoot::default(), selector)
            .map_err(|error| Failure::from(error).with_context(format!("opening {selector}")))?;
        let label = port.local().device.clone();
        Ok(Opened { port, label })
    }
}

#[cfg(feature = "sim")]
pub(super) use simulated::topology;

#[cfg(feature = "sim")]
pub(super) mod simulated {
    use std::path::Path;

    use clap::Args;
    use ib_mad::MadPort;
    use ib_sim::topo::file::{self, FileError};
    use ib_sim::topo::{Spec, Topology};
    use ib_sim::{Config, Fabric, SharedFabric};
    use rdma_cli::{Context, Exit, Failure, read_file};

    /// The longest net file.
    const MAX_FILE: u64 = 256 << 20;

    /// How many of a file's warnings are said.
    const MAX_WARNINGS: usize = 10;

    /// A simulated fabric instead of a device.
    #[derive(Debug, Args)]
    pub(super) struct Sim {
        /// A simulated fabric instead of a device: a net file of ibsim, an output of ibnetdiscover
        /// (with or without -p), or a generator such as fat-tree:648, torus:4x4x4, dragonfly:p=4
        #[arg(long, value_name = "TOPOLOGY", conflicts_with = "device")]
        sim: Option<String>,
        /// With --sim: the node to sit on, by its id or name; the first adapter where none is given
        #[arg(long, value_name = "NODE", requires = "sim")]
        sim_node: Option<String>,
    }

    impl Sim {
        pub(super) fn open(&self, ctx: &Context) -> Result<Option<Box<dyn MadPort>>, Failure> {
            let Some(text) = &self.sim else {
                return Ok(None);
            };
            let topology = topology(ctx, text)?;
            let bad = |error: &dyn std::error::Error| {
                Failure::new(Exit::Input, "sim", format!("{text}: {error}"))
            };
            let fabric = Fabric::new(topology, Config::default()).map_err(|error| bad(&error))?;
            let fabric = SharedFabric::new(fabric);
            let port = match &self.sim_node {
                None => fabric.attach_first().map_err(|error| bad(&error))?,
                Some(node) => fabric.attach(node).map_err(|error| {
                    Failure::new(Exit::Missing, "sim-node", format!("{text}: {error}"))
                })?,
            };
            Ok(Some(Box::new(port)))
        }
    }

    pub(in crate::cli) fn topology(ctx: &Context, text: &str) -> Result<Topology, Failure> {
        let path = Path::new(text);
        if Spec::is_named(text) && !path.exists() {
            let spec: Spec = text.parse().map_err(|error: ib_sim::topo::SpecError| {
                Failure::new(Exit::Usage, "sim-spec", error.to_string())
            })?;
            return spec.build().map_err(|error| {
                Failure::new(Exit::Usage, "sim-spec", format!("{text}: {error}"))
            });
        }
        let bytes = read_file(path, MAX_FILE)?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let mut include = |name: &str| read_file(&folder.join(name), MAX_FILE).ok();
        let parsed = file::read_with(text, &bytes, &file::Options::new(), &mut include)
            .map_err(|error| explain(&error))?;
        for warning in parsed.warnings.iter().take(MAX_WARNINGS) {
            ctx.warn(warning);
        }
        if let more @ 1.. = parsed.warning_count.saturating_sub(MAX_WARNINGS) {
            ctx.warn(format_args!("{text}: {more} more of these"));
        }
        Ok(parsed.topology)
    }

    fn explain(error: &FileError) -> Failure {
        let failure = Failure::new(Exit::Input, "net-file", error.to_string());
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
