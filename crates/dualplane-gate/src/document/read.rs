//! Reading and writing `dualplane.measure/v1`, and what a document must hold to be believed.

use dualplane_base::schema::{Id, id};
use dualplane_base::text::counted;
use serde::Deserialize;

use super::{Distribution, Measure, PlaneFigures, Run, SCHEMA, Series};

/// Runs of a document, at most.
const MAX_RUNS: usize = 10_000;
/// Values of one series, at most: an hour by the second, several times over.
const MAX_POINTS: usize = 100_000;
/// Series of a run, at most.
const MAX_LINES: usize = 256;
/// Windows of a run, at most.
const MAX_WINDOWS: usize = 100_000;

/// Why a document is not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is another document of dualplane, or of another version.
    #[error("{0}")]
    Other(String),
    /// It is no document of this form.
    #[error("it is no report of `dualplane measure` ({SCHEMA}): {0}")]
    Form(String),
    /// It says something that cannot be.
    #[error("{at} {why}: a report that contradicts itself is not used")]
    Impossible {
        /// The field.
        at: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Reads a document.
///
/// # Errors
/// Where it is none of this form and version, or says what cannot be: negative times, percentiles out of order, series of
/// several lengths.
pub fn read(text: &str) -> Result<Measure, ReadError> {
    #[derive(Deserialize)]
    struct Named {
        schema: Option<String>,
    }
    let form = |e: serde_json::Error| ReadError::Form(e.to_string());
    let named: Named = serde_json::from_str(text).map_err(form)?;
    match named.schema.as_deref() {
        Some(SCHEMA) => {}
        Some(other) => {
            let what = id(other).map_or_else(
                || format!("its schema is `{}`", dualplane_base::text::printable(other)),
                |i: Id| i.to_string(),
            );
            return Err(ReadError::Other(what));
        }
        None => return Err(ReadError::Form("it names no schema".to_owned())),
    }
    let measure: Measure = serde_json::from_str(text).map_err(form)?;
    check(&measure)?;
    Ok(measure)
}

/// Writes a document, a line for each field, so that git shows what changed.
///
/// # Errors
/// None that the types allow; serde's interface has them.
pub fn write(measure: &Measure) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(measure).map(|text| text + "\n")
}

fn check(m: &Measure) -> Result<(), ReadError> {
    if m.runs.is_empty() {
        return Err(impossible("runs", "is empty"));
    }
    at_most("runs", m.runs.len(), MAX_RUNS, "run")?;
    for (i, run) in m.runs.iter().enumerate() {
        let at = |field: &str| format!("runs[{i}].{field}");
        not_negative(&at("measured_seconds"), Some(run.measured_seconds))?;
        not_negative(&at("start_seconds"), run.start_seconds)?;
        for (name, d) in [("ttft", &run.ttft), ("itl", &run.itl), ("e2e", &run.e2e)] {
            if let Some(d) = d {
                distribution(&at(name), d)?;
            }
        }
        for (name, p) in [("host", &run.host), ("vram", &run.vram)] {
            if let Some(p) = p {
                plane(&at(name), p)?;
            }
        }
        shares(&at, run)?;
        counts(&at, run)?;
        windows(&at, run)?;
        if let Some(s) = &run.series {
            series(&at("series"), s)?;
        }
    }
    Ok(())
}

fn impossible(at: &str, why: &str) -> ReadError {
    ReadError::Impossible { at: at.to_owned(), why: why.to_owned() }
}

fn at_most(at: &str, n: usize, most: usize, what: &str) -> Result<(), ReadError> {
    let why = || format!("has {}; {most} are read at most", counted(n as u64, what));
    if n > most { Err(impossible(at, &why())) } else { Ok(()) }
}

fn not_negative(at: &str, value: Option<f64>) -> Result<(), ReadError> {
    match value {
        Some(v) if !v.is_finite() || v < 0.0 => Err(impossible(at, &format!("is {v}"))),
        _ => Ok(()),
    }
}

fn share(at: &str, value: Option<f64>) -> Result<(), ReadError> {
    match value {
        Some(v) if !(0.0..=1.0).contains(&v) => {
            Err(impossible(at, &format!("is {v}, and a share is 0 to 1")))
        }
        _ => Ok(()),
    }
}

fn distribution(at: &str, d: &Distribution) -> Result<(), ReadError> {
    for value in [d.mean, d.p50] {
        not_negative(at, Some(value))?;
    }
    let ordered = [d.p50, d.p90, d.p95, d.p99, d.max];
    if ordered.windows(2).any(|w| matches!(w, [a, b] if a > b)) {
        return Err(impossible(at, "has percentiles out of order"));
    }
    if d.n == 0 { Err(impossible(at, "is a distribution of no values: leave it out")) } else { Ok(()) }
}

fn plane(at: &str, p: &PlaneFigures) -> Result<(), ReadError> {
    let most = [p.start_up_bytes, p.steady_bytes].into_iter().flatten().max();
    if let (Some(peak), Some(most)) = (p.peak_bytes, most)
        && most > peak
    {
        return Err(impossible(at, &format!("has a peak of {peak} bytes below another figure, {most}")));
    }
    if let Some(d) = &p.drift
        && !(d.low_bytes_per_hour <= d.bytes_per_hour && d.bytes_per_hour <= d.high_bytes_per_hour)
    {
        return Err(impossible(&format!("{at}.drift"), "lies outside of its own interval"));
    }
    Ok(())
}

fn shares(at: &impl Fn(&str) -> String, run: &Run) -> Result<(), ReadError> {
    if let Some(kv) = &run.kv {
        share(&at("kv.high_water_share"), kv.high_water_share)?;
        share(&at("kv.mean_share"), kv.mean_share)?;
        share(&at("kv.prefix_hit_share"), kv.prefix_hit_share)?;
    }
    if let Some(u) = &run.used {
        share(&at("use.gpu_share"), u.gpu_share)?;
        share(&at("use.sm_share"), u.sm_share)?;
        share(&at("use.memory_bandwidth_share"), u.memory_bandwidth_share)?;
        not_negative(&at("use.cpu_cores"), u.cpu_cores)?;
    }
    Ok(())
}

fn counts(at: &impl Fn(&str) -> String, run: &Run) -> Result<(), ReadError> {
    if let Some(r) = &run.requests {
        if r.good.is_some_and(|good| good > r.succeeded) {
            return Err(impossible(&at("requests.good"), "is more than succeeded"));
        }
        let ended = r.succeeded.saturating_add(r.failures()).saturating_add(r.cancelled);
        if ended > r.sent {
            return Err(impossible(&at("requests.sent"), "is less than what ended"));
        }
    }
    if let Some(t) = &run.throughput {
        not_negative(&at("throughput.requests_per_second"), t.requests_per_second)?;
        not_negative(&at("throughput.good_requests_per_second"), t.good_requests_per_second)?;
        not_negative(&at("throughput.input_tokens_per_second"), t.input_tokens_per_second)?;
        not_negative(&at("throughput.output_tokens_per_second"), t.output_tokens_per_second)?;
    }
    Ok(())
}

fn windows(at: &impl Fn(&str) -> String, run: &Run) -> Result<(), ReadError> {
    at_most(&at("windows"), run.windows.len(), MAX_WINDOWS, "window")?;
    for (i, w) in run.windows.iter().enumerate() {
        let at = at(&format!("windows[{i}]"));
        let values =
            [Some(w.from_seconds), w.ttft_p50, w.ttft_p99, w.itl_p50, w.itl_p99, w.e2e_p50, w.e2e_p99];
        for value in values {
            not_negative(&at, value)?;
        }
        share(&at, w.kv_share)?;
        share(&at, w.gpu_share)?;
        if !w.seconds.is_finite() || w.seconds <= 0.0 {
            return Err(impossible(&at, "lasts no time"));
        }
    }
    Ok(())
}

fn series(at: &str, s: &Series) -> Result<(), ReadError> {
    at_most(at, s.seconds.len(), MAX_POINTS, "time")?;
    at_most(at, s.lines.len(), MAX_LINES, "line")?;
    let rises = |w: &[f64]| matches!(w, [a, b] if a < b);
    if !s.seconds.windows(2).all(rises) || s.seconds.iter().any(|t| !t.is_finite()) {
        return Err(impossible(at, "has times that do not rise"));
    }
    for line in &s.lines {
        if line.values.len() != s.seconds.len() {
            let why = format!(
                "has {} of `{}` for {}",
                counted(line.values.len() as u64, "value"),
                dualplane_base::text::printable(&line.name),
                counted(s.seconds.len() as u64, "time")
            );
            return Err(impossible(at, &why));
        }
        if line.values.iter().flatten().any(|v| !v.is_finite()) {
            return Err(impossible(at, "has a value that is no number"));
        }
    }
    Ok(())
}
