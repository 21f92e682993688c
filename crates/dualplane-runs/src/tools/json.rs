//! Result files in JSON.

use dualplane_base::order::Order as _;
use dualplane_gate::document::{Distribution, Failed, Requests, Throughput};
use serde_json::Value;

use super::{Results, distribution};

pub(super) fn read(v: &Value) -> Option<Results> {
    guidellm(v)
        .or_else(|| aiperf(v))
        .or_else(|| vllm(v))
        .or_else(|| genai_bench(v))
        .or_else(|| k6(v))
        .or_else(|| locust(v))
}

fn number(v: &Value, at: &str) -> Option<f64> {
    let found = v.pointer(at)?;
    found.as_f64().or_else(|| found.as_str()?.parse().ok()).filter(|n| n.is_finite() && *n >= 0.0)
}

fn count(v: &Value, at: &str) -> Option<u64> {
    number(v, at).map(|n| n as u64)
}

fn text(v: &Value, at: &str) -> Option<String> {
    v.pointer(at).and_then(Value::as_str).map(str::to_owned)
}

fn failed(reason: &str, n: u64) -> Vec<Failed> {
    if n == 0 { Vec::new() } else { vec![Failed { reason: reason.to_owned(), count: n }] }
}

/// Of requests that were answered and that were not.
fn requests(done: u64, bad: u64) -> Requests {
    Requests { sent: done + bad, succeeded: done, good: None, failed: failed("error", bad), cancelled: 0 }
}

/// Five points and a mean by their names.
fn points(v: &Value, at: &str, names: [&str; 6], scale: f64, n: u64) -> Option<Distribution> {
    let of = |name: &str| {
        if name.is_empty() { None } else { number(v, &format!("{at}/{name}")).map(|x| x * scale) }
    };
    let [mean, p50, p90, p95, p99, max] = names;
    distribution(n, of(mean), [of(p50), of(p90), of(p95), of(p99), of(max)])
}

/// `benchmarks.json`: of several rates the last is taken.
fn guidellm(v: &Value) -> Option<Results> {
    let all = v.get("benchmarks")?.as_array()?;
    let b = all.last()?;
    b.get("metrics")?;
    let n = count(b, "/metrics/request_totals/successful")
        .or_else(|| count(b, "/run_stats/requests_made/successful"))?;
    let errored =
        count(b, "/metrics/request_totals/errored").or_else(|| count(b, "/run_stats/requests_made/errored"));
    let open = count(b, "/metrics/request_totals/incomplete")
        .or_else(|| count(b, "/run_stats/requests_made/incomplete"));
    let of = |name: &str, scale: f64| {
        let at = format!("/metrics/{name}/successful");
        let spread = |p: &str| number(b, &format!("{at}/percentiles/{p}")).map(|x| x * scale);
        let own = |p: &str| number(b, &format!("{at}/{p}")).map(|x| x * scale);
        distribution(
            n,
            own("mean"),
            [
                spread("p50").or_else(|| own("median")),
                spread("p90"),
                spread("p95"),
                spread("p99"),
                own("max"),
            ],
        )
    };
    let rate = |name: &str| {
        let at = |kind: &str| number(b, &format!("/metrics/{name}/{kind}/mean"));
        at("successful").or_else(|| at("total"))
    };
    Some(Results {
        tool: "guidellm".into(),
        version: text(v, "/metadata/guidellm_version").or_else(|| text(v, "/guidellm_version")),
        seconds: number(b, "/duration").or_else(|| number(b, "/run_stats/duration")),
        ttft: of("time_to_first_token_ms", 1e-3),
        itl: of("inter_token_latency_ms", 1e-3),
        e2e: of("request_latency", 1.0),
        requests: Some(requests(n, errored.unwrap_or(0)))
            .map(|r| Requests { sent: r.sent + open.unwrap_or(0), ..r }),
        throughput: Some(Throughput {
            requests_per_second: rate("requests_per_second"),
            output_tokens_per_second: rate("output_tokens_per_second"),
            input_tokens_per_second: rate("prompt_tokens_per_second"),
            ..Throughput::default()
        }),
        concurrency: rate("request_concurrency").map(|n| n.round() as u32),
        model: text(v, "/args/model").or_else(|| text(b, "/config/backend/model")),
    })
}

/// `profile_export_aiperf.json` of aiperf, `profile_export_genai_perf.json` of its forerunner.
fn aiperf(v: &Value) -> Option<Results> {
    let own = v.get("input_config").is_some() || v.get("aiperf_version").is_some();
    v.get("request_latency").or_else(|| v.get("time_to_first_token")).filter(|_| own)?;
    let n = count(v, "/request_count/avg").unwrap_or(0);
    let errors = count(v, "/error_request_count/avg").unwrap_or(0);
    let of = |name: &str| {
        let unit = text(v, &format!("/{name}/unit")).unwrap_or_else(|| "ms".into());
        let scale = match unit.as_str() {
            "sec" | "s" | "seconds" => 1.0,
            "us" => 1e-6,
            "ns" => 1e-9,
            _ => 1e-3,
        };
        points(v, &format!("/{name}"), ["avg", "p50", "p90", "p95", "p99", "max"], scale, n)
    };
    Some(Results {
        tool: if v.get("aiperf_version").is_some()
            || v.get("input_config").is_some_and(|c| c.get("endpoint").is_some())
        {
            "aiperf".into()
        } else {
            "genai-perf".into()
        },
        version: text(v, "/aiperf_version"),
        seconds: number(v, "/benchmark_duration/avg"),
        ttft: of("time_to_first_token"),
        itl: of("inter_token_latency"),
        e2e: of("request_latency"),
        requests: (n + errors > 0)
            .then(|| Requests { good: count(v, "/good_request_count/avg"), ..requests(n, errors) }),
        throughput: Some(Throughput {
            requests_per_second: number(v, "/request_throughput/avg"),
            good_requests_per_second: number(v, "/goodput/avg"),
            output_tokens_per_second: number(v, "/output_token_throughput/avg"),
            ..Throughput::default()
        }),
        concurrency: number(v, "/input_config/loadgen/concurrency").map(|n| n as u32),
        model: text(v, "/input_config/endpoint/model_names/0"),
    })
}

/// The file of `vllm bench serve --save-result`.
fn vllm(v: &Value) -> Option<Results> {
    let n = count(v, "/completed")?;
    let duration = number(v, "/duration")?;
    v.get("mean_ttft_ms")?;
    let of = |name: &str| {
        let p = |p: &str| number(v, &format!("/{p}_{name}_ms")).map(|x| x / 1e3);
        distribution(n, p("mean"), [p("median").or_else(|| p("p50")), p("p90"), p("p95"), p("p99"), None])
    };
    let asked = count(v, "/num_prompts").unwrap_or(n).max(n);
    let bad = count(v, "/failed").unwrap_or(asked - n);
    Some(Results {
        tool: "vllm bench serve".into(),
        seconds: Some(duration),
        ttft: of("ttft"),
        // The mean of a request is what others call the time between two tokens.
        itl: of("tpot").or_else(|| of("itl")),
        e2e: of("e2el"),
        requests: Some(requests(n, bad)),
        throughput: Some(Throughput {
            requests_per_second: number(v, "/request_throughput"),
            good_requests_per_second: number(v, "/request_goodput"),
            output_tokens_per_second: number(v, "/output_throughput"),
            input_tokens_per_second: count(v, "/total_input_tokens")
                .filter(|_| duration > 0.0)
                .map(|n| n as f64 / duration),
            ..Throughput::default()
        }),
        concurrency: number(v, "/max_concurrency").map(|n| n as u32),
        model: text(v, "/model_id"),
        version: None,
    })
}

/// One file of genai-bench: `D(100,100)_text-to-text_num_concurrency_8_time_60s.json`.
fn genai_bench(v: &Value) -> Option<Results> {
    let m = v.get("aggregated_metrics")?;
    let n = count(m, "/num_completed_requests").unwrap_or(0);
    let bad = count(m, "/num_error_requests").unwrap_or(0);
    // `--metrics-time-unit ms` changes what is written; without the key it is seconds.
    let scale = if text(v, "/_time_unit").as_deref() == Some("ms") { 1e-3 } else { 1.0 };
    let of = |name: &str| {
        points(m, &format!("/stats/{name}"), ["mean", "p50", "p90", "p95", "p99", "max"], scale, n)
    };
    Some(Results {
        tool: "genai-bench".into(),
        seconds: number(m, "/run_duration"),
        ttft: of("ttft"),
        itl: of("tpot"),
        e2e: of("e2e_latency"),
        requests: Some(requests(n, bad)),
        throughput: Some(Throughput {
            requests_per_second: number(m, "/requests_per_second"),
            output_tokens_per_second: number(m, "/mean_output_throughput_tokens_per_s"),
            input_tokens_per_second: number(m, "/mean_input_throughput_tokens_per_s"),
            ..Throughput::default()
        }),
        concurrency: number(m, "/num_concurrency").map(|n| n as u32),
        model: None,
        version: None,
    })
}

/// `k6 run --summary-export FILE`, and `handleSummary`'s data: of today, and of `--new-machine-readable-summary`.
fn k6(v: &Value) -> Option<Results> {
    let seconds = number(v, "/config/duration").filter(|s| *s > 0.0);
    // The newer form is a list of metrics with their names, and has percentiles without parentheses.
    let listed = v.pointer("/results/metrics").and_then(Value::as_array);
    let of = |metric: &str| {
        let found = match listed {
            Some(all) => all.iter().find(|m| m.get("name").and_then(Value::as_str) == Some(metric))?,
            None => v.get("metrics")?.get(metric)?,
        };
        Some(found.get("values").unwrap_or(found))
    };
    let reqs = of("http_reqs").or_else(|| of("iterations"))?;
    let all = count(reqs, "/count")?;
    let share =
        of("http_req_failed").and_then(|f| number(f, "/value").or_else(|| number(f, "/rate"))).unwrap_or(0.0);
    let bad = (all as f64 * share.min(1.0)).round() as u64;
    let names = if listed.is_some() {
        ["avg", "med", "p90", "p95", "p99", "max"]
    } else {
        ["avg", "med", "p(90)", "p(95)", "p(99)", "max"]
    };
    let times = |metric: &str, n: u64| points(of(metric)?, "", names, 1e-3, n);
    let seconds = seconds.or_else(|| number(reqs, "/rate").filter(|r| *r > 0.0).map(|r| all as f64 / r));
    Some(Results {
        tool: "k6".into(),
        version: text(v, "/metadata/k6_version"),
        seconds,
        // It waits for the first byte (`http_req_waiting`), and servers send the head of a stream before its first token.
        ttft: None,
        // A refusal is quick, and says nothing of an answer's time.
        e2e: times("http_req_duration{expected_response:true}", all - bad)
            .or_else(|| times("http_req_duration", all))
            .or_else(|| times("iteration_duration", all)),
        requests: Some(requests(all - bad, bad)),
        throughput: Some(Throughput {
            requests_per_second: seconds.map(|s| (all - bad) as f64 / s),
            ..Throughput::default()
        }),
        concurrency: of("vus_max")
            .and_then(|m| number(m, "/value").or_else(|| number(m, "/max")))
            .map(|n| n as u32),
        ..Results::default()
    })
}

/// `locust --json`: a list of what was asked, with every response time rounded.
fn locust(v: &Value) -> Option<Results> {
    let all = v.as_array()?;
    all.first()?.get("response_times")?;
    let mut times: Vec<(f64, u64)> = Vec::new();
    let (mut n, mut bad, mut sum, mut max) = (0, 0, 0.0, 0.0_f64);
    let (mut from, mut to) = (f64::INFINITY, 0.0_f64);
    for entry in all {
        n += count(entry, "/num_requests")?;
        bad += count(entry, "/num_failures").unwrap_or(0);
        sum += number(entry, "/total_response_time").unwrap_or(0.0);
        max = max.max(number(entry, "/max_response_time").unwrap_or(0.0));
        from = from.min(number(entry, "/start_time").unwrap_or(f64::INFINITY));
        to = to.max(number(entry, "/last_request_timestamp").unwrap_or(0.0));
        for (ms, count) in entry.get("response_times").and_then(Value::as_object).into_iter().flatten() {
            if let (Ok(ms), Some(count)) = (ms.parse::<f64>(), count.as_u64()) {
                times.push((ms, count));
            }
        }
    }
    times.order_by(|a, b| a.0.total_cmp(&b.0));
    let at = |share: f64| {
        let wanted = (times.iter().map(|t| t.1).sum::<u64>() as f64 * share).ceil() as u64;
        let mut seen = 0;
        times.iter().find_map(|(ms, count)| {
            seen += count;
            (seen >= wanted).then_some(ms / 1e3)
        })
    };
    let seconds = Some(to - from).filter(|s| s.is_finite() && *s > 0.0);
    let mean = (n > 0).then(|| sum / n as f64 / 1e3);
    Some(Results {
        tool: "locust".into(),
        seconds,
        e2e: distribution(n, mean, [at(0.5), at(0.9), at(0.95), at(0.99), Some(max / 1e3)]),
        requests: Some(requests(n.saturating_sub(bad), bad)),
        throughput: Some(Throughput {
            requests_per_second: seconds.map(|s| n.saturating_sub(bad) as f64 / s),
            ..Throughput::default()
        }),
        ..Results::default()
    })
}
