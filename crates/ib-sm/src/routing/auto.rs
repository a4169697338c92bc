//! The default: recognises what the fabric is, and takes the engine that is made for it.

use super::fabric::Fabric;
use super::general::general;
use super::graph::Graph;
use super::quality::{Scope, verify};
use super::tables::Tables;
use super::torus::{Rings, run as grid};
use super::{Engine, Options, RouteError, dragonfly, ftree, lanes};

/// The engine `auto`. It does not fail.
#[derive(Debug)]
pub struct Auto;

impl Engine for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn reference(&self) -> &'static str {
        "fat trees by ftree, grids by torus, dragonflies by dragonfly, all else by general"
    }

    fn route(&self, fabric: &Fabric, options: &Options) -> Result<Tables, RouteError> {
        let graph = Graph::new(fabric);
        let mut notes = Vec::new();
        match ftree::route(fabric, &graph, options) {
            Ok(routed) if routed.valleys == 0 || has_no_loops(fabric, &routed.tables) => {
                return Ok(routed.tables);
            }
            Ok(_) => notes.push(
                "ftree: some hosts are reached only down and up again, in a circle".to_owned(),
            ),
            Err(why) => notes.push(format!("ftree: {why}")),
        }
        let rings = if lanes(fabric, options) >= 2 {
            Rings::DateLine
        } else {
            Rings::Cut
        };
        let mut others = [
            grid(fabric, &graph, options, rings, "torus"),
            dragonfly::run(fabric, &graph, options),
        ];
        for other in &mut others {
            match other {
                Ok(_) => {}
                Err(RouteError::Shape { engine, why }) => notes.push(format!("{engine}: {why}")),
                Err(error) => notes.push(error.to_string()),
            }
        }
        if let Some(tables) = others.into_iter().find_map(Result::ok) {
            return Ok(tables);
        }
        let mut tables = general(fabric, &graph, options);
        notes.append(&mut tables.account.notes);
        tables.account.notes = notes;
        Ok(tables)
    }
}

fn has_no_loops(fabric: &Fabric, tables: &Tables) -> bool {
    let scope = Scope {
        shifts: 0,
        bisections: 0,
        ..Scope::default()
    };
    verify(fabric, tables, scope).is_sound()
}
