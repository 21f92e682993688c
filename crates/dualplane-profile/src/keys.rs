//! `key=value` and `"key": value` in a line of text: which of them tell of a request.

use crate::tally::{MAX_TOKENS, Seen, mark};

/// Of a longer line the end is searched: engines print what they counted behind what users wrote.
const MOST: usize = 64 << 10;
/// No key is longer.
const MAX_KEY: usize = 48;

/// What a key tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Input,
    Output,
    Cached,
    Seconds,
    Milliseconds,
    Tenant,
    Status,
    Finish,
    Time,
    MostOutput,
    Text,
}

/// Names as programs write them, in lower case with `_`.
const KEYS: &[(Key, &[&str])] = &[
    (
        Key::Input,
        &[
            "input_tokens",
            "prompt_tokens",
            "num_prompt_tokens",
            "n_prompt_tokens",
            "prompt_token_count",
            "prompttokencount",
            "gen_ai_usage_input_tokens",
            "gen_ai_usage_prompt_tokens",
            "llm_usage_prompt_tokens",
            "input_length",
            "input_len",
            "prompt_len",
            "prompt_length",
            "contexttokens",
            "context_tokens",
            "request_tokens",
            "tokens_evaluated",
            "prompt_eval_count",
            "num_input_tokens",
            "input_token_count",
        ],
    ),
    (
        Key::Output,
        &[
            "output_tokens",
            "completion_tokens",
            "generated_tokens",
            "generation_tokens",
            "num_generation_tokens",
            "candidatestokencount",
            "gen_ai_usage_output_tokens",
            "gen_ai_usage_completion_tokens",
            "llm_usage_completion_tokens",
            "output_length",
            "output_len",
            "generatedtokens",
            "response_tokens",
            "tokens_predicted",
            "eval_count",
            "num_output_tokens",
            "output_token_count",
            "n_decoded",
        ],
    ),
    (
        Key::Cached,
        &[
            "cached_tokens",
            "num_cached_tokens",
            "cache_read_input_tokens",
            "cached_prompt_tokens",
            "gen_ai_usage_cache_read_input_tokens",
            "prompt_cached_tokens",
        ],
    ),
    (
        Key::Seconds,
        &[
            "duration_s",
            "duration_seconds",
            "request_time",
            "latency_s",
            "latency_seconds",
            "e2e_latency",
            "elapsed",
            "elapsed_s",
            "elapsed_seconds",
            "response_time",
            "total_time",
            "duration",
            "latency",
        ],
    ),
    (
        Key::Milliseconds,
        &[
            "duration_ms",
            "latency_ms",
            "elapsed_ms",
            "response_time_ms",
            "total_ms",
            "total_time_ms",
            "e2e_latency_ms",
            "durationms",
            "latencyms",
        ],
    ),
    (
        Key::Tenant,
        &[
            "tenant",
            "tenant_id",
            "org",
            "org_id",
            "organization",
            "organization_id",
            "team",
            "team_id",
            "customer",
            "customer_id",
            "project_id",
            "api_key",
            "api_key_id",
            "key_alias",
            "user_id",
            "user",
            "session_id",
        ],
    ),
    (Key::Status, &["status", "status_code", "http_status", "http_status_code", "response_code"]),
    (Key::Finish, &["finish_reason", "stop_reason", "finished_reason"]),
    (
        Key::Time,
        &[
            "timestamp",
            "ts",
            "time",
            "@timestamp",
            "created",
            "created_at",
            "start_time",
            "starttime",
            "arrival_time",
            "received_time",
            "request_received_ts",
        ],
    ),
    (
        Key::MostOutput,
        &["max_tokens", "max_completion_tokens", "max_new_tokens", "max_output_tokens", "n_predict"],
    ),
    (Key::Text, &["content", "text", "prompt"]),
];

/// What this name tells.
pub(crate) fn key(name: &[u8]) -> Option<Key> {
    if name.is_empty() || name.len() > MAX_KEY {
        return None;
    }
    let mut buffer = [0_u8; MAX_KEY];
    let plain = buffer.get_mut(..name.len())?;
    for (to, from) in plain.iter_mut().zip(name) {
        *to = match from.to_ascii_lowercase() {
            b'-' | b'.' | b' ' => b'_',
            b => b,
        };
    }
    let plain: &[u8] = plain;
    KEYS.iter().find(|(_, names)| names.iter().any(|n| n.as_bytes() == plain)).map(|(k, _)| *k)
}

impl Seen {
    /// Takes what a key says in words.
    pub(crate) fn take(&mut self, key: Key, value: &str) {
        let tokens =
            || value.parse::<f64>().ok().filter(|n| (0.0..=MAX_TOKENS as f64).contains(n)).map(|n| n as u64);
        match key {
            Key::Input => self.input = tokens().or(self.input),
            Key::Output => self.output = tokens().or(self.output),
            Key::Cached => self.cached = tokens().or(self.cached),
            Key::MostOutput => self.most_output = tokens().or(self.most_output),
            Key::Seconds => self.seconds = span(value).or(self.seconds),
            Key::Milliseconds => {
                self.seconds = value.parse::<f64>().ok().map(|ms| ms / 1000.0).or(self.seconds);
            }
            Key::Tenant if !matches!(value, "" | "-" | "null" | "None" | "none") => {
                // An organisation says more than a user of it: the first that a line names is kept.
                self.tenant = self.tenant.or(Some(mark(value.as_bytes())));
            }
            Key::Status => match value.parse::<u32>() {
                // nginx: the client closed the connection.
                Ok(499) => self.cancelled = true,
                Ok(400..=599) => self.failed = true,
                _ => self.cancelled |= matches!(value, "cancelled" | "canceled" | "aborted"),
            },
            Key::Finish => self.cancelled |= matches!(value, "abort" | "aborted" | "cancelled" | "canceled"),
            Key::Time => self.at = time(value).or(self.at),
            Key::Tenant | Key::Text => {}
        }
    }
}

/// `1.2`, `1.2s`, `350ms`, `12µs`, `1m2s` is left out.
fn span(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at_checked(end)?;
    let n: f64 = number.parse().ok()?;
    let seconds = match unit {
        "" | "s" => n,
        "ms" => n / 1e3,
        "us" | "µs" | "μs" => n / 1e6,
        "ns" => n / 1e9,
        _ => return None,
    };
    seconds.is_finite().then_some(seconds)
}

/// A time as a number of any unit since 1970, or in words, in seconds.
pub(crate) fn time(value: &str) -> Option<f64> {
    if let Ok(n) = value.parse::<f64>() {
        return seconds(n);
    }
    stamp(value)
}

/// Seconds, milli-, micro- or nanoseconds since 1970, by their size.
pub(crate) fn seconds(n: f64) -> Option<f64> {
    let scale = match n {
        n if !(0.0..1e20).contains(&n) => return None,
        n if n < 1e11 => 1.0,
        n if n < 1e14 => 1e3,
        n if n < 1e17 => 1e6,
        _ => 1e9,
    };
    Some(n / scale)
}

/// The time that a line begins with, or has within.
pub(crate) fn stamp(line: &str) -> Option<f64> {
    use dualplane_base::time::{Stamp, find_stamp};
    match find_stamp(line)? {
        Stamp::Wall { ms, .. } => Some(ms as f64 / 1000.0),
        Stamp::Boot { us } => Some(us as f64 / 1e6),
    }
}

/// What the keys of a line tell.
pub(crate) fn scan(line: &[u8]) -> Seen {
    let line = line.get(line.len().saturating_sub(MOST)..).unwrap_or(line);
    let mut seen = Seen::default();
    for at in memchr::memchr2_iter(b'=', b':', line) {
        let Some(name) = name_before(line, at) else { continue };
        let Some(found) = key(name).filter(|k| *k != Key::Time && *k != Key::Text) else { continue };
        if let Some(value) = value_after(line, at).and_then(|v| std::str::from_utf8(v).ok()) {
            seen.take(found, value);
        }
    }
    seen
}

fn is_name(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'@')
}

fn name_before(line: &[u8], at: usize) -> Option<&[u8]> {
    let before = line.get(..at)?;
    let quoted = before.last().is_some_and(|b| matches!(b, b'"' | b'\''));
    let end = if quoted { before.len() - 1 } else { before.len() };
    let name = before.get(..end)?;
    let begin = name.iter().rposition(|b| !is_name(*b)).map_or(0, |i| i + 1);
    name.get(begin..).filter(|n| !n.is_empty())
}

fn value_after(line: &[u8], at: usize) -> Option<&[u8]> {
    let mut rest = line.get(at + 1..)?;
    while let [b' ' | b'"' | b'\'', tail @ ..] = rest {
        rest = tail;
    }
    let ends = |b: &u8| matches!(b, b' ' | b',' | b'"' | b'\'' | b'}' | b')' | b']' | b';' | b'\t' | b'\r');
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    rest.get(..end).filter(|v| !v.is_empty() && v.len() <= 128)
}
