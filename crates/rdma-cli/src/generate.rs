//! Completions, manual pages, schemas and the command reference, made from the tool's own
//! definition.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use clap_complete::Shell;

use crate::{Exit, Failure, Schema};

const COMPLETIONS: &str = "completions";
const MAN: &str = "man";
const GENERATE: &str = "generate";

/// The width of a line in the command reference.
const WIDTH: usize = 96;

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
        .subcommand(
            Command::new(GENERATE)
                .about("Write manual pages, completions, schemas and the command reference")
                .hide(true)
                .arg(
                    Arg::new("folder")
                        .required(true)
                        .value_parser(clap::value_parser!(PathBuf)),
                ),
        )
}

/// Answers a hidden verb; `None` where it was another.
pub(crate) fn answer(
    matches: &ArgMatches,
    command: &mut Command,
    schemas: fn() -> Vec<Schema>,
) -> Option<Result<(), Failure>> {
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
        (GENERATE, matches) => {
            let folder = matches.get_one::<PathBuf>("folder")?;
            Some(write_all(command, &schemas(), folder).map_err(Failure::from))
        }
        _ => None,
    }
}

/// Writes `man/`, `completions/`, `schemas/`, `reference/` and `commands.tsv` (verb and what it does)
/// into a folder. The manual's and the repository's files are copies of these.
fn write_all(command: &Command, schemas: &[Schema], folder: &Path) -> io::Result<()> {
    let place = |kind: &str, name: &str| -> io::Result<PathBuf> {
        let folder = folder.join(kind);
        fs::create_dir_all(&folder)?;
        Ok(folder.join(name))
    };
    let name = command.get_name().to_owned();
    for (file, page) in man_pages(command.clone())? {
        fs::write(place("man", &file)?, page)?;
    }
    for (shell, file) in [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), &name, &mut script);
        fs::write(place("completions", &file)?, script)?;
    }
    for schema in schemas {
        let file = format!("{}.json", schema.name.replace('/', "."));
        let text = format!("{:#}\n", schema.json);
        fs::write(place("schemas", &file)?, text)?;
    }
    fs::write(
        place("reference", &format!("{name}.md"))?,
        reference(command),
    )?;
    fs::write(place("", "commands.tsv")?, verbs(command))
}

/// The visible verbs, each with its whole name and its line of explanation.
fn verbs(command: &Command) -> String {
    let mut text = String::new();
    each(command, &mut |verb, leaf| {
        if leaf {
            let about = verb
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            let _ = writeln!(text, "{}\t{about}", full_name(verb));
        }
    });
    text
}

/// The command reference: the long help of the tool and of each verb. The flags that every verb has
/// stand in the first only.
fn reference(command: &Command) -> String {
    let mut text = String::new();
    let mut first = true;
    each(command, &mut |verb, _| {
        let mut verb = verb.clone().term_width(WIDTH);
        if !first {
            verb = verb.mut_args(|arg| {
                if arg.is_global_set() || arg.get_id() == "help" {
                    arg.hide(true)
                } else {
                    arg
                }
            });
        }
        let name = full_name(&verb);
        let help = verb.render_long_help().to_string();
        let level = if first { "#" } else { "\n##" };
        first = false;
        let _ = writeln!(text, "{level} {name}\n\n```text");
        for line in help.trim_end().lines() {
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text.push_str("```\n");
    });
    text
}

/// Calls `see` with the tool and each visible verb, and whether it has none below it.
fn each(command: &Command, see: &mut dyn FnMut(&Command, bool)) {
    let mut command = command.clone();
    command.build();
    descend(&command, see);
}

fn descend(command: &Command, see: &mut dyn FnMut(&Command, bool)) {
    let visible = |verb: &&Command| !verb.is_hide_set() && verb.get_name() != "help";
    see(
        command,
        !command.get_subcommands().any(|verb| visible(&verb)),
    );
    for verb in command.get_subcommands().filter(visible) {
        descend(verb, see);
    }
}

fn full_name(command: &Command) -> String {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    name.to_owned()
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
