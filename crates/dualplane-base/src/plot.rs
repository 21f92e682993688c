//! Lines over time as SVG in a page: the frame with its grid, clock and limit, which every picture of a page shares.
//!
//! Colours are names of the page's own style (`var(--NAME)`), so that one picture serves light and dark; [`STYLE`] is the
//! rest. Nothing here has a style of its own, so that a page may forbid those in line.

use std::fmt::Write as _;

use crate::text::markup;
use crate::units::{Bytes, round_above};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 78.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 24.0;

/// What a page with pictures needs in its style, besides `--ink`, `--soft`, `--line`, `--card`, `--bad` and the lines' colours.
pub const STYLE: &str = include_str!("plot.css");

/// What the height of a line counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of memory.
    Bytes,
    /// Parts of one.
    Share,
    /// Anything else.
    Count,
}

impl Unit {
    /// A value as people read it.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Bytes => Bytes::from_f64(value).to_string(),
            Self::Share => format!("{:.0} %", value * 100.0),
            Self::Count if value >= 10.0 || value.fract() == 0.0 => format!("{value:.0}"),
            Self::Count => format!("{value:.1}"),
        }
    }

    /// The next round value above the highest.
    fn top(self, most: f64) -> f64 {
        match self {
            Self::Share if most > 0.5 => 1.0,
            Self::Share => (most.max(0.05) * 1.1 * 20.0).ceil() / 20.0,
            Self::Bytes => round_above(most.max(1.0), true),
            Self::Count => round_above(most.max(1e-9), false),
        }
    }
}

/// One picture: where a moment and a value stand in it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    from: f64,
    span: f64,
    top: f64,
    unit: Unit,
    limit: Option<f64>,
}

/// A line's entry below the picture.
pub struct Key {
    /// The name of its colour.
    pub colour: &'static str,
    /// What the line is.
    pub label: String,
}

impl Frame {
    /// A frame from one moment to another (in any unit of time), for values up to `most`.
    #[must_use]
    pub fn new((from, to): (f64, f64), unit: Unit, most: f64, limit: Option<f64>) -> Self {
        // A limit far above everything would press the lines flat: it is told below them then.
        let limit = limit.filter(|l| *l <= most * 4.0);
        Self { from, span: (to - from).max(1e-9), top: unit.top(most.max(limit.unwrap_or(0.0))), unit, limit }
    }

    /// Where a moment stands.
    #[must_use]
    pub fn x(&self, moment: f64) -> f64 {
        LEFT + ((moment - self.from) / self.span).clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (1.0 - (value / self.top).clamp(0.0, 1.0)) * (HEIGHT - TOP - BOTTOM)
    }

    /// The title, the grid with its values, and the clock as `told` says its moments.
    pub fn open(&self, title: &str, told: impl Fn(f64) -> String, out: &mut String) {
        let title = markup(title);
        let _ = write!(
            out,
            "<figure><figcaption>{title}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">"
        );
        for i in 0..=4 {
            let value = self.top * f64::from(i) / 4.0;
            self.across("grid", value, out);
            let _ = write!(
                out,
                "<text class=\"y\" x=\"{:.0}\" y=\"{:.1}\">{}</text>",
                LEFT - 6.0,
                self.y(value) + 4.0,
                self.unit.show(value)
            );
        }
        for i in 0..=6 {
            let moment = self.from + self.span * f64::from(i) / 6.0;
            let class = if i == 6 { "left" } else { "x" };
            let _ = write!(
                out,
                "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.0}\">{}</text>",
                self.x(moment),
                HEIGHT - 7.0,
                markup(&told(moment))
            );
        }
    }

    fn across(&self, class: &str, value: f64, out: &mut String) {
        let (at, right) = (self.y(value), WIDTH - RIGHT);
        let _ = write!(
            out,
            "<line class=\"{class}\" x1=\"{LEFT}\" x2=\"{right:.0}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"
        );
    }

    /// A line; moments without a value leave a gap.
    pub fn line(&self, points: impl Iterator<Item = (f64, Option<f64>)>, colour: &str, out: &mut String) {
        let mut piece: Vec<(f64, f64)> = Vec::new();
        for (moment, value) in points {
            match value.filter(|v| v.is_finite()) {
                Some(v) => piece.push((self.x(moment), self.y(v))),
                None => piece_of(&std::mem::take(&mut piece), colour, out),
            }
        }
        piece_of(&piece, colour, out);
    }

    /// The limit, where it stands in the picture.
    pub fn limit(&self, out: &mut String) {
        if let Some(limit) = self.limit {
            self.across("limit", limit, out);
        }
    }

    /// A moment by its name, as a line from top to bottom.
    pub fn moment(&self, at: f64, class: &str, name: &str, out: &mut String) {
        let x = self.x(at);
        let _ = write!(
            out,
            "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.0}\"/><text class=\"left\" x=\"{x:.1}\" y=\"{:.0}\">{}</text>",
            HEIGHT - BOTTOM,
            TOP - 5.0,
            markup(name)
        );
    }

    /// A stretch that tells what it holds where the pointer rests; the browser does it, nothing runs.
    pub fn told(&self, (from, to): (f64, f64), words: &str, out: &mut String) {
        let (left, right) = (self.x(from), self.x(to));
        let _ = write!(
            out,
            "<rect class=\"look\" x=\"{left:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{:.0}\"><title>{}</title></rect>",
            right - left,
            HEIGHT - TOP - BOTTOM,
            markup(words)
        );
    }

    /// The end of the picture: its keys, and the limit by its words.
    pub fn close(&self, keys: impl Iterator<Item = Key>, limit: Option<String>, out: &mut String) {
        out.push_str("</svg><p class=\"legend\">");
        for Key { colour, label } in keys {
            let _ = write!(out, "<span>{}{}</span>", key("key", colour), markup(&label));
        }
        if let Some(limit) = limit {
            let _ = write!(out, "<span>{}{}</span>", key("key limit", "bad"), markup(&limit));
        }
        out.push_str("</p></figure>\n");
    }
}

fn piece_of(piece: &[(f64, f64)], colour: &str, out: &mut String) {
    match piece {
        [] => {}
        // A point alone would not be seen as a line.
        [(x, y)] => {
            let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.5\" fill=\"var(--{colour})\"/>");
        }
        points => {
            out.push_str("<path d=\"");
            for (i, (x, y)) in points.iter().enumerate() {
                let letter = if i == 0 { 'M' } else { 'L' };
                let _ = write!(out, "{letter}{x:.1} {y:.1}");
            }
            let _ = write!(out, "\" stroke=\"var(--{colour})\"/>");
        }
    }
}

fn key(class: &str, colour: &str) -> String {
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 14 4\" aria-hidden=\"true\"><path d=\"M0 2H14\" stroke=\"var(--{colour})\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(frame: &Frame, points: &[(f64, Option<f64>)]) -> String {
        let mut out = String::new();
        frame.line(points.iter().copied(), "host", &mut out);
        out
    }

    #[test]
    fn a_gap_parts_the_line_and_a_point_alone_is_seen() {
        let frame = Frame::new((0.0, 10.0), Unit::Count, 10.0, None);
        let svg =
            drawn(&frame, &[(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(4.0)), (4.0, None)]);
        assert_eq!((svg.matches("<path").count(), svg.matches("<circle").count()), (1, 1), "{svg}");
    }

    #[test]
    fn a_limit_far_above_does_not_press_the_lines_flat() {
        let far = Frame::new((0.0, 1.0), Unit::Bytes, 1e9, Some(1e12));
        let near = Frame::new((0.0, 1.0), Unit::Bytes, 1e9, Some(2e9));
        let limit = |f: &Frame| {
            let mut out = String::new();
            f.limit(&mut out);
            out
        };
        assert!(limit(&far).is_empty() && far.top < 2e9);
        assert!(limit(&near).contains("limit") && near.top >= 2e9);
    }

    #[test]
    fn every_value_stands_inside_the_picture() {
        for (unit, most) in [
            (Unit::Share, 0.0),
            (Unit::Share, 1.0),
            (Unit::Bytes, 0.0),
            (Unit::Bytes, 1e15),
            (Unit::Count, 0.3),
        ] {
            let frame = Frame::new((5.0, 5.0), unit, most, None);
            assert!(drawn(&frame, &[(5.0, Some(f64::NAN)), (5.0, Some(f64::INFINITY))]).is_empty());
            for v in [0.0, most, most * 2.0, -1.0] {
                let (x, y) = (frame.x(5.0), frame.y(v));
                assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{unit:?} {v} {x}");
                assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{unit:?} {v} {y}");
            }
            assert!(frame.top >= most, "{unit:?} {most}");
        }
    }

    #[test]
    fn words_cannot_leave_their_place() {
        let frame = Frame::new((0.0, 1.0), Unit::Count, 1.0, None);
        let mut out = String::new();
        frame.open("<script>", |_| "\"><b>".into(), &mut out);
        frame.moment(0.5, "end", "</svg>", &mut out);
        frame.told((0.0, 1.0), "</title>", &mut out);
        frame.close([Key { colour: "host", label: "<i>".into() }].into_iter(), Some("<u>".into()), &mut out);
        for planted in ["<script>", "<b>", "<i>", "<u>"] {
            assert!(!out.contains(planted), "{planted} in {out}");
        }
        assert_eq!(out.matches("</svg>").count(), 3);
    }
}
