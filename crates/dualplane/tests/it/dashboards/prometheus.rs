//! A real Prometheus over recorded series: records and alerts are evaluated over the past as the rules say, minute by minute.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use dualplane_alerts::{Alerting, Selection, duration};
use dualplane_base::yaml::manifest;
use dualplane_dashboards::records;
use serde_json::{Value, json};

use super::series::{MINUTES, START, evening, open_metrics};
use crate::harness::{stderr, stdout};
use crate::recorded_load::Line;

/// Whether Debian's package `prometheus` is there.
pub(crate) fn is_there() -> bool {
    let there = |name: &str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    let both = there("prometheus") && there("promtool");
    if !both {
        eprintln!("SKIPPED: no prometheus and promtool");
    }
    both
}

/// Whether it computes what the pictures show to the pixel: Prometheus 3 counts a sample less in each window.
pub(super) fn draws_alike() -> bool {
    let o = Command::new("prometheus").arg("--version").output().unwrap();
    let alike = stdout(&o).contains("version 2.") || stderr(&o).contains("version 2.");
    if !alike {
        eprintln!("SKIPPED: the pictures are those of Prometheus 2");
    }
    alike
}

/// One at a time: each takes half a GiB of disk for a block before it knows that it needs a few KiB.
pub(crate) fn promtool(dir: &Path, args: &[&str]) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let o = Command::new("promtool").args(args).current_dir(dir).output().unwrap();
    assert!(o.status.success(), "promtool {args:?}\n{}{}", stdout(&o), stderr(&o));
}

/// One series of an answer: labels, and seconds with values.
pub(super) struct Series {
    pub(super) labels: serde_json::Map<String, Value>,
    pub(super) points: Vec<(f64, f64)>,
}

pub(crate) struct Prometheus {
    child: Child,
    pub(crate) port: u16,
    _dir: Option<tempfile::TempDir>,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// The evening with everything that the rules make of it.
    pub(super) fn with_the_evening(selection: &Selection) -> Self {
        Self::with(selection, &evening())
    }

    /// Eight hours of series with everything that the rules make of them.
    pub(super) fn with(selection: &Selection, lines: &[Line]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path();
        std::fs::write(path.join("series.om"), open_metrics(lines)).unwrap();
        std::fs::write(path.join("prometheus.yml"), "{}\n").unwrap();
        promtool(path, &["tsdb", "create-blocks-from", "openmetrics", "-q", "series.om", "data"]);
        // promtool evaluates rules over what a server has: a rule that reads another needs that one's blocks first.
        for (i, level) in levels(selection).into_iter().enumerate() {
            let file = format!("level{i}.yaml");
            let groups = json!({"groups": [{"name": "level", "interval": "1m", "rules": level}]});
            std::fs::write(path.join(&file), manifest(&groups)).unwrap();
            let server = Self::start(path);
            let (from, to) = ((START + 60).to_string(), (START + (MINUTES - 1) * 60).to_string());
            let url = format!("http://127.0.0.1:{}", server.port);
            let args = ["tsdb", "create-blocks-from", "rules", "--url", &url, "--start", &from, "--end", &to];
            promtool(path, &[&args[..], &["--eval-interval", "60s", "--output-dir", "data", &file]].concat());
        }
        let mut server = Self::start(path);
        server._dir = Some(dir);
        server
    }

    /// Over the folder `data`, as `prometheus.yml` says.
    pub(crate) fn start(dir: &Path) -> Self {
        // Another process may take the port before the server does: then the next one is tried.
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let mut child = Command::new("prometheus")
                .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
                .arg("--storage.tsdb.retention.time=100y")
                .arg(format!("--web.listen-address=127.0.0.1:{port}"))
                .current_dir(dir)
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
            let server = Self { child, port, _dir: None };
            // It ends where it cannot listen, and its log with it.
            if log.any(|line| line.contains("Server is ready")) {
                // A full pipe would stop it.
                std::thread::spawn(move || log.count());
                return server;
            }
        }
        panic!("prometheus does not start");
    }

    /// Status and body. HTTP/1.0 needs no chunks.
    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split_whitespace().nth(1)?.parse().ok()?;
        Some((status, body.to_owned()))
    }

    fn ask(&self, path: &str, expr: &str, more: &str) -> Vec<Series> {
        let (status, body) = self.get(&format!("/api/v1/{path}?query={}&{more}", encoded(expr))).unwrap();
        assert_eq!(status, 200, "{expr}\n{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let point = |p: &Value| (p[0].as_f64().unwrap(), p[1].as_str().unwrap().parse().unwrap());
        let one = |s: &Value| Series {
            labels: s["metric"].as_object().unwrap().clone(),
            points: match s["values"].as_array() {
                Some(all) => all.iter().map(point).collect(),
                None => vec![point(&s["value"])],
            },
        };
        answer["data"]["result"].as_array().unwrap().iter().map(one).collect()
    }

    /// The only number of an answer, at a time in seconds.
    pub(crate) fn number(&self, expr: &str, time: u64) -> f64 {
        let all = self.ask("query", expr, &format!("time={time}"));
        let [one] = all.as_slice() else { panic!("{expr}: {} series", all.len()) };
        one.points[0].1
    }

    /// From one minute to another.
    pub(super) fn range(&self, expr: &str, from: i64, to: i64, step: i64) -> Vec<Series> {
        let more = format!("start={}&end={}&step={}", START + from * 60, START + to * 60, step * 60);
        self.ask("query_range", expr, &more)
    }

    /// At a minute.
    pub(super) fn at(&self, expr: &str, minute: i64) -> Vec<Series> {
        self.ask("query", expr, &format!("time={}", START + minute * 60))
    }
}

/// Records in the order in which they can be computed, then the alerts.
fn levels(selection: &Selection) -> Vec<Vec<Value>> {
    let mut open: Vec<_> = selection.records.iter().collect();
    let mut out = Vec::new();
    while !open.is_empty() {
        let waits = |r: &&dualplane_alerts::Recording| {
            records(&r.expr).iter().any(|read| open.iter().any(|o| o.record.name == *read))
        };
        let (later, now): (Vec<_>, Vec<_>) = open.iter().copied().partition(waits);
        assert!(!now.is_empty(), "records read one another");
        out.push(now.iter().map(|r| json!({"record": r.record.name, "expr": r.expr})).collect());
        open = later;
    }
    out.push(selection.alerts.iter().map(alert).collect());
    out
}

/// promtool does not evaluate alerts over the past. What Prometheus would record of one is a record, too: it fires where its
/// expression held at each minute of its time.
fn alert(a: &Alerting) -> Value {
    let minutes = (duration(&a.hold).unwrap() / 60.0).round();
    let held = match minutes as u32 {
        0 => format!("({})", a.expr),
        _ => format!("(count_over_time(({})[{minutes}m:1m]) >= {minutes})", a.expr),
    };
    let mut labels =
        json!({"alertname": a.alert.alert, "alertstate": "firing", "severity": a.alert.severity.as_str()});
    if let Some(plane) = &a.alert.plane {
        labels["plane"] = plane.clone().into();
    }
    json!({"record": "ALERTS", "expr": format!("{held} * 0 + 1"), "labels": labels})
}

fn encoded(text: &str) -> String {
    let one = |b: u8| match b {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(b).to_string(),
        _ => format!("%{b:02X}"),
    };
    text.bytes().map(one).collect()
}
