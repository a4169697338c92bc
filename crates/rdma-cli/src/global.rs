//! The flags that every tool has.

use std::path::PathBuf;

/// The flags that every tool has. Flatten it into the tool's parser.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
pub struct Global {
    /// Print JSON instead of text, with the name of its schema
    #[arg(short = 'j', long, global = true)]
    pub json: bool,

    /// Write the answer to FILE instead of standard output, complete or not at all
    #[arg(short, long, global = true, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Say less on standard error: no progress, no notes
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more on standard error; twice for all there is
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,

    /// Colour the text
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        long_help = "Colour the text: auto, always or never. The environment's NO_COLOR and CLICOLOR_FORCE count too"
    )]
    pub color: When,

    /// Show progress on standard error
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        long_help = "Show progress on standard error: auto (on a terminal), always or never"
    )]
    pub progress: When,

    /// Write everything that is logged to FILE
    #[arg(long, global = true, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// When something is done: a choice of `--color` and `--progress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum When {
    /// Where it makes sense: on a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}
