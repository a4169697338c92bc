//! The table of what came of the cases.

use std::fmt;
use std::time::Duration;

use super::case::{Case, Direction};

/// A line of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// What was tried.
    pub case: &'static Case,
    /// Which of its operations; empty where it is one.
    pub part: String,
    /// Who was the client.
    pub direction: Direction,
    /// How many of 100 packets were lost in each direction.
    pub loss: u32,
    /// What was seen, or what is wrong.
    pub result: Result<String, String>,
    /// How long the case took, with its other parts.
    pub wall: Duration,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case {
            name,
            transport,
            mtu,
            ..
        } = self.case;
        let name = if self.part.is_empty() {
            name
        } else {
            self.part.as_str()
        };
        let result = match &self.result {
            Ok(text) => format!("ok     {text}"),
            Err(text) => format!("FAILS  {text}"),
        };
        write!(
            f,
            "{transport:<2} {name:<16} {mtu:>4}  {:<16}  {:>2}%  {result}",
            self.direction.name(),
            self.loss
        )
    }
}

/// The table, with how many of its lines are as they should be.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<19} {:>4}  {:<16}  {:>3}  result (figures of software: soft-roce, and rxe under QEMU emulation)\n",
        "case", "MTU", "client -> server", "loss"
    );
    for row in rows {
        text.push_str(&format!("{row}\n"));
    }
    let fails = rows.iter().filter(|row| row.result.is_err()).count();
    text.push_str(&format!("{} rows, {fails} fail\n", rows.len()));
    text
}
