//! A board as a picture: its panels in their places, with what its queries answered. Drawn for the manual, not by Grafana.

use std::fmt::Write as _;

use dualplane_dashboards::{Kind, Measure, Ready, ReadyPanel};
use serde_json::Value;

use super::prometheus::Series;
use super::scale::{axis, words};

/// Pixels of a column and of a row of the grid.
const COLUMN: f64 = 48.0;
const ROW: f64 = 26.0;
const MARGIN: f64 = 16.0;
const HEAD: f64 = 56.0;
/// Between two cards.
const GAP: f64 = 8.0;
const COLOURS: [&str; 10] = [
    "#3465c0", "#d9822b", "#2f9e68", "#b0449b", "#8a6d3b", "#1f9fb0", "#c2453b", "#6b57c9", "#7a8a1e",
    "#5c6670",
];
const INK: &str = "#1f2430";
const DIM: &str = "#667080";
const BAD: &str = "#d0342c";

/// What one query answered.
pub(super) struct Answer {
    pub(super) legend: String,
    pub(super) series: Vec<Series>,
}

/// Minutes that a picture shows, as seconds of its axis.
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
}

/// A card on the board.
struct Card<'a> {
    panel: &'a ReadyPanel,
    answers: &'a [Answer],
    x: f64,
    y: f64,
    width: f64,
    height: f64,
    span: &'a Span,
    pod: &'a str,
}

/// `json` is the board as Grafana takes it: the places of panels are read from it; `answers` are in the order of its panels.
/// Panels that name a pod name this one.
pub(super) fn svg(ready: &Ready, json: &Value, answers: &[Vec<Answer>], span: &Span, pod: &str) -> String {
    let placed: Vec<&Value> = json["panels"].as_array().unwrap().iter().collect();
    let at = |p: &Value, key: &str| p["gridPos"][key].as_f64().unwrap();
    let bottom = placed.iter().map(|p| at(p, "y") + at(p, "h")).fold(0.0, f64::max);
    let (width, height) = (24.0 * COLUMN + 2.0 * MARGIN, bottom * ROW + HEAD + MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#eef0f4\"/>\n\
         <g font-family=\"DejaVu Sans,Helvetica,Arial,sans-serif\">\n"
    );
    text(&mut out, MARGIN, 26.0, 17, INK, &ready.board.title, "font-weight=\"bold\"");
    text(&mut out, MARGIN, 45.0, 12, DIM, &ready.board.question, "");
    let mut panels = ready.panels().zip(answers);
    for p in placed {
        let (x, y) = (MARGIN + at(p, "x") * COLUMN, HEAD + at(p, "y") * ROW);
        if p["type"] == "row" {
            text(
                &mut out,
                x + 2.0,
                y + ROW - 9.0,
                13,
                INK,
                p["title"].as_str().unwrap(),
                "font-weight=\"bold\"",
            );
            continue;
        }
        let (panel, answers) = panels.next().unwrap();
        let (width, height) = (at(p, "w") * COLUMN - GAP, at(p, "h") * ROW - GAP);
        Card { panel, answers, x, y, width, height, span, pod }.draw(&mut out);
    }
    out.push_str("</g>\n</svg>\n");
    out
}

impl Card<'_> {
    fn draw(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"4\" fill=\"#ffffff\" stroke=\"#d4d8e0\"/>",
            self.x, self.y, self.width, self.height
        );
        let title = fitted(&self.panel.panel.title, 12, self.width - 20.0);
        text(out, self.x + 10.0, self.y + 19.0, 12, INK, &title, "font-weight=\"bold\"");
        match self.panel.panel.kind {
            Kind::Lines => self.lines(out),
            Kind::Stat => self.stat(out),
            Kind::States => self.states(out),
            Kind::Table => self.table(out),
            Kind::Text => self.words(out),
        }
    }

    fn measure(&self) -> Measure {
        self.panel.panel.measure
    }

    /// All series with their names, sorted by them; of more than there are colours for, the largest first.
    fn named(&self) -> Vec<(String, &Series)> {
        let mut all: Vec<(usize, String, &Series)> = Vec::new();
        for (i, a) in self.answers.iter().enumerate() {
            all.extend(a.series.iter().map(|s| (i, filled(&a.legend, s), s)));
        }
        all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        if all.len() > COLOURS.len() {
            let largest = |s: &Series| s.points.iter().map(|p| p.1).fold(0.0, f64::max);
            all.sort_by(|a, b| largest(b.2).total_cmp(&largest(a.2)));
        }
        all.into_iter().map(|(_, name, s)| (name, s)).collect()
    }

    fn lines(&self, out: &mut String) {
        let all = self.named();
        let legend = Legend::of(&all, self.measure(), self.width - 20.0);
        let (left, right) = (self.x + 64.0, self.x + self.width - 12.0);
        let (top, bottom) = (self.y + 32.0, self.y + self.height - 24.0 - legend.height());
        let stack = self.panel.panel.stack;
        let sums = if stack { stacked(&all) } else { all.iter().map(|(_, s)| s.points.clone()).collect() };
        let largest = sums.iter().flatten().map(|(_, v)| *v).fold(0.0, f64::max);
        // A threshold far above the values would press them flat.
        let near = self.panel.limits.iter().map(|l| l.at).filter(|l| *l <= 2.5 * largest || l.abs() < 1e-9);
        let axis = axis(self.measure(), near.clone().fold(largest, f64::max));
        let y_of = |v: f64| bottom - (v / axis.end).clamp(0.0, 1.0) * (bottom - top);
        for (value, word) in &axis.marks {
            let y = y_of(*value);
            rule(out, left, y, right, y, "#e4e7ec", "");
            text(out, left - 6.0, y + 3.5, 10, DIM, word, "text-anchor=\"end\"");
        }
        self.hours(out, left, right, bottom);
        for (i, points) in sums.iter().enumerate().rev() {
            let colour = COLOURS[i % COLOURS.len()];
            for run in runs(points) {
                let path = self.path(&run, left, right, y_of);
                if stack {
                    let (first, last) =
                        (self.x_of(run[0].0, left, right), self.x_of(run[run.len() - 1].0, left, right));
                    let _ = writeln!(
                        out,
                        "<path d=\"{path}L{last:.1} {bottom:.1}L{first:.1} {bottom:.1}Z\" fill=\"{colour}\" fill-opacity=\"0.25\"/>"
                    );
                }
                let _ = writeln!(
                    out,
                    "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
                );
            }
        }
        for limit in near {
            let y = y_of(limit);
            rule(out, left, y, right, y, BAD, "stroke-dasharray=\"5 4\"");
        }
        legend.draw(out, self.x + 10.0, self.y + self.height - legend.height() - 2.0);
    }

    fn x_of(&self, at: f64, left: f64, right: f64) -> f64 {
        left + (at - self.span.from) / (self.span.to - self.span.from) * (right - left)
    }

    /// A line, without points that lie on it anyway.
    fn path(&self, run: &[(f64, f64)], left: f64, right: f64, y_of: impl Fn(f64) -> f64) -> String {
        let all: Vec<(f64, f64)> =
            run.iter().map(|(at, v)| (self.x_of(*at, left, right), y_of(*v))).collect();
        let mut out = String::new();
        for (i, (x, y)) in all.iter().enumerate() {
            let between = i.checked_sub(1).and_then(|b| Some((all.get(b)?, all.get(i + 1)?)));
            let straight = between.is_some_and(|((ax, ay), (bx, by))| {
                let on = ay + (by - ay) * (x - ax) / (bx - ax);
                (on - y).abs() < 0.15
            });
            if !straight {
                let _ = write!(out, "{}{x:.1} {y:.1}", if out.is_empty() { 'M' } else { 'L' });
            }
        }
        out
    }

    /// The clock under a plot.
    fn hours(&self, out: &mut String, left: f64, right: f64, bottom: f64) {
        let hours = ((self.span.to - self.span.from) / 3600.0).round() as i32;
        let step = if self.width < 480.0 { 2 } else { 1 };
        for h in (0..=hours).step_by(step) {
            let x = self.x_of(self.span.from + f64::from(h) * 3600.0, left, right);
            let clock = (self.span.from as i64 / 3600 + i64::from(h)) % 24;
            let anchor = if h == hours { "text-anchor=\"end\"" } else { "text-anchor=\"middle\"" };
            text(out, x, bottom + 14.0, 10, DIM, &format!("{clock:02}:00"), anchor);
        }
    }

    fn stat(&self, out: &mut String) {
        let all = self.named();
        let room = (self.width - 20.0) / all.len().max(1) as f64;
        for (i, (name, s)) in all.iter().enumerate() {
            let x = self.x + 10.0 + room * i as f64;
            let value = s.points.last().unwrap().1;
            let bad = self.panel.limits.iter().any(|l| (value > l.at) != l.below);
            let colour = if self.panel.limits.is_empty() {
                INK
            } else if bad {
                BAD
            } else {
                "#2f9e68"
            };
            let size = if all.len() > 1 { 22 } else { 28 };
            text(out, x, self.y + 60.0, size, colour, &words(self.measure(), value), "");
            text(out, x, self.y + 82.0, 11, DIM, &fitted(name, 11, room - 6.0), "");
        }
    }

    fn states(&self, out: &mut String) {
        let all = self.named();
        let room = self.height - 32.0 - 40.0;
        let bar = (room / all.len().max(1) as f64).min(26.0);
        let longest = all.iter().map(|(n, _)| n.chars().count() as f64 * 6.4).fold(40.0, f64::max);
        let left = self.x + 16.0 + longest.min(self.width * 0.4);
        let right = self.x + self.width - 12.0;
        let top = self.y + 32.0;
        for (i, (name, s)) in all.iter().enumerate() {
            let y = top + bar * i as f64;
            text(
                out,
                self.x + 10.0,
                y + bar / 2.0 + 3.5,
                10,
                INK,
                &fitted(name, 10, left - self.x - 16.0),
                "",
            );
            for run in same(&s.points) {
                let state = self.panel.panel.state.iter().find(|st| (st.value as f64 - run[0].1).abs() < 0.5);
                let colour = state.map_or("#c0c8d8", |st| paint(&st.colour));
                let (from, to) =
                    (self.x_of(run[0].0, left, right), self.x_of(run[run.len() - 1].0, left, right));
                let _ = writeln!(
                    out,
                    "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\" fill-opacity=\"0.75\"/>",
                    y + 2.0,
                    (to - from).max(1.5),
                    (bar - 4.0).max(2.0)
                );
            }
        }
        let bottom = top + bar * all.len() as f64;
        self.hours(out, left, right, bottom);
        let mut x = self.x + 10.0;
        for state in &self.panel.panel.state {
            x += key(out, x, self.y + self.height - 10.0, paint(&state.colour), &state.text);
        }
    }

    fn table(&self, out: &mut String) {
        let all: Vec<&Series> = self.answers.iter().flat_map(|a| &a.series).collect();
        let Some(first) = all.first() else { return };
        let mut heads: Vec<String> = first.labels.keys().cloned().collect();
        let header = self.panel.panel.value.as_ref();
        heads.extend(header.cloned());
        let mut rows: Vec<Vec<String>> = all
            .iter()
            .map(|s| {
                let cell = |h: &String| match header {
                    Some(v) if v == h => words(self.measure(), s.points.last().unwrap().1),
                    _ => s.labels.get(h).and_then(Value::as_str).unwrap_or_default().to_owned(),
                };
                heads.iter().map(cell).collect()
            })
            .collect();
        rows.sort();
        let most = ((self.height - 56.0) / 18.0).floor() as usize;
        let widths: Vec<f64> = (0..heads.len())
            .map(|c| {
                rows.iter().map(|r| r[c].chars().count()).chain([heads[c].chars().count()]).max().unwrap()
                    as f64
            })
            .collect();
        let whole: f64 = widths.iter().sum();
        let scale = ((self.width - 20.0) / (whole + 2.0 * heads.len() as f64)).min(9.0);
        let mut x = self.x + 10.0;
        for (c, head) in heads.iter().enumerate() {
            let room = (widths[c] + 2.0) * scale;
            text(out, x, self.y + 40.0, 10, DIM, &fitted(head, 10, room - 4.0), "font-weight=\"bold\"");
            for (r, row) in rows.iter().take(most).enumerate() {
                text(out, x, self.y + 58.0 + 18.0 * r as f64, 10, INK, &fitted(&row[c], 10, room - 4.0), "");
            }
            x += room;
        }
    }

    /// Markdown without its marks, wrapped.
    fn words(&self, out: &mut String) {
        let mut y = self.y + 40.0;
        for line in self.panel.panel.text.as_deref().unwrap_or_default().lines() {
            let plain = line.replace("**", "").replace('`', "");
            let plain = plain.replace("$pod", self.pod).replace("$namespace", "serving");
            if plain.is_empty() {
                y += 7.0;
                continue;
            }
            let code = line.contains('`') && line.starts_with(|c: char| c.is_ascii_digit());
            let mut row = String::new();
            for word in plain.split(' ').chain([""]) {
                let longer = if row.is_empty() { word.to_owned() } else { format!("{row} {word}") };
                if word.is_empty() || wide(&longer, 11) > self.width - 20.0 {
                    text(out, self.x + 10.0, y, 11, if code { "#2b4d8f" } else { INK }, &row, "");
                    y += 16.0;
                    row = word.to_owned();
                } else {
                    row = longer;
                }
            }
        }
    }
}

/// Names of series below a plot, as many lines as they need, three at most.
struct Legend {
    lines: Vec<Vec<(usize, String)>>,
}

impl Legend {
    fn of(all: &[(String, &Series)], measure: Measure, room: f64) -> Self {
        let mut lines: Vec<Vec<(usize, String)>> = vec![Vec::new()];
        let mut x = 0.0;
        for (i, (name, s)) in all.iter().enumerate() {
            let last = s.points.last().map_or(0.0, |p| p.1);
            let entry = fitted(&format!("{name}  {}", words(measure, last)), 10, room - 20.0);
            let width = wide(&entry, 10) + 26.0;
            if x + width > room && !lines[lines.len() - 1].is_empty() {
                lines.push(Vec::new());
                x = 0.0;
            }
            x += width;
            lines.last_mut().unwrap().push((i, entry));
        }
        let most = 3;
        let lost: usize = lines.iter().skip(most).map(Vec::len).sum();
        lines.truncate(most);
        if lost > 0 {
            let line = lines.last_mut().unwrap();
            line.pop();
            line.push((usize::MAX, format!("and {} more", lost + 1)));
        }
        Self { lines }
    }

    fn height(&self) -> f64 {
        self.lines.len() as f64 * 15.0 + 6.0
    }

    fn draw(&self, out: &mut String, left: f64, top: f64) {
        for (row, line) in self.lines.iter().enumerate() {
            let mut x = left;
            for (i, entry) in line {
                let colour =
                    COLOURS.get(i % COLOURS.len()).filter(|_| *i != usize::MAX).copied().unwrap_or("#ffffff");
                x += key(out, x, top + 12.0 + 15.0 * row as f64, colour, entry);
            }
        }
    }
}

/// A square with its word; the width of both.
fn key(out: &mut String, x: f64, y: f64, colour: &str, word: &str) -> f64 {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"9\" height=\"9\" rx=\"2\" fill=\"{colour}\"/>",
        y - 8.5
    );
    text(out, x + 13.0, y, 10, INK, word, "");
    wide(word, 10) + 26.0
}

/// Sums from the first series on, at each time.
fn stacked(all: &[(String, &Series)]) -> Vec<Vec<(f64, f64)>> {
    let mut base: std::collections::BTreeMap<i64, f64> = std::collections::BTreeMap::new();
    let mut add = |(at, v): &(f64, f64)| {
        let sum = base.entry(*at as i64).or_default();
        *sum += v;
        (*at, *sum)
    };
    all.iter().map(|(_, s)| s.points.iter().map(&mut add).collect()).collect()
}

/// Points without a gap between them: three steps without a value are one.
fn runs(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let step = points.windows(2).map(|w| w[1].0 - w[0].0).fold(f64::INFINITY, f64::min);
    points.chunk_by(|a, b| b.0 - a.0 <= 1.5 * step).map(<[_]>::to_vec).collect()
}

/// Times of one value, each until the next one begins.
fn same(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut out = Vec::new();
    for run in runs(points) {
        let mut parts: Vec<Vec<(f64, f64)>> =
            run.chunk_by(|a, b| (a.1 - b.1).abs() < 0.5).map(<[_]>::to_vec).collect();
        for i in 1..parts.len() {
            let next = parts[i][0].0;
            let value = parts[i - 1][0].1;
            parts[i - 1].push((next, value));
        }
        out.extend(parts);
    }
    out
}

fn paint(colour: &str) -> &'static str {
    match colour {
        "green" => "#3fae6f",
        "yellow" => "#e0b400",
        "orange" => "#e08a2b",
        "red" => BAD,
        _ => "#6d8fd6",
    }
}

/// A legend with its labels filled in.
fn filled(legend: &str, series: &Series) -> String {
    let mut out = legend.to_owned();
    while let Some((before, rest)) = out.split_once("{{") {
        let (label, behind) = rest.split_once("}}").unwrap();
        let value = series.labels.get(label).and_then(Value::as_str).unwrap_or_default();
        out = format!("{before}{value}{behind}");
    }
    out.trim().to_owned()
}

/// Width of a text in DejaVu Sans, a little more than it is.
fn wide(text: &str, size: u32) -> f64 {
    text.chars()
        .map(|c| {
            if "ilj.,:;|'/ ()".contains(c) {
                0.36
            } else if c.is_ascii_uppercase() || "mwMW%".contains(c) {
                0.8
            } else {
                0.62
            }
        })
        .sum::<f64>()
        * f64::from(size)
}

/// As much of a text as there is room for.
fn fitted(text: &str, size: u32, room: f64) -> String {
    if wide(text, size) <= room {
        return text.to_owned();
    }
    let mut out = text.to_owned();
    while !out.is_empty() && wide(&out, size) > room - f64::from(size) {
        out.pop();
    }
    out.trim_end().to_owned() + "…"
}

fn rule(out: &mut String, x1: f64, y1: f64, x2: f64, y2: f64, colour: &str, more: &str) {
    let _ = writeln!(out, "<path d=\"M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}\" stroke=\"{colour}\" {more}/>");
}

fn text(out: &mut String, x: f64, y: f64, size: u32, colour: &str, words: &str, more: &str) {
    let words = dualplane_base::text::markup(words);
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" {more}>{words}</text>"
    );
}
