//! Boards for people: which there are, and which question each panel answers.

use dualplane_base::style::{Style, wrap};
use dualplane_base::text::counted;

use crate::ready::Ready;

/// Boards with their panels.
#[must_use]
pub fn text(all: &[Ready], style: Style) -> String {
    let mut out = String::new();
    for ready in all {
        out.push_str(&format!("{}  {}\n", style.bold(&ready.board.name), ready.board.title));
        out.push_str(&wrap(&ready.board.question, style.width, "  ", "  "));
        out.push('\n');
        for row in &ready.rows {
            let titles: Vec<&str> = row.panels.iter().map(|p| p.panel.title.as_str()).collect();
            out.push_str(&wrap(
                &format!("{}: {}", row.title, titles.join(" · ")),
                style.width,
                "  - ",
                "    ",
            ));
            out.push('\n');
        }
        if !ready.left_out.is_empty() {
            let lost = format!("without series, left out: {}", ready.left_out.join(" · "));
            out.push_str(&wrap(&lost, style.width, "  ✗ ", "    "));
            out.push('\n');
        }
        out.push('\n');
    }
    let panels: usize = all.iter().map(|r| r.panels().count()).sum();
    out.push_str(&format!(
        "{} with {}; they read the records of `dualplane rules`. `-o json` prints one for Grafana, `--dir DIR` writes all\n",
        counted(all.len(), "board"),
        counted(panels, "panel")
    ));
    out
}

/// The table of the manual.
#[must_use]
pub fn table(all: &[Ready]) -> String {
    let mut out = "| board | question | panel | answers with | alert |\n|---|---|---|---|---|\n".to_owned();
    for ready in all {
        for (i, p) in ready.panels().enumerate() {
            let (name, question) = if i == 0 {
                (format!("`{}`", ready.board.name), ready.board.question.as_str())
            } else {
                Default::default()
            };
            let mut records: Vec<&str> =
                p.panel.query.iter().flat_map(|q| crate::query::records(&q.expr)).collect();
            records.sort_unstable();
            records.dedup();
            let records: Vec<String> = records.iter().map(|r| format!("`{r}`")).collect();
            let alerts: Vec<String> = p.alerts.iter().map(|a| format!("`{}`", a.id)).collect();
            out.push_str(&format!(
                "| {name} | {question} | {} | {} | {} |\n",
                p.panel.title,
                records.join(", "),
                alerts.join(", ")
            ));
        }
    }
    out
}
