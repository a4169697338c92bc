//! `ib-sm verify`.

use std::path::{Path, PathBuf};

use clap::Args;
use rdma_cli::{Context, Exit, Failure, read_file};

use super::super::{fabric, render};
use super::route::{Looks, read_tables};
use crate::routing::dump;
use crate::routing::quality::verify;
use crate::routing::report::{RoutingReport, UnfitReport};

/// Judges forwarding tables: who is reached, in how many hops, with what load, and credit loops
///
/// Takes the files of OpenSM, ibdiagnet and dump_fts. Service levels of paths are in none of them:
/// unless they are given, all is taken to be on one virtual lane. Ends with 1 where a port is not
/// reached or there is a credit loop.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The fabric: an opensm-subnet.lst, a net file of ibsim, an output of ibnetdiscover, or a
    /// generator; with the LIDs that the tables are about
    #[arg(value_name = "TOPOLOGY")]
    topology: String,
    /// The tables: opensm.fdbs, opensm-lfts.dump, ibdiagnet.fdbs, or an output of dump_fts
    #[arg(long, short, value_name = "FILE")]
    tables: PathBuf,
    /// The service levels of paths: source GUID, destination LID, level (ibdmchk's -c)
    #[arg(long, value_name = "FILE", requires = "slvl")]
    path_sl: Option<PathBuf>,
    /// The lanes that switches map service levels to (ibdmchk's -d)
    #[arg(long, value_name = "FILE", requires = "path_sl")]
    slvl: Option<PathBuf>,
    #[command(flatten)]
    looks: Looks,
}

impl Verify {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let fabric = fabric::load(ctx, &self.topology)?;
        let (mut tables, unfit) = read_tables(&self.tables)?.tables(&fabric);
        if let (Some(levels), Some(lanes)) = (&self.path_sl, &self.slvl) {
            let bad = |path: &Path, error: dump::DumpError| {
                Failure::new(
                    Exit::Input,
                    "lanes-file",
                    format!("{}: {error}", path.display()),
                )
            };
            let text = |path: &Path| -> Result<String, Failure> {
                let bytes = read_file(path, fabric::MAX_FILE)?;
                Ok(String::from_utf8_lossy(&bytes).into_owned())
            };
            tables.sl =
                dump::read_path_sl(&fabric, &text(levels)?).map_err(|error| bad(levels, error))?;
            tables.sl2vl =
                dump::read_slvl(&fabric, &text(lanes)?).map_err(|error| bad(lanes, error))?;
            let used = tables.sl.levels();
            (tables.account.sls, tables.account.vls) = (used, tables.sl2vl.lanes(used));
        }
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
