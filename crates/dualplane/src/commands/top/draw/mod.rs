//! The screen: a model becomes lines, for a terminal and for `--once` alike.

mod detail;
mod panels;
mod parts;
mod table;

use ratatui::Frame as Screen;
use ratatui::text::{Line, Text};

pub(crate) use self::parts::Theme;
use super::model::Model;

/// GPUs, verdicts and gaps that `--once` prints, which has no bottom.
const ONCE_ROWS: usize = 64;

/// Draws onto a terminal.
pub(crate) fn screen(model: &Model, theme: Theme, to: &mut Screen<'_>) {
    let area = to.area();
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    to.render_widget(Text::from(lines(model, theme, width, height)), area);
}

/// As many lines as there is room for: the table gets what the panels leave, and panels shrink before the table does.
pub(crate) fn lines(model: &Model, theme: Theme, width: usize, height: usize) -> Vec<Line<'static>> {
    let f = &model.frame;
    let mut top = vec![panels::title(model, theme, width)];
    if model.help {
        top.extend(panels::help(theme, width));
        top.truncate(height);
        return top;
    }
    top.extend(panels::timeline(model, theme, width).filter(|_| height >= 12));
    if height >= 6 {
        top.push(panels::node(f, theme, width));
    }
    top.extend(panels::gpus(f, theme, width, gpu_rows(height).min(f.gpus.len())));
    let gaps = panels::gaps(f, theme, width, if height >= 20 { 2 } else { usize::from(height >= 10) });
    let verdicts =
        panels::incidents(f, theme, width, if height >= 30 { 4 } else { usize::from(height >= 18) * 2 });
    let keys = panels::keys(model, theme, width);
    let room = height.saturating_sub(top.len() + gaps.len() + verdicts.len() + 1);
    let mut middle = match model.focus().filter(|_| model.detail) {
        Some(c) => detail::detail(model, c, theme, width, room),
        None => table::table(model, theme, width, room, true),
    };
    middle.resize(room, Line::default());
    top.extend(middle);
    top.extend(verdicts);
    top.extend(gaps);
    top.push(keys);
    top.truncate(height);
    top
}

/// Everything once, without a cursor and keys.
pub(crate) fn once(model: &Model, theme: Theme, width: usize) -> Vec<Line<'static>> {
    let f = &model.frame;
    let mut out = vec![panels::title(model, theme, width), panels::node(f, theme, width)];
    out.extend(panels::gpus(f, theme, width, ONCE_ROWS));
    out.extend(table::table(model, theme, width, model.rows().len().max(1) + 1, false));
    out.extend(panels::incidents(f, theme, width, ONCE_ROWS));
    out.extend(panels::gaps(f, theme, width, ONCE_ROWS));
    out
}

/// A quarter of the screen.
fn gpu_rows(height: usize) -> usize {
    match height {
        0..8 => 0,
        _ => (height / 4).max(2),
    }
}
