//! `dualplane incidents … --server URL`: the incidents of a fleet, asked of `dualplane-server`.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dualplane_base::json::pretty;
use dualplane_base::text::printable;
use dualplane_client as client;
use dualplane_kube::api::path::{segment, with_query};
use serde_json::{Value, json};
use ureq::tls::TlsConfig;

use super::{Failure, triage};
use crate::args::{Format, IncidentsArgs, IncidentsCommand, IncidentsFormat, TriageArgs};
use crate::exit::{self, Code};
use crate::{files, output};

const CONNECT: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(120);
/// Of a list or a report, and of a bundle.
const MAX_TEXT: u64 = 64 << 20;
const MAX_BUNDLE: u64 = 512 << 20;
/// Incidents of one answer.
const PAGE: usize = 500;

/// The server, and how it is asked.
struct Server<'a> {
    url: &'a str,
    agent: ureq::Agent,
    token: Option<String>,
}

pub(crate) fn run(command: &IncidentsCommand, url: &str) -> Result<Code, Failure> {
    match command {
        IncidentsCommand::Ls { namespace, filter, limit, common, .. } => {
            let server = Server::new(url, common)?;
            let own = namespace.iter().map(|n| format!("namespace={n}"));
            let filter: Vec<String> = own.chain(filter.iter().cloned()).collect();
            ls(&server, &filter, limit.unwrap_or(50), common.output)
        }
        IncidentsCommand::Show { id, verbose, color, common } => {
            let server = Server::new(url, common)?;
            let id = server.find(id)?;
            if common.output == IncidentsFormat::Json {
                let report: Value = server.json(&format!("/v1/incidents/{}/report", segment(&id)))?;
                output::write(&pretty(&report)?)?;
                return Ok(exit::OK);
            }
            // Its evidence is judged again, as that of a node's agent is; without evidence the server's own words are shown.
            let folder = tempfile::tempdir()
                .map_err(|source| Failure::Unwritable { path: std::env::temp_dir(), source })?;
            match server.bundle(&id)? {
                Some(bytes) => {
                    let bundle = folder.path().join(name_of(&id, &bytes));
                    files::write_whole(&bundle, &bytes)
                        .map_err(|source| Failure::Unwritable { path: bundle.clone(), source })?;
                    triage::run(&TriageArgs::of_file(&bundle, Format::Text, *verbose, *color))
                }
                None => {
                    let (status, note) = server.get(&format!("/incidents/{}.md", segment(&id)), MAX_TEXT)?;
                    let note = String::from_utf8_lossy(&server.good(status, note)?).into_owned();
                    output::write(&printable_lines(&note))?;
                    Ok(exit::OK)
                }
            }
        }
        IncidentsCommand::Export { id, out, common } => {
            let server = Server::new(url, common)?;
            let id = server.find(id)?;
            let bytes = server.bundle(&id)?.ok_or_else(|| Failure::Online {
                what: printable(url).into_owned(),
                why: format!("{id} came without a bundle; `dualplane incidents show {id} --server {url}` shows what there is"),
            })?;
            if out.as_deref() == Some(Path::new("-")) {
                std::io::stdout().lock().write_all(&bytes).map_err(Failure::Output)?;
                return Ok(exit::OK);
            }
            let out = out.clone().unwrap_or_else(|| PathBuf::from(name_of(&id, &bytes)));
            files::write_whole(&out, &bytes)
                .map_err(|source| Failure::Unwritable { path: out.clone(), source })?;
            output::write(&format!("{}\n", out.display()))?;
            Ok(exit::OK)
        }
    }
}

fn flag(flag: &'static str, why: String) -> Failure {
    Failure::Flag { flag, why }
}

/// `KEY=VALUE` as a pair.
fn pair(word: &str) -> Result<(&str, &str), Failure> {
    let told = || {
        flag(
            "--filter",
            format!("{word:?} is no KEY=VALUE, like class=host_oom_killed or since=2026-11-01T00:00:00Z"),
        )
    };
    word.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(told)
}

fn ls(
    server: &Server<'_>,
    filter: &[String],
    limit: usize,
    format: IncidentsFormat,
) -> Result<Code, Failure> {
    let pairs = filter.iter().map(|w| pair(w)).collect::<Result<Vec<_>, _>>()?;
    let mut items: Vec<Value> = Vec::new();
    let mut next: Option<String> = None;
    while items.len() < limit {
        let size = (limit - items.len()).min(PAGE).to_string();
        let mut query = pairs.clone();
        query.push(("limit", &size));
        query.extend(next.as_deref().map(|n| ("after", n)));
        let page = server.json(&with_query("/v1/incidents", &query))?;
        let some = page.get("items").and_then(Value::as_array).cloned().unwrap_or_default();
        let done = some.is_empty();
        items.extend(some);
        next = page.get("next").and_then(Value::as_str).map(ToOwned::to_owned);
        if next.is_none() || done {
            break;
        }
    }
    if format == IncidentsFormat::Json {
        let mut list = json!({"schema": "dualplane.fleet-incidents/v1", "items": items});
        if let (Some(next), Some(all)) = (next, list.as_object_mut()) {
            all.insert("next".to_owned(), next.into());
        }
        output::write(&pretty(&list)?)?;
        return Ok(exit::OK);
    }
    output::write(&table(&items))?;
    if next.is_some() {
        output::note(&format!("these are the newest {}; --limit shows more", items.len()));
    }
    Ok(exit::OK)
}

fn table(items: &[Value]) -> String {
    if items.is_empty() {
        return "no incidents\n".to_owned();
    }
    let row = |i: &Value| {
        let of = |key: &str| i.get(key).and_then(Value::as_str).unwrap_or("");
        let pod = match (of("cluster"), of("namespace"), of("pod")) {
            ("", namespace, pod) => format!("{namespace}/{pod}"),
            (cluster, namespace, pod) => format!("{cluster}/{namespace}/{pod}"),
        };
        let times = i.get("occurrences").and_then(Value::as_u64).unwrap_or(1).to_string();
        [of("died_at"), &pod, of("class"), &times, of("model"), of("id")].map(|c| printable(c).into_owned())
    };
    let head = ["DIED", "POD", "CLASS", "TIMES", "MODEL", "ID"].map(ToOwned::to_owned);
    super::columns(&std::iter::once(head).chain(items.iter().map(row)).collect::<Vec<_>>())
}

/// A text of several lines, without what a terminal would obey.
fn printable_lines(text: &str) -> String {
    text.lines().map(|l| format!("{}\n", printable(l))).collect()
}

impl<'a> Server<'a> {
    fn new(url: &'a str, args: &IncidentsArgs) -> Result<Self, Failure> {
        let no_url =
            || flag("--server", format!("{} is no URL such as https://fleet.example:8377", printable(url)));
        let uri: ureq::http::Uri = url.parse().map_err(|_| no_url())?;
        let (scheme, host) = (uri.scheme_str().unwrap_or(""), uri.host().unwrap_or(""));
        if !matches!(scheme, "http" | "https") || host.is_empty() {
            return Err(no_url());
        }
        if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(flag(
                "--server",
                "a password in a URL is seen by others; name a file with the token in --server-token".into(),
            ));
        }
        let token =
            args.server_token.as_deref().map(|p| crate::secret::of_file("--server-token", p)).transpose()?;
        if token.is_some() && scheme == "http" && !client::is_here(host) {
            return Err(flag(
                "--server",
                format!("the token is not sent to {} without TLS: use https", printable(host)),
            ));
        }
        let tls = match &args.server_ca {
            Some(path) => client::trusting(path)
                .map_err(|why| flag("--server-ca", format!("{}: {why}", path.display())))?,
            None => TlsConfig::default(),
        };
        let agent = client::agent(TIMEOUT, CONNECT, tls);
        Ok(Self { url: url.trim_end_matches('/'), agent, token })
    }

    fn online(&self, why: String) -> Failure {
        Failure::Online { what: printable(self.url).into_owned(), why }
    }

    fn call(&self, path: &str) -> Result<ureq::http::Response<ureq::Body>, Failure> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.call().map_err(|e| self.online(e.to_string()))
    }

    /// Status and body.
    fn get(&self, path: &str, most: u64) -> Result<(u16, Vec<u8>), Failure> {
        let mut answer = self.call(path)?;
        let mut body = Vec::new();
        let read = answer.body_mut().with_config().limit(most).reader().read_to_end(&mut body);
        read.map_err(|e| self.online(e.to_string()))?;
        Ok((answer.status().as_u16(), body))
    }

    /// A body, or what the server says instead: its own sentence, where it has one.
    fn good(&self, status: u16, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        if status == 200 {
            return Ok(body);
        }
        let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
        let said = problem.get("detail").and_then(Value::as_str).map(|t| printable(t).into_owned());
        let why = match (status, said) {
            (401, _) if self.token.is_none() => {
                "it asks for a token: name its file in --server-token".to_owned()
            }
            (401, _) => "it does not know the token of --server-token".to_owned(),
            (300..=399, _) => {
                format!("it answers {status}, which is not followed: give the address that it leads to")
            }
            (_, Some(said)) => said,
            _ => format!("it answers {status}: is this a dualplane-server?"),
        };
        match status {
            // Filters are the caller's words.
            400 => Err(flag("--filter", why)),
            _ => Err(self.online(why)),
        }
    }

    fn json(&self, path: &str) -> Result<Value, Failure> {
        let (status, body) = self.get(path, MAX_TEXT)?;
        let body = self.good(status, body)?;
        serde_json::from_slice(&body)
            .map_err(|_| self.online("it does not answer with JSON: is this a dualplane-server?".into()))
    }

    /// The name of an incident; `last` is the newest of all.
    fn find(&self, id: &str) -> Result<String, Failure> {
        let none = || Failure::NoIncident { id: printable(id).into_owned(), near: Vec::new() };
        if id == "last" {
            let page = self.json("/v1/incidents?limit=1")?;
            let newest = page.pointer("/items/0/id").and_then(Value::as_str);
            return newest.map(ToOwned::to_owned).filter(|i| is_name(i)).ok_or_else(none);
        }
        if !is_name(id) {
            return Err(none());
        }
        let (status, body) = self.get(&format!("/v1/incidents/{}", segment(id)), MAX_TEXT)?;
        if status == 404 {
            return Err(none());
        }
        self.good(status, body)?;
        Ok(id.to_owned())
    }

    /// Its bundle; `None` where it came without one.
    fn bundle(&self, id: &str) -> Result<Option<Vec<u8>>, Failure> {
        let (status, body) = self.get(&format!("/v1/incidents/{}/bundle", segment(id)), MAX_BUNDLE)?;
        if status == 404 {
            return Ok(None);
        }
        self.good(status, body).map(Some)
    }
}

/// A bundle's name, by what it is.
fn name_of(id: &str, bytes: &[u8]) -> String {
    let ending = match bytes {
        [0x1f, 0x8b, ..] => "tar.gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "tar.zst",
        [b'P', b'K', ..] => "zip",
        // A log that was sent by itself.
        _ if !bytes.contains(&0) => "log",
        _ => "tar",
    };
    format!("{id}.{ending}")
}

/// What a server may name an incident: also what a server says becomes the name of a file here.
fn is_name(id: &str) -> bool {
    (1..=255).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_alphanumeric())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~'))
}
