//! A rehearsal on one screen.

use dualplane_base::style::Style;
use dualplane_base::text::printable;
use dualplane_base::units::{Bytes, thousands};
use dualplane_base::writer::Writer;

use super::Rehearsal;
use super::plot::{clock, rows};
use crate::answer::{Assumed, Holds, PaceSource, Rehearsed};
use crate::search::{Largest, Unsafe};
use crate::settings::Keeps;
use crate::watch::Point;

/// Rows of the two curves.
const CACHE_ROWS: usize = 6;
const QUEUE_ROWS: usize = 3;

/// Renders it.
#[must_use]
pub fn text(r: &Rehearsal, style: Style) -> String {
    let mut w = Writer::new(style);
    title(&mut w, r);
    what_happened(&mut w, &r.launch);
    curves(&mut w, &r.launch);
    depends(&mut w, r);
    for p in &r.proposals {
        proposal(&mut w, r, p);
    }
    limits(&mut w, r);
    host(&mut w, r);
    for note in &r.launch.notes {
        w.wrapped(note, "  ≈ ", "    ");
    }
    for m in &r.missing {
        w.wrapped(m, "  ? ", "    ");
    }
    w.out
}

fn title(w: &mut Writer, r: &Rehearsal) {
    let word = match (r.launch.holds, r.launch.unsafe_by) {
        (Holds::Yes, _) => w.style.good("HOLDS"),
        (Holds::Uncertain, _) => w.style.bold("UNCERTAIN"),
        (Holds::No, Some(Unsafe::Stuck)) => w.style.bad("HANGS"),
        (Holds::No, Some(Unsafe::Preempted)) => w.style.bad("PREEMPTS"),
        (Holds::No, Some(Unsafe::Refused)) => w.style.bad("REFUSES SOME"),
        (Holds::No, Some(Unsafe::BrokenOff)) => w.style.bad("BREAKS OFF"),
        (Holds::No, Some(Unsafe::CutShort)) => w.style.bad("CUTS SHORT"),
        (Holds::No, _) => w.style.bad("FALLS BEHIND"),
    };
    let model = w.style.bold(&printable(&r.model));
    let engine = w.style.dim(&printable(&r.engine));
    w.line(&format!("{word}  {model} on {}  {engine}", printable(&r.gpu)));
    if r.launch.holds == Holds::Uncertain {
        w.wrapped(&decides(&r.launch), "  ", "  ");
    }
    let l = &r.load;
    let rate =
        if l.per_second > 0.0 { format!(" ({} a second)", number(l.per_second)) } else { String::new() };
    let seed = l.seed.map(|s| format!(", seed {s}")).unwrap_or_default();
    let each = if r.replicas > 1 { format!(", of one of {} servers", r.replicas) } else { String::new() };
    w.wrapped(
        &format!(
            "{} in {}{rate}{each}; prompts of {} tokens (99 of 100: at most {}), answers of {} ({}); {}{seed}",
            many(l.count, "request"),
            clock(l.seconds),
            thousands(l.input_p50.into()),
            thousands(l.input_p99.into()),
            thousands(l.output_p50.into()),
            thousands(l.output_p99.into()),
            l.source
        ),
        "  ",
        "  ",
    );
}

/// What an uncertain answer depends on: as expected, and where it is otherwise.
fn decides(x: &Rehearsed) -> String {
    let other = |a: &&Assumed| a.unsafe_by.is_some() != x.unsafe_by.is_some();
    let all: Vec<String> =
        x.assumed.iter().filter(other).map(|a| format!("it {} if {}", says(a.unsafe_by), a.what)).collect();
    format!("as expected it {}; {}", says(x.unsafe_by), all.join(", and "))
}

fn number(x: f64) -> String {
    if x >= 100.0 {
        format!("{x:.0}")
    } else if x >= 10.0 {
        format!("{x:.1}")
    } else {
        format!("{x:.2}")
    }
}

fn percent(part: u32, whole: u32) -> String {
    let share = f64::from(part) * 100.0 / f64::from(whole.max(1));
    if share > 99.9 && part < whole { "99.9 %".into() } else { format!("{share:.1} %") }
}

fn what_happened(w: &mut Writer, x: &Rehearsed) {
    let o = &x.outcome;
    let s = &x.settings;
    w.heading("What happens");
    let size = s.groups.iter().find(|g| g.keeps == Keeps::All).map(|g| g.block_size);
    let tokens = match (size, s.groups.len()) {
        _ if s.cells.is_some() => String::new(),
        (Some(size), 1) => format!(" of {size} tokens"),
        _ => String::new(),
    };
    let blocks = if s.cells.is_some() { "cells" } else { "blocks" };
    w.wrapped(
        &format!(
            "KV cache: at most {} of {} {blocks}{tokens} held ({}), at {}; {} on average",
            thousands(o.peak_blocks.into()),
            thousands(o.pool_blocks.into()),
            percent(o.peak_blocks, o.pool_blocks),
            clock(o.peak_at),
            format_args!("{:.1} %", o.mean_usage * 100.0),
        ),
        "  ",
        "    ",
    );
    let lost = if o.preemptions > 0 {
        format!(
            "{} of {}, {} tokens computed again",
            many(o.preemptions, "preemption"),
            many(o.preempted_requests, "request"),
            thousands(o.recomputed_tokens)
        )
    } else {
        "no preemption".into()
    };
    if s.cells.is_none() {
        w.wrapped(&lost, "  ", "    ");
    }
    let limit = if s.cells.is_some() { "--parallel" } else { "--max-num-seqs" };
    let queue = if o.longest_queue > 0 {
        format!(
            "queue: at most {}, at {}; requests wait {:.0} % of the time; at most {} run ({limit} {})",
            many(o.longest_queue.into(), "request"),
            clock(o.longest_queue_at),
            o.waiting_share * 100.0,
            o.most_running,
            s.max_num_seqs
        )
    } else {
        format!("queue: nobody waits; at most {} run ({limit} {})", o.most_running, s.max_num_seqs)
    };
    w.wrapped(&queue, "  ", "    ");
    w.wrapped(
        &format!(
            "first token after {} (99 of 100: {}), whole answer after {} ({}); {} in {}",
            clock(o.first_token.p50),
            clock(o.first_token.p99),
            clock(o.whole.p50),
            clock(o.whole.p99),
            many(o.steps, "step"),
            clock(o.seconds)
        ),
        "  ",
        "    ",
    );
    if o.cached_tokens > 0 {
        let all = o.computed_tokens + o.cached_tokens;
        let share = o.cached_tokens as f64 * 100.0 / all.max(1) as f64;
        w.wrapped(
            &format!("{} tokens ({share:.0} %) stood in the prefix cache", thousands(o.cached_tokens)),
            "  ",
            "    ",
        );
    }
    if o.rejected > 0 {
        let are = if o.rejected == 1 { "is" } else { "are" };
        let longest = thousands(s.max_model_len.into());
        let than = match s.cells {
            None => "than --max-model-len",
            Some(_) => "than the context of a slot has room for,",
        };
        let text = format!("{} {are} refused: longer {than} {longest}", many(o.rejected, "request"));
        w.wrapped(&text, "  ✗ ", "    ");
    }
    if o.broken_off > 0 {
        let ends = if o.broken_off == 1 { "ends" } else { "end" };
        let text = format!(
            "{} {ends} with \"Context size has been exceeded\": the slots share one cache, and when it is full all that are being \
             answered are broken off",
            many(o.broken_off, "request")
        );
        w.wrapped(&text, "  ✗ ", "    ");
    }
    if o.cut_short > 0 {
        let ends = if o.cut_short == 1 { "ends" } else { "end" };
        let text = format!(
            "{} {ends} early: the context of a slot, {} tokens, is full (finish_reason \"length\")",
            many(o.cut_short, "answer"),
            thousands(s.max_model_len.into())
        );
        w.wrapped(&text, "  ✗ ", "    ");
    }
    if o.cancelled > 0 {
        let are = if o.cancelled == 1 { "is" } else { "are" };
        w.wrapped(&format!("{} {are} given up by the client", many(o.cancelled, "request")), "  ", "    ");
    }
    if o.stuck > 0 {
        let wait = if o.stuck == 1 { "waits" } else { "wait" };
        let text = format!(
            "{} {wait} for ever: the first of them needs more blocks than the pool has, and the engine waits for it",
            many(o.stuck, "request")
        );
        w.wrapped(&text, "  ✗ ", "    ");
    }
}

fn many(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", thousands(n)) }
}

fn curves(w: &mut Writer, x: &Rehearsed) {
    let o = &x.outcome;
    let wide = w.style.width.saturating_sub(14).clamp(20, 100);
    let points = o.curve.columns(wide);
    if points.len() < 2 {
        return;
    }
    w.heading("KV cache, and requests that wait");
    let of = |f: fn(&Point) -> u32| points.iter().map(|p| f64::from(f(p))).collect::<Vec<_>>();
    let mut draw = |values: &[f64], most: f64, height: usize, top: &str| {
        for (i, row) in rows(values, most, height).iter().enumerate() {
            let label = match i {
                0 => top,
                n if n + 1 == height => "0",
                _ => "",
            };
            w.line(format!("  {label:>7} │{row}").trim_end());
        }
    };
    draw(&of(|p| p.blocks), f64::from(o.pool_blocks), CACHE_ROWS, "100 %");
    if o.longest_queue > 0 {
        draw(&of(|p| p.waiting), f64::from(o.longest_queue), QUEUE_ROWS, &thousands(o.longest_queue.into()));
    }
    if o.preemptions > 0 {
        let marks: String = points.iter().map(|p| if p.preempted > 0 { '×' } else { ' ' }).collect();
        w.line(format!("  preempt │{marks}").trim_end());
    }
    let end = clock(o.curve.seconds * o.curve.points.len() as f64);
    let gap = points.len().saturating_sub(end.chars().count() + 1);
    w.line(&format!("          └{}", "─".repeat(points.len())));
    w.line(&format!("           0{}{end}", " ".repeat(gap)));
}

fn assumed(a: &Assumed) -> String {
    let queue = if a.longest_queue > 0 {
        format!(", queue {}", thousands(a.longest_queue.into()))
    } else {
        String::new()
    };
    format!(
        "{}: at most {}, {}{queue}: {}",
        a.what,
        percent(a.peak_blocks, a.pool_blocks),
        if a.preemptions == 0 { "no preemption".into() } else { many(a.preemptions, "preemption") },
        says(a.unsafe_by)
    )
}

const fn says(u: Option<Unsafe>) -> &'static str {
    match u {
        None => "holds",
        Some(Unsafe::Stuck) => "hangs",
        Some(Unsafe::Preempted) => "preempts",
        Some(Unsafe::QueueGrows) => "falls behind",
        Some(Unsafe::Refused) => "refuses some",
        Some(Unsafe::BrokenOff) => "breaks answers off",
        Some(Unsafe::CutShort) => "cuts answers short",
    }
}

fn depends(w: &mut Writer, r: &Rehearsal) {
    w.heading("How far this depends on what is assumed");
    let t = &r.step_time.time;
    let from = match r.step_time.source {
        PaceSource::Given => "as given",
        PaceSource::Measured => "as a server's own statistics give it",
        PaceSource::Estimated => "a rough estimate from the card's memory and arithmetic",
    };
    let parts = [(t.token, "a token"), (t.request, "a request"), (t.context, "a token looked back on")];
    let more: String =
        parts.iter().filter(|(x, _)| *x > 0.0).map(|(x, name)| format!(" + {} {name}", tiny(*x))).collect();
    w.wrapped(&format!("a step takes {}{more}: {from}", tiny(t.base)), "  ", "    ");
    for a in &r.launch.assumed {
        w.wrapped(&assumed(a), "  · ", "    ");
    }
}

fn tiny(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds >= 1e-6 {
        format!("{:.1} µs", seconds * 1e6)
    } else {
        format!("{:.2} ns", seconds * 1e9)
    }
}

fn proposal(w: &mut Writer, r: &Rehearsal, p: &Rehearsed) {
    let flags = printable(&p.flags.join(" ")).into_owned();
    w.heading(&format!("With {flags}"));
    if let Some(advice) = &p.advice {
        w.wrapped(&format!("triage advises: {}", printable(advice)), "  ", "    ");
    }
    let held = match p.holds {
        Holds::Yes => "would have held",
        Holds::Uncertain if p.unsafe_by.is_none() => {
            "would have held as expected, but not under every assumption"
        }
        Holds::Uncertain => "would not have held as expected, but under another assumption",
        Holds::No => "would not have held",
    };
    let o = &p.outcome;
    w.wrapped(
        &format!(
            "{held}: at most {} of {} blocks ({}), {}, queue of at most {}, first token after {} (99 of 100: {})",
            thousands(o.peak_blocks.into()),
            thousands(o.pool_blocks.into()),
            percent(o.peak_blocks, o.pool_blocks),
            if o.preemptions == 0 { "no preemption".into() } else { many(o.preemptions, "preemption") },
            thousands(o.longest_queue.into()),
            clock(o.first_token.p50),
            clock(o.first_token.p99),
        ),
        "  ",
        "    ",
    );
    let before = &r.launch.outcome;
    w.wrapped(
        &format!(
            "against {}, {}, queue of at most {}, first token after {} ({}) as launched",
            percent(before.peak_blocks, before.pool_blocks),
            if before.preemptions == 0 {
                "no preemption".into()
            } else {
                many(before.preemptions, "preemption")
            },
            thousands(before.longest_queue.into()),
            clock(before.first_token.p50),
            clock(before.first_token.p99)
        ),
        "  ",
        "    ",
    );
    for a in &p.assumed {
        w.wrapped(&assumed(a), "  · ", "    ");
    }
}

fn limits(w: &mut Writer, r: &Rehearsal) {
    let Some(l) = &r.limits else { return };
    w.heading("What stays safe: no preemption, and the queue is worked off");
    let per = r.load.per_second;
    if per > 0.0 {
        let at = |f: f64| format!("{} requests a second", number(per * f));
        w.wrapped(&bound("rate", &l.rate, at), "  ", "    ");
    }
    let at = |f: f64| {
        format!(
            "prompts of {} tokens (99 of 100: {})",
            thousands((f64::from(r.load.input_p50) * f).round() as u64),
            thousands(
                (f64::from(r.load.input_p99) * f).round().min(f64::from(r.launch.settings.max_model_len))
                    as u64
            )
        )
    };
    w.wrapped(&bound("length", &l.length, at), "  ", "    ");
    if r.launch.outcome.broken_off > 0 {
        let text = match l.sequences {
            Some(n) => format!(
                "--parallel {n} with --kv-unified is the most at which this load breaks no answer off"
            ),
            None => "no --parallel keeps this load from breaking answers off".into(),
        };
        w.wrapped(&text, "  ", "    ");
    }
    if r.launch.outcome.preemptions > 0 {
        let text = match l.sequences {
            Some(n) => format!("--max-num-seqs {n} is the most at which this load preempts nobody"),
            None => "no --max-num-seqs keeps this load from preemptions".into(),
        };
        w.wrapped(&text, "  ", "    ");
    }
}

fn bound(what: &str, l: &Largest, at: impl Fn(f64) -> String) -> String {
    match (l.factor, l.beyond) {
        (Some(f), Some(b)) => {
            format!("{what}: up to {}; at {} it {}", at(f), at(b.factor), says(b.unsafe_by))
        }
        (Some(f), None) => format!("{what}: {} are still safe, and more was not tried", at(f)),
        (None, Some(b)) => format!("{what}: not even {}: it {}", at(b.factor), says(b.unsafe_by)),
        (None, None) => format!("{what}: not known"),
    }
}

fn host(w: &mut Writer, r: &Rehearsal) {
    let h = &r.host;
    w.heading("Host RAM of one server");
    if let Some(steady) = h.steady_bytes {
        w.wrapped(&format!("{} while serving, by the plan", Bytes(steady)), "  ", "    ");
    }
    w.wrapped(&format!("the longest queue adds about {}", Bytes(h.queue_bytes)), "  ", "    ");
    if h.offload_bytes > 0 {
        w.wrapped(
            &format!(
                "of the buffer of {} for cached blocks, {} are filled",
                Bytes(h.offload_bytes),
                Bytes(h.offload_filled_bytes)
            ),
            "  ",
            "    ",
        );
    }
}
