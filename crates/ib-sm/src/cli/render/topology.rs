//! The text of `ib-diag topology`.

use std::fmt::{self, Write as _};

use rdma_cli::{Table, Text};

use crate::diag::report::{EndReport, NodeReport, TopologyReport};

pub(crate) fn write(report: &TopologyReport, out: &mut Text<'_>) -> fmt::Result {
    let local = &report.local;
    let summary = &report.summary;
    out.field(
        "Seen from",
        format_args!(
            "{} port {} ({} {:?})",
            local.device, local.port, local.guid, local.name
        ),
    )?;
    out.field("Switches", summary.switches)?;
    out.field("Adapters", summary.adapters)?;
    if summary.routers > 0 {
        out.field("Routers", summary.routers)?;
    }
    if summary.others > 0 {
        out.field("Unknown nodes", summary.others)?;
    }
    out.field("Links", summary.links)?;
    out.field("Farthest node", format_args!("{} hops", summary.max_hops))?;
    out.field(
        "Requests",
        format_args!(
            "{} ({} repeated, {} without an answer)",
            summary.requests, summary.retries, summary.unanswered
        ),
    )?;
    if !report.complete {
        out.field("Complete", "no: the fabric stopped answering")?;
    }

    for (heading, kinds) in [
        ("Switches", &["switch"][..]),
        ("Adapters", &["adapter"]),
        ("Other nodes", &["router", "unknown"]),
    ] {
        let nodes: Vec<&NodeReport> = report
            .nodes
            .iter()
            .filter(|node| kinds.contains(&node.kind))
            .collect();
        if !nodes.is_empty() {
            out.heading(heading)?;
            out.table(&nodes_table(&nodes))?;
        }
    }
    if !report.links.is_empty() {
        out.heading("Links")?;
        out.table(&links_table(report))?;
    }
    if !report.warnings.is_empty() {
        out.heading("Warnings")?;
        for warning in &report.warnings {
            write!(out, "{}", warning.guid)?;
            if let Some(name) = &warning.name {
                write!(out, " {name:?}")?;
            }
            if let Some(port) = warning.port {
                write!(out, " port {port}")?;
            }
            writeln!(out, " (path {}): {}", warning.path, warning.text)?;
        }
    }
    Ok(())
}

fn dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

fn nodes_table(nodes: &[&NodeReport]) -> Table {
    let mut table = Table::new(["GUID", "LID", "Up", "Ports", "Name", "Path"])
        .right(1)
        .right(2)
        .right(3);
    for node in nodes {
        table.row([
            node.guid.clone(),
            dash(node.lid),
            node.ports_up.to_string(),
            node.ports.to_string(),
            dash(node.name.as_ref()),
            node.path.clone(),
        ]);
    }
    table
}

fn links_table(report: &TopologyReport) -> Table {
    let mut table = Table::new(["From", "Port", "To", "Port", "Rate", "State"])
        .right(1)
        .right(3);
    for link in &report.links {
        let end = |end: &EndReport| end.name.clone().unwrap_or_else(|| end.guid.clone());
        let rate = match (&link.width, &link.speed) {
            (Some(width), Some(speed)) => format!("{width} {speed}"),
            _ => "-".to_owned(),
        };
        let state = match (&link.a.state, &link.b.state) {
            (Some(a), Some(b)) if a == b => a.clone(),
            (a, b) => format!("{}/{}", dash(a.as_ref()), dash(b.as_ref())),
        };
        table.row([
            end(&link.a),
            link.a.port.to_string(),
            end(&link.b),
            link.b.port.to_string(),
            rate,
            state,
        ]);
    }
    table
}
