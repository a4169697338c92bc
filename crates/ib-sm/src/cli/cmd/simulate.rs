//! `ib-sm simulate`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use ib_sim::{Config, Fabric, SharedFabric};
use rdma_cli::{Context, Exit, Failure};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::cli::device::topology;
use crate::run::serve::Serving;

/// Serves a simulated fabric to other programs, as ibsim does
///
/// Programs that know ibsim run on it, by its sockets or by its preload library (umad2sim), which
/// hands over the first 224 bytes of a MAD only. Runs until SIGINT or SIGTERM.
#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// A net file, an output of ibnetdiscover, or a generator such as fat-tree:648
    #[arg(value_name = "TOPOLOGY")]
    topology: String,
    /// The name of its sockets, `IBSIM_SOCKNAME` of the programs
    #[arg(long, value_name = "NAME", default_value = "sim")]
    name: String,
    /// End after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    duration: Option<u64>,
    /// Pull the cable at NODE[PORT] after so many seconds, such as leaf-0[20]@5; put it back with
    /// +leaf-0[20]@9
    #[arg(long, value_name = "[+]NODE[PORT]@SECONDS")]
    cable: Vec<String>,
}

impl Simulate {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let net = topology(ctx, &self.topology)?;
        let mut plan = Vec::new();
        for text in &self.cable {
            let event = cable(&net, text).ok_or_else(|| {
                Failure::new(
                    Exit::Usage,
                    "cable",
                    format!("{text:?} names no port and time"),
                )
            })?;
            plan.push(event);
        }
        plan.sort_by_key(|it| it.0);
        let config = Config {
            hop: Duration::ZERO,
            service: Duration::ZERO,
            ..Config::default()
        };
        let bad = |error: &dyn std::error::Error| {
            Failure::new(Exit::Input, "sim", format!("{}: {error}", self.topology))
        };
        let fabric = Fabric::new(net, config).map_err(|error| bad(&error))?;
        let serving = Serving::start(SharedFabric::new(fabric), &self.name).map_err(|error| {
            Failure::new(
                Exit::Device,
                "serve",
                format!("serving as {}: {error}", self.name),
            )
        })?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(|error| bad(&error))?;
        }
        ctx.print_raw(&format!("serving {} as {}\n", self.topology, self.name))?;
        let started = Instant::now();
        let limit = self.duration.map(Duration::from_secs);
        let mut plan = plan.into_iter().peekable();
        while !stop.load(Ordering::Relaxed) && limit.is_none_or(|it| started.elapsed() < it) {
            while let Some((_, end, up)) = plan.next_if(|it| started.elapsed() >= it.0) {
                serving.fabric().lock().set_link(end, up);
                let name = serving.fabric().lock().topology().name(end);
                let what = if up { "put back" } else { "pulled" };
                ctx.print_raw(&format!("{name} {what}\n"))?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Exit::Ok)
    }
}

fn cable(net: &ib_sim::topo::Topology, text: &str) -> Option<(Duration, ib_sim::topo::Peer, bool)> {
    let (text, up) = match text.strip_prefix('+') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let (port, time) = text.rsplit_once('@')?;
    let time = Duration::try_from_secs_f64(time.parse().ok()?).ok()?;
    let (node, port) = port.strip_suffix(']')?.rsplit_once('[')?;
    let end = ib_sim::topo::Peer {
        node: net.find(node)?,
        port: port.parse().ok()?,
    };
    Some((time, end, up))
}
