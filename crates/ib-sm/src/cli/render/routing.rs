//! The text of `ib-sm route` and `ib-sm verify`.

use std::fmt::{self, Write};

use rdma_cli::{BAD, GOOD, Table, Text, WARN, paint, printable};

use crate::routing::report::{FlowsReport, QualityReport, RoutingReport, UnfitReport};

/// Writes it.
pub(crate) fn write(report: &RoutingReport, out: &mut Text<'_>) -> fmt::Result {
    let fabric = &report.fabric;
    out.field(
        "Fabric",
        format!(
            "{}: {} switches, {} end ports, {} cables between switches, LIDs to {}",
            printable(&fabric.source),
            fabric.switches,
            fabric.ends,
            fabric.cables,
            fabric.top_lid
        ),
    )?;
    let routing = &report.routing;
    out.field("Recognised", &routing.shape)?;
    out.field("Engine", &routing.engine)?;
    out.field(
        "Lanes",
        format!(
            "{} of {} used, {} service levels",
            routing.vls, fabric.vls, routing.sls
        ),
    )?;
    for note in &routing.notes {
        out.field("Note", note)?;
    }
    if let Some(cost) = &report.cost {
        out.field(
            "Took",
            format!("{:.3} s, {:.0} MiB at most", cost.seconds, cost.peak_mib),
        )?;
    }
    if let Some(unfit) = &report.unfit {
        misfit(unfit, out)?;
    }
    match &report.quality {
        Some(quality) => judged(quality, out),
        None => Ok(()),
    }
}

fn misfit(unfit: &UnfitReport, out: &mut Text<'_>) -> fmt::Result {
    for (what, guids) in [
        ("only in the tables", &unfit.unknown),
        ("only in the fabric", &unfit.missing),
    ] {
        if let Some(first) = guids.first() {
            let text = format!("{} switches are {what}, {first} first", guids.len());
            out.field("Does not fit", paint(WARN, text))?;
        }
    }
    Ok(())
}

fn judged(quality: &QualityReport, out: &mut Text<'_>) -> fmt::Result {
    writeln!(out)?;
    let reached = if quality.unreached == 0 {
        paint(GOOD, format!("all {} pairs", quality.pairs)).to_string()
    } else {
        paint(
            BAD,
            format!("{} of {} pairs are not", quality.unreached, quality.pairs),
        )
        .to_string()
    };
    out.field("Reached", reached)?;
    if quality.switch_unreached > 0 {
        let text = format!(
            "{} of {} are not",
            quality.switch_unreached, quality.switch_pairs
        );
        out.field("Switches reached", paint(WARN, text))?;
    }
    for lost in &quality.examples {
        let how = if lost.circle {
            "goes in a circle at"
        } else {
            "ends at"
        };
        out.field(
            "",
            format!("from {} to LID {}: {how} {}", lost.from, lost.lid, lost.at),
        )?;
    }
    out.field(
        "Hops",
        format!(
            "{:.3} on average, {} at most; {:.1}% more than the fewest",
            quality.mean_hops, quality.max_hops, quality.extra_hops_percent
        ),
    )?;
    let credits = match &quality.credit_loop {
        None => paint(GOOD, format!("none, in {} channels", quality.channels)).to_string(),
        Some(steps) => paint(
            BAD,
            format!(
                "one of {} steps; {} of {} channels are in such",
                steps.len(),
                quality.looped_channels,
                quality.channels
            ),
        )
        .to_string(),
    };
    out.field("Credit loops", credits)?;
    for step in quality.credit_loop.iter().flatten().take(20) {
        out.field(
            "",
            format!(
                "{} {} port {} VL {}",
                step.guid,
                printable(&step.name),
                step.port,
                step.vl
            ),
        )?;
    }
    writeln!(out)?;
    let load = &quality.all_to_all;
    let mut table = Table::new([
        "Traffic",
        "Busiest",
        "Mean",
        "Busiest/mean",
        "Idle",
        "Bandwidth",
    ])
    .right(1)
    .right(2)
    .right(3)
    .right(4)
    .right(5);
    table.row([
        "all to all".to_owned(),
        load.max.to_string(),
        format!("{:.1}", load.mean),
        format!("{:.3}", load.imbalance),
        load.idle.to_string(),
        String::new(),
    ]);
    let mut flows = |what: String, flows: &Option<FlowsReport>| {
        if let Some(it) = flows {
            table.row([
                format!("{} {what}", it.count),
                it.worst.to_string(),
                format!("{:.2}", it.mean_max),
                String::new(),
                String::new(),
                format!("{:.3}", it.bandwidth),
            ]);
        }
    };
    flows("shifts".to_owned(), &quality.shift);
    flows("random bisections".to_owned(), &quality.bisection);
    out.table(&table)
}
