//! From the command line to the exit code.

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::{Context, Exit, Failure, Global, Schema, generate, log};

/// A command-line tool.
pub trait Tool: Parser {
    /// The global flags that were given.
    fn global(&self) -> &Global;

    /// Does what was asked.
    ///
    /// # Errors
    /// What the person is told.
    fn run(self, ctx: &mut Context) -> Result<Exit, Failure>;

    /// The schemas of all reports that it prints.
    fn schemas() -> Vec<Schema>;
}

/// The whole `clap` command of a tool, with what every tool has.
#[must_use]
pub fn command<T: Tool>() -> clap::Command {
    generate::extend(<T as CommandFactory>::command())
}

/// Runs a tool on the process's command line: the whole `main` of a binary.
#[must_use]
pub fn main<T: Tool>() -> ExitCode {
    main_of::<T>(std::env::args_os())
}

/// Runs a tool on another command line, whose first part is the program's name: for a binary that stands in
/// for others under their names.
#[must_use]
pub fn main_of<T: Tool>(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut command = command::<T>();
    let matches = match command.try_get_matches_from_mut(line) {
        Ok(matches) => matches,
        Err(error) => {
            // Help and version are an answer; all else is a wrong command line.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Ok
            }
            .into();
        }
    };
    if let Some(result) = generate::answer(&matches, &mut command, T::schemas) {
        return match result {
            Ok(()) => Exit::Ok.into(),
            Err(failure) => failed(&mut Context::new(Global::default()), &failure),
        };
    }
    let tool = match T::from_arg_matches(&matches) {
        Ok(tool) => tool,
        Err(error) => {
            let _ = error.format(&mut command).print();
            return Exit::Usage.into();
        }
    };
    let mut ctx = Context::new(tool.global().clone());
    if let Err(failure) = log::install(ctx.global()) {
        return failed(&mut ctx, &failure);
    }
    match panic::catch_unwind(AssertUnwindSafe(|| tool.run(&mut ctx))) {
        Ok(Ok(exit)) => {
            let json = ctx.global().clone();
            match ctx.finish() {
                Ok(()) => exit.into(),
                Err(failure) => failed(&mut Context::new(json), &failure),
            }
        }
        Ok(Err(failure)) => failed(&mut ctx, &failure),
        Err(_) => failed(&mut ctx, &bug()),
    }
}

fn failed(ctx: &mut Context, failure: &Failure) -> ExitCode {
    if failure.is_broken_pipe() {
        // The reader has what it wanted, as in `… | head`.
        return Exit::Ok.into();
    }
    ctx.fail(failure);
    failure.exit().into()
}

/// The panic itself has been printed by the hook.
fn bug() -> Failure {
    Failure::new(Exit::Bug, "bug", "this program has a bug and stopped")
        .with_hint("report it with the lines above and the command line; -vv --log FILE tells more")
}
