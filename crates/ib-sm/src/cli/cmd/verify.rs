//! `ib-sm verify`.

use std::path::PathBuf;

use clap::Args;
use rdma_cli::{Context, Exit, Failure};

use super::super::{fabric, render};
use super::route::{Looks, read_tables};
use crate::routing::quality::verify;
use crate::routing::report::{RoutingReport, UnfitReport};

/// Judges forwarding tables: who is reached, in how many hops, with what load, and credit loops
///
/// Takes the files of OpenSM, ibdiagnet and dump_fts. The service levels of paths are in none of
/// them, so all is taken to be on one virtual lane. Ends with 1 where a port is not reached or
/// there is a credit loop.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The fabric: an opensm-subnet.lst, a net file of ibsim, an output of ibnetdiscover, or a
    /// generator; with the LIDs that the tables are about
    #[arg(value_name = "TOPOLOGY")]
    topology: String,
    /// The tables: opensm.fdbs, opensm-lfts.dump, ibdiagnet.fdbs, or an output of dump_fts
    #[arg(long, short, value_name = "FILE")]
    tables: PathBuf,
    #[command(flatten)]
    looks: Looks,
}

impl Verify {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let fabric = fabric::load(ctx, &self.topology)?;
        let (tables, unfit) = read_tables(&self.tables)?.tables(&fabric);
        let quality = verify(&fabric, &tables, self.looks.scope());
        let mut report = RoutingReport::new(&self.topology, &fabric, &tables, Some(&quality));
        report.unfit = UnfitReport::new(&unfit);
        ctx.emit(&report, render::routing::write)?;
        Ok(if quality.is_sound() {
            Exit::Ok
        } else {
            Exit::No
        })
    }
}
