//! A chart as SVG, in the colours of the page that it is in.

use core::fmt::Write as _;

use super::html::escape;
use super::scale::Scale;

/// Colours that differ.
pub(super) const COLOURS: usize = 6;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 48.0;

/// An axis.
#[derive(Debug)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) scale: Scale,
    /// Where it is marked, and with what.
    pub(super) marks: Vec<(f64, String)>,
}

impl Axis {
    /// With round marks, in words by `word`.
    pub(super) fn new(label: &str, scale: Scale, word: impl Fn(f64) -> String) -> Self {
        Self {
            label: label.to_owned(),
            scale,
            marks: scale
                .marks()
                .into_iter()
                .map(|mark| (mark, word(mark)))
                .collect(),
        }
    }
}

/// What is drawn in one colour.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) name: String,
    /// The line.
    pub(super) points: Vec<(f64, f64)>,
    /// At each place from where to where the values are.
    pub(super) band: Vec<(f64, f64, f64)>,
    /// Whether the points are marked.
    pub(super) dots: bool,
    /// Whether the area below is filled.
    pub(super) filled: bool,
}

/// A chart.
#[derive(Debug)]
pub(super) struct Chart {
    pub(super) title: String,
    /// What it shows, and how it is to be read.
    pub(super) caption: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) series: Vec<Series>,
    /// Values worth a line across, and what they are.
    pub(super) lines: Vec<(f64, String)>,
}

impl Chart {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.x.scale.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.scale.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// The figure, with its legend and its caption.
    pub(super) fn html(&self, out: &mut String) {
        let _ = write!(out, "<figure>\n<h3>{}</h3>\n", escape(&self.title));
        self.svg(out);
        if self.series.len() > 1 {
            out.push_str("<ul class=\"legend\">");
            for (index, series) in self.series.iter().enumerate() {
                let _ = write!(
                    out,
                    "<li class=\"s{}\"><i></i>{}</li>",
                    index % COLOURS,
                    escape(&series.name)
                );
            }
            out.push_str("</ul>\n");
        }
        let _ = write!(
            out,
            "<figcaption>{}</figcaption>\n</figure>\n",
            escape(&self.caption)
        );
    }

    fn svg(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(&self.title)
        );
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for (value, word) in &self.y.marks {
            let y = self.y(*value);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escape(word)
            );
        }
        for (value, word) in &self.x.marks {
            let x = self.x(*value);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                escape(word)
            );
        }
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, right),
            HEIGHT - 8.0,
            escape(&self.x.label)
        );
        // Along the axis it would lie on the marks.
        let _ = writeln!(
            out,
            "<text class=\"label\" x=\"4\" y=\"16\">{}</text>",
            escape(&self.y.label)
        );
        for (index, series) in self.series.iter().enumerate() {
            self.series(index % COLOURS, series, out);
        }
        for (value, word) in &self.lines {
            let y = self.y(*value);
            let _ = writeln!(
                out,
                "<path class=\"bound\" d=\"M{LEFT} {y:.1}H{right}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                right - 4.0,
                y + if y < TOP + 16.0 { 13.0 } else { -5.0 },
                escape(word)
            );
        }
        let _ = writeln!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>\n</svg>"
        );
    }

    fn series(&self, colour: usize, series: &Series, out: &mut String) {
        let _ = writeln!(out, "<g class=\"s{colour}\">");
        if !series.band.is_empty() {
            let mut path = String::new();
            for (x, _, high) in &series.band {
                let _ = write!(path, "{:.1} {:.1} ", self.x(*x), self.y(*high));
            }
            for (x, low, _) in series.band.iter().rev() {
                let _ = write!(path, "{:.1} {:.1} ", self.x(*x), self.y(*low));
            }
            let _ = writeln!(out, "<path class=\"band\" d=\"M{}Z\"/>", path.trim_end());
        }
        let mut path = String::new();
        for (x, y) in &series.points {
            let _ = write!(path, "{:.1} {:.1} ", self.x(*x), self.y(*y));
        }
        let path = path.trim_end();
        if let (true, Some((first, _)), Some((last, _))) =
            (series.filled, series.points.first(), series.points.last())
        {
            let bottom = HEIGHT - BOTTOM;
            let _ = writeln!(
                out,
                "<path class=\"band\" d=\"M{:.1} {bottom}L{path}L{:.1} {bottom}Z\"/>",
                self.x(*first),
                self.x(*last)
            );
        }
        if !path.is_empty() {
            let _ = writeln!(out, "<path class=\"line\" d=\"M{path}\"/>");
        }
        if series.dots {
            for (x, y) in &series.points {
                let _ = writeln!(
                    out,
                    "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\"/>",
                    self.x(*x),
                    self.y(*y)
                );
            }
        }
        out.push_str("</g>\n");
    }
}
