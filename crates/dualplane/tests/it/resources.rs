//! `resources` as a user runs it: over a real Prometheus, over saved answers, and over what is neither.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::dashboards::prometheus::{Prometheus, is_there, promtool};
use crate::harness::{code, dir, run, stderr, stdout};
use crate::schema::follows;

const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Host RAM of a start, GiB: anonymous, tmpfs, page cache.
type Parts = (f64, f64, f64);

/// What cAdvisor and kube-state-metrics tell of a pod: each metric with its value in bytes.
fn metrics(parts: Parts) -> [(&'static str, f64); 6] {
    let (anon, shmem, file) = parts;
    [
        ("container_memory_working_set_bytes", anon + shmem + file),
        ("container_memory_rss", anon),
        ("container_memory_cache", shmem + file),
        ("container_memory_total_inactive_file_bytes", 0.0),
        ("container_memory_total_active_file_bytes", file),
        ("container_memory_max_usage_bytes", anon + shmem + file + 1.0),
    ]
}

/// Two replicas of a Deployment over eight days, and a DaemonSet's pod beside them whose name begins alike.
fn page(now: u64) -> String {
    // A load of ten minutes through much page cache, then serving.
    let at = |minute: u64| if minute % 2880 < 10 { (6.0, 2.0, 40.0) } else { (5.0, 2.0, 3.0) };
    let pods = [("llm-6d9f7c5b84-x2lqm", 1.0), ("llm-6d9f7c5b84-bbbbb", 1.0), ("llm-router-x7k2p", 9.0)];
    let begin = now - 8 * 86_400;
    let mut out = String::new();
    for i in 0..metrics((0.0, 0.0, 0.0)).len() {
        for (pod, times) in pods {
            // Each two days another start: another cgroup.
            for minute in 0..8 * 1440 {
                let (name, gib) = metrics(at(minute))[i];
                let bytes = gib * times * GIB;
                let (start, time) = (minute / 2880, begin + minute * 60);
                let labels =
                    format!("namespace=\"serving\",pod=\"{pod}\",container=\"vllm\",id=\"/{pod}/{start}\"");
                writeln!(out, "{name}{{{labels}}} {bytes} {time}").unwrap();
            }
        }
    }
    for (pod, times) in pods {
        for minute in 0..8 * 1440 {
            let labels =
                format!("namespace=\"serving\",pod=\"{pod}\",container=\"vllm\",resource=\"memory\"");
            let (bytes, time) = (64.0 * times * GIB, begin + minute * 60);
            writeln!(out, "kube_pod_container_resource_limits{{{labels}}} {bytes} {time}").unwrap();
        }
    }
    out + "# EOF\n"
}

#[test]
fn weeks_of_a_real_prometheus_size_a_workload_and_no_neighbour() {
    if !is_there() {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let text = page(now);
    let d = dir(&[("series.om", text.as_bytes()), ("prometheus.yml", b"{}\n")]);
    promtool(d.path(), &["tsdb", "create-blocks-from", "openmetrics", "-q", "series.om", "data"]);
    let server = Prometheus::start(d.path());
    let url = format!("http://127.0.0.1:{}", server.port);
    let asked = |more: &[&str]| {
        let args = ["resources", "deploy/llm", "-n", "serving", "--prometheus", &url];
        let o = run(&[&args[..], more].concat());
        assert_eq!(code(&o), 0, "{}", stderr(&o));
        stdout(&o)
    };
    let report: Value = serde_json::from_str(&asked(&["-o", "json"])).unwrap();
    follows(&report, "resources");
    let [c] = report["containers"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&c["pod"], &c["container"], &c["starts"]), (&json!("deploy/llm"), &json!("vllm"), &json!(8)));
    let gib = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{c}")) / GIB;
    assert_eq!((gib(&c["ram"]["peak_bytes"]), gib(&c["now"]["limit_bytes"])), (8.0, 64.0), "{c}");
    assert_eq!((gib(&c["most"]["shmem_bytes"]), gib(&c["most"]["file_bytes"])), (2.0, 40.0), "{c}");
    // 10 % on 9 GiB, of which one was between two samples; page cache is none of it, for KRR it is most.
    assert_eq!((gib(&c["set"]["memory_bytes"]), &c["set"]["at_least"]), (10.0, &json!(false)), "{c}");
    assert!((gib(&c["krr_bytes"]) - 48.0 * 1.15).abs() < 0.01, "{c}");
    assert_eq!(
        asked(&["-o", "patch"]).split_whitespace().collect::<String>(),
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"vllm","resources":{"requests":{"memory":"10Gi"},"limits":{"memory":"10Gi"}}}]}}}}"#
    );
    let yaml: Value = serde_saphyr::from_str(&asked(&["-o", "yaml"])).unwrap();
    assert_eq!(yaml["resources"]["limits"]["memory"], "10Gi");
    let values: Value = serde_saphyr::from_str(&asked(&["-o", "values"])).unwrap();
    assert_eq!(values["vllm"]["resources"]["requests"]["memory"], "10Gi");
    let text = asked(&[]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("8 starts in 1") && text.contains("which the kernel takes back"), "{text}");
    let keda = asked(&["-o", "keda", "--max", "8", "--server-address", "http://prometheus.monitoring:9090"]);
    let object: Value = serde_saphyr::from_str(&keda).unwrap();
    let triggers = object["spec"]["triggers"].as_array().unwrap();
    assert!(triggers.iter().all(|t| t["metadata"]["serverAddress"] == "http://prometheus.monitoring:9090"));
    // The query of host RAM as KEDA asks it: one number, and less than one more replica's worth.
    let host = &triggers[2]["metadata"];
    let answer = server.number(host["query"].as_str().unwrap(), now);
    let threshold: f64 = host["threshold"].as_str().unwrap().parse().unwrap();
    assert!(answer >= 0.0 && answer < threshold, "{answer} of {threshold}");
    // An HPA's comments hold the same queries.
    let hpa = asked(&["-o", "hpa", "--max", "8"]);
    assert!(
        hpa.contains(&format!("#   llm_host_ram_above_steady: {}\n", host["query"].as_str().unwrap())),
        "{hpa}"
    );
    let none = run(&["resources", "deploy/other", "-n", "serving", "--prometheus", &url]);
    assert_eq!((code(&none), stderr(&none).contains("no memory of a container over time")), (4, true));
}

/// An answer of Prometheus' HTTP API, as curl saves it.
fn answer() -> Value {
    let series = |name: &str, gib: [f64; 3]| {
        let values: Vec<Value> =
            (0..).zip(gib).map(|(i, g)| json!([1_763_980_000 + i * 60, (g * GIB).to_string()])).collect();
        let labels =
            json!({"__name__": name, "namespace": "serving", "pod": "llm-0", "container": "vllm\u{1b}[31m"});
        json!({"metric": labels, "values": values})
    };
    json!({"status": "success", "data": {"resultType": "matrix", "result": [
        series("container_memory_working_set_bytes", [4.0, 15.9, 12.0]),
        series("container_spec_memory_limit_bytes", [16.0, 16.0, 16.0]),
    ]}})
}

#[test]
fn saved_answers_are_read_and_a_peak_at_the_limit_is_only_a_next_try() {
    let d = dir(&[("memory.json", answer().to_string().as_bytes()), ("notes.txt", b"nothing")]);
    let path = d.path().to_str().unwrap();
    let o = run(&["resources", path, "-o", "json"]);
    let report: Value = serde_json::from_str(&stdout(&o)).unwrap();
    follows(&report, "resources");
    let set = &report["containers"][0]["set"];
    assert_eq!((&set["memory_bytes"], &set["at_least"]), (&json!((24.0 * GIB) as u64), &json!(true)));
    let text = stdout(&run(&["resources", path]));
    assert!(text.contains("24Gi at least") && text.contains("working set"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

/// One that was really measured, on a vLLM that served from RAM.
#[test]
fn a_report_of_a_real_run_sizes_its_container() {
    let path = crate::harness::root().join("testdata/measure/vllm-cpu.json");
    let of = |more: &[&str]| run(&[&["resources", path.to_str().unwrap()][..], more].concat());
    let v: Value = serde_json::from_str(&stdout(&of(&["-o", "json"]))).unwrap();
    follows(&v, "resources");
    let c = &v["containers"][0];
    assert_eq!(
        (&c["namespace"], &c["pod"], &c["without_page_cache"]),
        (&json!("e2e-record"), &json!("llm-0"), &json!(true))
    );
    let bytes = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{c}"));
    let (peak, set) = (bytes(&c["ram"]["peak_bytes"]), bytes(&c["set"]["memory_bytes"]));
    assert!(set >= peak * 1.15 && set < peak * 1.4 && set < bytes(&c["now"]["limit_bytes"]), "{c}");
    let text = stdout(&of(&[])).split_whitespace().collect::<Vec<_>>().join(" ");
    // A minute tells nothing of hours.
    assert!(text.contains("no run saw the server start") && !text.contains("an hour"), "{text}");
    let patch: Value = serde_json::from_str(&stdout(&of(&["-o", "patch"]))).unwrap();
    assert_eq!(patch["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"], "3328Mi");
}

/// A report of `measure`, of ten minutes under a load that is known.
fn report() -> Value {
    let mut run = json!({
        "name": "1", "load": {"mode": "closed", "concurrency": 16}, "start_seconds": 60.0, "measured_seconds": 540.0,
        "host": {"start_up_bytes": 12 * (1_u64 << 30), "steady_bytes": 9 * (1_u64 << 30), "peak_bytes": 12 * (1_u64 << 30),
                 "limit_bytes": 16 * (1_u64 << 30), "without_page_cache": true},
        "vram": {"start_up_bytes": 60 * (1_u64 << 30), "steady_bytes": 70 * (1_u64 << 30), "peak_bytes": 72 * (1_u64 << 30),
                 "limit_bytes": 80 * (1_u64 << 30), "without_page_cache": true},
        "host_split": {"anon_bytes": 8 * (1_u64 << 30), "shmem_bytes": 4 * (1_u64 << 30), "file_bytes": 1 << 30, "pinned_bytes": 2 * (1_u64 << 30)},
        "use": {"cpu_cores": 3.2},
    });
    run["restarts"] = json!([]);
    json!({
        "schema": "dualplane.measure/v1", "tool": {"name": "dualplane", "version": "0.1.0"},
        "subject": {"engine": "vllm", "workload": "serving/deploy/llm", "command": [], "environment": []},
        "hardware": {}, "runs": [run],
    })
}

#[test]
fn a_report_of_measure_gives_six_numbers_and_a_patch_for_a_container_that_is_named() {
    let d = dir(&[("measure.json", report().to_string().as_bytes())]);
    let path = d.path().join("measure.json").to_str().unwrap().to_owned();
    let of = |more: &[&str]| run(&[&["resources", &path][..], more].concat());
    let v: Value = serde_json::from_str(&stdout(&of(&["-o", "json"]))).unwrap();
    follows(&v, "resources");
    let c = &v["containers"][0];
    let gib = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{c}")) / GIB;
    assert_eq!(
        [gib(&c["ram"]["start_up_bytes"]), gib(&c["ram"]["steady_bytes"]), gib(&c["ram"]["peak_bytes"])],
        [12.0, 9.0, 12.0]
    );
    assert_eq!(
        [gib(&c["vram"]["start_up_bytes"]), gib(&c["vram"]["steady_bytes"]), gib(&c["vram"]["peak_bytes"])],
        [60.0, 70.0, 72.0]
    );
    assert_eq!((gib(&c["set"]["memory_bytes"]), gib(&c["most"]["pinned_bytes"])), (14.0, 2.0));
    let text = stdout(&of(&[])).split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "serving/deploy/llm, engine vllm 1 start in 10 minutes",
        "closed, 16 at the same time",
        "requests.cpu 3200m",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let o = of(&["-o", "patch"]);
    assert!(code(&o) == 2 && stderr(&o).contains("add -c NAME"), "{}", stderr(&o));
    let patch: Value = serde_json::from_str(&stdout(&of(&["-o", "patch", "-c", "server"]))).unwrap();
    assert_eq!(patch["spec"]["template"]["spec"]["containers"][0]["name"], "server");
    // One that contradicts itself, or of another version, is not used.
    for (key, value) in [("schema", json!("dualplane.measure/v9")), ("runs", json!([]))] {
        let mut bad = report();
        bad[key] = value;
        std::fs::write(&path, bad.to_string()).unwrap();
        let o = of(&[]);
        assert!(code(&o) == 2 && stderr(&o).contains("measure.json"), "{key}: {} {}", code(&o), stderr(&o));
    }
}

#[test]
fn what_cannot_be_sized_is_answered_with_what_to_do() {
    let d = dir(&[("server.log", b"hello\n"), ("empty.json", b"{\"data\": {\"result\": []}}")]);
    let path = d.path().to_str().unwrap();
    let store = "http://127.0.0.1:1";
    for (args, rc, says) in [
        (&["resources"][..], 2, "<TARGET>"),
        (&["resources", path], 4, "--prometheus URL a workload"),
        (&["resources", "deploy/llm"], 2, "give the URL of the Prometheus"),
        (&["resources", "/nowhere"], 3, "check the path"),
        (&["resources", "deploy/llm", "--prometheus", store], 3, "cannot reach http://127.0.0.1:1"),
        (&["resources", "deploy/llm", "--prometheus", "nonsense"], 3, "must begin with http://"),
        (&["resources", "deploy/llm", "--prometheus", "http://u:secret@h"], 2, "PROMETHEUS_TOKEN_FILE"),
        (&["resources", "job/x", "--prometheus", store], 2, "deploy/NAME, sts/NAME"),
        (&["resources", "deploy/a\"b", "--prometheus", store], 2, "deploy/NAME"),
        (&["resources", "deploy/llm", "--prometheus", store, "-n", "a\"b"], 2, "namespace"),
        (&["resources", "deploy/llm", "--prometheus", store, "--since", "5m"], 2, "from 10m to 366d"),
        (&["resources", "deploy/llm", "-o", "keda"], 2, "give the URL of the Prometheus"),
        (&["resources", "deploy/llm", "-o", "hpa", "--prometheus", store], 3, "cannot reach"),
    ] {
        let o = run(args);
        assert_eq!(code(&o), rc, "{args:?}: {}", stderr(&o));
        assert!(stderr(&o).contains(says), "{args:?}: {}", stderr(&o));
        assert!(!stderr(&o).contains("secret"), "{}", stderr(&o));
    }
}
