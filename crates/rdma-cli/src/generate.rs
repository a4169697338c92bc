//! Completions and manual pages, made from the tool's own definition.

use std::io;

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

use crate::{Exit, Failure};

const COMPLETIONS: &str = "completions";
const MAN: &str = "man";

/// Adds the hidden verbs and the table of exit codes.
pub(crate) fn extend(command: Command) -> Command {
    let after = match command.get_after_long_help() {
        Some(text) => format!("{text}\n\n{}", Exit::table()),
        None => Exit::table(),
    };
    command
        .after_long_help(after)
        .subcommand(
            Command::new(COMPLETIONS)
                .about("Print the completions for a shell")
                .hide(true)
                .arg(
                    Arg::new("shell")
                        .required(true)
                        .value_parser(clap::value_parser!(Shell)),
                ),
        )
        .subcommand(Command::new(MAN).about("Print the manual page").hide(true))
}

/// Answers a hidden verb; `None` where it was another.
pub(crate) fn answer(matches: &ArgMatches, command: &mut Command) -> Option<Result<(), Failure>> {
    match matches.subcommand()? {
        (COMPLETIONS, matches) => {
            let shell = *matches.get_one::<Shell>("shell")?;
            let name = command.get_name().to_owned();
            clap_complete::generate(shell, command, name, &mut io::stdout());
            Some(Ok(()))
        }
        (MAN, _) => {
            let page = clap_mangen::Man::new(command.clone());
            Some(page.render(&mut io::stdout()).map_err(Failure::from))
        }
        _ => None,
    }
}

/// The manual pages of a tool: its own, then one for each visible verb, as (file name, roff).
///
/// # Errors
/// None in practice: the pages are written to memory.
pub fn man_pages(mut command: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages)?;
    Ok(pages)
}

fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    for verb in command
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
    {
        collect(verb, pages)?;
    }
    Ok(())
}
