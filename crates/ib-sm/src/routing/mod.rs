//! Routing: from who is there and how it is cabled to forwarding tables, offline and without a
//! clock.
//!
//! - [`Fabric`]: what is routed. [`Tables`]: what comes out.
//! - [`Engine`]: a way of routing; [`engine`] finds one by its name. [`Auto`] is the default.
//! - [`mod@quality`]: what tables are worth: who reaches whom, in how many hops, with what load, and
//!   whether credits can go in a circle ([`mod@credit_loops`]). It takes tables of any origin.
//! - [`dump`]: the files in which OpenSM, ibdiagnet and we write tables down.
//!
//! Every engine is a pure function of fabric and options: the same input gives the same tables on
//! every machine and with any number of workers.

pub mod credit_loops;
pub mod dump;
pub mod quality;
pub mod report;

mod auto;
mod balance;
mod dragonfly;
mod fabric;
mod ftree;
mod general;
mod graph;
mod grid;
mod layer;
mod minhop;
mod origin;
mod tables;
mod torus;
mod tree;
mod updn;

use ib_mad::id::Guid;

pub use auto::Auto;
pub use dragonfly::Dragonfly;
pub use fabric::{
    End, EndKind, Fabric, FabricError, Link, MAX_LID, Owner, Place, Port, Switch, Target,
};
pub use ftree::Ftree;
pub use general::{Dfsssp, General, Nue};
pub use minhop::Minhop;
pub use tables::{Account, BLOCK, NO_PORT, Sl, Sl2Vl, Tables};
pub use torus::{Dor, Torus};
pub use updn::{Dnup, Updn};

/// What an engine is told beyond the fabric. The names in brackets are OpenSM's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Virtual lanes that may be used at most, beside what the links have; all where none is given.
    pub max_vls: Option<u8>,
    /// Switches on top, by node GUID (`root_guid_file`).
    pub roots: Vec<Guid>,
    /// Adapters that compute, by port or node GUID (`cn_guid_file`); all where empty.
    pub compute: Vec<Guid>,
    /// Adapters that store, by port or node GUID (`io_guid_file`).
    pub io: Vec<Guid>,
    /// The order in which destinations are dealt with, by port GUID (`guid_routing_order_file`).
    pub order: Vec<Guid>,
    /// What a hop out of a port counts (`hop_weights_file`); 1 where nothing is said.
    pub weights: Vec<(Guid, u8, u8)>,
    /// Ports of a switch in the order in which they are looked at (`port_search_ordering_file`).
    pub port_order: Vec<(Guid, Vec<u8>)>,
    /// Ports to look at first move on from destination to destination (`port_shifting`).
    pub port_shifting: bool,
    /// Equally good ports are chosen among by chance, with this seed (`scatter_ports`).
    pub scatter: Option<u32>,
    /// Worker threads; the tables do not depend on it. 0 is 1.
    pub workers: usize,
}

/// A way of routing.
pub trait Engine: Sync {
    /// What it is called, as in OpenSM where that has it.
    fn name(&self) -> &'static str;

    /// Where the idea is from.
    fn reference(&self) -> &'static str;

    /// Routes.
    ///
    /// # Errors
    /// Where the fabric is not of the engine's kind, or lacks the lanes it would take.
    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError>;
}

/// An engine cannot route a fabric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// The fabric is not of the engine's kind.
    #[error("{engine} does not fit: {why}")]
    Shape {
        /// The engine.
        engine: &'static str,
        /// What is in the way.
        why: String,
    },
    /// More lanes are wanted than there are.
    #[error("{engine} takes more than the {have} virtual lanes that there are")]
    Lanes {
        /// The engine.
        engine: &'static str,
        /// Lanes that there are.
        have: u8,
    },
}

/// The switches of these GUIDs, as far as there are such.
fn switches_of(fabric: &Fabric, guids: &[Guid]) -> Vec<u32> {
    (0_u32..)
        .zip(fabric.switches())
        .filter(|(_, it)| guids.contains(&it.guid))
        .map(|(switch, _)| switch)
        .collect()
}

/// All engines, the default one first.
pub const ENGINES: &[&dyn Engine] = &[
    &Auto, &Minhop, &Updn, &Dnup, &Ftree, &Dor, &Torus, &Dragonfly, &Dfsssp, &Nue, &General,
];

/// An engine by its name; `torus-2QoS`, as OpenSM has it, is `torus`.
#[must_use]
pub fn engine(name: &str) -> Option<&'static dyn Engine> {
    let name = if name.eq_ignore_ascii_case("torus-2qos") {
        "torus"
    } else {
        name
    };
    ENGINES.iter().copied().find(|it| it.name() == name)
}

/// Virtual lanes that may be used.
fn lanes(fabric: &Fabric, options: &Options) -> u8 {
    fabric.vls().min(options.max_vls.unwrap_or(15)).max(1)
}
