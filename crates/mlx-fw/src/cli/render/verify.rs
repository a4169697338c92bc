//! The text of `mlx-fw verify`.

use std::fmt::{self, Write as _};

use rdma_cli::{BAD, DIM, GOOD, Table, Text, WARN, paint, printable};

use crate::report::{PartReport, PartState, VerifyReport};

pub(crate) fn text(report: &VerifyReport, out: &mut Text<'_>) -> fmt::Result {
    let kind = if report.complete {
        "complete, as in a flash"
    } else {
        "reduced, as in an update: without the device's own data"
    };
    writeln!(
        out,
        "{} image at {:#x}: {kind}",
        report.format, report.start
    )?;
    if report.encrypted {
        writeln!(
            out,
            "{}",
            paint(WARN, "It is encrypted: its sections can't be checked.")
        )?;
    }
    writeln!(out)?;
    let mut table = Table::new(["Start", "End", "Bytes", "Part", "State"]).right(2);
    let mut spare = 0;
    for part in &report.parts {
        spare += usize::from(part.state == PartState::Spare);
        table.row([
            format!("{:#010x}", part.offset),
            match part.size {
                0 => "-".to_owned(),
                size => format!("{:#010x}", part.offset + size - 1),
            },
            part.size.to_string(),
            part.name.clone(),
            state(part),
        ]);
    }
    out.table(&table)?;
    writeln!(out)?;
    for problem in &report.problems {
        let place = problem
            .offset
            .map_or_else(String::new, |offset| format!(" at {offset:#x}"));
        writeln!(
            out,
            "{}{place}: {}",
            paint(BAD, "wrong"),
            printable(&problem.message)
        )?;
    }
    let wrong = report.parts.iter().filter(|part| !part.state.is_good());
    let wrong = wrong.count();
    if report.ok {
        let ignored = report
            .parts
            .iter()
            .filter(|part| part.state == PartState::CrcIgnored)
            .count();
        let checked = report.parts.len() - ignored - spare;
        write!(out, "{}: {checked} parts checked", paint(GOOD, "OK"))?;
        if ignored != 0 {
            write!(
                out,
                "{}",
                paint(DIM, format_args!(", {ignored} without a CRC"))
            )?;
        }
        writeln!(out)
    } else {
        writeln!(
            out,
            "{}: {wrong} of {} parts and {} other problems; a device may not start from it",
            paint(BAD, "WRONG"),
            report.parts.len(),
            report.problems.len()
        )
    }
}

fn state(part: &PartReport) -> String {
    match part.state {
        PartState::Ok => "OK".to_owned(),
        PartState::CrcIgnored => "no CRC".to_owned(),
        PartState::Spare => "spare copy".to_owned(),
        PartState::OutOfFile => "WRONG: the file ends before it does".to_owned(),
        PartState::WrongCrc => format!(
            "WRONG: CRC of the bytes {:#06x}, stored {:#06x}",
            part.computed_crc.unwrap_or_default(),
            part.stored_crc.unwrap_or_default()
        ),
    }
}
