//! Each tool by what it writes.

use super::*;

fn of(text: &str) -> Results {
    read(text).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn files_of_tools_are_recognised_and_become_seconds() {
    let guidellm = r#"{"metadata":{"guidellm_version":"0.5.0"},"benchmarks":[{"duration":60.5,"metrics":{"request_totals":{"successful":100,"incomplete":2,"errored":3,"total":105},
        "time_to_first_token_ms":{"successful":{"mean":120.0,"median":100.0,"max":900.0,"percentiles":{"p50":100.0,"p90":200.0,"p95":300.0,"p99":500.0}}},
        "inter_token_latency_ms":{"successful":{"mean":12.0,"median":10.0,"max":30.0,"percentiles":{"p50":10.0,"p90":20.0,"p95":22.0,"p99":25.0}}},
        "request_latency":{"successful":{"mean":2.0,"median":1.5,"max":6.0,"percentiles":{"p50":1.5,"p90":3.0,"p95":4.0,"p99":5.0}}},
        "requests_per_second":{"successful":{"mean":1.65}},"output_tokens_per_second":{"successful":{"mean":300.0}}}}]}"#;
    let r = of(guidellm);
    assert_eq!((r.tool.as_str(), r.version.as_deref(), r.seconds), ("guidellm", Some("0.5.0"), Some(60.5)));
    assert!((r.ttft.unwrap().p99 - 0.5).abs() < 1e-9 && (r.itl.unwrap().mean - 0.012).abs() < 1e-9);
    let q = r.requests.unwrap();
    assert_eq!((q.sent, q.succeeded, q.failures()), (105, 100, 3));

    let aiperf = r#"{"request_latency":{"unit":"ms","avg":2000.0,"p50":1500.0,"p90":3000.0,"p95":4000.0,"p99":5000.0,"max":6000.0},"time_to_first_token":{"unit":"ms","avg":120.0,"p50":100.0,"p90":200.0,"p95":300.0,"p99":500.0,"max":900.0},"request_count":{"unit":"requests","avg":40.0},"request_throughput":{"unit":"requests/sec","avg":1.5},"input_config":{"endpoint":{"model_names":["m"]},"loadgen":{"concurrency":4}}}"#;
    let r = of(aiperf);
    assert_eq!((r.tool.as_str(), r.concurrency, r.model.as_deref()), ("aiperf", Some(4), Some("m")));
    assert!((r.ttft.unwrap().p50 - 0.1).abs() < 1e-9 && r.itl.is_none());

    let vllm = r#"{"date":"20260618","backend":"vllm","model_id":"m","num_prompts":50,"max_concurrency":8,"duration":10.0,"completed":48,"request_throughput":4.8,"output_throughput":900.0,"mean_ttft_ms":50.0,"median_ttft_ms":40.0,"p99_ttft_ms":90.0,"mean_tpot_ms":9.0,"median_tpot_ms":8.0,"p99_tpot_ms":20.0}"#;
    let r = of(vllm);
    let d = r.ttft.unwrap();
    assert!(
        (d.p50 - 0.04).abs() < 1e-9 && (d.p90 - 0.09).abs() < 1e-9 && (d.max - 0.09).abs() < 1e-9,
        "{d:?}"
    );
    assert_eq!(r.requests.unwrap().failures(), 2);

    let genai = r#"{"aggregated_metrics":{"scenario":"D(100,100)","num_concurrency":8,"run_duration":60.0,"num_requests":30,"num_completed_requests":29,"num_error_requests":1,"requests_per_second":0.48,"stats":{"ttft":{"min":0.1,"max":0.9,"mean":0.2,"p50":0.2,"p90":0.4,"p95":0.5,"p99":0.8},"tpot":{"mean":0.01,"p50":0.01,"p90":0.02,"p95":0.02,"p99":0.03,"max":0.04},"e2e_latency":{"mean":1.0,"p50":1.0,"p90":2.0,"p95":2.0,"p99":3.0,"max":4.0}}},"individual_request_metrics":[]}"#;
    assert!((of(genai).itl.unwrap().p99 - 0.03).abs() < 1e-9);
    let in_ms = genai.replacen('{', r#"{"_time_unit":"ms","#, 1);
    assert!((of(&in_ms).itl.unwrap().p99 - 3e-5).abs() < 1e-12, "--metrics-time-unit ms");

    let k6 = r#"{"metrics":{"http_reqs":{"count":100,"rate":10.0},"http_req_failed":{"value":0.1,"passes":10,"fails":90},"http_req_duration":{"avg":200.0,"min":1,"med":150.0,"max":900.0,"p(90)":300.0,"p(95)":400.0},"http_req_waiting":{"avg":20.0,"med":15.0,"max":90.0,"p(90)":30.0,"p(95)":40.0}}}"#;
    let r = of(k6);
    assert_eq!((r.tool.as_str(), r.seconds, r.requests.unwrap().succeeded), ("k6", Some(10.0), 90));
    let d = r.e2e.unwrap();
    assert!((d.p99 - 0.9).abs() < 1e-9 && (d.p95 - 0.4).abs() < 1e-9);

    let locust = "Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,Max Response Time,Average Content Size,Requests/s,Failures/s,50%,66%,75%,80%,90%,95%,98%,99%,99.9%,99.99%,100%\nPOST,/v1/completions,50,5,100,120.5,50,900,10,5.0,0.5,100,110,120,130,200,300,400,500,900,900,900\n,Aggregated,50,5,100,120.5,50,900,10,5.0,0.5,100,110,120,130,200,300,400,500,900,900,900\n";
    let r = of(locust);
    assert!(r.tool == "locust" && r.seconds == Some(10.0) && (r.e2e.unwrap().p95 - 0.3).abs() < 1e-9);
    let json = r#"[{"name":"/v1","method":"POST","start_time":1000.0,"last_request_timestamp":1010.0,"num_requests":4,"num_failures":1,"total_response_time":400.0,"max_response_time":200.0,"response_times":{"50":2,"100":1,"200":1}}]"#;
    let r = of(json);
    assert!((r.e2e.unwrap().p50 - 0.05).abs() < 1e-9 && r.seconds == Some(10.0));
    for other in [
        "",
        "{}",
        "[]",
        "a,b\n1,2\n",
        r#"{"metrics":{}}"#,
        r#"{"benchmarks":[]}"#,
        r#"{"benchmarks":[{"metrics":{}}]}"#,
    ] {
        assert_eq!(read(other), None, "{other}");
    }
}

/// Files that the tools really wrote: `testdata/measure/README.md`.
#[test]
fn files_that_were_really_written_are_read() {
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    let r = of(include_str!("../../../../testdata/measure/tools/vllm-bench-serve-0.32.0.json"));
    assert_eq!(
        (r.tool.as_str(), r.model.as_deref(), r.concurrency),
        ("vllm bench serve", Some("tiny"), Some(4))
    );
    assert!(near(r.ttft.unwrap().p95, 0.243_930_154) && near(r.itl.unwrap().mean, 0.046_571_919));
    assert!(near(r.e2e.unwrap().p99, 0.828_096_134) && r.requests.unwrap().succeeded == 20);
    assert!(near(r.throughput.unwrap().input_tokens_per_second.unwrap(), 1360.0 / 3.438_543_447));

    let r = of(include_str!("../../../../testdata/measure/tools/guidellm-0.8.1.json"));
    assert_eq!((r.tool.as_str(), r.version.as_deref(), r.concurrency), ("guidellm", Some("0.8.1"), Some(4)));
    let (ttft, q) = (r.ttft.unwrap(), r.requests.unwrap());
    assert!(near(ttft.mean, 0.127_498_024_7) && near(ttft.p99, 0.145_838_260_6), "{ttft:?}");
    assert_eq!((q.sent, q.succeeded, r.seconds.map(|s| s.round())), (40, 40, Some(3.0)));

    let r = of(include_str!("../../../../testdata/measure/tools/locust-2.47.0_stats.csv"));
    let e2e = r.e2e.unwrap();
    assert!(
        near(e2e.mean, 0.272_319_523_4) && near(e2e.p99, 0.46) && r.requests.unwrap().sent == 42,
        "{e2e:?}"
    );
    let r = of(include_str!("../../../../testdata/measure/tools/k6-1.8.1.json"));
    assert_eq!(
        (r.tool.as_str(), r.concurrency, r.requests.as_ref().unwrap().succeeded),
        ("k6", Some(4), 136)
    );
    assert!(r.ttft.is_none(), "the first byte is the head's");
    // 36 refusals are quicker than no answer here, and are not among the answers' times.
    let e2e = r.e2e.unwrap();
    assert!(near(e2e.mean, 0.094434938) && near(e2e.p95, 0.100037078) && e2e.n == 136, "{e2e:?}");
    assert!(near(r.seconds.unwrap(), 4.0958008) && r.requests.unwrap().failures() == 36);
    let r = of(include_str!("../../../../testdata/measure/tools/k6-1.8.1-machine-readable.json"));
    assert_eq!(
        (r.version.as_deref(), r.concurrency, r.requests.as_ref().unwrap().sent),
        (Some("1.8.1"), Some(4), 88)
    );
    assert!(near(r.e2e.unwrap().p90, 0.096_454_91) && near(r.seconds.unwrap(), 2.027_366_57));
    assert!(near(r.throughput.unwrap().requests_per_second.unwrap(), 72.0 / 2.027_366_57));

    let r = of(include_str!("../../../../testdata/measure/tools/genai-bench-0.0.5.json"));
    assert_eq!(
        (r.tool.as_str(), r.concurrency, r.requests.as_ref().unwrap().succeeded),
        ("genai-bench", Some(2), 32)
    );
    assert!(near(r.ttft.unwrap().p99, 0.076_930_200) && near(r.itl.unwrap().p50, 0.010_134_533_9));
    assert!(near(r.e2e.unwrap().max, 0.400_653_639) && near(r.seconds.unwrap(), 4.282_531_166));

    let r = of(include_str!("../../../../testdata/measure/tools/locust-2.47.0.json"));
    let e2e = r.e2e.unwrap();
    // Its buckets are rounded upwards, also above the longest.
    assert!(near(e2e.p50, 0.26) && near(e2e.max, 0.47) && r.requests.unwrap().sent == 17, "{e2e:?}");
}
