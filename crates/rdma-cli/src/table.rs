//! Tables without borders: a bold header, columns two blanks apart, numbers to the right.

use std::fmt;

use comfy_table::{Cell, CellAlignment, ContentArrangement};

use crate::printable;

/// A table of plain text. Rows are never wrapped, so that a row stays a line in a pipe.
///
/// ```
/// let mut table = rdma_cli::Table::new(["LID", "Node"]).right(0);
/// table.row(["3", "leaf 1"]).row(["12", "host"]);
/// let plain = anstream::adapter::strip_str(&table.to_string()).to_string();
/// assert_eq!(plain, "LID  Node\n  3  leaf 1\n 12  host\n");
/// ```
#[derive(Debug)]
pub struct Table(comfy_table::Table);

impl Table {
    /// A table with these columns.
    #[must_use]
    pub fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header.into_iter().map(Cell::new));
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        Self(table)
    }

    /// Sets a column (from 0) to the right, for numbers.
    #[must_use]
    pub fn right(mut self, column: usize) -> Self {
        if let Some(column) = self.0.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        self
    }

    /// Adds a row. Cells are plain text: control characters are shown escaped, see [`printable`].
    pub fn row<T: fmt::Display>(&mut self, cells: impl IntoIterator<Item = T>) -> &mut Self {
        self.0.add_row(
            cells
                .into_iter()
                .map(|cell| Cell::new(printable(&cell.to_string()))),
        );
        self
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, line) in self.0.lines().enumerate() {
            let line = line.trim_end();
            if number == 0 {
                writeln!(f, "{}", crate::paint(crate::HEADING, line))?;
            } else {
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}
