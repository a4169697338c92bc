//! How a command answers: text for people, JSON for machines.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write as _};

use anstream::{AutoStream, ColorChoice};
use schemars::JsonSchema;
use serde::Serialize;

use crate::{Exit, Failure, Global, Progress, Table, When, confirm, write_file};

/// A report that is printed as JSON under a versioned name. Within a number only additions are
/// made.
pub trait Report: Serialize + JsonSchema {
    /// The name: tool, what it is about, version, such as `mlx-fw/query/1`.
    const SCHEMA: &'static str;
}

/// The JSON schema of a report, for `docs/schemas`.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The report's name, such as `mlx-fw/query/1`.
    pub name: &'static str,
    /// The schema of the whole envelope.
    pub json: serde_json::Value,
}

impl Schema {
    /// The schema of what `--json` prints for `R`.
    #[must_use]
    pub fn of<R: Report>() -> Self {
        let data = schemars::schema_for!(R).to_value();
        let mut data = data;
        let definitions = data.as_object_mut().and_then(|object| {
            object.remove("$schema");
            object.remove("$defs")
        });
        let mut json = serde_json::json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": R::SCHEMA,
            "type": "object",
            "required": ["schema", "data"],
            "properties": { "schema": { "const": R::SCHEMA }, "data": data },
        });
        if let (Some(definitions), Some(object)) = (definitions, json.as_object_mut()) {
            object.insert("$defs".to_owned(), definitions);
        }
        Self {
            name: R::SCHEMA,
            json,
        }
    }
}

/// The text of a report while it is being written.
#[derive(Debug)]
pub struct Text<'a>(&'a mut String);

impl<'a> Text<'a> {
    /// Text that is added to `buffer`. For tests of a renderer; commands get theirs from
    /// [`Context::emit`].
    pub const fn new(buffer: &'a mut String) -> Self {
        Self(buffer)
    }

    /// A heading, with an empty line before it unless it is the first thing.
    ///
    /// # Errors
    /// None of its own.
    pub fn heading(&mut self, text: impl fmt::Display) -> fmt::Result {
        use fmt::Write as _;
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        writeln!(self.0, "{}", crate::paint(crate::HEADING, text))
    }

    /// A label and its value, the values one below the other.
    ///
    /// # Errors
    /// None of its own.
    pub fn field(&mut self, label: &str, value: impl fmt::Display) -> fmt::Result {
        use fmt::Write as _;
        writeln!(self.0, "{label:<FIELD_WIDTH$}  {value}")
    }

    /// A table.
    ///
    /// # Errors
    /// None of its own.
    pub fn table(&mut self, table: &Table) -> fmt::Result {
        use fmt::Write as _;
        write!(self.0, "{table}")
    }
}

/// How wide the labels of [`Text::field`] are.
const FIELD_WIDTH: usize = 20;

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        Ok(())
    }
}

/// What a command is run with: where its answer goes, and how it talks.
#[derive(Debug)]
pub struct Context {
    global: Global,
    answer: Vec<u8>,
}

impl Context {
    pub(crate) const fn new(global: Global) -> Self {
        Self {
            global,
            answer: Vec::new(),
        }
    }

    /// The global flags.
    #[must_use]
    pub const fn global(&self) -> &Global {
        &self.global
    }

    /// Prints a report: JSON with `--json`, else the text that `render` writes.
    ///
    /// # Errors
    /// Where stdout or the file of `--output` can't be written.
    pub fn emit<R: Report>(
        &mut self,
        report: &R,
        render: impl FnOnce(&R, &mut Text<'_>) -> fmt::Result,
    ) -> Result<(), Failure> {
        if self.global.json {
            #[derive(Serialize)]
            struct Envelope<'a, R> {
                schema: &'static str,
                data: &'a R,
            }
            return self.emit_json(&Envelope {
                schema: R::SCHEMA,
                data: report,
            });
        }
        let mut text = String::new();
        render(report, &mut Text(&mut text)).map_err(|_| {
            Failure::new(
                Exit::Bug,
                "render",
                "the report could not be turned into text",
            )
        })?;
        self.print_raw(&text)
    }

    fn emit_json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let mut json = serde_json::to_string_pretty(value).map_err(|error| {
            Failure::new(
                Exit::Bug,
                "json",
                format!("the report could not be turned into JSON: {error}"),
            )
        })?;
        json.push('\n');
        self.print_raw(&json)
    }

    /// Prints text as it is, for compatibility modes. Colour is taken out where it is off.
    ///
    /// # Errors
    /// Where stdout can't be written.
    pub fn print_raw(&mut self, text: &str) -> Result<(), Failure> {
        if self.global.output.is_some() {
            self.answer.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let mut stdout = AutoStream::new(io::stdout().lock(), choice(self.global.color));
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Says something on stderr that is not the answer; nothing with `--quiet`.
    pub fn note(&self, text: impl fmt::Display) {
        if !self.global.quiet {
            // A closed stderr is no reason to stop.
            let _ = writeln!(stderr(self.global.color), "{text}");
        }
    }

    /// Warns on stderr.
    pub fn warn(&self, text: impl fmt::Display) {
        let _ = writeln!(
            stderr(self.global.color),
            "{} {text}",
            crate::paint(crate::WARN, "warning:")
        );
    }

    /// Shows progress while it lives: on stderr, and only where someone watches.
    #[must_use]
    pub fn progress(&self, doing: impl Into<Cow<'static, str>>) -> Progress {
        Progress::new(&self.global, doing)
    }

    /// Asks before something is changed; `yes` (the flag `--yes`) agrees in advance.
    ///
    /// # Errors
    /// Exit code 7 where the answer is no, or where nobody is there to ask.
    pub fn confirm(&self, question: &str, yes: bool) -> Result<(), Failure> {
        confirm::confirm(question, yes)
    }

    /// Asks for a word to be typed, for what can't be undone; `yes` agrees in advance.
    ///
    /// # Errors
    /// Exit code 7 where another word is typed, or where nobody is there to ask.
    pub fn confirm_word(&self, question: &str, word: &str, yes: bool) -> Result<(), Failure> {
        confirm::confirm_word(question, word, yes)
    }

    /// Writes what was held back for the file of `--output`.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let Some(path) = &self.global.output else {
            return Ok(());
        };
        let plain = anstream::adapter::strip_bytes(&self.answer).into_vec();
        write_file(path, &plain, true)
    }

    /// Tells a failure: on stderr, and with `--json` on stdout too.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        let _ = write!(stderr(self.global.color), "{failure}");
        if self.global.json {
            let _ = self.emit_json(&serde_json::json!({
                "schema": ERROR_SCHEMA,
                "error": {
                    "code": failure.code(),
                    "exit": failure.exit().code(),
                    "message": failure.message(),
                    "causes": failure.causes(),
                    "hint": failure.hint(),
                },
            }));
        }
    }
}

/// The name of what `--json` prints when a command fails.
const ERROR_SCHEMA: &str = "rdma-cli/error/1";

const fn choice(when: When) -> ColorChoice {
    match when {
        When::Auto => ColorChoice::Auto,
        When::Always => ColorChoice::Always,
        When::Never => ColorChoice::Never,
    }
}

fn stderr(color: When) -> AutoStream<io::StderrLock<'static>> {
    AutoStream::new(io::stderr().lock(), choice(color))
}
