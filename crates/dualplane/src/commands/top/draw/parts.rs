//! Pieces of lines: sizes, bars, trends, and text that is cut to its place. Everything from outside is made safe here.

use std::collections::VecDeque;

use dualplane_base::text::printable;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// From here on a share is drawn as a warning, from [`BAD`] on as an alarm: the kubelet evicts and the kernel reclaims hard.
const WARN: f64 = 0.80;
const BAD: f64 = 0.92;
/// Eighths of a cell, from the left.
const LEFT: [&str; 9] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"];
/// Eighths of a cell, from below.
const BELOW: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Colours, or only bold and dim where none are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) colour: bool,
}

impl Theme {
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(crate) fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn head(self) -> Style {
        self.paint(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn bad(self) -> Style {
        self.paint(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn warn(self) -> Style {
        self.paint(Color::Yellow)
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// How a share looks.
    pub(crate) fn share(self, share: Option<f64>) -> Style {
        match share {
            Some(s) if s >= BAD => self.bad(),
            Some(s) if s >= WARN => self.warn(),
            Some(_) => self.paint(Color::Green),
            None => self.dim(),
        }
    }

    fn paint(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }
}

/// `812M`, `12.3G`: five characters at most up to 9999 TiB.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "K", "M", "G", "T", "P"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or("");
    if unit < 2 || value >= 99.95 { format!("{value:.0}{name}") } else { format!("{value:.1}{name}") }
}

/// A size, or a dash for what is not known.
pub(crate) fn size_or_dash(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), size)
}

/// `97%`.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |s| format!("{:.0}%", (s * 100.0).clamp(0.0, 999.0)))
}

/// Columns of a text on the screen.
pub(crate) fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// Safe text in exactly so many columns, from the left; what is cut ends in `…`.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let text = printable(text);
    let mut out = String::new();
    let mut used = 0;
    if columns(&text) <= width {
        out.push_str(&text);
        used = columns(&text);
    } else if width > 0 {
        for c in text.chars() {
            let w = columns(c.encode_utf8(&mut [0; 4]));
            if used + w + 1 > width {
                break;
            }
            out.push(c);
            used += w;
        }
        out.push('…');
        used += 1;
    }
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    out
}

/// The same for names: the middle is cut, as the end tells which container it is.
pub(crate) fn fit_name(text: &str, width: usize) -> String {
    let text = printable(text);
    if columns(&text) <= width || width < 8 {
        return fit(&text, width);
    }
    let end = width / 2;
    let mut tail: Vec<char> = Vec::new();
    let mut used = 0;
    for c in text.chars().rev() {
        let w = columns(c.encode_utf8(&mut [0; 4]));
        if used + w > end {
            break;
        }
        used += w;
        tail.push(c);
    }
    let head = fit(&text, width - used);
    head + &tail.iter().rev().collect::<String>()
}

/// The same from the right, for numbers.
pub(crate) fn right(text: &str, width: usize) -> String {
    let used = columns(text);
    if used > width { fit(text, width) } else { " ".repeat(width - used) + text }
}

/// A bar of `width` columns: filled up to `share`, lighter up to `more`, a mark at `peak`.
pub(crate) fn bar(
    theme: Theme,
    width: usize,
    share: Option<f64>,
    more: Option<f64>,
    peak: Option<f64>,
) -> Vec<Span<'static>> {
    let Some(share) = share else { return vec![Span::styled("·".repeat(width), theme.dim())] };
    let cells = |s: f64| (s.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let filled = cells(share);
    let light = more.map_or(0, cells).div_ceil(8);
    let mark = peak.filter(|p| *p > share).map(|p| (cells(p).div_ceil(8)).clamp(1, width.max(1)) - 1);
    let style = theme.share(Some(share));
    let mut out = Vec::new();
    for i in 0..width {
        let eighths = filled.saturating_sub(i * 8).min(8);
        out.push(match (eighths, LEFT.get(eighths)) {
            (1.., Some(cell)) => Span::styled(*cell, style),
            _ if mark == Some(i) => Span::styled("╎", theme.bold()),
            _ if i < light => Span::styled("░", theme.dim()),
            _ => Span::styled("·", theme.dim()),
        });
    }
    merged(out)
}

/// Neighbours of one style become one piece.
fn merged(spans: Vec<Span<'static>>) -> Vec<Span<'static>> {
    let mut out: Vec<Span<'static>> = Vec::new();
    for s in spans {
        match out.last_mut().filter(|l| l.style == s.style) {
            Some(last) => last.content.to_mut().push_str(&s.content),
            None => out.push(s),
        }
    }
    out
}

/// One character for a share.
pub(crate) fn level(share: Option<f64>) -> char {
    let Some(share) = share else { return '·' };
    let step = (share.clamp(0.0, 1.0) * 7.0).round() as usize;
    BELOW.get(step).copied().unwrap_or('█')
}

/// The last points of a trend in `width` characters, the newest at the right; each shows the highest of its points.
pub(crate) fn trend(points: &VecDeque<Option<f64>>, width: usize) -> String {
    let per = points.len().div_ceil(width.max(1)).max(1);
    let all: Vec<Option<f64>> = points.iter().copied().collect();
    // From the newest back, so that a column does not change its points while time goes on at the other end.
    let mut cells: Vec<char> = all
        .rchunks(per)
        .take(width)
        .map(|c| c.iter().flatten().copied().reduce(f64::max))
        .map(|most| if most.is_some() { level(most) } else { ' ' })
        .collect();
    cells.resize(width, ' ');
    cells.iter().rev().collect()
}

/// A line out of pieces, cut at the width.
pub(crate) fn line(spans: Vec<Span<'static>>, width: usize) -> Line<'static> {
    let mut left = width;
    let mut out = Vec::new();
    for s in spans {
        let w = s.width();
        if w <= left {
            left -= w;
            out.push(s);
        } else {
            out.push(Span::styled(fit(&s.content, left), s.style));
            break;
        }
    }
    Line::from(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares() {
        let sizes: Vec<String> =
            [0, 1023, 1 << 20, 812 << 20, 1 << 30, (80 << 30) - (1 << 29), 141 << 30, u64::MAX]
                .map(size)
                .into();
        assert_eq!(sizes, ["0B", "1K", "1.0M", "812M", "1.0G", "79.5G", "141G", "16384P"]);
        assert_eq!(
            (percent(Some(0.996)), percent(None), size_or_dash(None)),
            ("100%".into(), "-".into(), "-".into())
        );
    }

    #[test]
    fn text_keeps_its_place_and_is_safe() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(fit("模型模型", 5), "模型…");
        assert_eq!(fit("模型模型", 4), "模… ");
        assert_eq!(fit("a\u{1b}[2Jb", 20).trim_end(), "a\\u{1b}[2Jb");
        assert_eq!(fit_name("serving/llama-70b-x7k2p/vllm", 20), "serving/l…x7k2p/vllm");
        assert_eq!(
            (fit_name("abc", 20).len(), fit_name("模型模型模型", 9), fit_name("abcdef", 3)),
            (20, "模型…模型".into(), "ab…".into())
        );
        assert_eq!((fit("abc", 0), fit("abc", 1), right("7", 3)), (String::new(), "…".into(), "  7".into()));
    }

    #[test]
    fn bars_and_trends() {
        let t = Theme { colour: false };
        let text =
            |spans: Vec<Span<'static>>| spans.iter().map(|s| s.content.to_string()).collect::<String>();
        assert_eq!(text(bar(t, 8, Some(0.5), Some(0.75), Some(0.99))), "████░░·╎");
        assert_eq!(text(bar(t, 4, Some(9.0), None, None)), "████");
        assert_eq!(text(bar(t, 4, None, None, None)), "····");
        assert_eq!(text(bar(t, 0, Some(0.5), None, Some(0.9))), "");
        let points: VecDeque<_> = [None, Some(0.0), Some(0.5), Some(1.0)].into();
        assert_eq!(trend(&points, 6), "   ▁▅█");
        assert_eq!(trend(&points, 2), "▁█");
        assert_eq!(trend(&VecDeque::new(), 0), "");
    }
}
