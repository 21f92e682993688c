//! Numbers in words, the same in every form.

use dualplane_base::text::counted;
use dualplane_base::units::Bytes;
use dualplane_gate::document::{Distribution, Drift, Measure, PlaneFigures, Run};

/// Seconds of a series below which neither growth nor its absence says much.
const TELLS: f64 = 300.0;

pub(super) fn bytes(n: Option<u64>) -> String {
    n.map_or_else(|| "–".into(), |n| Bytes(n).to_string())
}

pub(super) fn seconds(s: f64) -> String {
    match s {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.2} s"),
        s if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The six numbers: name of the plane, start-up, steady, peak, limit, share of the limit.
pub(super) fn six(run: &Run) -> Vec<[String; 6]> {
    let row = |name: &str, p: &PlaneFigures| {
        let share = p.peak_bytes.zip(p.limit_bytes).filter(|(_, l)| *l > 0);
        [
            name.to_owned(),
            bytes(p.start_up_bytes),
            bytes(p.steady_bytes),
            bytes(p.peak_bytes),
            bytes(p.limit_bytes),
            share.map_or_else(|| "–".into(), |(p, l)| percent(p as f64 / l as f64)),
        ]
    };
    [("host RAM", &run.host), ("VRAM", &run.vram)]
        .into_iter()
        .filter_map(|(name, p)| p.as_ref().map(|p| row(name, p)))
        .collect()
}

pub(super) fn drift(name: &str, d: &Drift) -> String {
    let mib = |n: f64| format!("{:+.1}", n / 1_048_576.0);
    if !d.grows && d.seconds < TELLS {
        let samples = counted(d.samples, "sample");
        return format!(
            "{name}: {} and {samples} are too short to tell growth from chance",
            seconds(d.seconds)
        );
    }
    let judged = match d.grows {
        true if d.seconds < TELLS => "grows, which within so short a time may be its warm-up",
        true => "grows",
        false => "no growth",
    };
    format!(
        "{name}: {judged}, {} MiB/h ({} to {} at {:.1} %, {} of {})",
        mib(d.bytes_per_hour),
        mib(d.low_bytes_per_hour),
        mib(d.high_bytes_per_hour),
        d.confidence * 100.0,
        counted(d.samples, "sample"),
        seconds(d.seconds)
    )
}

/// Rows of latency: name, mean, p50, p90, p95, p99, most.
pub(super) fn latency(run: &Run) -> Vec<[String; 7]> {
    let row = |name: &str, d: &Distribution| {
        let [a, b, c, e, f, g] = [d.mean, d.p50, d.p90, d.p95, d.p99, d.max].map(seconds);
        [name.to_owned(), a, b, c, e, f, g]
    };
    [("first token", &run.ttft), ("between tokens", &run.itl), ("whole request", &run.e2e)]
        .into_iter()
        .filter_map(|(name, d)| d.as_ref().map(|d| row(name, d)))
        .collect()
}

/// Lines about requests, the KV cache and what else was counted: name and value.
pub(super) fn rows(m: &Measure, run: &Run) -> Vec<(&'static str, String)> {
    let mut out = Vec::new();
    if let Some(r) = run.requests.as_ref().filter(|r| r.sent == 0) {
        let line = format!(
            "none was sent within the {} that count: those of the warm-up took all of it. Measure longer, or send shorter ones",
            seconds(run.measured_seconds)
        );
        out.push(("requests", if r.failures() == 0 { line } else { "none was sent".into() }));
    } else if let Some(r) = &run.requests {
        let mut line = format!("{} sent, {} answered", r.sent, r.succeeded);
        if r.cancelled > 0 {
            line += &format!(", {} cancelled", r.cancelled);
        }
        if r.failures() > 0 {
            let of: Vec<String> =
                r.failed.iter().take(4).map(|f| format!("{} {}", f.count, f.reason)).collect();
            line += &format!(", {} failed ({})", r.failures(), of.join(", "));
        }
        let open = r.sent.saturating_sub(r.succeeded + r.cancelled + r.failures());
        if open > 0 {
            line += &format!(", {open} still under way when it ended");
        }
        out.push(("requests", line));
    }
    if let Some(t) = &run.throughput {
        let rate = |n: Option<f64>, what: &str| n.map(|n| format!("{n:.2} {what}"));
        let all = [
            rate(t.requests_per_second, "requests/s"),
            rate(t.input_tokens_per_second, "input tokens/s"),
            rate(t.output_tokens_per_second, "output tokens/s"),
        ];
        out.push(("throughput", all.into_iter().flatten().collect::<Vec<_>>().join(", ")));
        if let (Some(good), Some(slo)) = (t.good_requests_per_second, &m.slo) {
            let bound = |name: &str, s: Option<f64>| s.map(|s| format!("{name} ≤ {}", seconds(s)));
            let bounds = [
                bound("first token", slo.ttft_seconds),
                bound("between tokens", slo.itl_seconds),
                bound("whole", slo.e2e_seconds),
            ];
            let bounds = bounds.into_iter().flatten().collect::<Vec<_>>().join(", ");
            let share = run.requests.as_ref().and_then(|r| Some(r.good? as f64 / r.sent.max(1) as f64));
            let share = share.map_or_else(String::new, |s| format!(", {} of all", percent(s)));
            out.push(("goodput", format!("{good:.2} requests/s within {bounds}{share}")));
        }
        if let (Some(cost), Some(c)) = (t.cost_per_good_request, &m.cost) {
            out.push((
                "cost",
                format!("{cost:.6} {} per good request at {} {}/h", c.currency, c.per_hour, c.currency),
            ));
        }
    }
    if let Some(k) = &run.kv {
        let mut line = Vec::new();
        line.extend(k.high_water_share.map(|s| format!("at most {} full", percent(s))));
        line.extend(k.mean_share.map(|s| format!("{} on average", percent(s))));
        line.extend(k.capacity_tokens.map(|n| format!("of {n} tokens")));
        line.extend(k.preemptions.map(|n| counted(n, "preemption")));
        line.extend(k.prefix_hit_share.map(|s| format!("prefix cache had {}", percent(s))));
        out.push(("KV cache", line.join(", ")));
    }
    if let Some(q) = &run.queue {
        let of = |name: &str, most: Option<f64>, mean: Option<f64>| {
            Some(format!("at most {:.0} {name}, {:.1} on average", most?, mean?))
        };
        let all = [of("ran", q.running_peak, q.running_mean), of("waited", q.waiting_peak, q.waiting_mean)];
        out.push(("queue", all.into_iter().flatten().collect::<Vec<_>>().join("; ")));
    }
    if let Some(u) = &run.used {
        let mut line = Vec::new();
        line.extend(u.cpu_cores.map(|c| format!("{c:.2} processors")));
        line.extend(u.gpu_share.map(|g| format!("cards busy {}", percent(g))));
        line.extend(u.power_watts.map(|w| format!("{w:.0} W")));
        out.push(("use", line.join(", ")));
    }
    if let Some(s) = &run.host_split {
        let mut line = Vec::new();
        for (name, n) in [
            ("anonymous", s.anon_bytes),
            ("shared", s.shmem_bytes),
            ("locked", s.pinned_bytes),
            ("page cache", s.file_bytes),
            ("kernel", s.kernel_bytes),
        ] {
            line.extend(n.map(|n| format!("{name} {}", Bytes(n))));
        }
        out.push(("host RAM at its peak", line.join(", ")));
    }
    out
}

/// What the load was, in words.
pub(super) fn load(run: &Run) -> String {
    let l = &run.load;
    let mut out = vec![l.mode.clone()];
    out.extend(l.concurrency.map(|n| format!("{n} at once")));
    out.extend(l.rate.map(|r| format!("{r} requests/s")));
    out.push(format!("measured {}", seconds(run.measured_seconds)));
    out.extend(run.start_seconds.map(|s| format!("ready after {}", seconds(s))));
    if run.cut_short {
        out.push("cut short".into());
    }
    out.join(", ")
}

/// What was measured, in words.
pub(super) fn subject(m: &Measure) -> String {
    let s = &m.subject;
    let engine = [s.engine.as_deref(), s.engine_version.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ");
    let mut out: Vec<String> = Vec::new();
    out.extend(s.model.clone());
    out.extend(Some(engine).filter(|e| !e.is_empty()));
    out.extend(s.workload.clone());
    for g in m.hardware.gpus.iter().flatten() {
        out.push(g.name.clone());
    }
    if out.is_empty() { "a model server".into() } else { out.join(" · ") }
}
