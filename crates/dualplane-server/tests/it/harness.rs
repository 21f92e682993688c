//! The real program on a port of its own, and requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: ureq::http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

/// Another party, of a few lines: answers each request by its path and body with a status and JSON; `None` ends the connection.
pub(crate) fn answering(
    listener: TcpListener,
    answer: impl Fn(&str, &str) -> Option<(&'static str, Value)> + Send + Sync + 'static,
) {
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (answer, mut stream) = (Arc::clone(&answer), stream.unwrap());
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                while let Some((path, body)) = request(&mut lines) {
                    let Some((status, said)) = answer(&path, &body) else { return };
                    let text = said.to_string();
                    let head = format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        text.len()
                    );
                    if stream.write_all(format!("{head}{text}").as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// The next request of a connection: its path and body.
pub(crate) fn request(lines: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if path.is_empty() {
            path = line.split(' ').nth(1)?.to_owned();
        }
        if let Some(n) = line.to_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().ok()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    Some((path, String::from_utf8(body).ok()?))
}

/// A file that leads to this API server, in the clear and as nobody.
pub(crate) fn kubeconfig(home: &Path, api: &str) -> PathBuf {
    let config = home.join("kubeconfig");
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \"{api}\"}}}}]\n\
         users: [{{name: u, user: {{}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    std::fs::write(&config, text).unwrap();
    config
}

pub(crate) fn program() -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_dualplane-server"));
    c.env_remove("DUALPLANE_DATABASE_URL");
    c
}

impl Server {
    /// `serve` with this folder and these arguments.
    pub(crate) fn start(data: &Path, args: &[&str]) -> Self {
        let mut c = program();
        c.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(args);
        Self::of(c)
    }

    /// Whatever says where it listens.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = String::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else { panic!("it ended: {seen}") };
            if let Some(url) = line.split(' ').find(|w| w.starts_with("http")) {
                break url.trim_end_matches('/').to_owned();
            }
            seen.push_str(&line);
        };
        // Nobody may wait for a pipe that is full.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url }
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_ask(method, path, headers, body).unwrap()
    }

    pub(crate) fn try_ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Answer, ureq::Error> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // What an answer says is looked at, not where it leads.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(Duration::from_secs(30)))
            .build()
            .into();
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut response = match method {
            "GET" | "HEAD" => agent.run(request.body(()).unwrap())?,
            _ => agent.run(request.body(body).unwrap())?,
        };
        let mut body = Vec::new();
        response.body_mut().as_reader().read_to_end(&mut body).map_err(ureq::Error::from)?;
        Ok(Answer { status: response.status().as_u16(), headers: response.headers().clone(), body })
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    /// Sends a death in this namespace.
    pub(crate) fn put(&self, id: &str, namespace: &str) -> Answer {
        self.ask("PUT", &format!("/v1/incidents/{id}"), &[], &upload(id, namespace))
    }

    /// All names, page by page.
    pub(crate) fn ids(&self) -> Vec<String> {
        let (mut out, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.get(&format!("/v1/incidents?each=true&limit=500&after={after}")).json();
            out.extend(
                page["items"].as_array().unwrap().iter().map(|i| i["id"].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => return out,
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a sender sends.
pub(crate) fn upload(id: &str, namespace: &str) -> Vec<u8> {
    let report = crate::deaths::report("cuda_oom_runtime", &format!("of {id}"));
    let place = json!({"cluster": "k", "namespace": namespace, "owner": "vllm", "pod": format!("vllm-{id}")});
    json!({"report": report, "where": place}).to_string().into_bytes()
}
