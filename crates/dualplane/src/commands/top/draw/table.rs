//! The table of containers: columns that the width has room for, the important ones first.

use ratatui::text::{Line, Span};

use super::parts::{Theme, bar, fit, fit_name, level, line, percent, right, size, size_or_dash, trend};
use crate::args::SortBy;
use crate::commands::top::frame::Container;
use crate::commands::top::model::Model;

/// A name gets so much before further columns are added; on a narrow screen the numbers of both planes come first.
const NAME: usize = 18;
const SHORT_NAME: usize = 12;
const NARROW: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Bar,
    Used,
    Split,
    Swap,
    Pressure,
    Vram,
    VramBar,
    Kv,
    Requests,
    Kills,
    HostTrend,
    VramTrend,
}

/// Column, title, width, from the left. The order of [`RANK`] says which are added first.
const COLUMNS: &[(Column, &str, usize)] = &[
    (Column::Name, "CONTAINER", 0),
    (Column::Bar, "HOST RAM", 10),
    (Column::Used, "USED/LIMIT", 16),
    (Column::HostTrend, "RAM TREND", 12),
    (Column::Split, "ANON/SHM/FILE", 17),
    (Column::Swap, "SWAP", 5),
    (Column::Pressure, "PSI", 4),
    (Column::Kills, "OOM", 3),
    (Column::VramBar, "GPU MEMORY", 10),
    (Column::Vram, "VRAM", 6),
    (Column::VramTrend, "VRAM TREND", 12),
    (Column::Kv, "KV", 4),
    (Column::Requests, "RUN/WAIT", 8),
];

const RANK: &[Column] = &[
    Column::Used,
    Column::Vram,
    Column::Kills,
    Column::Kv,
    Column::Bar,
    Column::VramBar,
    Column::Split,
    Column::Pressure,
    Column::Requests,
    Column::HostTrend,
    Column::VramTrend,
    Column::Swap,
];

/// Columns for a width, with the width of each.
fn chosen(width: usize) -> Vec<(Column, &'static str, usize)> {
    let of = |c: Column| COLUMNS.iter().find(|(column, ..)| *column == c).map_or(0, |(.., w)| w + 1);
    let least = if width < NARROW { SHORT_NAME } else { NAME };
    let mut left = width.saturating_sub(least);
    let mut taken = vec![Column::Name];
    for c in RANK {
        if of(*c) > left {
            break;
        }
        left -= of(*c);
        taken.push(*c);
    }
    // A long name is worth more than blanks.
    let name = least.min(width) + left;
    let all = COLUMNS.iter().filter(|(c, ..)| taken.contains(c));
    all.map(|(c, title, w)| (*c, *title, if *c == Column::Name { name } else { *w })).collect()
}

/// The head and as many rows as there is room for, with the selected one in sight.
pub(super) fn table(
    model: &Model,
    theme: Theme,
    width: usize,
    height: usize,
    cursor: bool,
) -> Vec<Line<'static>> {
    let columns = chosen(width);
    let rows = model.rows();
    let sorted = match model.sort {
        SortBy::Memory => Column::Used,
        SortBy::Vram => Column::Vram,
        SortBy::Kv => Column::Kv,
        SortBy::Name => Column::Name,
    };
    let head = columns.iter().enumerate().flat_map(|(i, (c, title, w))| {
        let title = if *c == sorted { format!("{title}▾") } else { (*title).to_owned() };
        let title = if is_number(*c) { right(&title, *w) } else { fit(&title, *w) };
        [Span::raw(if i == 0 { "" } else { " " }), Span::styled(title, theme.head())]
    });
    let mut out = vec![line(head.collect(), width)];
    let room = height.saturating_sub(1);
    let selected = model.row();
    // The selection stays in the middle where rows do not fit.
    let first = selected.saturating_sub(room / 2).min(rows.len().saturating_sub(room));
    for (i, c) in rows.iter().enumerate().skip(first).take(room) {
        let mut spans = Vec::new();
        for (n, (column, _, w)) in columns.iter().enumerate() {
            if n > 0 {
                spans.push(Span::raw(" "));
            }
            spans.extend(cell(model, theme, c, *column, *w));
        }
        let row = line(spans, width);
        out.push(if cursor && i == selected { row.patch_style(theme.selected()) } else { row });
    }
    if rows.is_empty() {
        let why = if model.frame.containers.is_empty() {
            "no containers"
        } else {
            "no container matches the filter"
        };
        out.push(Line::styled(fit(why, width), theme.dim()));
    }
    out.truncate(height);
    out
}

fn is_number(c: Column) -> bool {
    !matches!(c, Column::Name | Column::Bar | Column::VramBar | Column::HostTrend | Column::VramTrend)
}

fn cell(model: &Model, theme: Theme, c: &Container, column: Column, w: usize) -> Vec<Span<'static>> {
    let (share, vram) = (c.share(), c.vram_share());
    let of_limit = |b: Option<u64>| Some(b? as f64 / c.limit? as f64);
    let plain = |text: String| vec![Span::raw(right(&text, w))];
    match column {
        Column::Name => vec![Span::styled(fit_name(&c.name, w), theme.bold())],
        Column::Bar => bar(theme, w, share, of_limit(c.usage), of_limit(c.peak)),
        Column::Used => {
            let limit = c.limit.map_or_else(|| "/∞".to_owned(), |l| format!("/{}", size(l)));
            let text =
                format!("{}{limit} {}", size_or_dash(c.working_set.or(c.usage)), right(&percent(share), 4));
            vec![Span::styled(
                right(&text, w),
                if share.is_some() { theme.share(share) } else { ratatui::style::Style::new() },
            )]
        }
        Column::Split => {
            let parts = [c.anon, c.shmem, c.file].map(size_or_dash);
            plain(parts.join("/"))
        }
        Column::Swap => plain(size_or_dash(c.swap)),
        Column::Pressure => {
            let style = if c.pressure.is_some_and(|p| p >= 0.10) {
                theme.bad()
            } else {
                ratatui::style::Style::new()
            };
            vec![Span::styled(right(&percent(c.pressure), w), style)]
        }
        Column::Kills => {
            let style = if c.oom_kills.is_some_and(|k| k > 0) { theme.bad() } else { theme.dim() };
            vec![Span::styled(right(&c.oom_kills.map_or("-".into(), |k| k.to_string()), w), style)]
        }
        Column::VramBar if c.vram.len() > 1 => {
            // One character for each GPU; behind the eighth they no longer fit.
            let levels: String = c.vram.iter().map(|v| level(gpu_share(v.used, v.total))).collect();
            vec![Span::styled(fit(&levels, w), theme.share(vram))]
        }
        // Holds none, or there are no GPUs: no bar that looks like an empty card.
        Column::VramBar if c.vram.is_empty() => vec![Span::raw(" ".repeat(w))],
        Column::VramBar => bar(theme, w, vram, None, None),
        Column::Vram => plain(size_or_dash(c.vram_used())),
        Column::Kv => {
            let kv = c.engine.as_ref().and_then(|e| e.kv_use);
            let style = if kv.is_some() { theme.share(kv) } else { theme.dim() };
            vec![Span::styled(right(&percent(kv), w), style)]
        }
        Column::Requests => {
            let n = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.0}"));
            plain(c.engine.as_ref().map_or("-".into(), |e| format!("{}/{}", n(e.running), n(e.waiting))))
        }
        Column::HostTrend | Column::VramTrend => {
            let t = model.trends.get(&c.id);
            let points = t.map(|t| if column == Column::HostTrend { &t.host } else { &t.vram });
            let text = points.map_or_else(|| " ".repeat(w), |p| trend(p, w));
            vec![Span::styled(text, theme.share(if column == Column::HostTrend { share } else { vram }))]
        }
    }
}

/// Use of one GPU by one container.
pub(super) fn gpu_share(used: Option<u64>, total: Option<u64>) -> Option<f64> {
    Some(used? as f64 / total.filter(|t| *t > 0)? as f64)
}
