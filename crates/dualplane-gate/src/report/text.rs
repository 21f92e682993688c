//! The answer as lines for people.

use dualplane_base::style::{Style, wrap};
use dualplane_base::text::{printable, shorten};

use super::headline;
use crate::gate::{Gate, Outcome};

/// Widest text of a property.
const WIDEST: usize = 90;

/// The answer; `-v` also shows what passed with its numbers.
#[must_use]
pub fn text(g: &Gate, style: Style) -> String {
    let head = headline(g);
    let head = match g.outcome {
        Outcome::Pass | Outcome::NotApplicable => style.good(&head),
        Outcome::NotShown => style.bold(&head),
        Outcome::Fail => style.bad(&head),
    };
    let mut out = format!("gate {head}\n");
    let mut line = |label: &str, text: &str| {
        let first = format!("{label:<10}");
        out.push_str(&wrap(&printable(text), style.width, &first, "          "));
        out.push('\n');
    };
    line("candidate", &g.candidate);
    line("baseline", g.baseline.as_deref().unwrap_or("none"));
    for d in &g.released {
        let said = |v: &Option<String>| {
            v.as_ref().map_or("not said".to_owned(), |v| shorten(v, WIDEST).into_owned())
        };
        line("released", &format!("{}: {}, was {}", d.field.as_str(), said(&d.other), said(&d.one)));
    }
    for (outcome, mark) in [
        (Outcome::Fail, "FAIL"),
        (Outcome::NotShown, "not shown"),
        (Outcome::Pass, "pass"),
        (Outcome::NotApplicable, "no card"),
    ] {
        let some: Vec<_> = g.checks.iter().filter(|c| c.outcome == outcome).collect();
        if some.is_empty() {
            continue;
        }
        out.push('\n');
        for c in some {
            let shown = match outcome {
                Outcome::Fail => style.bad(mark),
                Outcome::NotShown => style.bold(mark),
                _ => style.dim(mark),
            };
            let pad = " ".repeat(10_usize.saturating_sub(mark.len()));
            out.push_str(&format!("{shown}{pad}{}\n", printable(&c.id)));
            if outcome != Outcome::NotApplicable {
                out.push_str(&wrap(&printable(&c.found), style.width, "          ", "          "));
                out.push('\n');
            }
            if matches!(outcome, Outcome::Fail | Outcome::NotShown) {
                out.push_str(&wrap(
                    &printable(&c.asked),
                    style.width,
                    "          asked: ",
                    "                 ",
                ));
                out.push('\n');
            }
        }
    }
    out
}
