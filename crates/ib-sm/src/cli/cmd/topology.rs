//! `ib-diag topology`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use rdma_cli::{Context, Exit, Failure};

use crate::cli::device::{Device, Opened};
use crate::cli::{ctime, render};
use crate::core::discovery::{Config, Event};
use crate::diag::ibnetdiscover;
use crate::diag::report::TopologyReport;
use crate::run::driver;

/// Finds every node and every cable
///
/// Asks by directed routes, so that neither LIDs nor a subnet manager are needed, and changes
/// nothing. What is wrong in the fabric is listed at the end and does not change the exit code,
/// which is 6 where the fabric stopped answering halfway.
#[derive(Debug, Args)]
pub(crate) struct Topology {
    #[command(flatten)]
    device: Device,
    /// How far from the local node to look
    #[arg(long, value_name = "HOPS", default_value_t = 63, value_parser = clap::value_parser!(u8).range(0..=63))]
    max_hops: u8,
    /// Requests in flight at once
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=4096))]
    window: u16,
    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    timeout: u32,
    /// How often a request is repeated after that
    #[arg(long, value_name = "N", default_value_t = 2)]
    retries: u8,
    /// Print what an older tool prints, for what reads that
    #[arg(long, value_name = "TOOL", conflicts_with = "json")]
    compat: Option<Compat>,
    /// With --compat: speed, width and virtual lanes as numbers, too (its -f)
    #[arg(long, requires = "compat")]
    full: bool,
    /// With --compat: by the boxes that nodes share (its -g)
    #[arg(long, requires = "compat")]
    group: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// Of infiniband-diags
    Ibnetdiscover,
}

impl Topology {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let Opened { mut port, label } = self.device.open(ctx)?;
        let config = Config {
            window: self.window,
            timeout: Duration::from_millis(self.timeout.into()),
            retries: self.retries,
            max_hops: self.max_hops,
            ..Config::default()
        };
        let progress = ctx.progress("discovering the fabric");
        let found = driver::discover(&mut *port, config, |Event::Progress { nodes, answers }| {
            progress.set(answers);
            if nodes % 64 == 0 {
                progress.note(format!("discovering the fabric: {nodes} nodes"));
            }
        })?;
        drop(progress);
        let exit = if found.complete {
            Exit::Ok
        } else {
            Exit::Device
        };
        match self.compat {
            None => {
                let report = TopologyReport::new(&label, &found);
                ctx.emit(&report, render::topology::write)?;
            }
            Some(Compat::Ibnetdiscover) => {
                let mut text = String::new();
                let options = ibnetdiscover::Options {
                    full: self.full,
                    group: self.group,
                    date: &ctime::now(),
                };
                // Writing to a string does not fail.
                let _ = ibnetdiscover::write(&found.topology, &options, &mut text);
                ctx.print_raw(&text)?;
                for warning in &found.warnings {
                    ctx.warn(warning);
                }
            }
        }
        Ok(exit)
    }
}
