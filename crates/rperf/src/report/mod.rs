//! Reports of results: a page with plots, a Markdown text, a CSV file.

mod chart;
mod csv;
mod html;
mod markdown;
mod plot;
pub mod quantity;
mod scale;
mod table;

pub use csv::csv;
pub use html::html;
pub use markdown::markdown;

use crate::result::Results;

/// Results with what to call them: usually the file's name.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// What to call them.
    pub name: &'a str,
    /// The results.
    pub results: &'a Results,
}

/// Control characters of text from outside, made visible.
fn visible(text: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}
