//! The text of `mlx-fw extract`.

use std::fmt;

use rdma_cli::{Table, Text};

use crate::report::ExtractReport;

pub(crate) fn text(report: &ExtractReport, out: &mut Text<'_>) -> fmt::Result {
    let mut table = Table::new(["PSID", "Version", "Bytes", "File"]).right(2);
    for file in &report.files {
        table.row([
            file.psid.as_str(),
            file.fw_version.as_deref().unwrap_or("-"),
            &file.size.to_string(),
            &file.path,
        ]);
    }
    out.table(&table)
}
