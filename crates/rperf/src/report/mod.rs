//! Reports of results: a page with plots, a Markdown table, a CSV file.

pub mod quantity;
