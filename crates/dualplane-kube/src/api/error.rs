//! What goes wrong with a request, in words that say what to do.

use std::time::Duration;

use http::StatusCode;
use serde_json::Value;

use crate::access::chain;

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ApiError {
    /// No cluster is configured, or its credentials cannot be read.
    #[error("{0}")]
    Access(String),
    /// Credentials are refused (401).
    #[error("the API server rejected the credentials ({0})")]
    Unauthorized(String),
    /// A permission is missing (403).
    #[error("not allowed: {why}")]
    Forbidden {
        /// The verb and resource that are missing, such as `list events`; empty where the server does not say.
        permission: String,
        /// The server's words.
        why: String,
    },
    /// Not there (404): the object, or the API group.
    #[error("not found: {0}")]
    NotFound(String),
    /// The server is too busy, and the time is up (429).
    #[error("the server asked to wait{}", .after.map_or(String::new(), |d| format!(" {} s", d.as_secs())))]
    Busy {
        /// Path.
        path: String,
        /// What it asked for.
        after: Option<Duration>,
    },
    /// A list's continuation is too old (410).
    #[error("the list changed too often while it was read ({0})")]
    Expired(String),
    /// Another answer.
    #[error("the server answered {status}: {why}")]
    Status {
        /// HTTP status.
        status: u16,
        /// The server's words.
        why: String,
    },
    /// No connection.
    #[error("cannot reach {server}: {why}")]
    Unreachable {
        /// URL.
        server: String,
        /// Reason.
        why: String,
    },
    /// The connection broke inside an answer.
    #[error("the response was interrupted: {why}")]
    Interrupted {
        /// Path.
        path: String,
        /// Reason.
        why: String,
    },
    /// No answer in time.
    #[error("timed out")]
    TimedOut(String),
    /// An answer beyond the bound.
    #[error("the response is larger than {} MiB", .bound >> 20)]
    TooLarge {
        /// Path.
        path: String,
        /// Bytes.
        bound: usize,
    },
    /// An answer that cannot be read.
    #[error("unexpected response: {why}")]
    InvalidResponse {
        /// Path.
        path: String,
        /// What is odd.
        why: String,
    },
}

impl ApiError {
    /// Whether it only says that something does not exist here: an API group, a pod without metrics.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound(_))
    }

    /// Whether no other request can do better.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Access(_) | Self::Unauthorized(_) | Self::Unreachable { .. })
    }

    /// Whether the same request may be answered later: nobody refused it.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Busy { .. } | Self::Unreachable { .. } | Self::Interrupted { .. } | Self::TimedOut(_) => {
                true
            }
            Self::Status { status, .. } => *status >= 500,
            _ => false,
        }
    }

    pub(super) fn of_client(server: &str, path: &str, e: &kube_client::Error) -> Self {
        match e {
            kube_client::Error::Auth(e) => Self::Access(chain(e)),
            kube_client::Error::HttpError(e) => {
                Self::InvalidResponse { path: path.to_owned(), why: e.to_string() }
            }
            e => Self::Unreachable { server: server.to_owned(), why: chain(e) },
        }
    }

    pub(super) fn of_status(path: &str, status: StatusCode, body: &[u8]) -> Self {
        let why =
            message(body).unwrap_or_else(|| status.canonical_reason().unwrap_or("no reason").to_owned());
        match status {
            StatusCode::UNAUTHORIZED => Self::Unauthorized(why),
            StatusCode::FORBIDDEN => {
                Self::Forbidden { permission: permission(&why).unwrap_or_default(), why }
            }
            StatusCode::NOT_FOUND => Self::NotFound(why),
            StatusCode::GONE => Self::Expired(path.to_owned()),
            _ => Self::Status { status: status.as_u16(), why },
        }
    }
}

/// `message` of a Status object, or a plain text such as the kubelet's.
fn message(body: &[u8]) -> Option<String> {
    let text = match serde_json::from_slice::<Value>(body) {
        Ok(status) => status.get("message")?.as_str()?.trim().to_owned(),
        Err(_) => String::from_utf8_lossy(body.get(..body.len().min(400))?).trim().to_owned(),
    };
    (!text.is_empty()).then(|| clipped(&text))
}

/// Long texts quote the object first and say what is wrong with it last.
fn clipped(text: &str) -> String {
    let all = text.chars().count();
    if all <= MAX_WHY {
        return text.to_owned();
    }
    let (head, tail) = (MAX_WHY / 2, MAX_WHY / 2 - 1);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(all - tail)).collect()
}

/// Characters of a server's words.
const MAX_WHY: usize = 400;

/// `User "u" cannot list resource "events" in API group "" …` names verb and resource.
fn permission(why: &str) -> Option<String> {
    let rest = why.split(" cannot ").nth(1)?;
    let verb = rest.split_whitespace().next()?;
    let mut quoted = rest.split('"');
    let resource = quoted.nth(1)?;
    let group = rest.split("API group \"").nth(1).and_then(|r| r.split('"').next()).unwrap_or_default();
    let group = if group.is_empty() { String::new() } else { format!(".{group}") };
    Some(format!("{verb} {resource}{group}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_permission_is_named() {
        let why = r#"pods "x" is forbidden: User "system:serviceaccount:a:b" cannot get resource "pods/log" in API group "" in the namespace "ns""#;
        let body = serde_json::json!({"kind": "Status", "message": why}).to_string();
        let fault = ApiError::of_status("/x", StatusCode::FORBIDDEN, body.as_bytes());
        assert!(
            matches!(&fault, ApiError::Forbidden { permission, .. } if permission == "get pods/log"),
            "{fault:?}"
        );
        let why = r#"User "u" cannot list resource "horizontalpodautoscalers" in API group "autoscaling" at the cluster scope"#;
        assert_eq!(permission(why).as_deref(), Some("list horizontalpodautoscalers.autoscaling"));
        assert_eq!(permission("no such words"), None);
    }

    #[test]
    fn a_kubelets_plain_text_is_kept_short() {
        assert!(clipped(&format!("{}: unknown field", "x".repeat(900))).ends_with(": unknown field"));
        let body = "container is not ready ".repeat(100);
        let ApiError::Status { status, why } =
            ApiError::of_status("/x", StatusCode::BAD_GATEWAY, body.as_bytes())
        else {
            panic!("another fault")
        };
        assert_eq!((status, why.chars().count()), (502, 400));
    }
}
