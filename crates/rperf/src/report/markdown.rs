//! Markdown, as GitHub and mdBook read it.

use core::fmt::Write as _;

use super::table::{self, Table};
use super::{Named, visible};

/// Text from outside, so that it stays text.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// The tables and the warnings.
#[must_use]
pub fn markdown(title: &str, files: &[Named<'_>]) -> String {
    let mut out = format!("# {}\n", escape(title));
    let warnings = table::warnings(files);
    if !warnings.is_empty() {
        out.push_str("\n## Before you trust it\n\n");
        for warning in warnings {
            let _ = writeln!(out, "- {}", escape(&warning));
        }
    }
    for table in table::figures(files) {
        write_table(&table, &mut out);
    }
    write_table(&table::environment(files), &mut out);
    out
}

fn write_table(table: &Table, out: &mut String) {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let _ = write!(
        out,
        "\n## {}\n\n{}|",
        escape(table.title),
        row(&table.header)
    );
    for index in 0..table.header.len() {
        out.push_str(if table.figures && index > 1 {
            "---:|"
        } else {
            "---|"
        });
    }
    out.push('\n');
    for cells in &table.rows {
        out.push_str(&row(cells));
    }
}
