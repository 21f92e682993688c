//! One container: both planes in numbers, its engine, its processes.

use dualplane_base::text::{counted, printable};
use ratatui::text::{Line, Span};

use super::parts::{Theme, bar, fit, line, percent, right, size_or_dash, trend};
use super::table::gpu_share;
use crate::commands::top::frame::{Container, Process};
use crate::commands::top::model::Model;

/// Lines of a command: with JSON inside it has some hundred characters.
const COMMAND_LINES: usize = 8;

/// The lines; those above `model.scroll` are left out of the processes.
pub(super) fn detail(
    model: &Model,
    c: &Container,
    theme: Theme,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let mut out = vec![line(vec![Span::styled(fit(&c.name, width), theme.head())], width)];
    let wide = if width < 60 { 8 } else { 24 };
    let of_limit = |b: Option<u64>| Some(b? as f64 / c.limit? as f64);
    let mut host = vec![Span::raw("host RAM  ")];
    host.extend(bar(theme, wide, c.share(), of_limit(c.usage), of_limit(c.peak)));
    let limit = c.limit.map_or_else(|| "no limit".to_owned(), |_| format!("of {}", size_or_dash(c.limit)));
    host.push(Span::raw(format!(" {} {limit} ", size_or_dash(c.working_set))));
    host.push(Span::styled(percent(c.share()), theme.share(c.share())));
    out.push(line(host, width));
    let split = format!(
        "          anon {}  shm and pinned {}  page cache {}  swap {}  peak {}  PSI {}  OOM kills {}",
        size_or_dash(c.anon),
        size_or_dash(c.shmem),
        size_or_dash(c.file),
        size_or_dash(c.swap),
        size_or_dash(c.peak),
        percent(c.pressure),
        c.oom_kills.map_or("-".into(), |k| k.to_string()),
    );
    out.push(Line::raw(fit(&split, width)));
    if let Some(t) = model.trends.get(&c.id).filter(|_| width >= 40) {
        let room = width.saturating_sub(10).min(120);
        let row = |name: &str, points| {
            line(vec![Span::styled(fit(name, 10), theme.dim()), Span::raw(trend(points, room))], width)
        };
        out.push(row("  trend", &t.host));
        if t.vram.iter().any(Option::is_some) {
            out.push(row("  VRAM", &t.vram));
        }
    }
    if let Some(text) = deaths(c) {
        out.push(Line::raw(fit(&text, width)));
    }
    for v in &c.vram {
        let share = gpu_share(v.used, v.total);
        let mut spans = vec![Span::raw(fit(&format!("GPU {}", v.gpu), 10))];
        spans.extend(bar(theme, wide, share, None, None));
        spans.push(Span::raw(format!(" {} of {} ", size_or_dash(v.used), size_or_dash(v.total))));
        spans.push(Span::styled(percent(share), theme.share(share)));
        out.push(line(spans, width));
    }
    if let Some(e) = &c.engine {
        let n = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.0}"));
        let mut text = format!("engine    {}", e.name);
        if let Some(m) = &e.model {
            text.push_str(&format!("  {m}"));
        }
        text.push_str(&format!("  KV {}", percent(e.kv_use)));
        text.push_str(&format!(
            "  running {}  waiting {}  preempted {}",
            n(e.running),
            n(e.waiting),
            n(e.preemptions)
        ));
        if let Some(age) = e.age_s.filter(|a| *a > 10) {
            text.push_str(&format!("  (asked {age} s ago)"));
        }
        out.push(Line::raw(fit(&text, width)));
    }
    if !c.processes.is_empty() {
        let head =
            ["PID", "ANON", "SHM", "FILE", "SWAP", "VRAM"].iter().map(|t| right(t, 7)).collect::<String>();
        out.push(Line::styled(fit(&format!("{head}  COMMAND"), width), theme.head()));
        let room = height.saturating_sub(out.len());
        let first = model.scroll.min(c.processes.len().saturating_sub(room));
        out.extend(c.processes.iter().skip(first).take(room).map(|p| process(p, width)));
        // The largest process tells how the engine was started; its line is rarely wide enough.
        if let Some(p) = c.processes.first().filter(|p| p.command.len() > 40) {
            out.push(Line::default());
            let text: Vec<char> = printable(&p.command).chars().collect();
            let pieces = text.chunks(width.max(1)).map(|c| Line::raw(c.iter().collect::<String>()));
            out.extend(pieces.take(COMMAND_LINES));
        }
    } else if model.replay.is_none() {
        out.push(Line::styled(
            fit("cannot list processes: run as root in the host's PID namespace", width),
            theme.dim(),
        ));
    }
    out.truncate(height);
    out
}

/// Restarts, and how it died last.
fn deaths(c: &Container) -> Option<String> {
    let restarts =
        c.restarts.filter(|n| *n > 0).map(|n| counted(usize::try_from(n).unwrap_or(usize::MAX), "restart"));
    let last = c.last_class.as_ref().map(|class| format!("last verdict {}", printable(class)));
    let told: Vec<String> = restarts.into_iter().chain(last).collect();
    (!told.is_empty()).then(|| format!("deaths    {}", told.join("  ")))
}

fn process(p: &Process, width: usize) -> Line<'static> {
    let mut text = right(&p.pid.to_string(), 7);
    for size in [p.anon, p.shmem, p.file, p.swap, p.vram] {
        text.push_str(&right(&size_or_dash(size), 7));
    }
    let command = if p.command.is_empty() { format!("[{}]", p.comm) } else { p.command.clone() };
    Line::raw(fit(&format!("{text}  {command}"), width))
}
