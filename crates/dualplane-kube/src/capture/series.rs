//! Both planes over time, up to the death: from Prometheus and Loki, where they are named.

use std::time::Duration;

use dualplane_core::knowledge::Engines;
use http::Uri;
use jiff::Timestamp;
use kube_client::config::Config;
use serde_json::Value;

use super::context::Context;
use super::source::{Missing, SourceData, Work};
use crate::access::{chain, without_password};
use crate::api::{Api, ApiError, path};

/// Before the death: long enough for a leak's slope and a prefill's peak, at one sample in 15 s.
const BEFORE_S: i64 = 30 * 60;
/// After it, for counters that are scraped late.
const AFTER_S: i64 = 2 * 60;
/// Seconds between samples, Prometheus' usual scrape interval.
const STEP: &str = "15";
/// Lines of Loki, the last ones before the end: its default bound.
const LOKI_LINES: &str = "5000";
/// For one query.
const TIME: Duration = Duration::from_secs(20);

/// A store to ask.
#[derive(Debug)]
pub struct Access {
    api: Api,
    url: String,
}

impl Access {
    /// What a query of Prometheus gives over time: seconds since 1970, and between two values.
    ///
    /// # Errors
    /// The store does not answer, or not with success.
    pub async fn range(&self, query: &str, from: i64, to: i64, step: u64) -> Result<Value, ApiError> {
        let (from, to, step) = (from.to_string(), to.to_string(), step.to_string());
        let query = [("query", query), ("start", &from), ("end", &to), ("step", &step), ("timeout", "15s")];
        self.api.object(&path::with_query("/api/v1/query_range", &query)).await
    }

    /// What a query of Prometheus gives at a moment, seconds since 1970: of a range (`metric[60s]`) the samples as they were
    /// scraped, with their own times.
    ///
    /// # Errors
    /// The store does not answer, or not with success.
    pub async fn at(&self, query: &str, at: i64) -> Result<Value, ApiError> {
        let at = at.to_string();
        let query = [("query", query), ("time", &at), ("timeout", "15s")];
        self.api.object(&path::with_query("/api/v1/query", &query)).await
    }
}

/// Whether the URL holds a password, as `http://user:password@host` does.
#[must_use]
pub fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// Prometheus, or what speaks its API (Thanos, Mimir, VictoriaMetrics), or Loki. The token is sent as such, or as the
/// password of the user that the URL names.
///
/// # Errors
/// [`ApiError::Access`] when the URL is none.
pub fn store(url: &str, token: Option<String>) -> Result<Access, ApiError> {
    let odd =
        |why: String| ApiError::Access(format!("{} is not a valid store URL: {why}", without_password(url)));
    let uri: Uri =
        url.trim_end_matches('/').parse().map_err(|e: http::uri::InvalidUri| odd(e.to_string()))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(odd("it must begin with http:// or https://".into()));
    }
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let (userinfo, host) =
        authority.rsplit_once('@').map_or((None, authority.as_str()), |(u, h)| (Some(u), h));
    let bare = format!("{}://{host}{}", uri.scheme_str().unwrap_or("http"), uri.path().trim_end_matches('/'));
    let mut config = Config::new(bare.parse().map_err(|e: http::uri::InvalidUri| odd(e.to_string()))?);
    config.default_retry = false;
    config.connect_timeout = Some(Duration::from_secs(5));
    match userinfo {
        Some(user) => {
            config.auth_info.username = Some(user.split(':').next().unwrap_or_default().to_owned());
            config.auth_info.password = Some(token.unwrap_or_default().into());
        }
        None => config.auth_info.token = token.map(Into::into),
    }
    let client = kube_client::Client::try_from(config).map_err(|e| odd(chain(&e)))?;
    Ok(Access { api: Api::new(client, bare.clone(), String::new(), Some(TIME)), url: bare })
}

/// One group of series.
struct Query {
    file: &'static str,
    what: &'static str,
    /// PromQL; `{ns}`, `{pod}`, `{node}` are put in.
    expression: &'static str,
}

const QUERIES: &[Query] = &[
    Query {
        file: "host",
        what: "host RAM of the pod over time",
        expression: r#"{__name__=~"container_memory_(working_set_bytes|rss|cache|usage_bytes)|container_spec_memory_limit_bytes|container_oom_events_total",namespace="{ns}",pod="{pod}",container!="POD"}"#,
    },
    Query {
        file: "state",
        what: "limits and restarts of the pod over time",
        expression: r#"{__name__=~"kube_pod_container_resource_limits|kube_pod_container_status_(restarts_total|last_terminated_reason|last_terminated_exitcode)|dualplane_container_(restarts|last_incident)",namespace="{ns}",pod="{pod}"}"#,
    },
    Query {
        file: "gpu-node",
        what: "VRAM of the node's GPUs over time",
        expression: r#"{__name__=~"DCGM_FI_DEV_(FB_(USED|FREE|RESERVED|TOTAL)|XID_ERRORS)",Hostname="{node}"}"#,
    },
    Query {
        file: "gpu-pod",
        what: "VRAM of the pod's GPUs over time",
        expression: r#"{__name__=~"DCGM_FI_DEV_(FB_(USED|FREE|RESERVED|TOTAL)|XID_ERRORS)",pod="{pod}",namespace="{ns}"} or {__name__=~"DCGM_FI_DEV_(FB_(USED|FREE|RESERVED|TOTAL)|XID_ERRORS)",exported_pod="{pod}",exported_namespace="{ns}"}"#,
    },
    Query {
        file: "engine",
        what: "the engine's KV cache and queue over time",
        expression: r#"{__name__=~"({prefixes}).*(cache|token_usage|preempt|requests_running|requests_waiting|num_running_reqs|num_queue_reqs|queue_size|kv_).*",__name__!~".*_bucket",namespace="{ns}",pod="{pod}"}"#,
    },
    Query {
        file: "node",
        what: "RAM of the node over time",
        expression: r#"{__name__=~"node_memory_(MemAvailable|MemTotal|Shmem)_bytes|node_vmstat_oom_kill",instance=~"{node}(:[0-9]+)?"}"#,
    },
];

pub(super) fn plan<'a>(cx: &'a Context<'a>, work: &mut Work<'a>) {
    if let Some(store) = &cx.options.prometheus {
        for q in QUERIES {
            let expression = fill(q.expression, cx);
            let missing = Missing {
                what: q.what.into(),
                command: Some(format!("promtool query range {} '{expression}'", store.url)),
                wanted: true,
            };
            work.add(format!("prometheus/{}", q.file), missing, range(cx, store, q.file, expression));
        }
    }
    if let Some(store) = &cx.options.loki {
        let query = fill(r#"{namespace="{ns}",pod="{pod}"}"#, cx);
        let missing = Missing {
            what: "the pod's lines in Loki".into(),
            command: Some(format!("logcli query --addr={} '{query}'", store.url)),
            wanted: true,
        };
        work.add("loki", missing, lines(cx, store, query));
    }
}

/// Names of objects hold no quotes; the node's may hold dots, which a regular expression reads as any character.
fn fill(expression: &str, cx: &Context<'_>) -> String {
    let regex = expression.contains("=~\"{node}");
    let node = if regex { cx.node.replace('.', "[.]") } else { cx.node.clone() };
    let prefixes: Vec<&str> =
        Engines::embedded().iter().flat_map(|d| &d.metrics_prefixes).map(String::as_str).collect();
    let expression = expression.replace("{prefixes}", &prefixes.join("|"));
    expression.replace("{ns}", &cx.namespace).replace("{pod}", &cx.pod_name).replace("{node}", &node)
}

/// From and to, seconds. The death is told by the node's clock; where this machine's is behind it, the death is later
/// than now.
fn window(died_at: Option<Timestamp>, now: Timestamp) -> (i64, i64) {
    let end = died_at.unwrap_or(now).as_second();
    (end - BEFORE_S, (end + AFTER_S).min(now.as_second().max(end)))
}

async fn range(
    cx: &Context<'_>,
    store: &Access,
    file: &str,
    expression: String,
) -> Result<SourceData, ApiError> {
    let (start, end) = window(cx.died_at, cx.options.now);
    let (start, end) = (start.to_string(), end.to_string());
    let query = [
        ("query", expression.as_str()),
        ("start", &start),
        ("end", &end),
        ("step", STEP),
        ("timeout", "15s"),
    ];
    let answer = store.api.object(&path::with_query("/api/v1/query_range", &query)).await?;
    if !has_results(&answer) {
        return Ok(SourceData::default());
    }
    Ok(SourceData::one(cx.json(&format!("prometheus/{file}.json"), answer)))
}

async fn lines(cx: &Context<'_>, store: &Access, query: String) -> Result<SourceData, ApiError> {
    let (start, end) = window(cx.died_at, cx.options.now);
    let nanos = |s: i64| Timestamp::from_second(s).map_or(0, |t| t.as_nanosecond()).to_string();
    let (start, end) = (nanos(start), nanos(end));
    let query = [
        ("query", query.as_str()),
        ("start", &start),
        ("end", &end),
        ("limit", LOKI_LINES),
        ("direction", "backward"),
    ];
    let answer = store.api.object(&path::with_query("/loki/api/v1/query_range", &query)).await?;
    if !has_results(&answer) {
        return Ok(SourceData::default());
    }
    Ok(SourceData::one(cx.json("loki.json", answer)))
}

fn has_results(answer: &Value) -> bool {
    answer.pointer("/data/result").and_then(Value::as_array).is_some_and(|r| !r.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_ends_with_the_death_on_whichever_clock() {
        let at = |s: i64| Timestamp::from_second(1_800_000_000 + s).unwrap();
        let told = |died: Option<i64>, now| {
            let (from, to) = window(died.map(at), at(now));
            (from - 1_800_000_000, to - 1_800_000_000)
        };
        assert_eq!(told(Some(0), 3600), (-1800, 120));
        assert_eq!(told(Some(0), 30), (-1800, 30));
        assert_eq!(told(Some(0), -600), (-1800, 0), "a clock that is ten minutes behind");
        assert_eq!(told(None, 0), (-1800, 0));
    }

    #[test]
    fn passwords_of_urls_are_not_shown() {
        let e = store("ftp://u:geheim@prom", None).unwrap_err().to_string();
        assert!(e.contains("http://") && !e.contains("geheim"), "{e}");
        let e = store("u:geheim@prom:9090", None).unwrap_err().to_string();
        assert!(e.contains("http://") && !e.contains("geheim"), "{e}");
    }

    #[test]
    fn a_password_in_a_url_is_seen_and_a_user_is_none() {
        for (url, want) in [
            ("http://u:p@prom:9090", true),
            ("u:p@prom", true),
            ("http://u:@prom/x", true),
            ("http://u@prom:9090", false),
            ("http://prom:9090/a:b@c", false),
            ("http://[fd00::1]:9090", false),
            ("", false),
        ] {
            assert_eq!(has_password(url), want, "{url}");
        }
    }
}
