//! `rperf compare`, for people.

use core::fmt::{self, Write as _};

use rdma_cli::{BAD, GOOD, Table, Text, WARN, paint, printable};

use crate::compare::{Basis, CompareReport, Comparison, Figure, Verdict};
use crate::report::quantity::{Change, Rate, Time};

pub(in crate::cli) fn text(report: &CompareReport, out: &mut Text<'_>) -> fmt::Result {
    let confidence = report.confidence * 100.0;
    let between = format!("{confidence}% INTERVAL");
    let header = [
        "MEASUREMENT",
        "FIGURE",
        "BEFORE",
        "AFTER",
        "CHANGE",
        &between,
        "P",
        "OF",
        "VERDICT",
    ];
    let mut table = Table::new(header).right(2).right(3).right(4).right(6);
    for one in &report.comparisons {
        table.row([
            one.spec.to_string(),
            one.figure.name().into(),
            quantity(one, one.before),
            quantity(one, one.after),
            Change(one.change).to_string(),
            interval(one),
            one.p.map_or_else(String::new, chance),
            basis(one),
            one.verdict.name().into(),
        ]);
    }
    out.table(&table)?;
    for (what, specs) in [
        ("before", &report.only_before),
        ("after", &report.only_after),
    ] {
        for spec in specs {
            writeln!(out, "only {what}: {spec}")?;
        }
    }
    if !report.differences.is_empty() {
        out.heading("\nNot as it was")?;
        let mut table = Table::new(["WHAT", "BEFORE", "AFTER"]);
        for one in &report.differences {
            table.row([
                printable(&one.what),
                printable(&one.before),
                printable(&one.after),
            ]);
        }
        out.table(&table)?;
    }
    writeln!(out)?;
    let weak = report
        .comparisons
        .iter()
        .any(|one| one.basis != Basis::Runs);
    if weak {
        writeln!(
            out,
            "With fewer than four runs on a side, what differs from run to run is not in the intervals."
        )?;
    }
    let threshold = report.threshold * 100.0;
    write!(out, "{}: ", word(report.verdict))?;
    match report.verdict {
        Verdict::Worse => writeln!(out, "a figure is worse by more than {threshold}%"),
        Verdict::Better => writeln!(
            out,
            "better by more than {threshold}%, and nothing is worse"
        ),
        Verdict::Same => writeln!(out, "nothing is worse by more than {threshold}%"),
        Verdict::Unclear => writeln!(
            out,
            "too little was measured to tell whether something is worse by more than {threshold}%"
        ),
    }
}

fn word(verdict: Verdict) -> String {
    let style = match verdict {
        Verdict::Better | Verdict::Same => GOOD,
        Verdict::Unclear => WARN,
        Verdict::Worse => BAD,
    };
    paint(style, verdict.name()).to_string()
}

fn quantity(one: &Comparison, value: f64) -> String {
    match one.figure {
        Figure::Median | Figure::P99 => Time(value).to_string(),
        Figure::Bandwidth => Rate(value).to_string(),
    }
}

fn interval(one: &Comparison) -> String {
    one.interval.map_or_else(String::new, |around| {
        format!("{} to {}", Change(around.low), Change(around.high))
    })
}

fn chance(p: f64) -> String {
    if p < 0.0001 {
        "<0.0001".into()
    } else {
        format!("{p:.4}")
    }
}

fn basis(one: &Comparison) -> String {
    let what = match one.basis {
        Basis::Runs => "runs",
        Basis::Samples => "samples",
        Basis::Intervals => "intervals",
        Basis::Figures => "figures",
    };
    format!("{} and {} {what}", one.count_before, one.count_after)
}
