//! Errors as people see them: what went wrong, why, and what to do about it.

use std::error::Error;
use std::fmt;
use std::io;

use crate::Exit;

/// How an error of a library is told to a person. A tool implements it for its library's error,
/// in `cli/explain.rs`, with one exhaustive match.
pub trait Explain: Error {
    /// Which exit code it ends in.
    fn exit(&self) -> Exit;

    /// A short stable name for machines, such as `bad-crc`.
    fn code(&self) -> &'static str;

    /// What the person can do about it: a flag, a command, a place to look.
    fn hint(&self) -> Option<String> {
        None
    }
}

/// What a command fails with. Made from any [`Explain`] by `?`.
#[derive(Clone, Debug)]
pub struct Failure {
    exit: Exit,
    code: &'static str,
    message: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// A failure of the tool itself.
    #[must_use]
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            code,
            message: message.into(),
            causes: Vec::new(),
            hint: None,
        }
    }

    /// Adds what was being done: it becomes the message, and the former message its cause.
    #[must_use]
    pub fn with_context(mut self, doing: impl Into<String>) -> Self {
        let cause = std::mem::replace(&mut self.message, doing.into());
        self.causes.insert(0, cause);
        self
    }

    /// Sets the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Which exit code it ends in.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        self.exit
    }

    /// The short stable name for machines.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        self.code
    }

    /// What went wrong.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Why, from the nearest cause to the farthest.
    #[must_use]
    pub fn causes(&self) -> &[String] {
        &self.causes
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Whether it says no more than that the reader of stdout has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.code == BROKEN_PIPE
    }
}

const BROKEN_PIPE: &str = "broken-pipe";

impl<E: Explain> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut causes = Vec::new();
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        Self {
            exit: error.exit(),
            code: error.code(),
            message: error.to_string(),
            causes,
            hint: error.hint(),
        }
    }
}

/// The three kinds of line that an error is printed as: `error:`, `caused by:`, `hint:`.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (bad, dim, good) = (crate::BAD, crate::DIM, crate::GOOD);
        writeln!(f, "{bad}error:{bad:#} {}", self.message)?;
        for cause in &self.causes {
            writeln!(f, "{dim}caused by:{dim:#} {cause}")?;
        }
        if let Some(hint) = &self.hint {
            writeln!(f, "{good}hint:{good:#} {hint}")?;
        }
        Ok(())
    }
}

impl Explain for io::Error {
    fn exit(&self) -> Exit {
        match self.kind() {
            io::ErrorKind::PermissionDenied => Exit::Denied,
            io::ErrorKind::TimedOut => Exit::Device,
            io::ErrorKind::Interrupted => Exit::Interrupted,
            _ => Exit::Input,
        }
    }

    fn code(&self) -> &'static str {
        match self.kind() {
            io::ErrorKind::BrokenPipe => BROKEN_PIPE,
            io::ErrorKind::PermissionDenied => "permission-denied",
            io::ErrorKind::NotFound => "not-found",
            io::ErrorKind::TimedOut => "timed-out",
            _ => "io",
        }
    }
}
