//! Asking before something is changed.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use crate::{Exit, Failure};

/// Asks whether to go on; the default is no.
///
/// # Errors
/// Exit code 7 where the answer is no, or where nobody is there to ask.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    match ask(&format!("{question} [y/N] "))? {
        Some(answer) if matches!(answer.as_str(), "y" | "Y" | "yes") => Ok(()),
        Some(_) => Err(declined()),
        None => Err(nobody()),
    }
}

/// Asks for a word to be typed, for what can't be undone.
///
/// # Errors
/// Exit code 7 where another word is typed, or where nobody is there to ask.
pub(crate) fn confirm_word(question: &str, word: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    match ask(&format!("{question} Type {word} to go on: "))? {
        Some(answer) if answer == word => Ok(()),
        Some(_) => Err(declined()),
        None => Err(nobody()),
    }
}

fn declined() -> Failure {
    Failure::new(
        Exit::Refused,
        "declined",
        "nothing was changed, as you did not agree",
    )
}

fn nobody() -> Failure {
    Failure::new(
        Exit::Refused,
        "needs-yes",
        "this changes something, and nobody is here to agree",
    )
    .with_hint("look at what it would do with --dry-run, then add --yes")
}

/// The trimmed answer; `None` where stdin or stderr is not a terminal.
fn ask(question: &str) -> Result<Option<String>, Failure> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(None);
    }
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(Some(answer.trim().to_owned()))
}
