//! `rperf compare`.

use std::path::PathBuf;

use rdma_cli::{Context, Exit, Failure};

use crate::cli::{file, render};
use crate::compare::{Limits, Verdict, compare};

/// Says whether results became worse, and by how much
///
/// Exit code 1 where a figure is worse by more than the threshold and that is not chance.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Compare {
    /// The results that are the measure
    before: PathBuf,
    /// The results that are measured by it
    after: PathBuf,
    /// How much worse is no matter
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    threshold: f64,
    /// How sure the verdict is, over all figures together
    #[arg(long, value_name = "PERCENT", default_value = "95%", value_parser = confidence)]
    confidence: f64,
}

/// `2%` or `2`, as a part of one.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse::<f64>() {
        Ok(value) if (0.0..=1000.0).contains(&value) => Ok(value / 100.0),
        _ => Err("a percentage is wanted, such as 2%".into()),
    }
}

fn confidence(text: &str) -> Result<f64, String> {
    percent(text)
        .ok()
        .filter(|part| (0.5..1.0).contains(part))
        .ok_or_else(|| "a percentage from 50% to below 100% is wanted, such as 95%".into())
}

impl Compare {
    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        let before = file::read(&self.before)?;
        let after = file::read(&self.after)?;
        let limits = Limits {
            threshold: self.threshold,
            confidence: self.confidence,
        };
        let report = compare(&before, &after, limits);
        if report.comparisons.is_empty() {
            return Err(Failure::new(
                Exit::Input,
                "nothing-alike",
                "the files have no measurement in common",
            )
            .with_hint(
                "compare results of the same test, transport, size, queue pairs and depth",
            ));
        }
        ctx.emit(&report, render::compare::text)?;
        Ok(match report.verdict {
            Verdict::Worse => Exit::No,
            Verdict::Better | Verdict::Same | Verdict::Unclear => Exit::Ok,
        })
    }
}
