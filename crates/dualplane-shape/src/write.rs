//! The file of a shape, for people: TOML in the order in which one reads it.

use std::fmt::Write as _;

use crate::shape::Shape;

impl Shape {
    /// As JSON.
    ///
    /// # Errors
    /// Where a number is none.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// As TOML; a cell of the histogram stands in a line.
    #[must_use]
    pub fn toml(&self) -> String {
        let mut out = String::new();
        line(&mut out, "schema", Some(text(&self.schema)));
        line(&mut out, "name", Some(text(&self.name)));
        line(&mut out, "measured", Some(self.measured.to_string()));
        line(&mut out, "source", (!self.source.is_empty()).then(|| text(&self.source)));
        line(&mut out, "counted", self.counted.map(whole));
        line(&mut out, "span_seconds", self.span_seconds.map(number));
        line(&mut out, "concurrency", self.concurrency.map(whole));
        line(&mut out, "concurrency_peak", self.concurrency_peak.map(whole));
        line(&mut out, "arrival_per_second", self.arrival_per_second.map(number));
        line(&mut out, "seconds", self.seconds.map(number));
        line(&mut out, "prefix_share", (self.prefix_share > 0.0).then(|| number(self.prefix_share)));
        line(&mut out, "prefixes", self.prefixes.map(whole));
        for (key, points) in [("input", self.input), ("output", self.output)] {
            let value = points.map(|p| format!("{{ p50 = {}, p99 = {} }}", p.p50, p.p99));
            line(&mut out, key, value);
        }
        let long = self.long.map(|l| {
            format!(
                "{{ above = {}, share = {}, tokens_share = {} }}",
                l.above,
                number(l.share),
                number(l.tokens_share)
            )
        });
        line(&mut out, "long", long);
        let cancelled =
            self.cancelled.map(|c| format!("{{ share = {}, after = {} }}", number(c.share), number(c.after)));
        line(&mut out, "cancelled", cancelled);
        if !self.requests.is_empty() {
            out += "requests = [\n";
            for r in &self.requests {
                let (input, output, weight) = (r.input, r.output, number(r.weight));
                let _ = writeln!(out, "  {{ input = {input}, output = {output}, weight = {weight} }},");
            }
            out += "]\n";
        }
        if !self.tenants.is_empty() {
            out += "tenants = [\n";
            for t in &self.tenants {
                let _ = write!(out, "  {{ share = {}", number(t.share));
                for (key, value) in [("input", t.input), ("output", t.output)] {
                    if let Some(value) = value {
                        let _ = write!(out, ", {key} = {value}");
                    }
                }
                out += " },\n";
            }
            out += "]\n";
        }
        if let Some(a) = &self.arrival {
            out += "\n[arrival]\n";
            line(&mut out, "cv", Some(number(a.cv)));
            line(&mut out, "peak_per_second", a.peak_per_second.map(number));
            line(&mut out, "slice_seconds", a.slice_seconds.map(number));
            if !a.rates.is_empty() {
                let all: Vec<String> = a.rates.iter().map(|r| number(*r)).collect();
                line(&mut out, "rates", Some(format!("[{}]", all.join(", "))));
            }
        }
        out
    }
}

fn line(out: &mut String, key: &str, value: Option<String>) {
    if let Some(value) = value {
        let _ = writeln!(out, "{key} = {value}");
    }
}

// TOML's whole numbers have 63 bits.
fn whole(n: u64) -> String {
    n.min(i64::MAX as u64).to_string()
}

fn number(n: f64) -> String {
    // The shortest text that is the same number, with the point that TOML's numbers with a fraction need.
    if n.fract() == 0.0 && n.abs() < 1e15 { format!("{n:.0}") } else { format!("{n:?}") }
}

/// A basic string of TOML.
fn text(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
