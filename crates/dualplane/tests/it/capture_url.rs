//! `dualplane capture --url`: an engine without a cluster.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use crate::harness::{code, dir, dualplane, run, stderr};

const METRICS: &str = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\"} 3\n\
    # TYPE vllm:request_prompt_tokens histogram\nvllm:request_prompt_tokens_bucket{le=\"100\",model_name=\"m\"} 7\n";

/// Answers as vLLM does; `key` is asked for where there is one.
fn engine(key: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().and_then(|l| l.split(' ').nth(1).map(str::to_owned)).unwrap_or_default();
            let head: Vec<String> = lines.take_while(|l| !l.is_empty()).collect();
            let may = key.is_none_or(|k| head.iter().any(|h| h.ends_with(&format!("Bearer {k}"))));
            let (status, body) = match path.as_str() {
                _ if !may => ("401 Unauthorized", "{}"),
                "/metrics" => ("200 OK", METRICS),
                "/version" => ("200 OK", "{\"version\":\"0.11.0\"}"),
                "/v1/models" => {
                    ("200 OK", "{\"data\":[{\"id\":\"m\",\"root\":\"/models/m\",\"max_model_len\":4096}]}")
                }
                "/v2" => ("200 OK", "<html>a page</html>"),
                _ => ("404 Not Found", ""),
            };
            let mut stream = stream;
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    format!("http://{at}")
}

#[test]
fn an_engine_is_captured_without_a_cluster() {
    let d = dir(&[]);
    let out = d.path().join("engine.tar.zst");
    let o = run(&["capture", "--url", &format!("{}/metrics", engine(None)), "--out", out.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let files = dualplane_kube::bundle::unpack(&std::fs::read(&out).unwrap()).unwrap();
    let names: Vec<&str> = files.iter().filter_map(|f| f.name.split_once('/').map(|(_, n)| n)).collect();
    assert_eq!(names, ["engine/models.json", "engine/version.json", "metrics/engine.prom", "manifest.json"]);
    let text = |name: &str| {
        let f = files.iter().find(|f| f.name.ends_with(name)).unwrap();
        String::from_utf8(f.bytes.clone()).unwrap()
    };
    assert!(text("metrics/engine.prom").contains("request_prompt_tokens_bucket"));
    assert!(text("version.json").contains("0.11.0") && text("models.json").contains("/models/m"));
    let o = run(&["triage", out.to_str().unwrap()]);
    assert_eq!(code(&o), 0, "{}", stderr(&o));
}

#[test]
fn a_key_is_asked_for_and_given_by_the_environment() {
    let url = engine(Some("sesame"));
    let d = dir(&[]);
    let out = d.path().join("x.tar.zst");
    let args = ["capture", "--url", &url, "--out", out.to_str().unwrap()];
    let o = run(&args);
    assert!(code(&o) != 0 && stderr(&o).contains("DUALPLANE_ENGINE_TOKEN"), "{}", stderr(&o));
    let o = dualplane().args(args).env("DUALPLANE_ENGINE_TOKEN", "sesame").output().unwrap();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let key = d.path().join("key");
    std::fs::write(&key, "sesame\n").unwrap();
    let second = d.path().join("second.tar.zst");
    let args = ["capture", "--url", &url, "--out", second.to_str().unwrap()];
    let o = dualplane().args(args).env("DUALPLANE_ENGINE_TOKEN_FILE", &key).output().unwrap();
    assert_eq!(code(&o), 0, "{}", stderr(&o));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let o = run(&["capture", "--url", &format!("http://{nobody}"), "--out", out.to_str().unwrap()]);
    assert!(code(&o) != 0 && stderr(&o).contains(&nobody.to_string()), "{}", stderr(&o));
    assert_eq!(code(&run(&["capture", "--url", "http://x:1", "pod/y"])), 2, "one or the other");
}
