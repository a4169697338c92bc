//! `ib-sm route`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use rdma_cli::{Context, Exit, Failure, read_file, write_file};

use super::super::{fabric, render};
use crate::routing::quality::{Scope, verify};
use crate::routing::report::{CostReport, RoutingReport, UnfitReport};
use crate::routing::{ENGINES, Fabric, Options, RouteError, Tables, dump, engine};

/// Routes a fabric offline, and says how good that is
///
/// Nothing is sent anywhere. Ends with 1 where a port is not reached or there is a credit loop.
#[derive(Debug, Args)]
pub(crate) struct Route {
    /// The fabric: a net file of ibsim, an output of ibnetdiscover, an opensm-subnet.lst, or a
    /// generator such as fat-tree:648, torus:6x6x6,hosts=3, dragonfly:p=4
    #[arg(value_name = "TOPOLOGY")]
    topology: String,
    /// How: auto, minhop, updn, dnup, ftree, dor, torus, dragonfly, dfsssp, nue, general or file
    #[arg(long, short, value_name = "NAME", default_value = "auto")]
    engine: String,
    /// With --engine file: the tables, as opensm.fdbs or opensm-lfts.dump
    #[arg(long, value_name = "FILE", required_if_eq("engine", "file"))]
    tables: Option<PathBuf>,
    /// Virtual lanes that may be used at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=15))]
    vls: Option<u8>,
    #[command(flatten)]
    hints: Hints,
    #[command(flatten)]
    looks: Looks,
    /// Write the tables into this folder, in the files of OpenSM
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// With --dump: over files that are there
    #[arg(long, requires = "dump")]
    overwrite: bool,
    /// Only route, and do not look at what it is worth
    #[arg(long)]
    no_verify: bool,
    /// Say how long it took and what memory
    #[arg(long)]
    cost: bool,
    /// Worker threads; the tables do not depend on it
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
}

/// What else an engine is told.
#[derive(Debug, Args)]
struct Hints {
    /// GUIDs of the switches on top, one a line (OpenSM's root_guid_file)
    #[arg(long, value_name = "FILE", help_heading = "Hints")]
    roots: Option<PathBuf>,
    /// GUIDs of the adapters that compute (cn_guid_file)
    #[arg(long, value_name = "FILE", help_heading = "Hints")]
    compute: Option<PathBuf>,
    /// GUIDs of the adapters that store (io_guid_file)
    #[arg(long, value_name = "FILE", help_heading = "Hints")]
    io: Option<PathBuf>,
    /// Port GUIDs in the order in which minhop deals them out (guid_routing_order_file)
    #[arg(long, value_name = "FILE", help_heading = "Hints")]
    order: Option<PathBuf>,
    /// Switch GUID, port and weight of hops, for minhop (hop_weights_file)
    #[arg(long, value_name = "FILE", help_heading = "Hints")]
    weights: Option<PathBuf>,
    /// Switch GUID and its ports in the order in which minhop looks at them (port_search_ordering_file)
    #[arg(long, value_name = "FILE", help_heading = "Hints")]
    port_order: Option<PathBuf>,
    /// Look at the ports of a switch from another one on each time, for minhop
    #[arg(long, help_heading = "Hints")]
    port_shifting: bool,
    /// Choose among equal ports by chance, with this seed, for minhop (scatter_ports)
    #[arg(long, value_name = "SEED", help_heading = "Hints")]
    scatter: Option<u32>,
}

/// How closely is looked.
#[derive(Debug, Args)]
pub(crate) struct Looks {
    /// Shift permutations to try
    #[arg(long, value_name = "N", default_value_t = 200)]
    shifts: u32,
    /// Random bisections to try
    #[arg(long, value_name = "N", default_value_t = 200)]
    bisections: u32,
    /// Seed of the bisections
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// For credit loops, count what switches themselves send and are sent
    #[arg(long)]
    switches: bool,
}

impl Looks {
    pub(crate) fn scope(&self) -> Scope {
        Scope {
            shifts: self.shifts,
            bisections: self.bisections,
            seed: self.seed,
            switches: self.switches,
        }
    }
}

impl Hints {
    fn options(&self) -> Result<Options, Failure> {
        let guids = |path: &Option<PathBuf>| {
            path.as_deref()
                .map_or_else(|| Ok(Vec::new()), fabric::guids)
        };
        let mut options = Options {
            roots: guids(&self.roots)?,
            compute: guids(&self.compute)?,
            io: guids(&self.io)?,
            order: guids(&self.order)?,
            port_shifting: self.port_shifting,
            scatter: self.scatter,
            ..Options::default()
        };
        if let Some(path) = &self.weights {
            let want = "a GUID, a port and a weight";
            for (guid, numbers) in fabric::numbered(path, want)? {
                if let [port, weight] = numbers[..] {
                    options.weights.push((guid, port, weight));
                }
            }
        }
        if let Some(path) = &self.port_order {
            options.port_order = fabric::numbered(path, "a GUID and ports")?;
        }
        Ok(options)
    }
}

impl Route {
    pub(crate) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let mut options = self.hints.options()?;
        options.max_vls = self.vls;
        options.workers = usize::from(self.jobs);
        let fabric = fabric::load(ctx, &self.topology)?;
        let mut unfit = None;
        let start = Instant::now();
        let tables = if self.engine == "file" {
            let path = self.tables.as_deref().unwrap_or_else(|| Path::new(""));
            let (tables, what) = read_tables(path)?.tables(&fabric);
            unfit = UnfitReport::new(&what);
            tables
        } else {
            let Some(engine) = engine(&self.engine) else {
                let names: Vec<_> = ENGINES.iter().map(|it| it.name()).collect();
                let text = format!("there is no engine {:?}", self.engine);
                return Err(Failure::new(Exit::Usage, "engine", text)
                    .with_hint(format!("there are {} and file", names.join(", "))));
            };
            engine
                .route(&fabric, &options)
                .map_err(|error| refused(&error))?
        };
        let seconds = start.elapsed().as_secs_f64();
        let peak_mib = peak_mib();
        if let Some(folder) = &self.dump {
            write_dumps(&fabric, &tables, folder, self.overwrite)?;
        }
        let quality = (!self.no_verify).then(|| verify(&fabric, &tables, self.looks.scope()));
        let mut report = RoutingReport::new(&self.topology, &fabric, &tables, quality.as_ref());
        report.unfit = unfit;
        report.cost = self.cost.then_some(CostReport { seconds, peak_mib });
        ctx.emit(&report, render::routing::write)?;
        Ok(match quality {
            Some(quality) if !quality.is_sound() => Exit::No,
            _ => Exit::Ok,
        })
    }
}

fn refused(error: &RouteError) -> Failure {
    let code = match error {
        RouteError::Shape { .. } => "shape",
        RouteError::Lanes { .. } => "lanes",
    };
    Failure::new(Exit::No, code, error.to_string())
        .with_hint("the engine auto routes every fabric, in any number of lanes")
}

/// Reads forwarding tables.
pub(crate) fn read_tables(path: &Path) -> Result<dump::Dump, Failure> {
    let bytes = read_file(path, fabric::MAX_FILE)?;
    let text = String::from_utf8_lossy(&bytes);
    let bad = |what: String| {
        Failure::new(
            Exit::Input,
            "tables-file",
            format!("{}: {what}", path.display()),
        )
    };
    let dump = dump::read(&text).map_err(|error| bad(error.to_string()))?;
    if dump.is_empty() {
        return Err(
            bad("there are no forwarding tables in it".to_owned()).with_hint(
                "opensm.fdbs, opensm-lfts.dump, ibdiagnet.fdbs and outputs of dump_fts have such",
            ),
        );
    }
    Ok(dump)
}

fn write_dumps(
    fabric: &Fabric,
    tables: &Tables,
    folder: &Path,
    overwrite: bool,
) -> Result<(), Failure> {
    let made = std::fs::create_dir_all(folder);
    made.map_err(|error| {
        Failure::new(
            Exit::Input,
            "dump",
            format!("{}: {error}", folder.display()),
        )
    })?;
    type Writer = fn(&Fabric, &Tables, &mut dyn std::fmt::Write) -> std::fmt::Result;
    let files: [(&str, Writer); 6] = [
        ("opensm-subnet.lst", |fabric, _, out| {
            dump::write_subnet(fabric, out)
        }),
        ("opensm.fdbs", dump::write_fdbs),
        ("opensm-lfts.dump", dump::write_lfts),
        ("opensm.mcfdbs", |_, _, _| Ok(())),
        ("opensm-path-sl.txt", dump::path_sl),
        ("opensm-slvl.txt", dump::slvl),
    ];
    for (name, write) in files {
        // One level for all and one map say nothing that ibdmchk does not take for granted.
        let lanes = matches!(name, "opensm-path-sl.txt" | "opensm-slvl.txt");
        if lanes && tables.account.vls <= 1 {
            continue;
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write(fabric, tables, &mut text);
        write_file(&folder.join(name), text.as_bytes(), overwrite)?;
    }
    Ok(())
}

/// The most memory that this process has had; 0 where the kernel does not tell.
fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u32>().ok());
    f64::from(kib.unwrap_or(0)) / 1024.0
}
