//! `rperf report`.

use std::path::PathBuf;

use rdma_cli::{Context, Exit, Failure};

use crate::cli::file;
use crate::report::{self, Named};

/// Makes a page with plots of results, or Markdown, or CSV
///
/// The page is one file without scripts that needs no network. With several results it shows them
/// side by side.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ReportCommand {
    /// Results files
    #[arg(required = true, value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// What to write
    #[arg(short, long, value_enum, default_value_t = Format::Html)]
    format: Format,
    /// What to call it
    #[arg(long, default_value = "RDMA measurements")]
    title: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One page with plots
    Html,
    /// Tables
    #[value(alias = "markdown")]
    Md,
    /// A line for each run
    Csv,
}

impl ReportCommand {
    pub(in crate::cli) fn run(self, ctx: &mut Context) -> Result<Exit, Failure> {
        if ctx.global().json {
            return Err(
                Failure::new(Exit::Usage, "format", "a report is HTML, Markdown or CSV")
                    .with_hint("the results files are JSON already"),
            );
        }
        let mut all = Vec::new();
        for path in &self.results {
            // Without folders: a report is for others, who have other folders.
            let name = path.file_stem().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            );
            all.push((name, file::read(path)?));
        }
        let files: Vec<Named<'_>> = all
            .iter()
            .map(|(name, results)| Named { name, results })
            .collect();
        ctx.print_raw(&match self.format {
            Format::Html => report::html(&self.title, &files),
            Format::Md => report::markdown(&self.title, &files),
            Format::Csv => report::csv(&files),
        })?;
        Ok(Exit::Ok)
    }
}
