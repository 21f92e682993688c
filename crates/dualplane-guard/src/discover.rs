//! Follows the EndpointSlices of a Service: one list, then a watch from there, for as long as the guard asks.
//!
//! A thread for each Service with a client that blocks: it waits nearly always, and must not stand in the way of requests.
//! While the API server is away, what was known last stays: servers that end meanwhile are found by their health.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use dualplane_client::{agent, is_here, trusting};
use serde::Deserialize;

use crate::slices::{Behind, Metadata, Slice, behind};

/// Where a pod finds who it is.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The server ends a watch after this time; it goes on from where it was. A connection that is dead without a word lasts no
/// longer than a little more.
const WATCH: Duration = Duration::from_secs(120);
/// For a list, and for the end of a watch.
const ANSWER: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(5);
/// Between two tries: at first, and at most.
const FIRST: Duration = Duration::from_secs(1);
const LAST: Duration = Duration::from_secs(30);
/// Slices of one answer. The controller puts 100 endpoints into a slice.
const PAGE: u64 = 100;
/// Of a page, and of a line of a watch: a slice has at most 1000 endpoints of some hundred bytes.
const MAX_PAGE: u64 = 16 << 20;
const MAX_LINE: u64 = 2 << 20;
/// Slices that are kept.
const MAX_SLICES: usize = 1000;
/// Of what the server says of a refusal.
const MAX_SAID: u64 = 4 << 10;

/// The namespace of the pod that this runs in.
pub(crate) fn own_namespace() -> Option<String> {
    let file =
        || std::fs::read_to_string(Path::new(ACCOUNT).join("namespace")).ok().map(|t| t.trim().to_owned());
    std::env::var("POD_NAMESPACE").ok().filter(|n| !n.is_empty()).or_else(file)
}

/// How to reach the API server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiServer {
    /// `https://HOST:PORT`, or `http://` on this machine (`kubectl proxy`).
    pub url: String,
    /// File with a token, read again for each request: the kubelet renews it.
    pub token: Option<PathBuf>,
    /// File with the certificates that it is trusted by.
    pub ca: Option<PathBuf>,
}

impl ApiServer {
    /// By what the operator says, else as a pod reaches it.
    ///
    /// # Errors
    /// A sentence: there is none, or the token would cross the network in the clear.
    pub fn of(url: Option<&str>, token: Option<&Path>, ca: Option<&Path>) -> Result<Self, String> {
        let said = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let Some(url) = url else {
            let host = said("KUBERNETES_SERVICE_HOST").ok_or(
                "this is no pod of a cluster, so the API server is not known; set kubernetes.api, such as http://127.0.0.1:8001 of `kubectl proxy`",
            )?;
            let host = if host.contains(':') { format!("[{host}]") } else { host };
            let port = said("KUBERNETES_SERVICE_PORT_HTTPS").unwrap_or_else(|| "443".into());
            let of = |given: Option<&Path>, name: &str| {
                Some(given.map_or_else(|| Path::new(ACCOUNT).join(name), Path::to_owned))
            };
            return Ok(Self {
                url: format!("https://{host}:{port}"),
                token: of(token, "token"),
                ca: of(ca, "ca.crt"),
            });
        };
        let uri: http::Uri = url.parse().map_err(|_| format!("{url} is no URL"))?;
        let host = uri.host().unwrap_or_default();
        match uri.scheme_str() {
            Some("https") if !host.is_empty() => {}
            Some("http") if is_here(host) => {}
            _ => return Err(format!("{url} is neither https:// nor http:// on this machine")),
        }
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, token: token.map(Path::to_owned), ca: ca.map(Path::to_owned) })
    }
}

/// A Service that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Where.
    pub api: ApiServer,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Name or number of its port; empty: the only one.
    pub port: String,
}

/// What is known of a Service now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Who stands behind it.
    Is(Behind),
    /// Why that may be out of date.
    Trouble(String),
}

/// Follows a Service until the other end of `over` is dropped; `tell` answers whether anybody still listens.
pub fn follow(wanted: &Wanted, over: &Receiver<()>, mut tell: impl FnMut(News) -> bool) {
    let mut known = Known::default();
    let mut wait = FIRST;
    let goes_on = || over.try_recv() != Err(TryRecvError::Disconnected);
    while goes_on() {
        let begun = Instant::now();
        let round = known.round(wanted, &mut tell, &goes_on);
        // A watch that lasted was none of many failures in a row.
        if begun.elapsed() > LAST {
            wait = FIRST;
        }
        match round {
            Ok(()) => wait = FIRST,
            Err(Ended::Nobody) => return,
            Err(Ended::Old) => known.version.clear(),
            Err(Ended::Failed(why)) => {
                known.troubled = true;
                if !tell(News::Trouble(why)) {
                    return;
                }
                wait = (wait * 2).min(LAST);
            }
        }
        // Also after a watch that ended at once: a server that does so is not asked without a pause.
        let rest = wait.saturating_sub(begun.elapsed());
        if over.recv_timeout(rest) == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// Why a round ended.
enum Ended {
    /// Nobody listens any more.
    Nobody,
    /// What is known is too old to go on from (410): all is read again.
    Old,
    /// Anything else, as a sentence.
    Failed(String),
}

#[derive(Default)]
struct Known {
    slices: BTreeMap<String, Slice>,
    /// From where a watch goes on; empty: a list first.
    version: String,
    told: Option<Behind>,
    /// The last round failed, and that was told.
    troubled: bool,
}

#[derive(Deserialize)]
struct List {
    metadata: Metadata,
    items: Option<Vec<Slice>>,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    object: serde_json::Value,
}

impl Known {
    fn round(
        &mut self,
        wanted: &Wanted,
        tell: &mut impl FnMut(News) -> bool,
        goes_on: &impl Fn() -> bool,
    ) -> Result<(), Ended> {
        if self.version.is_empty() {
            let (slices, version) = list(wanted)?;
            self.slices = slices;
            self.version = version;
            self.troubled = false;
            // Also where nothing changed: it is known again.
            self.told = None;
        }
        self.tell(wanted, tell)?;
        let seconds = WATCH.as_secs().to_string();
        let query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self.version.as_str()),
            ("timeoutSeconds", seconds.as_str()),
        ];
        let answer = ask(wanted, &query, WATCH + ANSWER)?;
        if std::mem::take(&mut self.troubled) {
            self.told = None;
            self.tell(wanted, tell)?;
        }
        let mut lines = BufReader::new(answer.into_body().into_reader());
        while goes_on() {
            let mut line = Vec::new();
            let read = lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line);
            match read {
                Ok(0) => return Ok(()),
                Ok(_) if line.ends_with(b"\n") => {}
                Ok(_) => return Err(Ended::Failed("an event of the watch does not end".into())),
                Err(e) => return Err(Ended::Failed(format!("the watch broke off: {e}"))),
            }
            self.event(&line)?;
            self.tell(wanted, tell)?;
        }
        Ok(())
    }

    fn event(&mut self, line: &[u8]) -> Result<(), Ended> {
        let unread =
            |e: serde_json::Error| Ended::Failed(format!("an event of the watch cannot be read: {e}"));
        let event: Event = serde_json::from_slice(line).map_err(unread)?;
        if event.r#type == "ERROR" {
            let code = event.object.get("code").and_then(serde_json::Value::as_u64);
            let said = event.object.get("message").and_then(serde_json::Value::as_str).unwrap_or("no reason");
            return Err(if code == Some(410) { Ended::Old } else { Ended::Failed(said.to_owned()) });
        }
        let slice: Slice = serde_json::from_value(event.object).map_err(unread)?;
        self.version.clone_from(&slice.metadata.resource_version);
        match event.r#type.as_str() {
            "ADDED" | "MODIFIED"
                if self.slices.len() < MAX_SLICES || self.slices.contains_key(&slice.metadata.name) =>
            {
                self.slices.insert(slice.metadata.name.clone(), slice);
            }
            "DELETED" => drop(self.slices.remove(&slice.metadata.name)),
            // A bookmark is a version alone.
            _ => {}
        }
        Ok(())
    }

    fn tell(&mut self, wanted: &Wanted, tell: &mut impl FnMut(News) -> bool) -> Result<(), Ended> {
        let now = behind(self.slices.values(), &wanted.port);
        if self.told.as_ref() == Some(&now) {
            return Ok(());
        }
        self.told = Some(now.clone());
        if tell(News::Is(now)) { Ok(()) } else { Err(Ended::Nobody) }
    }
}

fn list(wanted: &Wanted) -> Result<(BTreeMap<String, Slice>, String), Ended> {
    let mut all = BTreeMap::new();
    let (page, mut more) = (PAGE.to_string(), String::new());
    loop {
        let mut query = vec![("limit", page.as_str())];
        if !more.is_empty() {
            query.push(("continue", more.as_str()));
        }
        let answer = ask(wanted, &query, ANSWER)?;
        let mut text = Vec::new();
        let read = answer.into_body().into_reader().take(MAX_PAGE).read_to_end(&mut text);
        read.map_err(|e| Ended::Failed(format!("the list broke off: {e}")))?;
        let list: List = serde_json::from_slice(&text)
            .map_err(|e| Ended::Failed(format!("what answers is no list of EndpointSlices: {e}")))?;
        all.extend(list.items.into_iter().flatten().map(|s| (s.metadata.name.clone(), s)));
        more = list.metadata.more;
        if more.is_empty() || all.len() >= MAX_SLICES {
            return Ok((all, list.metadata.resource_version));
        }
    }
}

fn ask(
    wanted: &Wanted,
    query: &[(&str, &str)],
    within: Duration,
) -> Result<ureq::http::Response<ureq::Body>, Ended> {
    let api = &wanted.api;
    let failed = |why: String| Ended::Failed(why);
    let tls = match &api.ca {
        Some(file) => trusting(file).map_err(|e| failed(format!("{}: {e}", file.display())))?,
        None => ureq::tls::TlsConfig::default(),
    };
    let url = format!("{}/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", api.url, wanted.namespace);
    let mut request = agent(within, CONNECT, tls)
        .get(&url)
        .query("labelSelector", format!("kubernetes.io/service-name={}", wanted.name))
        .query_pairs(query.iter().copied());
    if let Some(file) = &api.token {
        let token = std::fs::read_to_string(file)
            .map_err(|e| failed(format!("cannot read {}: {e}", file.display())))?;
        request = request.header("authorization", format!("Bearer {}", token.trim()));
    }
    let answer =
        request.call().map_err(|e| failed(format!("cannot reach the API server at {}: {e}", api.url)))?;
    match answer.status().as_u16() {
        200 => Ok(answer),
        410 => Err(Ended::Old),
        status => {
            let mut said = String::new();
            let _ = answer.into_body().into_reader().take(MAX_SAID).read_to_string(&mut said);
            let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
            let said = said.get("message").and_then(serde_json::Value::as_str).unwrap_or("no reason");
            let help = match status {
                403 => format!(
                    "; it needs list and watch on endpointslices.discovery.k8s.io in {}",
                    wanted.namespace
                ),
                _ => String::new(),
            };
            Err(failed(format!("the API server answers {status}: {said}{help}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_cross_the_network_in_the_clear() {
        let of = |url| ApiServer::of(Some(url), None, None);
        assert!(of("https://10.0.0.1:6443/").is_ok_and(|a| a.url == "https://10.0.0.1:6443"));
        assert!(of("http://127.0.0.1:8001").is_ok() && of("http://[::1]:8001").is_ok());
        for bad in ["http://10.0.0.1:8001", "ftp://127.0.0.1", "127.0.0.1:8001", "https://"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn events_move_on_and_only_what_is_too_old_is_read_again() {
        let mut known = Known::default();
        let event = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        let slice = r#"{"metadata":{"name":"a","resourceVersion":"7"}}"#;
        assert!(known.event(event("ADDED", slice).as_bytes()).is_ok());
        assert_eq!((known.slices.len(), known.version.as_str()), (1, "7"));
        let bookmark = r#"{"kind":"EndpointSlice","metadata":{"resourceVersion":"9"}}"#;
        assert!(known.event(event("BOOKMARK", bookmark).as_bytes()).is_ok());
        assert_eq!((known.slices.len(), known.version.as_str()), (1, "9"));
        let old = r#"{"kind":"Status","code":410,"message":"too old resource version"}"#;
        assert!(matches!(known.event(event("ERROR", old).as_bytes()), Err(Ended::Old)));
        let other = r#"{"kind":"Status","code":500,"message":"etcd"}"#;
        assert!(
            matches!(known.event(event("ERROR", other).as_bytes()), Err(Ended::Failed(w)) if w == "etcd")
        );
        assert!(known.event(b"{").is_err());
        assert!(known.event(event("DELETED", slice).as_bytes()).is_ok());
        assert!(known.slices.is_empty());
    }
}
