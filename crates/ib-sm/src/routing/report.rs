//! What `ib-sm route` and `ib-sm verify` tell, as data.

use serde::Serialize;

use super::credit_loops::Step;
use super::dump::Unfit;
use super::fabric::Fabric;
use super::quality::{Flows, Load, Lost, Quality};
use super::tables::{Account, Tables};

/// How a fabric is routed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct RoutingReport {
    /// What was routed.
    pub fabric: FabricReport,
    /// How, and what it was recognised as.
    pub routing: Account,
    /// What it is worth; absent where it was not looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quality: Option<QualityReport>,
    /// What of a file of tables does not fit the fabric; absent where all does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfit: Option<UnfitReport>,
    /// What it took; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostReport>,
}

/// A fabric, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FabricReport {
    /// Where it is from.
    pub source: String,
    /// Switches.
    pub switches: usize,
    /// Ports of adapters and routers.
    pub ends: usize,
    /// Cables between switches.
    pub cables: usize,
    /// The highest LID.
    pub top_lid: u16,
    /// Data virtual lanes that all cables between switches have.
    pub vls: u8,
}

/// What routing took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CostReport {
    /// Seconds from the fabric to its tables.
    pub seconds: f64,
    /// The most memory that the process had, MiB, fabric and tables included.
    pub peak_mib: f64,
}

/// A file and a fabric that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UnfitReport {
    /// Switches that only the file has.
    pub unknown: Vec<String>,
    /// Switches that only the fabric has.
    pub missing: Vec<String>,
}

/// What tables are worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct QualityReport {
    /// Whether all end ports reach all others and there is no credit loop.
    pub sound: bool,
    /// Pairs of end ports, in each direction.
    pub pairs: u64,
    /// Those without a way.
    pub unreached: u64,
    /// Ways between end ports and switches.
    pub switch_pairs: u64,
    /// Those that there are not.
    pub switch_unreached: u64,
    /// Some of the ways that there are not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<LostReport>,
    /// Hops between switches, the mean over all pairs.
    pub mean_hops: f64,
    /// The most.
    pub max_hops: u32,
    /// Hops beyond the fewest possible, in percent of these.
    pub extra_hops_percent: f64,
    /// Pairs that make any.
    pub detours: u64,
    /// Pairs by hops, from 0.
    pub hops: Vec<u64>,
    /// Pairs by direction of a cable between switches, when all send to all.
    pub all_to_all: LoadReport,
    /// Shift permutations; absent where none was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<FlowsReport>,
    /// Random bisections; absent where none was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bisection: Option<FlowsReport>,
    /// Virtual lanes in use.
    pub vls: u8,
    /// Directions of cables, with their lanes, that carry anything.
    pub channels: usize,
    /// Those in credit loops, or between such.
    pub looped_channels: usize,
    /// A credit loop; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_loop: Option<Vec<StepReport>>,
}

/// A way that there is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LostReport {
    /// The switch where it starts.
    pub from: String,
    /// The LID that is not reached.
    pub lid: u16,
    /// The switch where it ends.
    pub at: String,
    /// Whether it never ends there, but comes by again and again.
    pub circle: bool,
}

/// A step of a credit loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct StepReport {
    /// The switch that sends.
    pub guid: String,
    /// Its name.
    pub name: String,
    /// Its port.
    pub port: u8,
    /// The lane.
    pub vl: u8,
}

/// Loads of cables.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct LoadReport {
    /// The most.
    pub max: u64,
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The most over the mean.
    pub imbalance: f64,
    /// How many carry nothing.
    pub idle: u64,
}

/// Permutations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FlowsReport {
    /// How many.
    pub count: u32,
    /// Flows over the busiest cable, the mean over permutations.
    pub mean_max: f64,
    /// Flows over the busiest cable of all.
    pub worst: u64,
    /// Which share of a cable a flow gets, the mean over flows.
    pub bandwidth: f64,
}

/// Six digits are more than mean anything, and the same on every machine.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl RoutingReport {
    /// Of tables for a fabric from a source.
    #[must_use]
    pub fn new(source: &str, fabric: &Fabric, tables: &Tables, quality: Option<&Quality>) -> Self {
        Self {
            fabric: FabricReport::new(source, fabric),
            routing: tables.account.clone(),
            quality: quality.map(|it| QualityReport::new(fabric, it)),
            unfit: None,
            cost: None,
        }
    }
}

impl FabricReport {
    fn new(source: &str, fabric: &Fabric) -> Self {
        let switches = 0_u32..;
        let ports = switches
            .zip(fabric.switches())
            .flat_map(|(it, _)| fabric.ports_of(it));
        let between = ports
            .flatten()
            .filter(|it| matches!(it.peer, super::Place::Switch { .. }));
        Self {
            source: source.to_owned(),
            switches: fabric.switches().len(),
            ends: fabric.ends().len(),
            cables: between.count() / 2,
            top_lid: fabric.top_lid(),
            vls: fabric.vls(),
        }
    }
}

impl UnfitReport {
    /// None where all fits.
    #[must_use]
    pub fn new(unfit: &Unfit) -> Option<Self> {
        let texts =
            |of: &[ib_mad::id::Guid]| of.iter().map(ToString::to_string).collect::<Vec<_>>();
        let report = Self {
            unknown: texts(&unfit.unknown),
            missing: texts(&unfit.missing),
        };
        (!report.unknown.is_empty() || !report.missing.is_empty()).then_some(report)
    }
}

impl QualityReport {
    fn new(fabric: &Fabric, quality: &Quality) -> Self {
        let guid = |switch: u32| {
            let switch = fabric.switches().get(switch as usize);
            switch.map_or_else(String::new, |it| it.guid.to_string())
        };
        let lost = |it: &Lost| LostReport {
            from: guid(it.switch),
            lid: it.lid,
            at: guid(it.at),
            circle: it.circle,
        };
        let step = |it: &Step| StepReport {
            guid: guid(it.switch),
            name: fabric
                .switches()
                .get(it.switch as usize)
                .map_or_else(String::new, |it| it.name.clone()),
            port: it.port,
            vl: it.vl,
        };
        Self {
            sound: quality.is_sound(),
            pairs: quality.pairs,
            unreached: quality.lost,
            switch_pairs: quality.switch_pairs.0,
            switch_unreached: quality.switch_pairs.1,
            examples: quality.lost_examples.iter().map(lost).collect(),
            mean_hops: rounded(quality.mean_hops),
            max_hops: quality.max_hops,
            extra_hops_percent: rounded(quality.extra_hops * 100.0),
            detours: quality.detours,
            hops: quality.histogram.clone(),
            all_to_all: LoadReport::new(quality.all_to_all),
            shift: FlowsReport::new(quality.shift),
            bisection: FlowsReport::new(quality.bisection),
            vls: quality.vls,
            channels: quality.carrying,
            looped_channels: quality.looped,
            credit_loop: quality
                .credit_loop
                .as_ref()
                .map(|steps| steps.iter().map(step).collect()),
        }
    }
}

impl LoadReport {
    fn new(load: Load) -> Self {
        Self {
            max: load.max,
            min: load.min,
            mean: rounded(load.mean),
            imbalance: rounded(load.imbalance()),
            idle: load.idle,
        }
    }
}

impl FlowsReport {
    fn new(flows: Flows) -> Option<Self> {
        (flows.count > 0).then(|| Self {
            count: flows.count,
            mean_max: rounded(flows.mean_max),
            worst: flows.worst,
            bandwidth: rounded(flows.bandwidth),
        })
    }
}
