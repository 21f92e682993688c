//! A message as a template: its words, and holes for what is put in when it is printed.
//!
//! Written, a hole is `{}`, or `{d}`, `{f}`, `{s}`, `{x}` where the source says that a number, a word or hexadecimal digits
//! fill it. Filled with generated values, a template is a line that a program could print.

use std::sync::LazyLock;

use regex::Regex;

use super::literal::{Hole, Literal, Part};

/// A message of which this many letters are no hole says something.
const FEWEST_LETTERS: usize = 8;
/// Templates longer than this are cut: what matters is at their beginning.
const LONGEST: usize = 600;

/// A message with holes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

impl Template {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has_text(&self) -> bool {
        self.0.iter().any(|p| matches!(p, Part::Text(_)))
    }

    /// Whether a conversion stands in it: then the arguments behind it fill holes, and are no text of their own.
    pub(super) fn is_format(&self) -> bool {
        self.0.iter().any(|p| matches!(p, Part::Hole(h) if *h != Hole::Any))
    }

    /// Adds a literal; in a format, conversions and braces are holes.
    pub(super) fn add(&mut self, literal: &Literal, format: bool) {
        for part in &literal.0 {
            match part {
                Part::Text(text) if format => self.add_format(text),
                Part::Text(text) => self.0.push(Part::Text(text.clone())),
                Part::Hole(hole) => self.0.push(Part::Hole(*hole)),
            }
        }
    }

    /// Adds another message behind this one.
    pub(super) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Adds something that is computed.
    pub(super) fn hole(&mut self) {
        if !matches!(self.0.last(), Some(Part::Hole(_))) {
            self.0.push(Part::Hole(Hole::Any));
        }
    }

    fn add_format(&mut self, text: &str) {
        static FORMAT: LazyLock<Option<Regex>> = LazyLock::new(|| {
            Regex::new(
                r"(%%)|%(?:\(\w+\))?[-+#0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|h|ll|l|z|j|t|q|L)?([diouxXeEfFgGcspvTqw])|%$|\{[A-Za-z0-9_.\[\]]*(?:[:!]([^{}]*))?\}",
            )
            .ok()
        });
        let Some(format) = FORMAT.as_ref() else { return };
        let mut from = 0;
        for found in format.captures_iter(text) {
            let Some(whole) = found.get(0) else { continue };
            let before = text.get(from..whole.start()).unwrap_or_default();
            from = whole.end();
            if !before.is_empty() {
                self.0.push(Part::Text(before.to_owned()));
            }
            if found.get(1).is_some() {
                self.0.push(Part::Text("%".to_owned()));
                continue;
            }
            let kind = found.get(2).or_else(|| found.get(3)).and_then(|m| m.as_str().chars().last());
            self.0.push(Part::Hole(match kind {
                Some('d' | 'i' | 'u' | 'o') => Hole::Whole,
                Some('f' | 'e' | 'g' | 'E' | 'F' | 'G') => Hole::Decimal,
                Some('x' | 'X' | 'p') => Hole::Hex,
                Some('s' | 'c' | 'q') => Hole::Word,
                _ => Hole::Any,
            }));
        }
        let rest = text.get(from..).unwrap_or_default();
        if !rest.is_empty() {
            self.0.push(Part::Text(rest.to_owned()));
        }
    }

    /// As it is kept: one line, `\n` where the message has a line break.
    pub(super) fn written(&self) -> String {
        let mut line = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => {
                    for c in text.chars() {
                        match c {
                            '\n' => line.push_str("\\n"),
                            c if c.is_whitespace() || c.is_control() => {
                                if !line.ends_with(' ') {
                                    line.push(' ');
                                }
                            }
                            c => line.push(c),
                        }
                    }
                }
                Part::Hole(hole) => line.push_str(match hole {
                    Hole::Any => "{}",
                    Hole::Whole => "{d}",
                    Hole::Decimal => "{f}",
                    Hole::Word => "{s}",
                    Hole::Hex => "{x}",
                }),
            }
        }
        let line = line.trim().trim_end_matches("\\n").trim_start_matches("\\n").trim();
        line.chars().take(LONGEST).collect()
    }

    /// Whether enough of it is words.
    pub(super) fn says_something(&self) -> bool {
        let letters = |p: &Part| match p {
            Part::Text(t) => t.chars().filter(|c| c.is_alphabetic()).count(),
            Part::Hole(_) => 0,
        };
        self.0.iter().map(letters).sum::<usize>() >= FEWEST_LETTERS
    }
}

/// What may stand in a hole of which the source says nothing: a count, an amount, a name, a file, a process, a device, a
/// function.
const FILLS: [&str; 7] =
    ["4096", "12.50 GiB", "model-7b", "/dev/shm", "VllmWorker-0", "CUDA0", "ggml_backend_init"];

/// What a program could print: holes filled in several ways, because the source seldom says with what.
pub(super) fn filled(template: &str) -> Vec<String> {
    let fill = |template: &str, any: &str| {
        template
            .replace("{}", any)
            .replace("{s}", any)
            .replace("{d}", "42")
            .replace("{f}", "3.25")
            .replace("{x}", "7f1e00000000")
    };
    let mut lines: Vec<String> = FILLS.iter().map(|any| fill(template, any)).collect();
    // What failed to be allocated failed for want of memory, where the error stands at the end.
    let end = [": {}", ": {s}"].iter().find_map(|end| template.strip_suffix(end));
    if let Some(start) = end.filter(|t| t.contains("lloc")) {
        lines.extend(FILLS.iter().map(|any| format!("{}: out of memory", fill(start, any))));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(text: &str) -> String {
        let mut t = Template::default();
        t.add(&Literal(vec![Part::Text(text.to_owned())]), true);
        t.written()
    }

    #[test]
    fn formats_have_holes() {
        for (text, written) in [
            (
                "failed to allocate %zu bytes (%5.2f MiB) at %p: %s\n",
                "failed to allocate {d} bytes ({f} MiB) at {x}: {s}",
            ),
            ("used %(used)d of {total:.2f} GiB, {} left", "used {d} of {f} GiB, {} left"),
            ("100%% of it, 90% of the rest", "100% of it, 90% of the rest"),
            ("%v: %w, {\"a\": 1}", "{}: {}, {\"a\": 1}"),
            ("a\n\tb\n", "a\\n b"),
        ] {
            assert_eq!(format(text), written);
        }
    }

    #[test]
    fn a_filled_template_has_no_hole() {
        for line in filled("a {} b {d} c {f} d {s} e {x}") {
            assert!(!line.contains('{'), "{line}");
        }
    }
}
