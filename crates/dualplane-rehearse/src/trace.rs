//! A trace: one request a line, as JSON.

use serde::Deserialize;

use crate::request::{Prefix, Request};

/// A trace of more requests is refused.
pub const MAX_REQUESTS: usize = 5_000_000;
/// So many tokens has no context.
const MAX_TOKENS: u32 = 100_000_000;

/// A line of a trace.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    at: f64,
    input: u32,
    output: u32,
    prefix: Option<Shared>,
    session: Option<u32>,
    cancel: Option<f64>,
    cancel_tokens: Option<u32>,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    tenant: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Shared {
    group: u32,
    tokens: u32,
}

/// What is wrong with a trace.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// A line is no request.
    #[error("line {line}: {why}; a line is {{\"at\": SECONDS, \"input\": TOKENS, \"output\": TOKENS}}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// There is none.
    #[error("it holds no request")]
    Empty,
    /// Too many.
    #[error("it holds more than {MAX_REQUESTS} requests; rehearse a part of it")]
    TooMany,
}

/// Reads a trace, in order of time.
///
/// # Errors
/// [`TraceError`].
pub fn read(text: &str) -> Result<Vec<Request>, TraceError> {
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if all.len() >= MAX_REQUESTS {
            return Err(TraceError::TooMany);
        }
        all.push(one(line).map_err(|why| TraceError::Line { line: i + 1, why })?);
    }
    if all.is_empty() {
        return Err(TraceError::Empty);
    }
    all.sort_by(|a, b| a.at.total_cmp(&b.at));
    Ok(all)
}

fn one(line: &str) -> Result<Request, String> {
    // The position that the reader adds is one of this line alone.
    let l: Line = serde_json::from_str(line).map_err(|e| {
        let text = e.to_string();
        text.split(" at line ").next().unwrap_or(&text).to_owned()
    })?;
    let seconds = |name: &str, x: f64| {
        if x.is_finite() && (0.0..1e12).contains(&x) { Ok(x) } else { Err(format!("`{name}` is {x}")) }
    };
    seconds("at", l.at)?;
    l.cancel.map(|c| seconds("cancel", c)).transpose()?;
    if l.input == 0 || l.output == 0 || l.input > MAX_TOKENS || l.output > MAX_TOKENS {
        return Err(format!("{} tokens in and {} out are no request", l.input, l.output));
    }
    Ok(Request {
        at: l.at,
        input: l.input,
        output: l.output,
        prefix: l.prefix.map(|p| Prefix { group: p.group, tokens: p.tokens }),
        session: l.session,
        cancel: l.cancel,
        cancel_tokens: l.cancel_tokens,
        priority: l.priority,
        tenant: l.tenant,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_into_the_order_of_time() {
        let all = read("{\"at\": 2, \"input\": 5, \"output\": 1}\n\n{\"at\": 1.5, \"input\": 7, \"output\": 2, \"prefix\": {\"group\": 1, \"tokens\": 4}}\n").unwrap();
        assert_eq!(all.iter().map(|r| r.input).collect::<Vec<_>>(), [7, 5]);
        assert_eq!(all[0].prefix, Some(Prefix { group: 1, tokens: 4 }));
    }

    #[test]
    fn what_is_no_request_is_told_with_its_line() {
        let of = |text: &str| read(text).unwrap_err().to_string();
        assert!(of("").contains("no request"));
        let ok = "{\"at\": 2, \"input\": 5, \"output\": 1}\n";
        assert!(of(&format!("{ok}{{\"at\": 2}}")).starts_with("line 2: missing field `input`"));
        assert!(of(&format!("{ok}hello")).starts_with("line 2: "));
        assert!(of("{\"at\": -1, \"input\": 5, \"output\": 1}").contains("`at` is -1"));
        assert!(of("{\"at\": 1, \"input\": 0, \"output\": 1}").contains("no request"));
        assert!(of("{\"at\": 1, \"input\": 1, \"output\": 1, \"promt\": 3}").contains("promt"));
    }
}
