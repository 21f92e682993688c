//! Each source by what it is, and each form by its own examples.

use crate::forms::{What, forms};
use crate::*;

fn of(text: &str) -> (dualplane_shape::Shape, Vec<String>) {
    profile(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn profile(text: &str) -> Result<(dualplane_shape::Shape, Vec<String>), NoShape> {
    let mut p = Profiler::new(dualplane_shape::LONG);
    p.begin("test");
    p.feed(text.as_bytes());
    let made = p.shape(&Options::default());
    if let Ok((shape, _)) = &made {
        shape.check().unwrap();
        let back: dualplane_shape::Shape = serde_json::from_str(&shape.json().unwrap()).unwrap();
        back.check().unwrap();
    }
    made
}

/// Cells as (input, output, weight).
fn cells(shape: &dualplane_shape::Shape) -> Vec<(u64, u64, u64)> {
    shape.requests.iter().map(|r| (r.input, r.output, r.weight as u64)).collect()
}

#[test]
fn every_form_reads_its_examples_and_no_other_form_comes_before() {
    let all = forms();
    assert!(all.all.len() > 12 && all.metrics.len() > 3);
    for form in &all.all {
        assert!(!form.examples.is_empty() && !form.source.is_empty(), "{}: {}", form.of, form.literal);
        regex::Regex::new(&form.pattern).unwrap();
        for e in &form.examples {
            assert!(e.line.contains(&form.literal), "{}", e.line);
            let (what, told) = all.read(e.line.as_bytes()).unwrap_or_else(|| panic!("{}", e.line));
            assert_eq!(what, form.what, "{}", e.line);
            let s = told.seen;
            assert_eq!((s.input, s.output, s.cached), (e.input, e.output, e.cached), "{}", e.line);
            assert_eq!((s.seconds, s.cancelled), (e.seconds, e.cancelled), "{}", e.line);
            assert_eq!((told.running, told.hit_percent), (e.running, e.hit_percent), "{}", e.line);
            if matches!(what, What::Part) && s == Seen::default() {
                assert!(told.id.is_some(), "{}", e.line);
            }
        }
    }
    assert!(all.metrics.iter().all(|m| !m.source.is_empty()));
}

#[test]
fn a_log_with_tokens_is_counted_with_its_times_tenants_and_cancellations() {
    let mut log = String::new();
    for i in 0..100 {
        let (tenant, status) =
            (if i % 4 == 0 { "acme" } else { "umbrella" }, if i % 10 == 9 { 499 } else { 200 });
        log += &format!(
            "2026-06-18T09:{:02}:{:02}Z INFO request done tenant={tenant} input_tokens={} output_tokens={} cached_tokens=250 \
             max_tokens=400 duration=2.0s status={status}\n",
            i / 60,
            i % 60,
            if i == 50 { 20_000 } else { 1_000 },
            200
        );
    }
    let (shape, notes) = of(&log);
    assert_eq!(cells(&shape), [(1_000, 200, 99), (20_000, 200, 1)]);
    assert_eq!((shape.counted, shape.concurrency), (Some(100), Some(2)));
    assert!((shape.arrival_per_second.unwrap() - 1.0).abs() < 1e-9 && shape.span_seconds == Some(99.0));
    assert_eq!(shape.concurrency_peak, Some(3));
    assert_eq!(shape.arrival.as_ref().unwrap().cv, 0.0);
    let c = shape.cancelled.unwrap();
    assert!((c.share - 0.1).abs() < 1e-9 && (c.after - 0.5).abs() < 1e-9);
    assert_eq!(shape.tenants.iter().map(|t| t.share).collect::<Vec<_>>(), [0.75, 0.25]);
    let long = shape.long.unwrap();
    assert!((long.share - 0.01).abs() < 1e-9 && (long.tokens_share - 0.1451).abs() < 1e-3, "{long:?}");
    assert!((shape.prefix_share - 0.21).abs() < 0.01 && notes.is_empty(), "{} {notes:?}", shape.prefix_share);
    assert!(!shape.json().unwrap().contains("acme"));
}

#[test]
fn public_traces_are_known_by_their_heads() {
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51.2224670,879,55\n";
    let (shape, _) = of(azure);
    assert_eq!(shape.counted, Some(3));
    assert!((shape.span_seconds.unwrap() - 4.5419).abs() < 0.01, "{:?}", shape.span_seconds);
    let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation log\n45,ChatGPT,1087,230,1317,Conversation log\n118,GPT-4,417,276,693,Conversation log\n";
    let (shape, _) = of(burst);
    assert_eq!((shape.counted, shape.span_seconds), (Some(3), Some(113.0)));
    let newer = "\"Timestamp\",\"Session ID\",\"Elapsed time\",\"Model\",\"Request tokens\",\"Response tokens\",\"Total tokens\",\"Log Type\"\n0,\"a, b\",1,GPT-4,10,20,30,x\n2,7,1,GPT-4,10,20,30,x\n";
    assert_eq!(cells(&of(newer).0), [(10, 20, 2)]);
    let mooncake = "{\"timestamp\": 0, \"input_length\": 6758, \"output_length\": 500, \"hash_ids\": [0, 1, 2, 3]}\n{\"timestamp\": 3000, \"input_length\": 7322, \"output_length\": 490, \"hash_ids\": [0, 1, 9]}\n";
    let (shape, _) = of(mooncake);
    assert_eq!(shape.span_seconds, Some(3.0));
    assert!((shape.prefix_share - 1024.0 / 14080.0).abs() < 1e-3, "{}", shape.prefix_share);
}

#[test]
fn openai_lines_are_counted_by_their_usage_or_estimated() {
    let answers = "{\"id\":\"b1\",\"custom_id\":\"r1\",\"response\":{\"status_code\":200,\"body\":{\"created\":1711471533,\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"input_tokens=99999\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":22,\"completion_tokens\":2,\"total_tokens\":24,\"prompt_tokens_details\":{\"cached_tokens\":11}}}},\"error\":null}\n";
    let (shape, _) = of(answers);
    assert_eq!(cells(&shape), [(22, 2, 1)]);
    assert!((shape.prefix_share - 0.5).abs() < 1e-9);
    let asked = "{\"custom_id\":\"r1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"0123456789abcdef0123456789abcdef01234567\"}],\"max_tokens\":100}}\n";
    let (shape, notes) = of(asked);
    assert_eq!(cells(&shape), [(10, 100, 1)]);
    assert!(notes.iter().any(|n| n.contains("estimated")) && notes.iter().any(|n| n.contains("max_tokens")));
}

#[test]
fn spans_of_generative_ai_are_requests() {
    let span = |at: u64, input: u32| {
        format!(
            r#"{{"name":"chat m","startTimeUnixNano":"{}","endTimeUnixNano":"{}","status":{{}},"attributes":[{{"key":"gen_ai.usage.input_tokens","value":{{"intValue":"{input}"}}}},{{"key":"gen_ai.usage.output_tokens","value":{{"intValue":"30"}}}},{{"key":"gen_ai.prompt","value":{{"stringValue":"secret"}}}}]}}"#,
            1_700_000_000_000_000_000_u64 + at * 1_000_000_000,
            1_700_000_000_500_000_000_u64 + at * 1_000_000_000
        )
    };
    let other = r#"{"name":"GET /health","startTimeUnixNano":"1","endTimeUnixNano":"2","attributes":[]}"#;
    let one = format!(
        r#"{{"resourceSpans":[{{"resource":{{"attributes":[]}},"scopeSpans":[{{"spans":[{},{other},{}]}}]}}]}}"#,
        span(0, 100),
        span(10, 100)
    );
    let many_lines =
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&one).unwrap()).unwrap();
    for text in [one.clone(), many_lines, format!("{one}\n{one}\n")] {
        let (shape, _) = of(&text);
        assert!(shape.counted == Some(2) || shape.counted == Some(4), "{text}");
        assert_eq!((shape.requests[0].input, shape.requests[0].output, shape.seconds), (100, 30, Some(0.5)));
    }
}

#[test]
fn engines_logs_are_joined_by_request() {
    let vllm = "INFO 06-18 09:00:00 [logger.py:43] Received request chatcmpl-1: prompt: 'output_tokens=7 max_tokens=9, params: ', params: SamplingParams(n=1, max_tokens=120), prompt_token_ids: [1, 2, 3, 4], lora_request: None.\n\
        INFO 06-18 09:00:00 [logger.py:43] Received request chatcmpl-2: prompt: 'x', params: SamplingParams(n=1, max_tokens=50), prompt_token_ids: [1, 2], lora_request: None.\n\
        INFO 06-18 09:00:02 [logger.py:71] Generated response chatcmpl-1: output: 'b c', output_token_ids: [5, 6, 7], finish_reason: stop\n\
        INFO:     10.0.0.1:4 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n\
        INFO 06-18 09:00:10 [loggers.py:123] Engine 000: Avg prompt throughput: 4.2 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 31.8%, Prefix cache hit rate: 12.5%\n";
    let (shape, notes) = of(vllm);
    assert_eq!(cells(&shape), [(2, 50, 1), (4, 3, 1)]);
    assert_eq!((shape.concurrency_peak, shape.prefix_share), (Some(12), 0.125));
    assert!(notes.iter().any(|n| n.contains("max_tokens")), "{notes:?}");
    let llama = "slot update_slots: id  0 | task 12 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 300\n\
        slot update_slots: id  1 | task 13 | new prompt, n_ctx_slot = 4096, n_keep = 0, task.n_tokens = 40\n\
        slot print_timing: id  0 | task 12 | \n\
        prompt eval time =     100.00 ms /    50 tokens (    2.00 ms per token,   500.00 tokens per second)\n\
        \x20      eval time =     900.00 ms /   100 tokens (    9.00 ms per token,   111.11 tokens per second)\n\
        \x20     total time =    1000.00 ms /   150 tokens\n\
        slot print_timing: id  1 | task 13 | \n\
        prompt eval time =     100.00 ms /    40 tokens (    2.00 ms per token,   500.00 tokens per second)\n\
        \x20      eval time =     900.00 ms /    10 tokens (    9.00 ms per token,   111.11 tokens per second)\n\
        \x20     total time =    1000.00 ms /    50 tokens\n";
    let (shape, _) = of(llama);
    assert_eq!(cells(&shape), [(40, 10, 1), (300, 100, 1)]);
    assert!((shape.prefix_share - 250.0 / 300.0).abs() < 1e-3, "{}", shape.prefix_share);
}

#[test]
fn histograms_of_an_engine_keep_their_mean() {
    let page = "# HELP vllm:request_prompt_tokens Number of prefill tokens processed.\n# TYPE vllm:request_prompt_tokens histogram\n\
        vllm:request_prompt_tokens_bucket{engine=\"0\",le=\"100.0\",model_name=\"m\"} 60.0\nvllm:request_prompt_tokens_bucket{engine=\"0\",le=\"1000.0\",model_name=\"m\"} 100.0\nvllm:request_prompt_tokens_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 100.0\nvllm:request_prompt_tokens_sum{engine=\"0\",model_name=\"m\"} 18000.0\n\
        vllm:request_generation_tokens_bucket{engine=\"0\",le=\"100.0\",model_name=\"m\"} 100.0\nvllm:request_generation_tokens_bucket{engine=\"0\",le=\"+Inf\",model_name=\"m\"} 100.0\nvllm:request_generation_tokens_sum{engine=\"0\",model_name=\"m\"} 5000.0\n\
        vllm:e2e_request_latency_seconds_sum{engine=\"0\"} 250.0\nvllm:e2e_request_latency_seconds_count{engine=\"0\"} 100.0\nvllm:prefix_cache_queries_total{engine=\"0\"} 1000\nvllm:prefix_cache_hits_total{engine=\"0\"} 250\n";
    let (shape, notes) = of(page);
    let mean = |f: fn(&dualplane_shape::Requests) -> u64| {
        let n: f64 = shape.requests.iter().map(|r| r.weight).sum();
        shape.requests.iter().map(|r| f(r) as f64 * r.weight).sum::<f64>() / n
    };
    assert!((mean(|r| r.input) - 180.0).abs() < 2.0 && (mean(|r| r.output) - 50.0).abs() < 1.0, "{shape:?}");
    assert_eq!((shape.seconds, shape.prefix_share, shape.counted), (Some(2.5), 0.25, Some(100)));
    assert!(!notes.is_empty());
}

#[test]
fn an_answer_of_prometheus_is_read_by_what_grew() {
    let series = |name: &str, le: &str, a: u32, b: u32| {
        format!(r#"{{"metric":{{"__name__":"{name}","le":"{le}"}},"values":[[1000,"{a}"],[1100,"{b}"]]}}"#)
    };
    let all = [
        series("vllm:request_prompt_tokens_bucket", "100.0", 5, 15),
        series("vllm:request_prompt_tokens_bucket", "+Inf", 5, 25),
        series("vllm:request_generation_tokens_bucket", "50.0", 0, 20),
        series("vllm:request_generation_tokens_bucket", "+Inf", 0, 20),
    ];
    let text =
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}}"#, all.join(","));
    let (shape, _) = of(&text);
    assert_eq!((shape.counted, shape.arrival_per_second), (Some(20), Some(0.2)));
}

#[test]
fn what_tells_nothing_says_so() {
    assert_eq!(profile(""), Err(NoShape::Nothing { lines: 0 }));
    assert!(matches!(profile("hello\nworld\n"), Err(NoShape::Nothing { lines: 2 })));
    let access = "10.1.2.3 - - [18/Jun/2026:09:00:02 +0000] \"POST /v1/chat/completions HTTP/1.1\" 200 5 \"-\" \"python\"\n";
    assert_eq!(profile(access), Err(NoShape::NoLengths { requests: 1 }));
}

#[test]
fn bursts_are_told_from_chance_and_from_a_metronome() {
    for (cv, low, high) in [(0.0, 0.0, 0.2), (1.0, 0.85, 1.15), (3.0, 2.0, 4.0)] {
        let shape: dualplane_shape::Shape = serde_json::from_value(serde_json::json!({
            "schema": dualplane_shape::SHAPE, "requests": [{"input": 10, "output": 10}], "arrival_per_second": 12.0, "arrival": {"cv": cv}
        }))
        .unwrap();
        let mut text = String::from("timestamp,input_tokens,output_tokens\n");
        for r in shape.draw(4, dualplane_shape::Play::default()).unwrap().take(20_000) {
            text += &format!("{},{},{}\n", 1_700_000_000.0 + r.at, r.input, r.output);
        }
        let got = of(&text).0.arrival.unwrap().cv;
        assert!((low..=high).contains(&got), "{cv}: {got}");
    }
}

#[test]
fn a_picture_shows_both_histograms() {
    let shape = dualplane_shape::named("chat").unwrap();
    let style = dualplane_base::style::Style { colour: false, verbose: false, width: 100 };
    let text = draw(&shape, &["a remark".into()], style);
    assert!(
        text.contains("Prompts  tokens: p50") && text.contains("Answers  tokens: p50") && text.contains("█"),
        "{text}"
    );
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
}
