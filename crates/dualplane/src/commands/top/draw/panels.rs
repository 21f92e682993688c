//! What stands around the table: title, machine, GPUs, verdicts, gaps, keys.

use dualplane_base::order::Order as _;
use ratatui::text::{Line, Span};

use super::parts::{Theme, bar, columns, fit, line, percent, right, size, size_or_dash};
use crate::args::SortBy;
use crate::commands::top::frame::{Frame, Gpu};
use crate::commands::top::model::Model;

/// The first line: what, where, when, and whether time goes on.
pub(super) fn title(model: &Model, theme: Theme, width: usize) -> Line<'static> {
    let f = &model.frame;
    let mut spans = vec![Span::styled("dualplane top", theme.head())];
    if !f.node.name.is_empty() {
        spans.push(Span::styled(
            format!("  {}", fit(&f.node.name, columns(&f.node.name).min(40))),
            theme.bold(),
        ));
    }
    // Seconds are enough to read; a replay steps by less.
    let at = f.at.split('.').next().unwrap_or_default().trim_end_matches('Z');
    let at = if model.replay.is_some() { f.at.clone() } else { format!("{at}Z") };
    spans.push(Span::raw(format!("  {at}")));
    match model.replay {
        Some(r) => {
            spans.push(Span::styled(format!("  replay {}/{}", r.at + 1, r.len), theme.bold()));
            if model.paused {
                spans.push(Span::styled("  paused", theme.warn()));
            } else if r.speed > 0 {
                spans.push(Span::raw(format!("  {}x", r.speed)));
            }
            if r.death.is_some_and(|d| r.at >= d) {
                spans.push(Span::styled("  ✝ died", theme.bad()));
            }
        }
        None if model.paused => spans.push(Span::styled("  paused", theme.warn())),
        None => {}
    }
    line(spans, width)
}

/// Where a replay stands, with the death marked.
pub(super) fn timeline(model: &Model, theme: Theme, width: usize) -> Option<Line<'static>> {
    let r = model.replay?;
    let at = |i: usize| if r.len < 2 { 0 } else { i * width.saturating_sub(1) / (r.len - 1) };
    let (here, death) = (at(r.at), r.death.map(at));
    let cells = (0..width).map(|i| match i {
        i if i == here => Span::styled("●", theme.bold()),
        i if Some(i) == death => Span::styled("✝", theme.bad()),
        i if i < here => Span::raw("━"),
        _ => Span::styled("─", theme.dim()),
    });
    Some(Line::from(cells.collect::<Vec<_>>()))
}

/// The machine's memory in a line.
pub(super) fn node(f: &Frame, theme: Theme, width: usize) -> Line<'static> {
    let n = &f.node;
    let used = n.total.zip(n.available).map(|(t, a)| t.saturating_sub(a));
    let share = super::table::gpu_share(used, n.total);
    let mut spans = vec![Span::styled("node RAM ", theme.head())];
    spans.extend(bar(theme, if width < 60 { 6 } else { 16 }, share, None, None));
    spans.push(Span::raw(format!(" {}/{}", size_or_dash(used), size_or_dash(n.total))));
    spans.push(Span::styled(format!(" {}", percent(share)), theme.share(share)));
    spans.push(Span::raw(format!("  avail {}  shm {}", size_or_dash(n.available), size_or_dash(n.shmem))));
    if n.swap_total.is_some_and(|s| s > 0) {
        spans.push(Span::raw(format!("  swap {}/{}", size_or_dash(n.swap_used), size_or_dash(n.swap_total))));
    }
    if let Some(p) = n.pressure {
        spans.push(Span::styled(
            format!("  PSI {:.1}%", p * 100.0),
            if p >= 0.10 { theme.bad() } else { theme.dim() },
        ));
    }
    if let Some(k) = n.oom_kills {
        spans.push(Span::styled(format!("  OOM kills {k}"), theme.dim()));
    }
    line(spans, width)
}

/// One line for each GPU that there is room for.
pub(super) fn gpus(f: &Frame, theme: Theme, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut out: Vec<Line<'static>> = f.gpus.iter().take(height).map(|g| gpu(g, theme, width)).collect();
    if f.gpus.len() > height && height > 0 {
        // The last line says what did not fit.
        out.pop();
        let hidden = f.gpus.len() - out.len();
        out.push(Line::styled(fit(&format!("… and {hidden} more GPUs"), width), theme.dim()));
    }
    out
}

fn gpu(g: &Gpu, theme: Theme, width: usize) -> Line<'static> {
    let share = g.share();
    let mut spans =
        vec![Span::styled(format!("GPU {} ", fit(&g.index, columns(&g.index).clamp(1, 6))), theme.head())];
    spans.extend(bar(theme, if width < 60 { 6 } else { 16 }, share, None, None));
    let used = format!(" {}/{}", size_or_dash(g.used), size_or_dash(g.total));
    spans.push(Span::raw(used));
    spans.push(Span::styled(format!(" {}", percent(share)), theme.share(share)));
    if let Some(b) = g.busy {
        spans.push(Span::raw(format!("  util {}", right(&format!("{b}%"), 4))));
    }
    if let Some(c) = g.celsius {
        spans.push(Span::raw(format!("  {c}°C")));
    }
    if g.throttled == Some(true) {
        spans.push(Span::styled("  THROTTLED", theme.bad()));
    }
    if let Some(o) = g.other.filter(|o| *o > 64 << 20) {
        spans.push(Span::raw(format!("  other {}", size(o))));
    }
    let mut holders = g.holders.clone();
    holders.order_by_key(|h| std::cmp::Reverse(h.used));
    for h in holders.iter().take(3) {
        let who = h.container.clone().unwrap_or_else(|| format!("pid {}", h.pid));
        // Of a pod's name the end tells more than the beginning.
        let short =
            who.rsplit('/').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/");
        let text = format!("  {} {}", fit(&short, columns(&short).min(30)), size_or_dash(h.used));
        spans.push(Span::styled(text, if h.container.is_some() { theme.dim() } else { theme.warn() }));
    }
    if holders.len() > 3 {
        spans.push(Span::styled(format!("  +{}", holders.len() - 3), theme.dim()));
    }
    line(spans, width)
}

/// The last verdicts.
pub(super) fn incidents(f: &Frame, theme: Theme, width: usize, height: usize) -> Vec<Line<'static>> {
    let one = |i: &crate::commands::top::frame::Incident| {
        let class = i.class.as_deref().unwrap_or("not judged");
        let spans = vec![
            Span::styled("✝ ", theme.bad()),
            Span::styled(format!("{}  ", fit(&i.at, 20).trim_end()), theme.dim()),
            Span::styled(format!("{}  ", fit(class, 22).trim_end()), theme.bad()),
            Span::raw(format!("{}  ", fit(&i.name, columns(&i.name).min(60)))),
            Span::styled(fit(i.trigger.as_deref().unwrap_or(""), width).trim_end().to_owned(), theme.dim()),
        ];
        line(spans, width)
    };
    f.incidents.iter().take(height).map(one).collect()
}

/// What could not be read.
pub(super) fn gaps(f: &Frame, theme: Theme, width: usize, height: usize) -> Vec<Line<'static>> {
    let one = |g: &String| {
        line(
            vec![
                Span::styled("! ", theme.warn()),
                Span::styled(fit(g, width.saturating_sub(2)), theme.dim()),
            ],
            width,
        )
    };
    f.gaps.iter().take(height).map(one).collect()
}

/// The last line: keys, or the filter while it is typed.
pub(super) fn keys(model: &Model, theme: Theme, width: usize) -> Line<'static> {
    if model.typing {
        return line(
            vec![
                Span::styled("/", theme.head()),
                Span::raw(fit(&format!("{}_", model.filter), width.saturating_sub(1))),
            ],
            width,
        );
    }
    let sort = match model.sort {
        SortBy::Memory => "memory",
        SortBy::Vram => "VRAM",
        SortBy::Kv => "KV",
        SortBy::Name => "name",
    };
    let mut text = if model.replay.is_some() {
        "q quit  ←→ step  d death  p play/pause  +- speed  ".to_owned()
    } else {
        "q quit  ".to_owned()
    };
    text.push_str(if model.detail { "esc back" } else { "enter detail" });
    text.push_str(&format!("  s sort: {sort}  / filter"));
    if !model.filter.is_empty() {
        text.push_str(&format!(": {}", fit(&model.filter, columns(&model.filter).min(20))));
    }
    text.push_str(if model.replay.is_some() { "  ? help" } else { "  p pause  ? help" });
    Line::styled(fit(&text, width), theme.dim())
}

/// All keys.
pub(super) fn help(theme: Theme, width: usize) -> Vec<Line<'static>> {
    const TEXT: &[&str] = &[
        "↑ ↓ j k      select a container; in the detail view, scroll",
        "PgUp PgDn    ten rows;  g G Home End: first, last",
        "enter        processes of the selected container;  esc: back",
        "s            sort by share of the limit, VRAM, KV use, name",
        "/            filter by name;  enter: keep, esc: drop",
        "p            pause and resume;  space: one sample",
        "q  Ctrl-C    quit",
        "",
        "Replay:  ← → one moment, Home End, d: the death, p: play, + -: speed",
        "",
        "HOST RAM     █ working set, ░ page cache, ╎ peak, all against the limit",
        "GPU MEMORY   memory of the container's GPUs, one column per GPU",
        "other        VRAM not used by any listed process: driver, contexts of other containers",
        "PSI          share of the last 10 s in which all tasks waited for memory",
        "OOM          processes that the kernel killed in this container",
    ];
    let head = Line::styled(fit("Keys (any key closes this)", width), theme.head());
    std::iter::once(head).chain(TEXT.iter().map(|t| Line::raw(fit(t, width)))).collect()
}
