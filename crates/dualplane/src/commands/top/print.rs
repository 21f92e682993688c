//! Lines of a screen as text for a file or a pipe; with colour as escape sequences.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::draw::Theme;

/// The lines, without blanks at their ends.
pub(super) fn text(lines: &[Line<'_>], theme: Theme) -> String {
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for span in &line.spans {
            let code = code(line.style.patch(span.style));
            if theme.colour && !code.is_empty() && !span.content.trim().is_empty() {
                text.push_str(&format!("\u{1b}[{code}m{}\u{1b}[0m", span.content));
            } else {
                text.push_str(&span.content);
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

fn code(style: Style) -> String {
    let modifiers = [(Modifier::BOLD, "1"), (Modifier::DIM, "2"), (Modifier::REVERSED, "7")];
    let mut parts: Vec<&str> =
        modifiers.iter().filter(|(m, _)| style.add_modifier.contains(*m)).map(|(_, c)| *c).collect();
    parts.extend(match style.fg {
        Some(Color::Red) => Some("31"),
        Some(Color::Green) => Some("32"),
        Some(Color::Yellow) => Some("33"),
        Some(Color::Cyan) => Some("36"),
        _ => None,
    });
    parts.join(";")
}
