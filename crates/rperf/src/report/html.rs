//! One file of HTML: it needs no other, no script and no network.

use core::fmt::Write as _;

use super::table::{self, Table};
use super::{Named, plot, visible};

/// Text from outside, so that it stays text, in elements and in quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = include_str!("page.css");

/// A page with plots and tables.
#[must_use]
pub fn html(title: &str, files: &[Named<'_>]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n",
        title = escape(title)
    );
    for file in files {
        let results = file.results;
        let device = results.local.device.label();
        let _ = write!(out, "<p>{}: {}", escape(file.name), escape(&device));
        if let Some(name) = &results.local.host.name {
            let _ = write!(out, " on {}", escape(name));
        }
        if let Some(name) = results
            .remote
            .as_ref()
            .and_then(|side| side.host.name.as_ref())
        {
            let _ = write!(out, " with {}", escape(name));
        }
        let _ = writeln!(
            out,
            ", {}, rperf {}</p>",
            escape(&results.started),
            escape(&results.rperf)
        );
    }
    out.push_str("</header>\n");
    let warnings = table::warnings(files);
    if !warnings.is_empty() {
        out.push_str("<section class=\"warnings\">\n<h2>Before you trust it</h2>\n<ul>\n");
        for warning in warnings {
            let _ = writeln!(out, "<li>{}</li>", escape(&warning));
        }
        out.push_str("</ul>\n</section>\n");
    }
    for table in table::figures(files) {
        write_table(&table, &mut out);
    }
    out.push_str("<section class=\"charts\">\n");
    for chart in plot::charts(files) {
        chart.html(&mut out);
    }
    out.push_str("</section>\n");
    write_table(&table::environment(files), &mut out);
    out.push_str(FOOT);
    out
}

const FOOT: &str = "<footer>\n<p>Gb/s are 10⁹ bits a second of what the messages carry. \
A percentile is given where at least one sample lies beyond it. Percentiles are exact to three \
digits; min, max, mean and deviation are exact. The interval of a median is over the runs, \
and where there is one run over its samples. Far outside is what lies beyond \
Tukey's outer fences: three times the distance of the quartiles from them.</p>\n</footer>\n\
</body>\n</html>\n";

fn write_table(table: &Table, out: &mut String) {
    let class = if table.figures {
        " class=\"figures\""
    } else {
        ""
    };
    let _ = write!(
        out,
        "<section>\n<h2>{}</h2>\n<div class=\"wide\"><table{class}>\n<thead><tr>",
        escape(table.title)
    );
    for cell in &table.header {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = match index {
                0 => write!(out, "<th scope=\"row\">{}</th>", escape(cell)),
                _ => write!(out, "<td>{}</td>", escape(cell)),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n</section>\n");
}
