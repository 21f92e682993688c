//! `dualplane capture --url http://HOST:PORT`: what an engine says of itself, without a cluster.

use dualplane_base::order::Order as _;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use dualplane_client as client;
use dualplane_core::evidence::{Gap, RawFile};
use dualplane_core::redact::Redactor;
use dualplane_kube::bundle::manifest::{Manifest, SCHEMA};
use dualplane_kube::capture::{Captured, Source, State};
use jiff::Timestamp;
use ureq::tls::TlsConfig;

use crate::commands::Failure;
use crate::own_knowledge;
use crate::secret::ENGINE;

/// For one page: an engine that computes answers between two steps.
const TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);
/// Of one page: a busy engine's metrics have some hundred KiB.
const MAX_PAGE: u64 = 8 << 20;
/// Characters of a host in the name of a file.
const MAX_NAME: usize = 80;

/// A page of some engine and the file that it becomes. Which engine it is shows in which of them answer.
const PAGES: &[(&str, &str)] = &[
    ("metrics", "metrics/engine.prom"),
    ("version", "engine/version.json"),
    ("v1/models", "engine/models.json"),
    // SGLang.
    ("get_server_info", "engine/server-info.json"),
    ("get_model_info", "engine/model-info.json"),
    // TGI.
    ("info", "engine/info.json"),
    // llama.cpp.
    ("props", "engine/props.json"),
    // Ollama.
    ("api/version", "engine/ollama-version.json"),
    ("api/ps", "engine/ollama-models.json"),
    // Triton.
    ("v2", "engine/triton.json"),
];

/// Scheme, host and port of a URL; a page of it is as good.
fn base(url: &str) -> Result<String, Failure> {
    let flag = |why: String| Failure::Flag { flag: "--url", why };
    let uri: ureq::http::Uri =
        url.parse().map_err(|_| flag(format!("{url} is not a URL such as http://10.0.0.7:8000")))?;
    let scheme = uri.scheme_str().filter(|s| matches!(*s, "http" | "https"));
    match (scheme, uri.authority()) {
        (Some(_), Some(a)) if a.as_str().contains('@') => Err(flag(format!(
            "a password in a URL is seen by others; name a file with the key in {}",
            ENGINE.file
        ))),
        (Some(scheme), Some(authority)) => Ok(format!("{scheme}://{authority}")),
        _ => Err(flag(format!("{url} is not a URL such as http://10.0.0.7:8000"))),
    }
}

/// Asks each page once.
pub(super) fn read(url: &str, now: Timestamp) -> Result<Captured, Failure> {
    let base = base(url)?;
    let knowledge = own_knowledge::load(None)?;
    let mut redactor = Redactor::new(&knowledge);
    let token = ENGINE.read()?;
    let agent = client::agent(TIMEOUT, CONNECT, TlsConfig::default());
    let mut out = Captured { name: name_of(&base), ..Captured::default() };
    let mut lock = None;
    for (page, file) in PAGES {
        let began = Instant::now();
        let mut source = Source::new(&format!("/{page}"), State::Ok, 0);
        match get(&agent, &format!("{base}/{page}"), token.as_deref()) {
            Ok((200, body)) if !is_page(&body) => {
                source.bytes = body.len() as u64;
                let text = String::from_utf8_lossy(&body);
                out.files.push(RawFile::new(*file, redactor.text(&text).into_owned()));
            }
            Ok((401 | 403, _)) => {
                source.state = State::Forbidden;
                source.why = Some(format!("the engine asks for a key: name its file in {}", ENGINE.file));
                lock = source.why.clone();
            }
            Ok((status, _)) => {
                source.state = State::Absent;
                source.why = Some(format!("answered {status}"));
            }
            // Nobody is there: the other pages are not either.
            Err(why) if out.sources.is_empty() => {
                return Err(Failure::Online { what: format!("{base}/{page}"), why });
            }
            Err(why) => {
                source.state = State::Failed;
                source.why = Some(why);
            }
        }
        source.ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        out.sources.push(source);
    }
    if out.files.is_empty() {
        let why = lock.unwrap_or_else(|| "none of the pages of an engine is there".into());
        return Err(Failure::Online { what: base, why });
    }
    if !out.files.iter().any(|f| f.name == "metrics/engine.prom") {
        let first = out.sources.first().and_then(|s| s.why.clone());
        let why = first.unwrap_or_else(|| "the page is not there".into());
        out.gaps.push(Gap { what: "the engine's metrics".into(), why, command: None });
    }
    out.redacted = redactor.counts().clone();
    out.files.order_by(|a, b| a.name.cmp(&b.name));
    let manifest = Manifest {
        schema: SCHEMA.into(),
        tool: concat!("dualplane ", env!("CARGO_PKG_VERSION")).into(),
        captured_at: now.to_string(),
        pod: out.name.clone(),
        uid: String::new(),
        died_at: None,
        sources: out.sources.clone(),
        models: Vec::new(),
        gaps: out.gaps.clone(),
        redacted: BTreeMap::clone(&out.redacted),
        server_asked_to_wait: 0,
    };
    out.files.push(RawFile::new("manifest.json", manifest.render()));
    Ok(out)
}

/// Status and body.
fn get(agent: &ureq::Agent, url: &str, token: Option<&str>) -> Result<(u16, Vec<u8>), String> {
    let mut request = agent.get(url);
    if let Some(token) = token {
        request = request.header("Authorization", format!("Bearer {token}"));
    }
    let mut answer = request.call().map_err(|e| e.to_string())?;
    let mut body = Vec::new();
    let read = answer.body_mut().as_reader().take(MAX_PAGE + 1).read_to_end(&mut body);
    read.map_err(|e| e.to_string())?;
    if body.len() as u64 > MAX_PAGE {
        return Err(format!("the page is larger than {} MiB", MAX_PAGE >> 20));
    }
    Ok((answer.status().as_u16(), body))
}

/// A web interface answers every path with itself.
fn is_page(body: &[u8]) -> bool {
    body.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'<')
}

fn name_of(base: &str) -> String {
    let host = base.split_once("://").map_or(base, |(_, host)| host);
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '-' };
    host.chars().take(MAX_NAME).map(safe).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_scheme_host_and_port() {
        for (given, wanted) in [
            ("http://10.0.0.7:8000", "http://10.0.0.7:8000"),
            ("http://10.0.0.7:8000/metrics?x=1", "http://10.0.0.7:8000"),
            ("https://llm.example/v1/", "https://llm.example"),
            ("http://[::1]:8000", "http://[::1]:8000"),
        ] {
            assert_eq!(base(given).unwrap(), wanted);
        }
        for bad in ["10.0.0.7:8000", "ftp://x", "http://user:secret@x", "", "pod/llm"] {
            let told = base(bad).unwrap_err().to_string();
            assert!(told.contains("--url") && !told.contains("secret"), "{told}");
        }
        assert_eq!(name_of("http://[::1]:8000"), "---1--8000");
        assert!(is_page(b"\n<!doctype html>") && !is_page(b"# HELP x\n"));
    }
}
