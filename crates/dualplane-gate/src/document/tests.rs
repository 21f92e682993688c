//! The document: written as its schema says, read again, and refused where it contradicts itself.

use serde_json::{Value, json};

use super::*;

/// A document that has every field.
fn full() -> Measure {
    let distribution = |x: f64| Distribution {
        n: 100,
        mean: x,
        p50: x,
        p90: x * 2.0,
        p95: x * 2.5,
        p99: x * 3.0,
        max: x * 4.0,
    };
    let drift = Drift {
        bytes_per_hour: 1e6,
        low_bytes_per_hour: -2e6,
        high_bytes_per_hour: 4e6,
        confidence: 0.99,
        seconds: 600.0,
        samples: 600,
        grows: false,
    };
    let plane = PlaneFigures {
        start_up_bytes: Some(3 << 30),
        steady_bytes: Some(2 << 30),
        peak_bytes: Some(3 << 30),
        limit_bytes: Some(4 << 30),
        without_page_cache: Some(true),
        drift: Some(drift),
    };
    let window = Window {
        from_seconds: 0.0,
        seconds: 10.0,
        host_bytes: Some(2 << 30),
        vram_bytes: None,
        kv_share: Some(0.4),
        preemptions: Some(0),
        waiting: Some(0.0),
        running: Some(4.0),
        succeeded: Some(40),
        good: Some(39),
        failed: Some(0),
        output_tokens: Some(8000),
        ttft_p50: Some(0.1),
        ttft_p99: Some(0.4),
        itl_p50: Some(0.02),
        itl_p99: Some(0.05),
        e2e_p50: Some(2.0),
        e2e_p99: Some(4.0),
        gpu_share: None,
        cpu_cores: Some(1.9),
    };
    Measure {
        started_at: Some("2026-11-25T15:00:00Z".into()),
        ended_at: Some("2026-11-25T15:10:00Z".into()),
        subject: Subject {
            engine: Some("vllm".into()),
            engine_version: Some("0.32.0".into()),
            model: Some("example/tiny".into()),
            command: vec!["vllm".into(), "serve".into()],
            ..Subject::default()
        },
        hardware: Hardware {
            gpus: Some(vec![Gpu {
                name: "NVIDIA H100 80GB HBM3".into(),
                memory_bytes: Some(80 << 30),
                mig: None,
            }]),
            cpus: Some(2),
            cpu_limit: Some(1.5),
            ..Hardware::default()
        },
        shape: Some(Shape { name: "chat".into(), digest: Some("sha256:00".into()), ..Shape::default() }),
        slo: Some(Slo { ttft_seconds: Some(1.0), ..Slo::default() }),
        cost: Some(Cost { per_hour: 2.5, currency: "EUR".into() }),
        safe: Some(SafeLoad { concurrency: Some(16), ..SafeLoad::default() }),
        runs: vec![Run {
            name: "1".into(),
            load: Load { mode: "closed".into(), concurrency: Some(4), seed: Some(7), ..Load::default() },
            start_seconds: Some(41.0),
            measured_seconds: 600.0,
            host: Some(plane.clone()),
            vram: Some(plane),
            host_split: Some(HostSplit { anon_bytes: Some(2 << 30), ..HostSplit::default() }),
            processes: vec![ProcessMemory {
                name: "VLLM::Worker".into(),
                peak_bytes: Some(1 << 30),
                ..ProcessMemory::default()
            }],
            kv: Some(Kv {
                capacity_tokens: Some(524_288),
                high_water_share: Some(0.4),
                preemptions: Some(0),
                ..Kv::default()
            }),
            queue: Some(Queue { waiting_peak: Some(3.0), ..Queue::default() }),
            ttft: Some(distribution(0.1)),
            itl: Some(distribution(0.01)),
            e2e: Some(distribution(2.0)),
            timing: Some(Timing { queue_seconds: Some(0.01), ..Timing::default() }),
            requests: Some(Requests {
                sent: 110,
                succeeded: 100,
                good: Some(99),
                failed: vec![Failed { reason: "http 503".into(), count: 4 }],
                cancelled: 2,
            }),
            throughput: Some(Throughput { good_requests_per_second: Some(0.165), ..Throughput::default() }),
            used: Some(Use { gpu_share: Some(0.9), ..Use::default() }),
            restarts: Some(vec![Restart {
                class: Some("host_oom_killed".into()),
                exit_code: Some(137),
                ..Restart::default()
            }]),
            gpu_faults: Some(GpuFaults {
                xids: Some(vec![79]),
                ecc_uncorrected: Some(0),
                ..GpuFaults::default()
            }),
            windows: vec![window],
            series: Some(Series {
                seconds: vec![0.0, 1.0],
                lines: vec![Line {
                    name: "host".into(),
                    unit: "bytes".into(),
                    values: vec![Some(1.0), None],
                }],
            }),
            ..Run::default()
        }],
        ..Measure::new(Tool { name: "dualplane".into(), version: "0.1.0".into(), load_tool: None })
    }
}

fn schema() -> jsonschema::Validator {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/measure.schema.json");
    let text = std::fs::read_to_string(path).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn what_is_written_is_read_again_and_follows_the_schema() {
    let mut thin = Measure::new(Tool::default());
    thin.runs.push(Run::default());
    let schema = schema();
    for measure in [full(), thin] {
        let text = write(&measure).unwrap();
        assert_eq!(read(&text).unwrap(), measure);
        let value: Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> =
            schema.iter_errors(&value).map(|e| format!("{e} at {}", e.instance_path)).collect();
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

/// Each object of a full document: a field more is refused by the schema and by the reader, and a field less by the schema.
#[test]
fn the_schema_and_the_types_name_the_same_fields() {
    fn objects(value: &Value, at: &str, out: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                out.push(at.to_owned());
                map.iter().for_each(|(k, v)| objects(v, &format!("{at}/{k}"), out));
            }
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(i, v)| objects(v, &format!("{at}/{i}"), out))
            }
            _ => {}
        }
    }
    let value = serde_json::to_value(full()).unwrap();
    let schema = schema();
    let mut all = Vec::new();
    objects(&value, "", &mut all);
    assert!(all.len() > 30, "{all:?}");
    for at in all {
        let mut more = value.clone();
        more.pointer_mut(&at).unwrap().as_object_mut().unwrap().insert("unheard_of".into(), json!(1));
        assert!(!schema.is_valid(&more), "{at}");
        assert!(read(&more.to_string()).is_err(), "{at}");
        let fields: Vec<String> = value.pointer(&at).unwrap().as_object().unwrap().keys().cloned().collect();
        for field in fields {
            let mut less = value.clone();
            less.pointer_mut(&at).unwrap().as_object_mut().unwrap().remove(&field);
            assert!(!schema.is_valid(&less), "{at}/{field}");
        }
    }
}

#[test]
fn what_is_no_report_is_refused_with_words() {
    for (text, says) in [
        ("", "EOF"),
        ("[]", "is no report"),
        ("{}", "names no schema"),
        (r#"{"schema": "dualplane.measure/v2"}"#, "update dualplane"),
        (r#"{"schema": "dualplane.plan/v1"}"#, "a plan"),
        (r#"{"schema": "other\u001b[2J"}"#, "its schema is"),
        (r#"{"schema": "dualplane.measure/v1"}"#, "missing field"),
    ] {
        let e = read(text).unwrap_err().to_string();
        assert!(e.contains(says) && !e.contains('\u{1b}'), "{text}: {e}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let broken: [(&str, Value); 10] = [
        ("/runs", json!([])),
        ("/runs/0/measured_seconds", json!(-1.0)),
        ("/runs/0/ttft/p50", json!(9.0)),
        ("/runs/0/ttft/n", json!(0)),
        ("/runs/0/host/peak_bytes", json!(1)),
        ("/runs/0/host/drift/low_bytes_per_hour", json!(9e9)),
        ("/runs/0/kv/high_water_share", json!(1.2)),
        ("/runs/0/requests/good", json!(101)),
        ("/runs/0/requests/sent", json!(105)),
        ("/runs/0/series/seconds", json!([1.0, 1.0])),
    ];
    for (at, with) in broken {
        let mut value = serde_json::to_value(full()).unwrap();
        *value.pointer_mut(at).unwrap() = with;
        let e = read(&value.to_string()).unwrap_err();
        assert!(matches!(e, ReadError::Impossible { .. }), "{at}: {e}");
    }
}

/// A tool that writes less says less: what is left out was not measured.
#[test]
fn a_field_that_is_left_out_is_none() {
    let text = r#"{"schema": "dualplane.measure/v1", "tool": {"name": "ours", "version": "1"}, "subject": {}, "hardware": {},
        "runs": [{"name": "1", "load": {"mode": "closed"}, "measured_seconds": 60}]}"#;
    let run = read(text).unwrap().runs.remove(0);
    assert_eq!((run.host, run.restarts, run.requests), (None, None, None));
}
