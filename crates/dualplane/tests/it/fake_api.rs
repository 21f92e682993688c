//! A small HTTP API server for tests: answers by the path that is asked, and keeps what was asked.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Output;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{dir, dualplane};

/// One answer.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
    pub(crate) after: Duration,
}

impl Reply {
    pub(crate) fn text(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: String::new(), body: body.into(), after: Duration::ZERO }
    }

    pub(crate) fn json(value: &Value) -> Self {
        Self::text(value.to_string())
    }

    pub(crate) fn status(status: u16, message: &str) -> Self {
        Self { status, ..Self::json(&json!({"kind": "Status", "message": message})) }
    }

    pub(crate) fn list(items: &[Value]) -> Self {
        Self::json(&json!({"kind": "List", "apiVersion": "v1", "items": items}))
    }
}

pub(crate) struct FakeApi {
    asked: Arc<Mutex<Vec<String>>>,
    /// `http://ADDRESS:PORT`
    pub(crate) server: String,
    pub(crate) home: tempfile::TempDir,
}

impl FakeApi {
    /// Answers with what `answer` gives for `GET PATH?QUERY`; 404 where it gives nothing.
    pub(crate) fn new(answer: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let config = json!({"apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": {"server": server}}],
            "users": [{"name": "jane", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "jane", "namespace": "serving"}}]});
        let home = dir(&[("config", config.to_string().as_bytes())]);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                std::thread::spawn(move || while serve(&stream, &log, &*answer).is_some() {});
            }
        });
        Self { asked, server, home }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.run_with(args, &self.home.path().join("config").to_string_lossy())
    }

    pub(crate) fn run_with(&self, args: &[&str], kubeconfig: &str) -> Output {
        dualplane().args(args).current_dir(self.home.path()).env("KUBECONFIG", kubeconfig).output().unwrap()
    }

    /// How many requests held these words.
    pub(crate) fn asked(&self, words: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|a| a.contains(words)).count()
    }

    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }
}

fn serve(
    stream: &TcpStream,
    log: &Mutex<Vec<String>>,
    answer: &(impl Fn(&str) -> Option<Reply> + ?Sized),
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut header = String::new();
    while reader.read_line(&mut header).ok()? > 2 {
        header.clear();
    }
    let target = line.rsplit_once(' ').map_or(line.as_str(), |(t, _)| t).to_owned();
    log.lock().unwrap().push(target.clone());
    let reply = answer(&target).unwrap_or_else(|| Reply::status(404, "not here"));
    if !reply.after.is_zero() {
        // The test is of a server that is slow.
        #[allow(clippy::disallowed_methods)]
        std::thread::sleep(reply.after);
    }
    let mut out = stream;
    let (status, headers, length) = (reply.status, &reply.headers, reply.body.len());
    write!(out, "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n").ok()?;
    out.write_all(&reply.body).ok()
}
