//! `dualplane dev picture TARGET`: the coloured text of `triage` as SVG, so that documents show what is really printed.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use dualplane_base::text::markup;
use dualplane_core::knowledge::Knowledge;
use dualplane_report::{self as report, Style};

use super::{DevError, Outcome};
use dualplane_input::{self as input, Sieve};

/// Columns of the picture: a usual terminal of a wide screen.
const COLUMNS: usize = 110;
/// DejaVu Sans Mono at 13 px takes 7.83 px; where glyphs are hinted to whole pixels, 8.
const CHARACTER: f64 = 8.0;
const LINE: f64 = 17.0;
const MARGIN: f64 = 14.0;

pub(crate) fn run(path: &Path) -> Result<Outcome, DevError> {
    let knowledge = Knowledge::embedded()?;
    let style = Style { colour: true, verbose: false, width: COLUMNS };
    let mut text = String::new();
    let paths: [PathBuf; 1] = [path.to_owned()];
    for incident in input::read(&paths, &Sieve::new(&knowledge))? {
        for r in report::triage_all(&incident.name, incident.files, incident.gaps, &knowledge) {
            text.push_str(&report::text(&r, style));
        }
    }
    Ok(Outcome::of(svg(&text)))
}

fn svg(text: &str) -> String {
    // Commands are not wrapped on a terminal; a picture cuts them.
    let lines: Vec<&str> = text.lines().collect();
    let width = COLUMNS as f64 * CHARACTER + 2.0 * MARGIN;
    let height = lines.len() as f64 * LINE + 2.0 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#15181e\"/>\n\
         <g font-family=\"DejaVu Sans Mono,Menlo,Consolas,monospace\" font-size=\"13\" fill=\"#d8dee9\" xml:space=\"preserve\">\n"
    );
    // A colour goes on over line ends, as on a terminal.
    let mut class = "";
    for (i, line) in lines.iter().enumerate() {
        let y = MARGIN + LINE * (i as f64 + 0.8);
        // Writing into a String cannot fail.
        let _ = writeln!(out, "<text x=\"{MARGIN}\" y=\"{y:.1}\">{}</text>", spans(line, &mut class));
    }
    out.push_str("</g>\n</svg>\n");
    out
}

/// One line with its colours as spans, cut at the picture's width.
fn spans(line: &str, class: &mut &'static str) -> String {
    let mut out = String::new();
    let mut left = COLUMNS;
    let mut rest = line;
    loop {
        let (plain, after) = match rest.split_once("\u{1b}[") {
            Some((plain, tail)) => (plain, tail.split_once('m')),
            None => (rest, None),
        };
        let shown: String = plain.chars().take(left).collect();
        let cut = shown.chars().count() < plain.chars().count();
        left -= shown.chars().count();
        if !shown.is_empty() {
            let text = markup(&shown) + if cut { "…" } else { "" };
            if class.is_empty() {
                out.push_str(&text);
            } else {
                let _ = write!(out, "<tspan {class}>{text}</tspan>");
            }
        }
        match after {
            Some((code, tail)) if !cut => {
                *class = paint(code);
                rest = tail;
            }
            _ => return out,
        }
    }
}

fn paint(code: &str) -> &'static str {
    match code {
        "1" => "font-weight=\"bold\" fill=\"#ffffff\"",
        "2" => "fill=\"#8a93a5\"",
        "1;31" => "font-weight=\"bold\" fill=\"#ff6b6b\"",
        "1;33" => "font-weight=\"bold\" fill=\"#ffd166\"",
        "1;35" => "font-weight=\"bold\" fill=\"#d9a0ff\"",
        "1;36" => "font-weight=\"bold\" fill=\"#6fd3e3\"",
        "31" => "fill=\"#ff6b6b\"",
        "32" => "fill=\"#7bd88f\"",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_spans_and_markup_is_escaped() {
        assert_eq!(
            spans("a \u{1b}[32m<b>\u{1b}[0m c", &mut ""),
            "a <tspan fill=\"#7bd88f\">&lt;b&gt;</tspan> c"
        );
        let long = spans(&"x".repeat(COLUMNS + 5), &mut "");
        assert_eq!(long.chars().count(), COLUMNS + 1);
    }
}
